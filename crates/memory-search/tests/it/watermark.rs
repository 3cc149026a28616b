//! An index and a scan of the rest answer as a scan of everything does.

use std::sync::Arc;

use memory_model::{ConversationId, Message, Role, Seq, Timestamp};
use memory_search::{Hit, HitOrder, Query, Search, SearchScope, Watermark};
use memory_store::{InMemoryStore, IndexedSearch, LogRead, SCAN, ScanSearch, Store};
use store_conformance::{Source, append, publish_summary, range, root, summary_of};

use crate::fill;
use crate::index::TrigramIndex;

const MESSAGES: u32 = 9;
const SUMMARIES: usize = 3;

/// Nine messages and three summaries; of each kind one without a needle.
async fn haystack(store: &InMemoryStore) -> ConversationId {
    let chat = root(store, "chat").await.id;
    let said = (1..=MESSAGES).map(|n| {
        let message = match n {
            4 => Message::user("straw"),
            n if n % 2 == 0 => Message::assistant(format!("a Needle {n}")),
            n => Message::user(format!("needle {n}")),
        };
        message.with_created_at(Timestamp(i64::from(n)))
    });
    append(store, chat, said.collect()).await;
    for (first, text) in [(1, "the needle"), (4, "straw"), (7, "NEEDLE")] {
        let leaf = [Source::Messages(range(first, first + 2))];
        let leaf = summary_of(store, chat, &leaf, text).await;
        publish_summary(store, chat, "dag", &leaf).await;
    }
    chat
}

/// All pages, each with its hits.
async fn pages(search: &dyn Search, chat: ConversationId, query: &Query) -> Vec<Vec<Hit>> {
    let mut query = query.clone();
    let mut pages = Vec::new();
    loop {
        let page = search.search(chat, &query).await.unwrap();
        pages.push(page.hits);
        match page.cursor {
            Some(cursor) => query = query.with_cursor(cursor),
            None => return pages,
        }
    }
}

fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for order in [HitOrder::Relevance, HitOrder::Oldest, HitOrder::Newest] {
        for scope in [
            SearchScope::Messages,
            SearchScope::Summaries,
            SearchScope::Both,
        ] {
            for limit in [1, 2, 3, 8, 100] {
                for pattern in ["needle", "e", "none"] {
                    let query = Query::new(pattern)
                        .with_order(order)
                        .with_scope(scope)
                        .with_limit(limit);
                    queries.push(query.clone());
                    queries.push(query.clone().with_range(range(3, 7)));
                    queries.push(query.with_roles([Role::Assistant]));
                }
            }
        }
    }
    queries
}

#[tokio::test]
async fn an_indexed_search_answers_as_a_scan_does_wherever_the_index_ends() {
    let store = Arc::new(InMemoryStore::new());
    let chat = haystack(&store).await;
    let scan = ScanSearch::new(Arc::clone(&store));
    let mut expected = Vec::new();
    for query in queries() {
        expected.push((pages(&scan, chat, &query).await, query));
    }
    let mut compared = 0;
    for messages in 0..=MESSAGES {
        for summaries in 0..=SUMMARIES {
            let index = TrigramIndex::default();
            fill(&store, &index, chat, Seq(messages), summaries).await;
            let search = IndexedSearch::new(index, Arc::clone(&store));
            for (expected, query) in &expected {
                let answer = pages(&search, chat, query).await;
                assert_eq!(
                    answer, *expected,
                    "indexed: {messages} messages, {summaries} summaries; {query:?}"
                );
                compared += 1;
            }
        }
    }
    println!("{compared} answers compared");
}

#[tokio::test]
async fn what_the_watermark_covers_is_not_read_again() {
    let store = Arc::new(InMemoryStore::new());
    let chat = root(&*store, "chat").await.id;
    append(&*store, chat, vec![Message::user("straw"); 3]).await;
    append(&*store, chat, vec![Message::user("needle")]).await;
    let page = store.read(chat, &LogRead::new(range(1, 3))).await.unwrap();
    // The index holds something else than the log, so that its hits can be told apart.
    let mut entries = page.items;
    entries[1].message = Message::user("a needle of the index");
    let index = TrigramIndex::default();
    index.add_messages(chat, entries);
    let search = IndexedSearch::new(index, Arc::clone(&store));
    let hits = search.search(chat, &Query::new("needle")).await.unwrap();
    let snippets: Vec<&str> = hits.hits.iter().map(|hit| hit.snippet.as_str()).collect();
    assert_eq!(snippets, ["a needle of the index", "needle"]);
    assert_eq!(hits.strategy, format!("trigram-index+{SCAN}"));
}

#[tokio::test]
async fn nothing_is_scanned_for_a_range_that_is_indexed() {
    let store = Arc::new(InMemoryStore::new());
    let chat = haystack(&store).await;
    let index = TrigramIndex::default();
    fill(&store, &index, chat, Seq(5), 0).await;
    assert_eq!(index.watermark(chat), Watermark::new(Seq(5), None));
    let search = IndexedSearch::new(index, store);
    let query = Query::new("needle").with_scope(SearchScope::Messages);
    let inside = query.clone().with_range(range(2, 5));
    let hits = search.search(chat, &inside).await.unwrap();
    assert_eq!((&*hits.strategy, hits.hits.len()), ("trigram-index", 3));
    let outside = search.search(chat, &query.with_range(range(2, 6))).await;
    assert_ne!(outside.unwrap().strategy, "trigram-index");
}
