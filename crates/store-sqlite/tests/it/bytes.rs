//! Tests of the size of messages on disk.

use std::path::{Path, PathBuf};

use memory_model::{Message, Seq, SeqRange};
use memory_search::extend_index;
use memory_store::{LogRead, Maintain as _, Store as _, ViolationKind};
use store_conformance::{Chat, range};
use store_sqlite::SqliteStore;

use crate::common::store;

/// Sizes of a store of some conversations, in bytes.
struct Weight {
    messages: usize,
    /// Total size of message bodies before packing, and of the copies of tool results in metadata.
    raw: u64,
    /// Total size of all other facts about the messages: ids and the rest of the metadata.
    beside: u64,
    file: u64,
    /// Size of the file with the search index.
    indexed: u64,
}

impl Weight {
    fn ratio(&self) -> f64 {
        self.file as f64 / self.raw as f64
    }

    fn indexed_ratio(&self) -> f64 {
        self.indexed as f64 / self.raw as f64
    }

    fn print(&self, what: &str) {
        println!(
            "| {what} | {} | {} | {} | {} | {:.3} | {} | {:.3} |",
            self.messages,
            self.raw,
            self.beside,
            self.file,
            self.ratio(),
            self.indexed,
            self.indexed_ratio()
        );
    }
}

/// Prints the size of each table.
async fn print_tables(path: &Path) {
    use sqlx::sqlite::SqliteConnectOptions;
    use sqlx::{ConnectOptions as _, Row as _};

    let db = SqliteConnectOptions::new().filename(path);
    let mut db = db.connect().await.unwrap();
    let rows = sqlx::query(
        "select name, sum(pgsize), sum(unused) from dbstat group by name order by 2 desc limit 6",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    for row in rows {
        let (name, size, unused): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        println!("  {name}: {size} bytes, {unused} of them unused");
    }
}

/// Returns the size, in bytes, of the copy of a tool's result in a message's metadata. Claude Code stores this copy as
/// `toolUseResult`, and it is often longer than the result.
fn copied_result(message: &Message) -> u64 {
    type Members<'a> = std::collections::BTreeMap<String, &'a serde_json::value::RawValue>;
    let Some(meta) = &message.meta else {
        return 0;
    };
    let members: Members<'_> = serde_json::from_str(meta.as_str()).unwrap_or_default();
    let copy = members.get("toolUseResult");
    copy.map_or(0, |copy| copy.get().len() as u64)
}

/// Stores conversations, `step` entries at a time, checks that they are read back unchanged, and returns the sizes.
async fn weigh(conversations: Vec<Vec<Message>>, step: usize) -> Weight {
    let (folder, store) = store().await;
    let (mut messages, mut raw, mut beside) = (0, 0, 0);
    for (number, log) in conversations.iter().enumerate() {
        let chat = Chat::root(&store, &format!("session-{number}")).await;
        for some in log.chunks(step) {
            chat.append(some.to_vec()).await;
        }
        messages += log.len();
        for message in log {
            let copy = copied_result(message);
            raw += message.body().unwrap().len() as u64 + copy;
            let words = [&message.external_id, &message.response, &message.name];
            let words: usize = words.into_iter().flatten().map(String::len).sum();
            let meta = message.meta.as_ref().map_or(0, |meta| meta.as_str().len());
            beside += (words + meta) as u64 - copy;
        }
    }
    // The messages are read over another connection, by a store that has no data in memory.
    let path = folder.path().join("memory.db");
    let other = SqliteStore::open(&path).await.unwrap();
    for (number, log) in conversations
        .iter()
        .enumerate()
        .filter(|(_, log)| !log.is_empty())
    {
        let chat = Chat::root(&other, &format!("session-{number}")).await;
        let mut read = Vec::new();
        for entry in chat.entries().await {
            let body = entry.message.body().unwrap();
            assert_eq!(entry.hash, entry.message.hash(&body));
            read.push(entry.message);
        }
        assert!(read == *log, "conversation {number} did not come back");
    }
    other.close().await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    print_tables(&path).await;
    store.close().await.unwrap();
    let file = std::fs::metadata(&path).unwrap().len();
    let store = SqliteStore::open(&path).await.unwrap();
    for number in 0..conversations.len() {
        let chat = Chat::root(&store, &format!("session-{number}")).await;
        extend_index(&store, chat.id, u64::MAX).await.unwrap();
    }
    store.close().await.unwrap();
    let indexed = std::fs::metadata(path).unwrap().len();
    Weight {
        messages,
        raw,
        beside,
        file,
        indexed,
    }
}

fn transcripts(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            transcripts(&path, found);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn real_transcripts_take_less_than_their_text() {
    let Some(corpus) = std::env::var_os("AGENT_MEMORY_CORPUS") else {
        assert!(
            std::env::var_os("AGENT_MEMORY_REQUIRE_CORPUS").is_none_or(|value| value != "1"),
            "AGENT_MEMORY_CORPUS is not set"
        );
        println!("left out: AGENT_MEMORY_CORPUS is not set");
        return;
    };
    let mut files = Vec::new();
    for format in ["claude-code", "pi"] {
        transcripts(&Path::new(&corpus).join(format), &mut files);
    }
    let mut logs = Vec::new();
    for file in files {
        let transcript = message_formats::read_file(&file, &Default::default()).unwrap();
        let sessions = transcript.sessions.into_iter();
        logs.extend(sessions.map(|session| session.messages));
    }
    let live = weigh(logs.clone(), 1).await;
    let weight = weigh(logs, usize::MAX).await;
    weight.print("transcripts, imported");
    live.print("transcripts, message by message");
    assert!(weight.ratio() <= 0.5, "{}", weight.ratio());
    assert!(live.ratio() <= 0.55, "{}", live.ratio());
    assert!(weight.indexed_ratio() <= 0.9, "{}", weight.indexed_ratio());
}

/// Returns messages of text that does not repeat: random words of random letters.
fn unique_texts(count: usize, bytes: usize) -> Vec<Message> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            let text: String = (0..bytes)
                .map(|_| match random() % 64 {
                    n @ 0..26 => char::from(b'a' + n as u8),
                    n @ 26..52 => char::from(b'A' + (n - 26) as u8),
                    n @ 52..62 => char::from(b'0' + (n - 52) as u8),
                    _ => ' ',
                })
                .collect();
            let (a, b) = (random(), random());
            let id = format!(
                "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
                a >> 32,
                a >> 16 & 0xffff,
                a & 0xfff,
                b >> 52,
                b & 0xffff_ffff_ffff
            );
            Message::user(text).with_external_id(id)
        })
        .collect()
}

