//! Traits that make the stores and searches to be tested.

use std::sync::Arc;

use memory_model::ConversationId;
use memory_search::{Search, SegmentSearch};
use memory_store::FullStore;

/// Makes the stores on which the suite of store tests runs.
#[allow(async_fn_in_trait, reason = "tests await these in place")]
pub trait Fixture {
    /// The store under test.
    type Store: FullStore;

    /// Creates an empty store that shares no data with any other store.
    async fn fresh(&self) -> Self::Store;

    /// Closes a store and opens its data again. For a store without durable data it returns the same store.
    async fn reopen(&self, store: Self::Store) -> Self::Store {
        store
    }

    /// Opens a second store on the same data, as another process does. Returns `None` if only one store at a time can
    /// have the data open.
    async fn second_store(&self, _store: &Self::Store) -> Option<Self::Store> {
        None
    }
}

/// Makes the searches on which the suite of search tests runs. Every [`Fixture`] is also a search fixture, with a
/// search that scans the whole log.
#[allow(async_fn_in_trait, reason = "tests await these in place")]
pub trait SearchFixture {
    /// The store to which the suite writes.
    type Store: FullStore;
    /// The search under test.
    type Search: Search;

    /// Creates an empty store, and a search in it.
    async fn fresh_search(&self) -> (Arc<Self::Store>, Self::Search);

    /// Called before each search of a conversation. A fixture with a search that uses an index may update the index
    /// here, wholly or in part. The default does nothing.
    async fn catch_up(
        &self,
        _store: &Self::Store,
        _search: &Self::Search,
        _conversation: ConversationId,
    ) {
    }
}

impl<F: Fixture> SearchFixture for F {
    type Store = F::Store;
    type Search = SegmentSearch<Arc<F::Store>>;

    async fn fresh_search(&self) -> (Arc<F::Store>, Self::Search) {
        let store = Arc::new(self.fresh().await);
        let search = SegmentSearch::without_index(Arc::clone(&store));
        (store, search)
    }
}
