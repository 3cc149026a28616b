//! Traits that a store or a search implements to be tested.

use std::sync::Arc;

use memory_model::ConversationId;
use memory_search::{Search, SegmentSearch};
use memory_store::FullStore;

/// Makes the stores that the suite tests.
#[allow(async_fn_in_trait, reason = "tests await these in place")]
pub trait Fixture {
    /// The store under test.
    type Store: FullStore;

    /// Makes an empty store that shares no data with any other store.
    async fn fresh(&self) -> Self::Store;

    /// Closes a store and opens its data again. A store without durable data returns itself.
    async fn reopen(&self, store: Self::Store) -> Self::Store {
        store
    }

    /// Opens a second store on the same data, as another process would; `None` if only one store can have the data
    /// open.
    async fn second_store(&self, _store: &Self::Store) -> Option<Self::Store> {
        None
    }
}

/// Makes the searches that the suite tests. Every [`Fixture`] is also a search fixture: its search scans the store.
#[allow(async_fn_in_trait, reason = "tests await these in place")]
pub trait SearchFixture {
    /// The store that the suite writes to.
    type Store: FullStore;
    /// The search under test.
    type Search: Search;

    /// Makes an empty store and a search in it.
    async fn fresh_search(&self) -> (Arc<Self::Store>, Self::Search);

    /// Called before each search of a conversation. A fixture of an index may bring the index up
    /// to date here, wholly or partly.
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
