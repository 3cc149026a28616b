//! Tests of the search index in a file.

use std::process::{Command, Stdio};
use std::sync::Arc;

use memory_model::{Message, RawJson};
use memory_search::{
    HitOrder, Query, Search as _, SearchMode, SegmentSearch, check_index, extend_index, mend_index,
    rebuild_index,
};
use memory_store::{Maintain as _, Store as _};
use store_conformance::{
    Chat, an_index_is_checked_while_it_changes, index_answers_as_a_scan, index_segments_are_few,
    range,
};
use store_sqlite::SqliteStore;

use crate::common::{leaf, store, texts};

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
    an_index_is_checked_while_it_changes(Arc::clone(&store)).await;
    assert!(store.index().is_some());
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn damage_to_the_index_is_found_and_mended() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 40)).await;
    let chat = chat.id;
    let made = extend_index(&store, chat, u64::MAX).await.unwrap();
    assert_eq!(made.messages, 32);
    let sound = check_index(&store, chat).await.unwrap();
    assert_eq!((sound.documents, sound.damage.len()), (32, 0));
    let sql = "update search_chunk set data = zeroblob(length(data)) where rowid = 2";
    crate::damage::damage(&folder, sql).await;
    let found = check_index(&store, chat).await.unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    rebuild_index(&store, chat).await.unwrap();
    let mended = check_index(&store, chat).await.unwrap();
    assert_eq!((mended.documents, mended.damage.len()), (32, 0));
}

/// Checks that a damaged index row hides no hit. For damage to any row, every search answers as a scan does and reports
/// the damage that it finds. The next indexing builds a new index.
#[tokio::test]
async fn a_damaged_index_hides_no_hit() {
    let (sound, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    let other = Chat::root(&store, "b").await;
    let words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];
    let text = |at: u32| {
        let word = |at: u32| words[at as usize % 6];
        let rest: Vec<String> = (0..9).map(|n| format!("w{}x{n}", at * 7 % 190)).collect();
        format!(
            "{} {} {} {}",
            word(at),
            word(at / 6),
            word(at / 36),
            rest.join(" ")
        )
    };
    for chat in [chat, other] {
        for first in (0..150).step_by(16) {
            let messages = (first..150.min(first + 16)).map(|at| match at % 9 {
                8 => Message::tool_result("c", text(at)),
                7 => Message::tool_call("c", "read_file", RawJson::parse("{}").unwrap()),
                _ => Message::user(text(at)),
            });
            chat.append(messages).await;
            leaf(chat, range(first + 1, first + 5)).await;
            extend_index(&store, chat.id, u64::MAX).await.unwrap();
        }
    }
    let (chat, other) = (chat.id, other.id);
    let queries: Vec<Query> = [
        ("bravo", SearchMode::Literal),
        ("w7x3", SearchMode::Literal),
        ("what happened", SearchMode::Literal),
        ("w", SearchMode::Literal),
        ("w[0-9]+x4 w1", SearchMode::Regex),
        (r"\S{20}", SearchMode::Regex),
        ("echo delta", SearchMode::Words),
        ("alpha happened", SearchMode::Prose),
    ]
    .map(|(pattern, mode)| Query::new(pattern).with_mode(mode).with_limit(1_000))
    .into_iter()
    .chain([
        Query::new("a").with_tools(["read_file"]).with_limit(50),
        Query::new("charlie")
            .with_order(HitOrder::Newest)
            .with_limit(7),
    ])
    .collect();
    let mut expected = Vec::new();
    for query in &queries {
        let scan = SegmentSearch::without_index(&store);
        expected.push(scan.search(chat, query).await.unwrap());
    }
    // Each row of the conversation is damaged in turn.
    let chunk = "rowid = (select rowid from search_chunk where segment >> 32 = {chat} order by 1 limit 1 offset {at})";
    let segment = "id = (select id from search_segment where conversation = {chat} order by 1 limit 1 offset {at})";
    let damages = [
        "update search_chunk set data = substr(data, 1, length(data) - 9) where {chunk}",
        "update search_chunk set data = cast(substr(data, 1, 40) || x'7f' || substr(data, 42) as blob) where {chunk}",
        "update search_chunk set data = x'' where {chunk}",
        "update search_chunk set data = (select data from search_chunk order by rowid desc limit 1) where {chunk}",
        "update search_chunk set data = coalesce((select data from search_chunk as other where segment >> 32 = {other} \
         and key = search_chunk.key limit 1), x'') where {chunk}",
        "update search_chunk set key = x'7a' where {chunk}",
        "delete from search_chunk where {chunk}",
        "delete from search_segment where {segment}",
        "update search_segment set first = first + 1 where {segment}",
        "update search_segment set last = last + 16 where {segment}",
        "update search_segment set last = 4294967294 where {segment}",
        "update search_segment set first = -first where {segment}",
        "update search_segment set documents = documents + 1 where {segment}",
        "update search_segment set documents = 9223372036854775807 where {segment}",
        "update search_segment set format = substr(format, 1, 30) where {segment}",
        "update or ignore search_segment set kind = iif(kind = 'messages', 'summaries', 'messages') where {segment}",
        "update search_segment set kind = 'other' where {segment}",
        "delete from search_chunk where segment = (select id from search_segment where {segment})",
    ];
    let (mut told, mut damaged) = (0, 0);
    for (number, damage) in damages.iter().enumerate() {
        let rows = match damage.contains("{segment}") {
            true => (0..5).step_by(1),
            false => (number..36).step_by(7),
        };
        for at in rows {
            let sql = damage
                .replace("{chunk}", chunk)
                .replace("{segment}", segment)
                .replace("{chat}", &chat.0.to_string())
                .replace("{other}", &other.0.to_string())
                .replace("{at}", &at.to_string());
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory.db");
            for file in ["memory.db", "memory.db-wal"] {
                std::fs::copy(sound.path().join(file), folder.path().join(file)).unwrap();
            }
            crate::damage::damage(&folder, &sql).await;
            let store = Arc::new(SqliteStore::open(path).await.unwrap());
            let search = SegmentSearch::new(Arc::clone(&store));
            let mut is_told = false;
            for (query, expected) in queries.iter().zip(&expected) {
                let found = search.search(chat, query).await.unwrap();
                assert_eq!(found.hits, expected.hits, "{sql}: {query:?}");
                assert_eq!(found.complete, expected.complete, "{sql}: {query:?}");
                is_told |= found.index_damaged;
            }
            let is_damaged = mend_index(&*store, chat).await.unwrap();
            assert!(is_damaged || !is_told, "{sql}");
            told += usize::from(is_told);
            damaged += usize::from(is_damaged);
            extend_index(&*store, chat, u64::MAX).await.unwrap();
            let check = check_index(&*store, chat).await.unwrap();
            assert_eq!(
                (check.documents, check.damage.len()),
                (144 + 10, 0),
                "{sql}"
            );
            let again = search.search(chat, &queries[0]).await.unwrap();
            assert!(!again.index_damaged, "{sql}");
        }
    }
    assert!(
        damaged > 50 && told * 10 > damaged * 7,
        "{told} of {damaged}"
    );
}

