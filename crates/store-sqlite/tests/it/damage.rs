//! Verification names what is wrong: every kind of damage, done by a stranger who switched the triggers off.

use memory_model::Seq;
use memory_store::{NewConversation, Origin, Store as _, ViolationKind};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};
use store_conformance::{Source, fill, publish_summary, range, root, summary_of, verify_store};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// A database with everything in it: a log, three leaves, one summary of them, a fork, a second conversation.
async fn sound() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db"))
        .await
        .unwrap();
    let chat = root(&store, "chat").await;
    fill(&store, chat.id, 40).await;
    let mut leaves = Vec::new();
    for n in 0..3 {
        let sources = [Source::Messages(range(n * 10 + 1, n * 10 + 10))];
        let leaf = summary_of(&store, chat.id, &sources, &format!("part {n}")).await;
        publish_summary(&store, chat.id, "dag", &leaf).await;
        leaves.push(leaf);
    }
    let sources = [Source::Summary(&leaves[0]), Source::Summary(&leaves[1])];
    let node = summary_of(&store, chat.id, &sources, "parts 0 and 1").await;
    publish_summary(&store, chat.id, "dag", &node).await;
    let fork = NewConversation {
        key: "fork".into(),
        origin: Origin::Fork {
            parent: chat.id,
            at: Seq(20),
        },
        ..NewConversation::root("", chat.estimator.clone(), chat.created_at)
    };
    fill(&store, store.open(&fork).await.unwrap().id, 5).await;
    let other = root(&store, "other").await;
    fill(&store, other.id, 10).await;
    let leaf = summary_of(&store, other.id, &[Source::Messages(range(1, 10))], "other").await;
    publish_summary(&store, other.id, "dag", &leaf).await;
    (folder, store)
}

/// Runs SQL as somebody who cares for no rule.
pub(crate) async fn damage(folder: &TempDir, sql: &str) {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("memory.db"))
        .foreign_keys(false);
    let mut db = options.connect().await.unwrap();
    let triggers = sqlx::query("select name, sql from sqlite_schema where type = 'trigger'")
        .fetch_all(&mut db)
        .await
        .unwrap();
    let run = async |db: &mut sqlx::SqliteConnection, sql: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(db)
            .await
            .unwrap();
    };
    for trigger in &triggers {
        run(
            &mut db,
            format!("drop trigger {}", trigger.get::<String, _>(0)),
        )
        .await;
    }
    run(
        &mut db,
        format!("pragma ignore_check_constraints = on; {sql}"),
    )
    .await;
    for trigger in &triggers {
        run(&mut db, trigger.get(1)).await;
    }
    db.close().await.unwrap();
}

async fn found(store: &SqliteStore) -> Vec<(ViolationKind, String)> {
    let reports = verify_store(store).await;
    let all = reports.into_iter().flat_map(|report| report.violations);
    all.map(|violation| (violation.kind, violation.message))
        .collect()
}

