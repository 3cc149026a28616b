//! Tests that no byte of erased words is left in the files.

use memory_model::{ConversationId, Message, Part, RawJson, ResultContent, Role, Timestamp};
use memory_store::{ConversationRef, Erase, Erased, ErrorKind, Maintain as _, Result};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Row as _};
use store_conformance::{Chat, range};
use store_sql::pack;
use store_sqlite::{SqliteOptions, SqliteStore};

use crate::common::{store, stranger};

/// Returns a word that occurs nowhere else.
fn secret(n: u32) -> String {
    format!("Bucephalus{n}x")
}

/// Returns a message with a secret in its text, in a string long enough to be stored separately, and in its metadata.
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

/// Opens a connection with a transaction that has read the write-ahead log. The log cannot be truncated until the
/// connection is closed.
async fn hold_the_log(folder: &tempfile::TempDir) -> SqliteConnection {
    let mut reader = stranger(folder).await;
    for statement in ["begin", "select count(*) from message"] {
        sqlx::query(statement).execute(&mut reader).await.unwrap();
    }
    reader
}

/// Erases the entries from `first` to `last` of a conversation.
async fn erase(store: &SqliteStore, id: ConversationId, first: u32, last: u32) -> Result<Erased> {
    let request = Erase::range(range(first, last), "asked for", Timestamp(1));
    memory_store::erase(store, &ConversationRef::Id(id), &request).await
}

/// Returns everything that can be read from the files: the raw bytes, and the unpacked content of every packed column.
async fn everything(folder: &tempfile::TempDir) -> String {
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        all.extend(std::fs::read(file.unwrap().path()).unwrap());
        all.push(b'\n');
    }
    let mut db = stranger(folder).await;
    let facts = sqlx::query("select text, revision from facts")
        .fetch_all(&mut db)
        .await
        .unwrap();
    let facts = facts
        .first()
        .map(|row| pack::Facts::new(row.get(0), row.get(1)).unwrap());
    all.extend(facts.iter().flat_map(|facts| facts.text().bytes()));
    let payloads = "select codec, data from payload";
    for row in sqlx::query(payloads).fetch_all(&mut db).await.unwrap() {
        all.extend(pack::unpack_payload(row.get(0), row.get(1)).unwrap());
    }
    let bodies = "select m.codec, m.body, p.codec, p.data from message m left join payload p on p.id = m.payload
                   where m.body is not null and m.codec <> 0";
    for row in sqlx::query(bodies).fetch_all(&mut db).await.unwrap() {
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
    let free = sqlx::query("pragma freelist_count")
        .fetch_one(&mut db)
        .await
        .unwrap();
    all.extend(format!("free pages {}.", free.get::<i64, _>(0)).into_bytes());
    db.close().await.unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn no_byte_is_left() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append((0..60).map(said)).await;
    let before = everything(&folder).await;
    for n in 0..60 {
        assert!(before.contains(&secret(n)), "{n}");
    }
    assert!(
        before.contains(",\"pair\":"),
        "the facts hold pieces of meta"
    );

    let erased = erase(&store, chat.id, 11, 40).await.unwrap();
    assert_eq!(erased.entries, 30);
    let after = everything(&folder).await;
    for n in 0..60 {
        let is_erased = (10..40).contains(&n);
        assert_eq!(after.contains(&secret(n)), !is_erased, "entry {}", n + 1);
        let meta = after.contains(&secret(1_000 + n / 2));
        assert_eq!(meta, !is_erased, "meta of {}", n + 1);
    }
    assert!(after.contains("free pages 0."));
    let wal = folder.path().join("memory.db-wal");
    // The record of the erasure is deleted after the log was truncated, so the log has a few pages.
    let wal = std::fs::metadata(wal).map_or(0, |wal| wal.len());
    assert!(wal < 16_384, "{wal}");

    // The other entries are unchanged.
    let entries = chat.entries().await.into_iter();
    for entry in entries.filter(|entry| !(11..=40).contains(&entry.seq.0)) {
        let said = said(entry.seq.0 - 1);
        assert_eq!(entry.message.body().unwrap(), said.body().unwrap());
        assert_eq!(entry.message.meta, said.meta);
    }
    assert_eq!(store.check().await.unwrap(), []);
    chat.append((60..64).map(said)).await;
    let entries = chat.entries().await;
    assert_eq!(entries.len(), 64);
    assert_eq!(entries[63].message.meta, said(63).meta);
}