/// Environment variable that gives the child process the path of the database and the number of rounds.
const PATH: &str = "STORE_SQLITE_TEST_INDEXED_PATH";
const ROUNDS: &str = "STORE_SQLITE_TEST_ROUNDS";

/// Number of messages in a round.
const ROUND: u32 = 25;

/// Runs in the child process, which appends and indexes in turn. After the last append it waits until it is killed. It
/// is no test by itself, and does nothing if the variable is not set.
#[tokio::test]
async fn child_that_indexes() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let rounds: u32 = std::env::var(ROUNDS).unwrap().parse().unwrap();
    let store = SqliteStore::open(path).await.unwrap();
    let chat = Chat::root(&store, "killed").await;
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
        chat.append(messages).await;
        if round == rounds {
            std::future::pending::<()>().await;
        }
        extend_index(&store, chat.id, u64::MAX).await.unwrap();
    }
}

/// Checks a program that is killed after messages are stored and before they are indexed. Searches must be right at
/// once, and indexing must continue with the unindexed messages.
#[tokio::test]
async fn an_index_is_right_after_a_kill_between_messages_and_their_index() {
    for rounds in [1, 2, 9] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let chat = Chat::root(&store, "killed").await;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "search::child_that_indexes", "--nocapture"])
            .env(PATH, &path)
            .env(ROUNDS, rounds.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        loop {
            if chat.info().await.head.0 == rounds * ROUND {
                break;
            }
            assert!(child.try_wait().unwrap().is_none(), "it waits to be killed");
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let chat = chat.id;
        drop(store);
        let store = Arc::new(SqliteStore::open(&path).await.unwrap());
        let is_right = async |what: &str| {
            let index = SegmentSearch::new(Arc::clone(&store));
            let scan = SegmentSearch::without_index(Arc::clone(&store));
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
            let check = check_index(&*store, chat).await.unwrap();
            assert_eq!(check.damage, [""; 0], "{what}");
            check.documents
        };
        let indexed = is_right("after the kill").await;
        assert_eq!(indexed, u64::from((rounds - 1) * ROUND / 16 * 16));
        extend_index(&*store, chat, u64::MAX).await.unwrap();
        let indexed = is_right("once it is extended").await;
        assert_eq!(indexed, u64::from(rounds * ROUND / 16 * 16));
        assert_eq!(store.check().await.unwrap(), []);
    }
}
