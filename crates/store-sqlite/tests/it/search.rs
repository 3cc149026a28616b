//! The search index in a file.

use std::process::{Command, Stdio};
use std::sync::Arc;

use memory_model::{Message, RawJson};
use memory_search::ranking::RankingPolicy;
use memory_search::{Query, Search as _, SearchMode};
use memory_store::{
    ConversationRef, Maintain as _, ScanSearch, SegmentSearch, Store as _, check_index,
    extend_index, rebuild_index,
};
use store_conformance::{index_answers_as_a_scan, index_segments_are_few};
use store_sqlite::SqliteStore;

use crate::common::{append, batch, root, store, texts};

#[tokio::test]
async fn an_index_answers_as_a_scan() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    index_answers_as_a_scan(Arc::clone(&store), 2).await;
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn segments_are_few() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    index_segments_are_few(Arc::clone(&store)).await;
    assert!(store.index().is_some());
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn damage_to_the_index_is_found_and_mended() {
    let (folder, store) = store().await;
    let chat = root(&store, "a").await;
    store.append(chat, &batch(texts(1, 40))).await.unwrap();
    let policy = RankingPolicy::default();
    let made = extend_index(&store, chat, &policy, u64::MAX).await.unwrap();
    assert_eq!(made.messages, 32);
    let sound = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!((sound.documents, sound.damage.len()), (32, 0));
    let sql = "update search_chunk set data = zeroblob(length(data)) where rowid = 2";
    crate::damage::damage(&folder, sql).await;
    let found = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    rebuild_index(&store, chat, &policy).await.unwrap();
    let mended = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!((mended.documents, mended.damage.len()), (32, 0));
}

/// Tells the child where to write, and how many rounds.
const PATH: &str = "STORE_SQLITE_TEST_INDEXED_PATH";
const ROUNDS: &str = "STORE_SQLITE_TEST_ROUNDS";

/// Messages of a round.
const ROUND: u32 = 25;

/// Not a test by itself: what the other process runs. It appends and indexes by turns; behind the last append
/// it waits to be killed. Without a path it does nothing.
#[tokio::test]
async fn child_that_indexes() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let rounds: u32 = std::env::var(ROUNDS).unwrap().parse().unwrap();
    let store = SqliteStore::open(path).await.unwrap();
    let chat = root(&store, "killed").await;
    for round in 1..=rounds {
        let messages = (0..ROUND).map(|at| match at % 5 {
            1 => Message::tool_call(
                "c",
                ["memory_grep", "read_file"][at as usize % 2],
                RawJson::parse(r#"{"pattern":"needle"}"#).unwrap(),
            ),
            2 => Message::tool_result("c", format!("needle {round}.{at}")),
            _ => Message::user(format!("message {round}.{at} about a needle")),
        });
        append(&store, chat, messages.collect()).await;
        if round == rounds {
            std::future::pending::<()>().await;
        }
        let policy = RankingPolicy::default();
        extend_index(&store, chat, &policy, u64::MAX).await.unwrap();
    }
}

/// The program is killed when messages are stored and not indexed yet: what is found is right at once, and the
/// index goes on where it stood.
#[tokio::test]
async fn an_index_is_right_after_a_kill_between_messages_and_their_index() {
    for rounds in [1, 2, 9] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let chat = root(&store, "killed").await;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "search::child_that_indexes", "--nocapture"])
            .env(PATH, &path)
            .env(ROUNDS, rounds.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        loop {
            let found = store
                .conversation(&ConversationRef::Id(chat))
                .await
                .unwrap();
            if found.unwrap().head.0 == rounds * ROUND {
                break;
            }
            assert!(child.try_wait().unwrap().is_none(), "it waits to be killed");
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(store);
        let store = Arc::new(SqliteStore::open(&path).await.unwrap());
        let policy = RankingPolicy::default();
        let is_right = async |what: &str| {
            let index = SegmentSearch::new(Arc::clone(&store));
            let scan = ScanSearch::new(Arc::clone(&store));
            for mode in [SearchMode::Literal, SearchMode::Words, SearchMode::Prose] {
                for query in [
                    Query::new("needle"),
                    Query::new("needle").with_echoes(),
                    Query::new("needle").with_tools(["read_file"]),
                ] {
                    let query = query.with_mode(mode).with_limit(1_000);
                    let found = index.search(chat, &query).await.unwrap();
                    let expected = scan.search(chat, &query).await.unwrap();
                    assert_eq!(found.hits, expected.hits, "{what}: {query:?}");
                }
            }
            let check = check_index(&*store, chat, &policy).await.unwrap();
            assert_eq!(check.damage, [""; 0], "{what}");
            check.documents
        };
        let indexed = is_right("after the kill").await;
        assert_eq!(indexed, u64::from((rounds - 1) * ROUND / 16 * 16));
        extend_index(&*store, chat, &policy, u64::MAX)
            .await
            .unwrap();
        let indexed = is_right("once it is extended").await;
        assert_eq!(indexed, u64::from(rounds * ROUND / 16 * 16));
        assert_eq!(store.check().await.unwrap(), []);
    }
}
