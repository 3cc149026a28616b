//! A memory is the same in every database, and stays so when it is copied from one to another.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_memory::store::{PostgresOptions, PostgresStore, SqliteStore};
use agent_memory::{Budget, Memory, Mode, SessionKey, testing::FakeClock};
use memory_store::{FullStore, Maintain as _};

use crate::corpus::{corpus, is_deep, parse, transcripts};
use crate::support::dump;

/// Returns the URL of the server for tests with a schema of its own. Says that a test is left out if there is none.
pub(crate) fn server(schema: &str) -> Option<String> {
    const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";
    let Some(url) = std::env::var(URL).ok().filter(|url| !url.is_empty()) else {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_POSTGRES").is_none(),
            "{URL} is not set: run the tests by `cargo xtask postgres`"
        );
        println!("left out: {URL} is not set");
        return None;
    };
    let sign = if url.contains('?') { '&' } else { '?' };
    let process = std::process::id();
    Some(format!("{url}{sign}schema=memory_{process}_{schema}"))
}

pub(crate) async fn drop_schema(url: &str) {
    use sqlx::Connection as _;

    let (plain, schema) = url.split_once("schema=").unwrap();
    let mut connection = sqlx::postgres::PgConnection::connect(plain.trim_end_matches(['?', '&']))
        .await
        .unwrap();
    let drop = sqlx::AssertSqlSafe(format!("drop schema if exists {schema} cascade"));
    sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
}

pub(crate) async fn open(store: impl FullStore + 'static) -> Memory {
    let clock = Arc::new(FakeClock::new(
        memory_model::Timestamp(1_760_000_000_000_000),
        0,
    ));
    let memory = Memory::builder().store(store).clock(clock).open().await;
    memory.unwrap()
}

/// Everything that can be seen of a memory: its rows, and the answers of its tools.
async fn seen(memory: &Memory, keys: &[SessionKey]) -> String {
    let mut seen = dump(memory).await;
    for key in keys {
        let session = memory.get_session(key.clone()).await.unwrap();
        for budget in [2_000, 8_000, 200_000] {
            let context = session.assemble(Budget::tokens(budget)).await.unwrap();
            seen.push_str(&format!("{context:?}\n"));
        }
        let tools = session.retrieval();
        for pattern in ["error", "the", "fn \\w+", "test", "ファイル"] {
            let answer = tools.grep(pattern).await.unwrap();
            seen.push_str(&format!("{answer:?}\n"));
        }
        let answer = tools
            .recall("what failed and how was it mended")
            .await
            .unwrap();
        seen.push_str(&format!("{answer:?}\n"));
    }
    seen
}

/// Imports and compacts transcripts.
async fn filled(memory: &Memory, files: &[PathBuf]) -> Vec<SessionKey> {
    let mut keys = Vec::new();
    for path in files {
        let transcript = parse(&std::fs::read(path).unwrap());
        let imported = memory.import(&transcript).await.unwrap();
        keys.extend(imported.sessions.iter().map(|one| one.session.clone()));
    }
    for key in &keys {
        let session = memory.get_session(key.clone()).await.unwrap();
        session.compact(Mode::Incremental).await.unwrap();
        session.index().update().await.unwrap();
    }
    keys
}

fn fixtures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    [
        "claude-code/parallel-and-sidechain/session.jsonl",
        "claude-code/release-week/session.jsonl",
        "jsonl/hard-content/session.jsonl",
        "pi/branched/session.jsonl",
    ]
    .map(|path| root.join(path))
    .to_vec()
}

fn assert_same(one: &str, other: &str, what: &str) {
    let differs = one
        .lines()
        .zip(other.lines())
        .find(|(one, other)| one != other);
    assert!(differs.is_none(), "{what}: {differs:?}");
    assert_eq!(one.len(), other.len(), "{what}");
}

async fn the_same_everywhere(files: &[PathBuf], schema: &str) {
    let Some(url) = server(schema) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = open(SqliteStore::open(path("a.db")).await.unwrap()).await;
    let keys = filled(&file, files).await;
    let expected = seen(&file, &keys).await;

    let on_server = open(PostgresStore::open(&url).await.unwrap()).await;
    assert_eq!(filled(&on_server, files).await, keys);
    assert_same(
        &expected,
        &seen(&on_server, &keys).await,
        "filled on a server",
    );
    assert!(on_server.verify().await.unwrap().is_ok());
    on_server.close().await.unwrap();

    // From the file to another schema, which is partitioned, and back to another file.
    let copy_url = format!("{url}_copy");
    let options = PostgresOptions::new().with_partitions(3);
    let copy = options.open(&copy_url).await.unwrap();
    let source = SqliteStore::open(path("a.db")).await.unwrap();
    let copied = source.copy_to(&copy, |_| ()).await.unwrap();
    assert!(copied.conversations >= keys.len() as u64 && copied.known == 0);
    // Run again, it finds all there.
    let again = source.copy_to(&copy, |_| ()).await.unwrap();
    assert_eq!((again.families, again.known), (0, copied.families));
    let back = SqliteStore::open(path("b.db")).await.unwrap();
    copy.copy_to(&back, |_| ()).await.unwrap();
    assert!(back.check().await.unwrap().is_empty());
    for memory in [open(copy).await, open(back).await] {
        assert!(memory.verify().await.unwrap().is_ok());
        let what = memory.store().location();
        assert_same(&expected, &seen(&memory, &keys).await, &what);
        // It goes on from there.
        for path in files {
            let transcript = parse(&std::fs::read(path).unwrap());
            memory.import(&transcript).await.unwrap();
        }
        let session = memory.get_session(keys[0].clone()).await.unwrap();
        let more = agent_memory::Message::user("and now?").with_external_id("one more");
        session.ingest(more).await.unwrap();
        session.fork(memory_model::Seq(2), "a fork").await.unwrap();
        assert!(memory.verify().await.unwrap().is_ok());
        memory.close().await.unwrap();
    }
    for url in [url, copy_url] {
        drop_schema(&url).await;
    }
}

#[tokio::test]
async fn fixtures_are_the_same_in_every_database() {
    the_same_everywhere(&fixtures(), "fixtures").await;
}

#[tokio::test]
async fn every_transcript_is_the_same_in_every_database() {
    let Some(corpus) = corpus() else { return };
    if !is_deep() {
        println!("left out: AGENT_MEMORY_DEEP is not set");
        return;
    }
    the_same_everywhere(&transcripts(&corpus), "corpus").await;
}
