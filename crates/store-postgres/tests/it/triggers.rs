//! Tests that the database itself refuses forbidden changes by any program.

use memory_model::{Hash, Message, RawJson, SourceHasher};
use memory_store::{Maintain as _, ViolationKind, verify};
use store_conformance::{Chat, Source, range, sound};
use store_postgres::{PostgresOptions, PostgresStore};

use crate::common::{Schemas, column, run, schemas, server, stranger, texts};

/// Creates a store with twelve messages and three summaries. The first ten messages have metadata that became facts, the
/// last two a string that is stored separately.
async fn filled(schemas: &Schemas) -> (String, PostgresStore) {
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "a").await;
    let meta = RawJson::parse(r#"{"folder":"/home/somebody/project"}"#).unwrap();
    let texts = texts(1, 10).map(|message| message.with_meta(meta.clone()));
    chat.append(texts).await;
    let long = Message::user("a long line\n".repeat(1_000));
    chat.append([long.clone(), long]).await;
    let mut leaves = Vec::new();
    for at in [range(1, 4), range(5, 8)] {
        leaves.push(
            chat.show_leaf("dag", at, &format!("what happened in {at}"))
                .await,
        );
    }
    let sources: Vec<_> = leaves.iter().map(Source::Summary).collect();
    chat.show_summary("dag", &sources, "what happened").await;
    (url, store)
}

/// Returns changes of a filled store that no program may make.
fn forbidden() -> Vec<String> {
    let columns =
        "(tree, id, conversation, seq, kind, role, external_id, at, tokens, running, hash, body)";
    let row = |seq: u32, external: &str, running: u32| {
        format!(
            "(1, {}, 1, {seq}, 'message', 'user', {external}, 0, 3, \
             (select tokens from conversation) + {running}, decode(repeat('00', 32), 'hex'), '\\x5b5d')",
            (1_u64 << 32) + u64::from(seq)
        )
    };
    let insert = |row: String| format!("insert into message {columns} values {row}");
    let known = "(select external_id from message where seq = 3)";
    let mut all = vec![
        // Changes of the log.
        "update message set body = '\\x5b5d'".to_owned(),
        "update message set body = null".to_owned(),
        "update message set tokens = 4, running = running + 1".to_owned(),
        "update message set id = 4294967300 where seq = 3".to_owned(),
        "delete from message where seq = 12".to_owned(),
        insert(row(14, "null", 3)),
        insert(row(13, "null", 99)),
        insert(row(3, "null", 3)),
        insert(row(13, known, 3)),
        insert(format!("{}, {}", row(13, "null", 3), row(15, "null", 6))),
        insert(row(3, "null", 3)) + " on conflict (tree, id) do update set body = excluded.body",
        insert(row(13, known, 3))
            + " on conflict (tree, conversation, external_id) where external_id is not null \
               do update set body = excluded.body",
        "delete from payload".to_owned(),
        "update payload set data = ''".to_owned(),
        "update facts set text = ''".to_owned(),
        "delete from facts".to_owned(),
        // Changes of conversations.
        "update conversation set head = head - 1".to_owned(),
        "update conversation set fences = fences - 1".to_owned(),
        "update conversation set key = 'b'".to_owned(),
        "update conversation set tree = 2, no = 2".to_owned(),
        "insert into directory values ('a', 2, 2)".to_owned(),
        "insert into directory values ('b', 1, 1)".to_owned(),
        "update directory set no = 2".to_owned(),
        "update family set members = 1".to_owned(),
        "update family set tree = 2, members = members + 1".to_owned(),
        // Changes of views and summaries.
        "update view set version = 0".to_owned(),
        "update span_history set tokens = 0".to_owned(),
        "update publication set at = 0".to_owned(),
        "insert into publication select tree, conversation, view, version + 5, first, last, at, hash, record \
         from publication"
            .to_owned(),
        "update summary set text = ''".to_owned(),
        "update summary set text = '[erased]', ranks = null, messages = null, meta = null".to_owned(),
        "update summary_link set last = 3".to_owned(),
    ];
    for table in [
        "message",
        "conversation",
        "directory",
        "family",
        "span_history",
        "publication",
        "summary",
        "summary_link",
    ] {
        all.push(format!("delete from {table}"));
        all.push(format!("insert into {table} select * from {table}"));
    }
    for table in [
        "message",
        "conversation",
        "directory",
        "family",
        "payload",
        "facts",
        "span_history",
        "publication",
        "summary",
        "summary_link",
        "erasure",
        "erased_summary",
    ] {
        all.push(format!("truncate {table} cascade"));
    }
    all
}