#[tokio::test]
async fn every_damage_is_named() {
    use ViolationKind as K;
    let cases: [(&str, &str, K); 24] = [
        (
            "last row gone",
            "delete from message where id = 4294967336",
            K::EntryMissing,
        ),
        (
            "hole in seq",
            "delete from message where id = 4294967317",
            K::EntryMissing,
        ),
        (
            "text changed",
            "update message set body = cast(replace(cast(body as text), 'message', 'massage') as blob) where seq = 33",
            K::EntryChanged,
        ),
        (
            "role changed",
            "update message set role = 'assistant' where seq = 3",
            K::EntryChanged,
        ),
        (
            "body is no JSON",
            "update message set body = x'7b' where seq = 12",
            K::EntryUnreadable,
        ),
        (
            "two rows swapped",
            "update message set id = id + 1000 where seq in (5, 6) and conversation = 1; \
            update message set id = 4294967302, seq = 6 where id = 4294968301; \
            update message set id = 4294967301, seq = 5 where id = 4294968302",
            K::ChainBroken,
        ),
        (
            "chain changed",
            "update conversation set chain = zeroblob(32) where no = 1",
            K::ChainBroken,
        ),
        (
            "running sum wrong",
            "update message set running = running + 1 where seq = 7",
            K::SumWrong,
        ),
        (
            "total wrong",
            "update conversation set tokens = tokens + 1 where no = 1",
            K::SumWrong,
        ),
        (
            "tokens wrong",
            "update message set tokens = tokens + 1 where seq = 7",
            K::EstimatorMixed,
        ),
        (
            "estimator mixed",
            "update conversation set estimator = 'other@1' where no = 3",
            K::EstimatorMixed,
        ),
        (
            "a span too many",
            "insert into span values (1, 'dag', 35, 4, 'raw', null, null, 0, 0)",
            K::SpansOverlap,
        ),
        (
            "a span moved",
            "update span set first = 25 where kind = 'summary' and first = 21",
            K::SpanWrong,
        ),
        (
            "a span gone",
            "delete from span where first = 21",
            K::HistoryChanged,
        ),
        (
            "saved tokens wrong",
            "update view set saved = saved + 1 where conversation = 1",
            K::SumWrong,
        ),
        (
            "history edited",
            "update span_history set tokens = tokens + 1 where kind = 'summary'",
            K::HistoryChanged,
        ),
        (
            "publication gone",
            "delete from publication where version = 2 and conversation = 1",
            K::HistoryChanged,
        ),
        (
            "summary changed",
            "update summary set text = 'nothing happened' where depth = 0",
            K::SummaryChanged,
        ),
        (
            "cycle",
            "update summary_link set child = parent where child is not null",
            K::Cycle,
        ),
        (
            "foreign lineage",
            "update summary_link set child = (select id from summary where conversation = 3) \
             where child is not null and ordinal = 0",
            K::ForeignLineage,
        ),
        (
            "child range wrong",
            "update summary_link set last = last + 1 where ordinal = 0",
            K::ChildRangeWrong,
        ),
        (
            "source replaced",
            "update message set hash = randomblob(32) where seq = 15 and conversation = 1; \
             update summary set source_hash = randomblob(32) where depth = 1",
            K::SourceChanged,
        ),
        (
            "time of a publication changed",
            "update publication set at = at + 1 where version = 2",
            K::HistoryChanged,
        ),
        (
            "index damaged",
            "pragma writable_schema = on; \
             update sqlite_schema set sql = replace(sql, 'external_id is not null', 'external_id = 1') \
              where name = 'message_external'; \
             pragma writable_schema = reset; reindex message_external; pragma writable_schema = on; \
             update sqlite_schema set sql = replace(sql, 'external_id = 1', 'external_id is not null') \
              where name = 'message_external'",
            K::Database,
        ),
    ];
    for (what, sql, kind) in cases {
        let (folder, store) = sound().await;
        assert_eq!(found(&store).await, [], "{what}: before");
        damage(&folder, sql).await;
        // Looked at afresh: nothing is remembered.
        let store = SqliteStore::open(folder.path().join("memory.db"))
            .await
            .unwrap();
        let found = found(&store).await;
        assert!(found.iter().any(|(k, _)| *k == kind), "{what}: {found:#?}");
    }
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_not_a_panic() {
    let (folder, store) = sound().await;
    let more = root(&store, "more").await;
    fill(&store, more.id, 2000).await;
    memory_store::Maintain::close(&store).await.unwrap();
    let path = folder.path().join("memory.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    for page in (end - 20 * 4096..end).step_by(4096) {
        bytes[page..page + 64].fill(0xff);
    }
    std::fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let found = memory_store::Maintain::check(&store).await.unwrap();
    assert!(
        found.iter().any(|v| v.kind == ViolationKind::Database),
        "{found:?}"
    );
}
