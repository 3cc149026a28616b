//! Tests that the database itself refuses forbidden changes by any program.

use memory_model::{Hash, SourceHasher};
use memory_store::{Maintain as _, ViolationKind, verify};
use sqlx::Row as _;

use crate::common::{leaf, store, stranger, texts};
use store_conformance::{Chat, range};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// Creates a store in a file, with twelve messages and two leaves.
async fn filled() -> (TempDir, SqliteStore) {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 12)).await;
    leaf(chat, range(1, 4)).await;
    leaf(chat, range(5, 8)).await;
    (folder, store)
}

const COLUMNS: &str =
    "(id, conversation, seq, kind, role, external_id, at, tokens, running, hash, body)";

#[tokio::test]
async fn messages_cannot_be_changed_deleted_or_replaced() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 12)).await;
    leaf(chat, range(1, 4)).await;
    leaf(chat, range(5, 8)).await;
    let mut db = stranger(&folder).await;
    let row = |id: i64, seq: u32, external: &str, running: u32| {
        format!(
            "({id}, 1, {seq}, 'message', 'user', {external}, 0, 3, {running}, zeroblob(32), x'5b5d')"
        )
    };
    let refused = [
        // Changes of the log.
        "update message set body = x'5b5d'".to_owned(),
        "update message set body = null".to_owned(),
        "update message set tokens = 4, running = running + 1".to_owned(),
        "delete from message".to_owned(),
        "delete from message where seq = 12".to_owned(),
        format!("insert into message {COLUMNS} values {}", row(4294967310, 14, "null", 42)),
        format!("insert into message {COLUMNS} values {}", row(4294967309, 13, "null", 99)),
        format!("insert or replace into message {COLUMNS} values {}", row(4294967299, 3, "null", 9)),
        format!("insert or replace into message {COLUMNS} values {}", row(4294967309, 13, "'e3'", 39)),
        format!("replace into message {COLUMNS} values {}", row(4294967309, 13, "'e3'", 39)),
        format!(
            "insert into message {COLUMNS} values {} on conflict (id) do update set body = excluded.body",
            row(4294967299, 3, "null", 9)
        ),
        format!(
            "insert into message {COLUMNS} values {} on conflict (conversation, external_id) \
             where external_id is not null do update set body = excluded.body",
            row(4294967309, 13, "'e3'", 39)
        ),
        format!("update or replace message set id = {} where seq = 3", 4294967300_i64),
        // Changes of conversations.
        "delete from conversation".to_owned(),
        "update conversation set head = head - 1".to_owned(),
        "update conversation set key = 'b'".to_owned(),
        "update conversation set tree = 2, no = 2".to_owned(),
        "replace into conversation (no, tree, key, kind, estimator, created_at, updated_at) \
         values (1, 1, 'c', 'root', 'anna@1', 0, 0)"
            .to_owned(),
        "replace into conversation (tree, key, kind, estimator, created_at, updated_at) \
         values (1, 'a', 'root', 'anna@1', 0, 0)"
            .to_owned(),
        "update family set members = 1".to_owned(),
        "update family set tree = 2, members = members + 1".to_owned(),
        "delete from family".to_owned(),
        "replace into family values (1, 1, zeroblob(32))".to_owned(),
        // Changes of views and summaries.
        "update view set version = 0".to_owned(),
        "update span_history set tokens = 0".to_owned(),
        "delete from span_history".to_owned(),
        "insert or replace into span_history select * from span_history".to_owned(),
        "update publication set at = 0".to_owned(),
        "delete from publication".to_owned(),
        "insert or replace into publication select * from publication".to_owned(),
        "insert into publication select conversation, view, version + 5, first, last, at, hash, record from publication"
            .to_owned(),
        "update summary set text = ''".to_owned(),
        "delete from summary".to_owned(),
        "insert or replace into summary select * from summary".to_owned(),
        "update summary_link set last = 3".to_owned(),
        "delete from summary_link".to_owned(),
        "insert or replace into summary_link select * from summary_link".to_owned(),
    ];
    for sql in refused {
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&mut db);
        let error = done.await.expect_err(&sql).to_string();
        let reasons = ["append-only", "can not", "must", "grows", "exists"];
        let is_told = reasons.iter().any(|reason| error.contains(reason));
        assert!(is_told, "{sql}: {error}");
    }
    let rows = sqlx::query("select count(*) from message")
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert_eq!(rows.get::<i64, _>(0), 12);
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn an_erasure_blanks_only_words() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 5)).await;
    leaf(chat, range(1, 4)).await;
    let mut db = stranger(&folder).await;
    sqlx::raw_sql("insert into erasure values (1, 2, 3, 0, 'asked for')")
        .execute(&mut db)
        .await
        .unwrap();
    for refused in [
        "update message set body = null where seq = 4",
        "update message set body = null, hash = zeroblob(32) where seq = 2",
        "update message set body = x'5b5d' where seq = 2",
        "update message set body = null, role = 'assistant' where seq = 2",
        "update erasure set last = 5",
        "delete from erasure",
    ] {
        let done = sqlx::raw_sql(refused).execute(&mut db).await;
        done.expect_err(refused);
    }
    sqlx::raw_sql("update message set body = null, meta = null, name = null where seq in (2, 3)")
        .execute(&mut db)
        .await
        .unwrap();
    let texts = chat.texts().await;
    assert_eq!(texts, ["message 1", "", "", "message 4", "message 5"]);

    // The hashes of entries are enough to check the chain hash and the sources of summaries.
    let entries = chat.entries().await;
    let chain = entries
        .iter()
        .fold(Hash::ZERO, |chain, entry| chain.chain(entry.hash));
    assert_eq!(chat.info().await.chain, chain);
    let mut source = SourceHasher::new();
    entries[..4]
        .iter()
        .for_each(|entry| source.message(entry.hash));
    assert_eq!(chat.summary_log().await[0].source_hash, source.finish());
    // All hashes over hashes are right. Costs are not checked, because no estimator is given.
    let report = verify(&store, chat.id, &|_: &_| None).await.unwrap();
    let kinds: Vec<ViolationKind> = report.violations.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [ViolationKind::EstimatorMixed]);
}

