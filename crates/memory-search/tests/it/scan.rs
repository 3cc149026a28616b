//! Properties of a search without an index that other searches need not have: cursors by position, and the store's
//! errors.

use memory_model::ConversationId;
use memory_search::{ErrorKind, HitTarget, Query, Search, SegmentSearch};
use memory_store::InMemoryStore;
use store_conformance::{Chat, message, range, sound};

async fn haystack(store: &InMemoryStore) -> ConversationId {
    let chat = Chat::root(store, "chat").await;
    let messages = (1..=6).map(|n| message(&format!("m{n}"), "a needle"));
    chat.append(messages).await;
    for first in [1, 4] {
        chat.show_leaf("dag", range(first, first + 2), "the needle")
            .await;
    }
    chat.id
}

#[tokio::test]
async fn a_cursor_beyond_the_head_goes_on_with_the_summaries() {
    let store = InMemoryStore::new();
    let chat = haystack(&store).await;
    let far = "m4294967295";
    let query = Query::new("needle").with_cursor(far);
    let hits = SegmentSearch::without_index(&store)
        .search(chat, &query)
        .await
        .unwrap();
    assert_eq!(hits.hits.len(), 2);
    let summary = |hit: &memory_search::Hit| matches!(hit.target, HitTarget::Summary { .. });
    assert!(hits.hits.iter().all(summary));
    assert_eq!(hits.strategy, "literal-scan");
    sound(&store).await;
}

#[tokio::test]
async fn a_cursor_of_an_unknown_summary_is_not_found() {
    let store = InMemoryStore::new();
    let chat = haystack(&store).await;
    let cursor = "ssum_0123456789abcdef";
    for order in [
        memory_search::HitOrder::Oldest,
        memory_search::HitOrder::Newest,
    ] {
        let query = Query::new("needle").with_order(order).with_cursor(cursor);
        let error = SegmentSearch::without_index(&store)
            .search(chat, &query)
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound, "{order:?}");
    }
}

#[test]
fn an_error_of_the_store_is_the_source() {
    let store = memory_store::Error::new(memory_store::ErrorKind::Busy, "the database is locked");
    let error = memory_search::Error::from(store);
    assert_eq!(error.kind(), ErrorKind::Storage);
    assert_eq!(error.to_string(), "the database is locked");
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<memory_store::Error>().unwrap();
    assert_eq!(source.kind(), memory_store::ErrorKind::Busy);
}
