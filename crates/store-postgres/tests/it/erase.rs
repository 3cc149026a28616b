//! Tests that no table has erased words.

use std::time::Duration;

use memory_model::{ConversationId, Message, Part, RawJson, ResultContent, Role, Timestamp};
use memory_store::{ConversationRef, Erase, Erased, ErrorKind, Maintain as _, Result, Store as _};
use sqlx::{Connection as _, PgConnection, Row as _};
use store_conformance::{Chat, range};
use store_postgres::{PostgresOptions, PostgresStore};
use store_sql::pack;

use crate::common::{Schemas, batch, column, run, schemas, server, stranger};

/// Returns a word that occurs nowhere else.
fn secret(n: u32) -> String {
    format!("Bucephalus{n}x")
}

/// Returns a message with a secret in its text, in a string long enough to be stored separately, in its name, and in its
/// metadata.
fn said(n: u32) -> Message {
    let secret = secret(n);
    let lines = format!("line of {secret}\n").repeat(400);
    let message = match n % 3 {
        0 => Message::user(format!("the horse is {secret}. ").repeat(60)),
        1 => Message::assistant(format!("short {secret}")),
        _ => Message::new(
            Role::User,
            vec![Part::ToolResult {
                call_id: format!("c{n}"),
                content: ResultContent::Text(lines),
                is_error: None,
            }],
        ),
    };
    // Each piece of metadata is in two entries, so that it becomes one of the conversation's facts.
    let pair = self::secret(1_000 + n / 2);
    let meta = format!(r#"{{"id":{n},"pair":"{pair}","folder":"/home/somebody/project"}}"#);
    let message = message.with_meta(RawJson::parse(meta).unwrap());
    message.with_name(format!("name-{secret}"))
}

async fn erase(store: &PostgresStore, id: ConversationId, first: u32, last: u32) -> Result<Erased> {
    let request = Erase::range(range(first, last), "asked for", Timestamp(1));
    memory_store::erase(store, &ConversationRef::Id(id), &request).await
}

/// Returns everything in the tables: all rows as texts, all columns of bytes, and what is packed in them.
async fn everything(db: &mut PgConnection) -> String {
    let mut all = Vec::new();
    let columns = "select format('select %s from %I where %I is not null',
          case when atttypid = 'bytea'::regtype then quote_ident(attname)
               else format('convert_to(%I::text, ''UTF8'')', attname) end, relname, attname)
        from pg_class join pg_attribute on attrelid = pg_class.oid
       where relkind in ('r', 'p') and attnum > 0 and relnamespace = current_schema()::regnamespace";
    let columns = column(db, columns).await;
    assert!(columns.len() > 150, "{}", columns.len());
    for sql in columns {
        let values: Vec<Vec<u8>> = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_all(&mut *db)
            .await
            .unwrap();
        values.iter().for_each(|value| {
            all.extend(value);
            all.push(b'\n');
        });
    }
    let facts = sqlx::query("select text, revision from facts");
    let facts = facts.fetch_all(&mut *db).await.unwrap();
    let facts = facts
        .first()
        .map(|row| pack::Facts::new(row.get(0), row.get(1)).unwrap());
    all.extend(facts.iter().flat_map(|facts| facts.text().bytes()));
    let payloads = sqlx::query("select codec, data from payload");
    for row in payloads.fetch_all(&mut *db).await.unwrap() {
        all.extend(pack::unpack_payload(row.get(0), row.get(1)).unwrap());
    }
    let bodies = sqlx::query(
        "select m.codec, m.body, p.codec, p.data from message m left join payload p on p.id = m.payload
          where m.body is not null and m.codec <> 0",
    );
    for row in bodies.fetch_all(&mut *db).await.unwrap() {
        let cut: Option<i64> = row.get(2);
        let cut = cut.map(|codec| pack::unpack_payload(codec, row.get(3)).unwrap());
        let facts = facts
            .as_ref()
            .filter(|_| pack::facts_revision(row.get(0)).is_some());
        let body: Vec<u8> = row.get(1);
        let (body, meta) = pack::unpack(&body, cut.as_deref(), facts).unwrap();
        all.extend(body);
        all.extend(meta.unwrap_or_default().into_bytes());
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn no_table_has_erased_words() {
    let schemas = schemas!();
    let (url, store) = schemas.store().await;
    let mut db = stranger(&url).await;
    let chat = Chat::root(&store, "a").await;
    chat.append((0..60).map(said)).await;
    chat.show_leaf(
        "dag",
        range(11, 12),
        &format!("summary of {}", secret(2_000)),
    )
    .await;
    let before = everything(&mut db).await;
    for n in (0..60).chain([2_000]) {
        assert!(before.contains(&secret(n)), "{n}");
    }
    assert!(
        before.contains(",\"pair\":"),
        "the facts hold pieces of meta"
    );

    let erased = erase(&store, chat.id, 11, 40).await.unwrap();
    assert_eq!((erased.entries, erased.summaries), (30, 1));
    let after = everything(&mut db).await;
    for n in 0..60 {
        let is_erased = (10..40).contains(&n);
        assert_eq!(after.contains(&secret(n)), !is_erased, "entry {}", n + 1);
        let meta = after.contains(&secret(1_000 + n / 2));
        assert_eq!(meta, !is_erased, "meta of {}", n + 1);
    }
    assert!(!after.contains(&secret(2_000)), "the summary");
    assert_eq!(store.pending_wipe().await.unwrap(), None);

    // The other entries are unchanged.
    let entries = chat.entries().await.into_iter();
    for entry in entries.filter(|entry| !(11..=40).contains(&entry.seq.0)) {
        let said = said(entry.seq.0 - 1);
        assert_eq!(entry.message.body().unwrap(), said.body().unwrap());
        assert_eq!(entry.message.meta, said.meta);
    }
    assert_eq!(store.check().await.unwrap(), []);
    chat.append((60..64).map(said)).await;
    assert_eq!(chat.entries().await[63].message.meta, said(63).meta);
}

/// A database that is dropped at the end of a test. An erasure waits for all transactions of a database.
struct Apart {
    server: String,
    name: String,
}

impl Apart {
    async fn new(server: &str) -> (Self, String) {
        let name = format!("test_{}_apart", std::process::id());
        let mut db = PgConnection::connect(server).await.unwrap();
        let create = format!("create database {name}");
        run(&mut db, &create).await.unwrap();
        let (base, query) = server.split_once('?').unwrap_or((server, ""));
        let (base, _) = base.rsplit_once('/').unwrap();
        let url = format!("{base}/{name}?{query}");
        let server = server.to_owned();
        (Self { server, name }, url)
    }

    async fn drop(self) {
        let mut db = PgConnection::connect(&self.server).await.unwrap();
        let drop = format!("drop database {} with (force)", self.name);
        run(&mut db, &drop).await.unwrap();
    }
}

/// Returns the number of rows with an erased name that are still in the first page of the messages.
async fn rows_left(db: &mut PgConnection) -> Vec<String> {
    let left = "select count(*)::text from heap_page_items(get_raw_page('message', 0)) \
        where position(convert_to('Bucephalus', 'UTF8') in t_data) > 0";
    column(db, left).await
}

/// Checks that an erasure names a transaction that still sees the words, and that the next store that opens the tables
/// for writing removes them.
#[tokio::test]
async fn a_transaction_that_sees_the_words_keeps_them_and_is_named() {
    let Some(server) = server() else { return };
    let (apart, url) = Apart::new(&server).await;
    let schemas = Schemas::new(&url);
    let (url, store) = schemas.store().await;
    let mut db = stranger(&url).await;
    run(&mut db, "create extension pageinspect").await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append((0..12).map(said)).await;
    let mut reader = stranger(&url).await;
    let hold = "begin isolation level repeatable read; select count(*) from message";
    run(&mut reader, hold).await.unwrap();

    let refused = erase(&store, chat.id, 1, 12).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotGone, "{refused:?}");
    let text = refused.to_string();
    assert!(
        text.contains(&store.location()) && text.contains("end it and erase again"),
        "{text}"
    );
    // A new read does not find the words.
    let texts = chat.texts().await;
    assert!(texts.iter().all(|text| !text.contains("Bucephalus")));
    assert_eq!(store.pending_wipe().await.unwrap(), Some(Timestamp(1)));
    assert_ne!(rows_left(&mut db).await, ["0"]);
    reader.close().await.unwrap();
    store.close().await.unwrap();

    let reads = PostgresOptions::new().read_only().open(&url).await.unwrap();
    assert_eq!(reads.pending_wipe().await.unwrap(), Some(Timestamp(1)));
    reads.close().await.unwrap();
    let writes = PostgresStore::open(&url).await.unwrap();
    assert_eq!(writes.pending_wipe().await.unwrap(), None);
    assert_eq!(rows_left(&mut db).await, ["0"]);
    writes.close().await.unwrap();
    db.close().await.unwrap();
    drop(schemas);
    apart.drop().await;
}

/// Checks that the settings of an erasure do not stay in the connections of the store.
#[tokio::test]
async fn an_erasure_leaves_the_time_outs_as_they_were() {
    let schemas = schemas!();
    let (url, _store) = schemas.store().await;
    let options = PostgresOptions::new()
        .with_max_connections(1)
        .with_lock_timeout(Duration::from_millis(100));
    let store = options.open(&url).await.unwrap();
    let chat = Chat::root(&store, "a").await;
    chat.append((0..12).map(said)).await;
    erase(&store, chat.id, 1, 2).await.unwrap();
    let mut held = stranger(&url).await;
    run(&mut held, "begin; select 1 from family for update")
        .await
        .unwrap();
    let append = batch([said(50)]);
    let waited =
        tokio::time::timeout(Duration::from_secs(20), store.append(chat.id, &append)).await;
    assert_eq!(waited.unwrap().unwrap_err().kind(), ErrorKind::Busy);
}