#[tokio::test]
async fn check_finds_changes_that_triggers_would_stop() {
    for (damage, kind) in [
        ("drop trigger message_delete", ViolationKind::Database),
        ("drop trigger message_insert", ViolationKind::Database),
        ("drop index message_external", ViolationKind::Database),
        (
            "create trigger stranger after insert on message begin select 1; end",
            ViolationKind::Database,
        ),
        (
            "drop trigger message_delete; delete from message where seq = 12",
            ViolationKind::EntryMissing,
        ),
        (
            "drop trigger publication_delete; delete from publication where version = 2",
            ViolationKind::HistoryChanged,
        ),
        ("delete from view", ViolationKind::SpansOverlap),
        (
            "drop trigger summary_link_update; update summary_link set last = last - 1",
            ViolationKind::ChildRangeWrong,
        ),
        (
            "drop trigger summary_link_delete; drop trigger summary_delete; delete from summary",
            ViolationKind::Database,
        ),
        (
            "pragma writable_schema = on; update sqlite_schema set sql = replace(sql, 'head + 1', 'head + 2') \
             where name = 'message_insert'",
            ViolationKind::Database,
        ),
    ] {
        let (folder, store) = filled().await;
        assert_eq!(store.check().await.unwrap(), []);
        let mut db = stranger(&folder).await;
        sqlx::raw_sql(damage).execute(&mut db).await.unwrap();
        let found = store.check().await.unwrap();
        assert!(found.iter().any(|v| v.kind == kind), "{damage}: {found:?}");
    }
}