#[tokio::test]
async fn a_reader_that_holds_the_log_keeps_bytes_and_is_named() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append((0..12).map(said)).await;
    let reader = hold_the_log(&folder).await;

    let refused = erase(&store, chat.id, 1, 12).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotGone);
    assert!(
        refused.to_string().contains("still in the files"),
        "{refused}"
    );
    // A new read does not find the words.
    let texts = chat.texts().await;
    assert!(texts.iter().all(|text| !text.contains("Bucephalus")));

    assert_eq!(store.pending_wipe().await.unwrap(), Some(Timestamp(1)));
    reader.close().await.unwrap();
    erase(&store, chat.id, 1, 12).await.unwrap();
    assert_eq!(store.pending_wipe().await.unwrap(), None);
    let after = everything(&folder).await;
    for n in 0..12 {
        assert!(!after.contains(&secret(n)), "entry {}", n + 1);
    }
}

/// Checks that the next store that opens the file for writing removes the words that an interrupted erasure left there.
#[tokio::test]
async fn an_erasure_that_was_cut_short_is_finished_by_the_next_writer() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append((0..12).map(said)).await;
    let reader = hold_the_log(&folder).await;
    let refused = erase(&store, chat.id, 1, 12).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotGone);
    reader.close().await.unwrap();
    drop(store);

    let path = folder.path().join("memory.db");
    let reads = SqliteOptions::default()
        .read_only()
        .open(&path)
        .await
        .unwrap();
    assert_eq!(reads.pending_wipe().await.unwrap(), Some(Timestamp(1)));
    reads.close().await.unwrap();
    let writes = SqliteStore::open(&path).await.unwrap();
    assert_eq!(writes.pending_wipe().await.unwrap(), None);
    writes.close().await.unwrap();
    let after = everything(&folder).await;
    for n in 0..12 {
        assert!(!after.contains(&secret(n)), "entry {}", n + 1);
    }
}

/// Checks that an erasure, and the one who finishes it, removes the words from the copy that a killed restore left.
#[tokio::test]
async fn a_copy_that_a_killed_restore_left_is_removed() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append((0..12).map(said)).await;
    let path = folder.path().join("memory.db");
    let backup = folder.path().join("backup.db");
    SqliteOptions::new().backup(&path, &backup).await.unwrap();
    let copies =
        ["memory.db-restore", "memory.db-restore-wal"].map(|name| folder.path().join(name));
    for copy in &copies {
        std::fs::copy(&backup, copy).unwrap();
    }
    std::fs::remove_file(&backup).unwrap();
    assert!(everything(&folder).await.contains(&secret(3)));
    erase(&store, chat.id, 1, 6).await.unwrap();
    let after = everything(&folder).await;
    for n in 0..12 {
        assert_eq!(after.contains(&secret(n)), n >= 6, "entry {}", n + 1);
    }

    // A file that cannot be removed is named, and the erasure stays open.
    std::fs::create_dir(&copies[0]).unwrap();
    let refused = erase(&store, chat.id, 7, 12).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotGone, "{refused}");
    assert!(
        refused.to_string().contains("memory.db-restore"),
        "{refused}"
    );
    drop(store);
    std::fs::remove_dir(&copies[0]).unwrap();
    std::fs::write(&copies[0], secret(7)).unwrap();
    let next = SqliteStore::open(&path).await.unwrap();
    assert_eq!(next.pending_wipe().await.unwrap(), None);
    next.close().await.unwrap();
    assert!(!copies[0].exists());
}

/// Checks that no entry is lost if an open store packs and reads with facts that another process changes meanwhile.
#[tokio::test]
async fn an_erasure_during_other_writes_loses_no_entry() {
    let (folder, open) = store().await;
    let chat = Chat::root(&open, "a").await;
    chat.append((0..20).map(said)).await;
    let other = SqliteStore::open(folder.path().join("memory.db"))
        .await
        .unwrap();
    let mut appended = 20;
    let mut gone = Vec::new();
    for round in 0..4_u32 {
        let first = 1 + 4 * round;
        erase(&other, chat.id, first, first + 3).await.unwrap();
        gone.extend(first..first + 4);
        chat.append((appended..appended + 10).map(said)).await;
        appended += 10;
        for store in [&open, &other] {
            for entry in Chat::new(store, chat.id).entries().await {
                let n = entry.seq.0 - 1;
                let is_gone = gone.contains(&entry.seq.0);
                let parts = format!("{:?}", entry.message.parts);
                assert_eq!(parts.contains(&secret(n)), !is_gone, "entry {}", n + 1);
                assert_eq!(entry.message.meta, said(n).meta.filter(|_| !is_gone));
            }
            assert_eq!(store.check().await.unwrap(), []);
        }
    }
}