#[tokio::test]
async fn text_that_does_not_repeat_takes_little_more_than_itself() {
    let weight = weigh(vec![unique_texts(3000, 620)], 64).await;
    weight.print("random letters, 650 bytes");
    assert!(weight.ratio() <= 1.4, "{}", weight.ratio());
    let small = weigh(vec![unique_texts(3000, 40)], 64).await;
    small.print("random letters, 70 bytes");
}

/// Returns a tool's result with the content of a file, the same for every call.
fn file_read(call: u32) -> Message {
    let text: String = (0..2000)
        .map(|n| format!("{n:5}→ line {}\n", n * 7919 % 1009))
        .collect();
    Message::tool_result(format!("call_{call}"), text)
}

#[tokio::test]
async fn repeated_strings_are_stored_once() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    for n in 0..50 {
        chat.append([file_read(n)]).await;
    }
    chat.append((50..100).map(file_read)).await;
    let other = Chat::root(&store, "b").await;
    other.append((0..100).map(file_read)).await;
    let entries = chat.entries().await.into_iter();
    let read = entries.map(|entry| entry.message);
    assert!(read.eq((0..100).map(file_read)));
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await.unwrap();
    let raw = 200 * file_read(0).body().unwrap().len() as u64;
    let file = std::fs::metadata(folder.path().join("memory.db"));
    let file = file.unwrap().len();
    assert!(file * 20 < raw, "{file} of {raw}");
}

