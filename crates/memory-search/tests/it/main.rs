//! An index from outside: alone, and behind a watermark wherever that stands.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    missing_docs
)]

mod contradictions;
#[path = "../../examples/trigram_index/index.rs"]
mod index;
mod oracle;
mod segments;
mod vectors;
mod watermark;

use std::sync::Arc;

use index::TrigramIndex;
use memory_model::{ConversationId, Seq};
use memory_store::{
    Conversation, ConversationRef, InMemoryStore, IndexedSearch, LogRead, Origin, Store,
};
use store_conformance::{SearchFixture, range};

/// Indexes a conversation up to a position, and this number of its summaries.
async fn fill(
    store: &InMemoryStore,
    index: &TrigramIndex,
    chat: ConversationId,
    last: Seq,
    summaries: usize,
) {
    let done = index.watermark(chat);
    if done.messages < last {
        let rest = range(done.messages.0 + 1, last.0);
        let page = store.read(chat, &LogRead::new(rest)).await.unwrap();
        index.add_messages(chat, page.items);
    }
    let page = store.summary_log(chat, done.summaries.as_ref(), summaries.max(1));
    let mut page = page.await.unwrap().items;
    page.truncate(summaries);
    index.add_summaries(chat, page);
}

async fn conversation(store: &InMemoryStore, chat: ConversationId) -> Conversation {
    let found = store.conversation(&ConversationRef::Id(chat)).await;
    found.unwrap().unwrap()
}

/// The index by itself, which holds everything whenever it is asked.
struct Alone;

impl SearchFixture for Alone {
    type Store = InMemoryStore;
    type Search = TrigramIndex;

    async fn fresh_search(&self) -> (Arc<InMemoryStore>, TrigramIndex) {
        (Arc::new(InMemoryStore::new()), TrigramIndex::default())
    }

    async fn catch_up(&self, store: &InMemoryStore, index: &TrigramIndex, chat: ConversationId) {
        let head = conversation(store, chat).await.head;
        index.forget(chat);
        fill(store, index, chat, head, usize::MAX).await;
    }
}

/// How far the index has come when it is asked.
#[derive(Debug, Clone, Copy)]
enum Filled {
    Not,
    /// To half of the log, and the first summary.
    Half,
    /// A little farther with every question, pages of one answer included.
    Farther,
    Wholly,
}

/// The index behind its watermark; the rest is scanned.
struct Behind(Filled);

impl SearchFixture for Behind {
    type Store = InMemoryStore;
    type Search = IndexedSearch<TrigramIndex, Arc<InMemoryStore>>;

    async fn fresh_search(&self) -> (Arc<InMemoryStore>, Self::Search) {
        let store = Arc::new(InMemoryStore::new());
        let search = IndexedSearch::new(TrigramIndex::default(), Arc::clone(&store));
        (store, search)
    }

    async fn catch_up(&self, store: &InMemoryStore, search: &Self::Search, chat: ConversationId) {
        let found = conversation(store, chat).await;
        let index = search.index();
        let done = index.watermark(chat);
        let (last, summaries) = match self.0 {
            Filled::Not => return,
            Filled::Half => (found.head.0 / 2, usize::from(done.summaries.is_none())),
            Filled::Farther => ((done.messages.0 + 1).min(found.head.0), 1),
            Filled::Wholly => (found.head.0, usize::MAX),
        };
        // Ancestors of a fork may still make summaries that come before those that it has.
        let is_fork = matches!(found.origin, Origin::Fork { .. });
        let summaries = if is_fork { 0 } else { summaries };
        fill(store, index, chat, Seq(last), summaries).await;
    }
}

mod alone {
    store_conformance::search_conformance_tests!(super::Alone);
}

mod not_filled {
    store_conformance::search_conformance_tests!(super::Behind(super::Filled::Not));
}

mod half_filled {
    store_conformance::search_conformance_tests!(super::Behind(super::Filled::Half));
}

mod filled_on_the_way {
    store_conformance::search_conformance_tests!(super::Behind(super::Filled::Farther));
}

mod wholly_filled {
    store_conformance::search_conformance_tests!(super::Behind(super::Filled::Wholly));
}
