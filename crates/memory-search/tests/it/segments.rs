//! A search with the index of the reference store gives the same answers as a search without an index.

use std::sync::Arc;

use memory_model::{ConversationId, Message};
use memory_search::{SegmentSearch, check_index, extend_index, rebuild_index};
use memory_store::InMemoryStore;
use store_conformance::{
    Chat, SearchFixture, an_index_is_checked_while_it_changes, index_answers_as_a_scan,
    index_segments_are_few, range,
};

#[tokio::test]
async fn an_index_answers_as_a_scan() {
    for seed in 1..4 {
        index_answers_as_a_scan(Arc::new(InMemoryStore::new()), seed).await;
    }
}

#[tokio::test]
async fn segments_are_few() {
    index_segments_are_few(Arc::new(InMemoryStore::new())).await;
    an_index_is_checked_while_it_changes(Arc::new(InMemoryStore::new())).await;
}

struct Indexed;

impl SearchFixture for Indexed {
    type Store = InMemoryStore;
    type Search = SegmentSearch<Arc<InMemoryStore>>;

    async fn fresh_search(&self) -> (Arc<InMemoryStore>, Self::Search) {
        let store = Arc::new(InMemoryStore::new());
        let search = SegmentSearch::new(Arc::clone(&store));
        (store, search)
    }

    async fn catch_up(&self, store: &InMemoryStore, _: &Self::Search, chat: ConversationId) {
        extend_index(store, chat, u64::MAX).await.unwrap();
    }
}

mod suite {
    store_conformance::search_conformance_tests!(super::Indexed);
}

/// Creates a runtime for one thread of a test with several threads.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// Some threads extend an index while others build it again. None of them fails, and the index is not damaged.
#[test]
fn indexing_beside_others_that_index_does_not_fail() {
    const ROUNDS: u32 = 150;
    let store = Arc::new(InMemoryStore::new());
    let chat = runtime().block_on(Chat::root(&*store, "chat")).id;
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                runtime().block_on(async {
                    while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
                        rebuild_index(&*store, chat).await.unwrap();
                    }
                });
            });
        }
        runtime().block_on(async {
            for round in 0..ROUNDS {
                let texts = (0..8).map(|at| Message::user(format!("hay {round} {at}")));
                let chat = Chat::new(&*store, chat);
                chat.append(texts).await;
                let at = range(round * 8 + 1, round * 8 + 8);
                chat.show_leaf("view", at, &format!("{round}")).await;
                let chat = chat.id;
                extend_index(&*store, chat, 64).await.unwrap();
            }
            is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
    });
    runtime().block_on(async {
        extend_index(&*store, chat, u64::MAX).await.unwrap();
        let check = check_index(&*store, chat).await.unwrap();
        assert_eq!(check.damage, [""; 0]);
    });
}

/// While this thread searches, another thread appends messages, merges segments and builds the index again. Every
/// answer contains all messages that were stored when the search began.
#[test]
fn a_search_is_complete_while_segments_are_merged_and_replaced() {
    use std::sync::atomic::{AtomicU32, Ordering};

    use memory_search::{HitOrder, HitTarget, Query, Search as _, SearchMode, SearchScope};

    const ROUNDS: u32 = 60;
    let store = Arc::new(InMemoryStore::new());
    let chat = runtime().block_on(Chat::root(&*store, "chat")).id;
    // The last stored position.
    let stored = AtomicU32::new(0);
    let needles = |head: u32| (1..=head).filter(|seq| seq % 5 == 0).count();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            runtime().block_on(async {
                for round in 0..ROUNDS {
                    let messages = (1..=16).map(|at| match (round * 16 + at) % 5 {
                        0 => Message::user("a needle in the hay"),
                        _ => Message::user("some hay"),
                    });
                    Chat::new(&*store, chat).append(messages).await;
                    stored.store((round + 1) * 16, Ordering::SeqCst);
                    extend_index(&*store, chat, u64::MAX).await.unwrap();
                    if round % 7 == 6 {
                        rebuild_index(&*store, chat).await.unwrap();
                    }
                }
            });
        });
        runtime().block_on(async {
            let search = SegmentSearch::new(Arc::clone(&store));
            let mut by_index = 0;
            for mode in [SearchMode::Literal, SearchMode::Words, SearchMode::Prose]
                .iter()
                .cycle()
            {
                let before = stored.load(Ordering::SeqCst);
                let query = Query::new("needle")
                    .with_mode(*mode)
                    .with_order(HitOrder::Oldest)
                    .with_scope(SearchScope::Messages)
                    .with_limit(10_000);
                let hits = search.search(chat, &query).await.unwrap();
                let after = stored.load(Ordering::SeqCst) + 16;
                by_index += usize::from(hits.strategy.ends_with("-index"));
                let mut found: Vec<u32> = Vec::new();
                for hit in &hits.hits {
                    match &hit.target {
                        HitTarget::Message { seq, .. } if hit.snippet.contains("needle") => {
                            found.push(seq.0)
                        }
                        _ => {}
                    }
                }
                assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|seq| seq % 5 == 0));
                let expected = needles(before)..=needles(after);
                assert!(
                    expected.contains(&found.len()),
                    "{mode:?}: {} of {expected:?}",
                    found.len()
                );
                // All matching messages, without a gap.
                assert_eq!(
                    found.last().copied().unwrap_or_default() as usize,
                    found.len() * 5
                );
                if before == ROUNDS * 16 {
                    break;
                }
            }
            assert!(by_index > 0);
        });
    });
}