#[tokio::test]
async fn damaged_payloads_and_facts_are_found() {
    for (sql, kind) in [
        (
            "update payload set data = x'00'",
            ViolationKind::EntryChanged,
        ),
        ("update payload set codec = 0", ViolationKind::EntryChanged),
        ("delete from payload", ViolationKind::EntryUnreadable),
        (
            "insert into payload (hash, codec, data) values (zeroblob(32), 0, x'00')",
            ViolationKind::Database,
        ),
    ] {
        let (folder, store) = store().await;
        let chat = Chat::root(&store, "a").await;
        chat.append([file_read(1), file_read(2)]).await;
        assert_eq!(store.check().await.unwrap(), []);
        crate::damage::damage(&folder, sql).await;
        let found = store.check().await.unwrap();
        assert!(found.iter().any(|v| v.kind == kind), "{sql}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_is_bounded_while_readers_come_and_go() {
    use sqlx::ConnectOptions as _;
    use sqlx::sqlite::SqliteConnectOptions;

    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    let path = folder.path().join("memory.db");
    // Two readers overlap, so that one of them has a snapshot open at any time.
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut readers = Vec::new();
    for _ in 0..2 {
        let options = SqliteConnectOptions::new().filename(&path).read_only(true);
        let mut reader = options.connect().await.unwrap();
        let done = done.clone();
        readers.push(tokio::spawn(async move {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let begin = "begin; select max(id) from message";
                sqlx::raw_sql(begin).execute(&mut reader).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(7)).await;
                sqlx::raw_sql("commit").execute(&mut reader).await.unwrap();
            }
        }));
    }
    let texts = unique_texts(64, 4000);
    let log = folder.path().join("memory.db-wal");
    let mut largest = 0;
    for _ in 0..250 {
        let fresh = texts.iter().cloned().map(|mut message| {
            message.external_id = None;
            message
        });
        chat.append(fresh).await;
        largest = largest.max(std::fs::metadata(&log).unwrap().len());
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    store.close().await.unwrap();
    let written = std::fs::metadata(&path).unwrap().len();
    println!("the log's largest size: {largest} of {written} bytes");
    assert!(
        largest < 32 << 20 && written > 40 << 20,
        "{largest} of {written}"
    );
}

#[tokio::test]
async fn closing_gives_room_back() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(unique_texts(100, 20_000)).await;
    let sql = "update message set body = null, payload = null; delete from payload";
    crate::damage::damage(&folder, sql).await;
    let path = folder.path().join("memory.db");
    store.close().await.unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    // Each empty table and index takes a page of 8 KiB.
    assert!(before < 350_000, "{before}");
}

/// Returns text that cannot be compressed well.
fn noise(seed: u64, bytes: usize) -> String {
    let mut random = seed;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
        text.push_str(&format!("{random:016x}"));
    }
    text
}

#[tokio::test]
async fn large_messages_are_read_among_small_ones_and_count_unpacked() {
    let (_folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    let messages: Vec<Message> = (0..40)
        .map(|n| match n % 7 {
            3 => Message::tool_result(format!("call{n}"), noise(n, 150_000)),
            5 => Message::user(noise(n, 90_000)),
            _ => Message::user(format!("message {n}")),
        })
        .collect();
    chat.append(messages.clone()).await;
    let all = LogRead::new(range(1, 40));
    let page = store.read(chat.id, &all).await.unwrap();
    let read: Vec<Message> = page.items.into_iter().map(|entry| entry.message).collect();
    assert_eq!((read, page.next), (messages.clone(), None));

    // A page ends with the message that reaches the limit, in both reading orders.
    let size = |n: u32| messages[n as usize - 1].body().unwrap().len() as u64;
    for limit in [1, 90_000, 150_100, 300_000, 1_000_000] {
        let mut read = all.clone();
        read.max_bytes = limit;
        let page = store.read(chat.id, &read).await.unwrap();
        let mut sum = 0;
        let end = (1..=40).find(|n| {
            sum += size(*n);
            sum >= limit
        });
        let last = page.items.last().unwrap().seq.0;
        assert_eq!(last, end.unwrap_or(40), "{limit}");
        assert_eq!(page.next, SeqRange::new(Seq(last + 1), Seq(40)), "{limit}");
        let mut sum = 0;
        let begin = (1..=40).rev().find(|n| {
            sum += size(*n);
            sum >= limit
        });
        let page = store.read(chat.id, &read.newest_first()).await.unwrap();
        let last = page.items.last().unwrap().seq.0;
        assert_eq!(last, begin.unwrap_or(1), "{limit}");
        assert_eq!(page.items[0].message, messages[39]);
    }
}