/// Checks that the owner of the tables, whose rights have no limit, cannot make a forbidden change.
async fn refuses(schemas: Schemas) {
    let (url, store) = filled(&schemas).await;
    let mut db = stranger(&url).await;
    let rows = "select concat((select count(*) from payload), ' ', (select count(*) from facts), ' ', \
                (select count(*) from span_history))";
    assert_eq!(column(&mut db, rows).await, ["1 1 4"]);
    for sql in forbidden() {
        let error = run(&mut db, &sql).await.expect_err(&sql);
        let code = error.as_database_error().and_then(|error| error.code());
        let is_constraint = code.is_some_and(|code| code.starts_with("23"));
        let text = error.to_string();
        let reasons = ["append-only", "can not", "must", "grows", "violates"];
        let is_told = reasons.iter().any(|reason| text.contains(reason));
        assert!(is_constraint && is_told, "{sql}: {text}");
    }
    let count = "select count(*)::text from message";
    assert_eq!(column(&mut db, count).await, ["12"]);
    sound(&store).await;
}

#[tokio::test]
async fn nothing_stored_can_be_changed_deleted_or_replaced() {
    refuses(schemas!()).await;
}

#[tokio::test]
async fn nothing_stored_in_partitions_can_be_changed_deleted_or_replaced() {
    let Some(url) = server() else { return };
    let options = PostgresOptions::new().with_partitions(2);
    refuses(Schemas::with_options(&url, options)).await;
}

#[tokio::test]
async fn an_erasure_blanks_only_words() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 5)).await;
    chat.show_leaf("dag", range(1, 4), "what happened").await;
    let mut db = stranger(&url).await;
    let erasure = "insert into erasure values (1, 1, 2, 3, 0, 'asked for')";
    run(&mut db, erasure).await.unwrap();
    for refused in [
        "update message set body = null where seq = 4",
        "update message set body = null, hash = decode(repeat('00', 32), 'hex') where seq = 2",
        "update message set body = '\\x5b5d' where seq = 2",
        "update message set body = null, role = 'assistant' where seq = 2",
        "update erasure set last = 5",
        "delete from erasure",
    ] {
        run(&mut db, refused).await.expect_err(refused);
    }
    let blank = "update message set body = null, meta = null, name = null where seq in (2, 3)";
    run(&mut db, blank).await.unwrap();
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
    let report = verify(&store, chat.id, &|_: &_| None).await.unwrap();
    let kinds: Vec<ViolationKind> = report.violations.iter().map(|found| found.kind).collect();
    assert_eq!(kinds, [ViolationKind::EstimatorMixed]);
}

#[tokio::test]
async fn check_finds_changes_that_triggers_would_stop() {
    let schemas = schemas!();
    for (damage, kind) in [
        (
            "drop trigger message_delete on message",
            ViolationKind::Database,
        ),
        (
            "drop trigger message_advance on message",
            ViolationKind::Database,
        ),
        (
            "alter table message disable trigger message_update",
            ViolationKind::Database,
        ),
        ("drop index message_external", ViolationKind::Database),
        (
            "create or replace function refuse() returns trigger language plpgsql as $$ begin return new; end $$",
            ViolationKind::Database,
        ),
        (
            "update pg_index set indisvalid = false where indexrelid = 'message_payload'::regclass",
            ViolationKind::Database,
        ),
        (
            "drop trigger message_delete on message; delete from message where seq = 12",
            ViolationKind::EntryMissing,
        ),
        (
            "drop trigger publication_delete on publication; delete from publication where version = 2",
            ViolationKind::HistoryChanged,
        ),
        (
            "alter table message disable trigger message_advance; \
             insert into message (tree, id, conversation, seq, kind, role, at, tokens, running, hash) \
             select tree, id + 1, conversation, seq + 1, kind, role, at, tokens, running, hash from message where seq = 12; \
             alter table message enable trigger message_advance",
            ViolationKind::EntryMisplaced,
        ),
        (
            "alter table message drop constraint message_tree_payload_fkey; drop trigger payload_delete on payload; \
             delete from payload",
            ViolationKind::EntryUnreadable,
        ),
        (
            "insert into payload (tree, hash, codec, data) values (1, decode(repeat('00', 32), 'hex'), 0, '')",
            ViolationKind::Database,
        ),
        (
            "drop trigger publication_delete on publication; delete from publication where version = 1",
            ViolationKind::HistoryChanged,
        ),
        (
            "drop trigger summary_update on summary; update summary set depth = 1",
            ViolationKind::Cycle,
        ),
        ("delete from view", ViolationKind::SpansOverlap),
        (
            "drop trigger summary_link_update on summary_link; update summary_link set last = last - 1",
            ViolationKind::ChildRangeWrong,
        ),
    ] {
        let (url, store) = filled(&schemas).await;
        sound(&store).await;
        run(&mut stranger(&url).await, damage).await.unwrap();
        let found = store.check().await.unwrap();
        assert!(found.iter().any(|v| v.kind == kind), "{damage}: {found:?}");
    }
}
