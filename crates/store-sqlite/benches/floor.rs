//! Measures the speed of appending compared with SQLite alone, and the operations whose time does not grow with
//! history.
//!
//! `cargo bench -p store-sqlite --bench floor` prints the first table. With `-- flat 1000 1000000` it prints the second
//! table, for logs of these lengths. Criterion's flags `--quick` and `--test` make it shorter. Its other flags have no
//! effect.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs
)]

use std::path::Path;
use std::time::{Duration, Instant};

use memory_model::{
    Child, ConversationId, Message, Recipe, Seq, SeqRange, SourceHasher, Span, SpanBody, Summary,
    Timestamp, ViewName,
};
use memory_store::{
    Append, AppendAt, ConversationRef, LogRead, Maintain as _, NewConversation, NewEntry, Order,
    Publish, Published, Store as _,
};
use store_sqlite::SqliteStore;

/// Number of rows of a round: a multiple of the number of rows of every measured transaction.
const ROWS: u32 = 19_200;

/// Amount of work to measure.
#[derive(Debug, Clone, Copy)]
struct Amount {
    /// Number of rows of a round, a multiple of 640.
    rows: u32,
    rounds: usize,
    /// Number of durable appends of one message.
    appends: u32,
}

impl Amount {
    fn of(words: &[String]) -> Self {
        let named = |flag: &str| words.iter().any(|word| word == flag);
        let (rows, rounds, appends) = match (named("--test"), named("--quick")) {
            (true, _) => (640, 1, 10),
            (_, true) => (ROWS, 1, 500),
            _ => (ROWS, 5, 5_000),
        };
        Self {
            rows,
            rounds,
            appends,
        }
    }
}

/// Returns a message of about 650 bytes, with an external id like those of real transcripts.
fn message(n: u32) -> Message {
    Message::user(format!("{n:08} ").repeat(69)).with_external_id(format!(
        "{:08x}-0000-4000-8000-{n:012x}",
        n.wrapping_mul(0x9e37_79b9)
    ))
}

fn append(messages: impl Iterator<Item = Message>) -> Append {
    Append {
        at: AppendAt::Any,
        estimator: "anna@2".parse().unwrap(),
        entries: messages
            .map(|message| NewEntry {
                message,
                tokens: 163,
                clocked: false,
            })
            .collect(),
        now: Timestamp(0),
    }
}

async fn open(path: &Path) -> (SqliteStore, ConversationId) {
    let store = SqliteStore::open(path).await.unwrap();
    let new = NewConversation::root("bench", "anna@2".parse().unwrap(), Timestamp(0));
    let id = store.open(&new).await.unwrap().id;
    (store, id)
}

/// Time to store all rows, in seconds.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    /// CPU time of all threads. Other programs change it little, and work on a second core is counted.
    cpu: f64,
}

/// Clock of elapsed time and of CPU time.
struct Clock(Instant, f64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), cpu())
    }

    fn stop(self) -> Took {
        Took {
            wall: self.0.elapsed().as_secs_f64(),
            cpu: cpu() - self.1,
        }
    }
}

/// Returns the CPU time of all threads of this process so far, in seconds. 0 on other systems than Linux.
fn cpu() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let nanos = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}

/// Measures the store, with `batch` rows in each transaction.
async fn ours(rows: u32, batch: u32) -> Took {
    let folder = tempfile::tempdir().unwrap();
    let (store, id) = open(&folder.path().join("bench.db")).await;
    let appends: Vec<Append> = (0..rows / batch)
        .map(|n| append((n * batch..(n + 1) * batch).map(message)))
        .collect();
    let clock = Clock::start();
    for append in &appends {
        store.append(id, append).await.unwrap();
    }
    clock.stop()
}

/// Measures SQLite alone with the store's settings. It inserts the rows that the store writes into the same tables, by
/// one statement for `width` rows. The statement is prepared once, outside of the measured time. The triggers may be
/// left out. The chain hash and the time of the conversation are set once in each transaction, as the store does.
async fn floor(count: u32, batch: u32, width: usize, triggers: bool) -> Took {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    let (store, _) = open(&path).await;
    store.close().await.unwrap();
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "pragma synchronous = normal; pragma foreign_keys = on; pragma temp_store = memory",
    )
    .unwrap();
    if !triggers {
        db.execute_batch("drop trigger message_insert; drop trigger message_advance")
            .unwrap();
    }
    let rows: Vec<([u8; 16], [u8; 32], Vec<u8>)> = (0..count)
        .map(|n| {
            let message = message(n);
            let body = message.body().unwrap();
            let mut id = [0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
            id[..4].copy_from_slice(&n.wrapping_mul(0x9e37_79b9).to_be_bytes());
            id[12..].copy_from_slice(&n.to_be_bytes());
            (id, message.hash(&body).0, body)
        })
        .collect();
    let columns = "id, conversation, seq, kind, role, external_id, response, name, loop, turn, \
                   at, tokens, running, hash, codec, payload, meta, body";
    let holes = vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"; width].join(", ");
    let mut insert = db
        .prepare(&format!("insert into message ({columns}) values {holes}"))
        .unwrap();
    let mut chain = db
        .prepare("update conversation set chain = ?1, updated_at = 0 where no = 1")
        .unwrap();
    let clock = Clock::start();
    let mut seq = 0_i64;
    for rows in rows.chunks(batch as usize) {
        db.execute_batch("begin immediate").unwrap();
        for rows in rows.chunks_exact(width) {
            let mut at = 0;
            macro_rules! bind {
                ($($value:expr),*) => {$(
                    at += 1;
                    insert.raw_bind_parameter(at, $value).unwrap();
                )*};
            }
            let null = || Option::<i64>::None;
            for (id, hash, body) in rows {
                seq += 1;
                bind!((1_i64 << 32) | seq, 1, seq, "message", "user", &id[..]);
                bind!(null(), null(), null(), null(), 0, 163, 163 * seq);
                bind!(&hash[..], 0, null(), null(), &body[..]);
            }
            assert_eq!(insert.raw_execute().unwrap(), width);
        }
        chain.execute([&[0_u8; 32][..]]).unwrap();
        db.execute_batch("commit").unwrap();
    }
    let took = clock.stop();
    let stored: u32 = db
        .query_row("select count(*) from message", [], |row| row.get(0))
        .unwrap();
    assert_eq!(stored, count);
    took
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Returns the median of the rounds' ratios, with the lower and upper quartile, in percent.
fn shares(of: impl Iterator<Item = f64>) -> String {
    let mut all: Vec<f64> = of.map(|ratio| 100.0 * ratio).collect();
    all.sort_by(f64::total_cmp);
    let middle = all[all.len() / 2];
    let (low, high) = (all[all.len() / 4], all[all.len() * 3 / 4]);
    format!("{middle:.0} % ({low:.0} to {high:.0})")
}

async fn share(amount: Amount) {
    println!(
        "| rows a transaction | SQLite | store, µs CPU | SQLite, µs CPU | share by CPU | share by clock |"
    );
    println!("|---|---|---|---|---|---|");
    for batch in [64, 640] {
        for (what, width, triggers) in [
            ("a row a statement", 1, true),
            ("64 rows a statement", 64, true),
            ("a row a statement, no triggers", 1, false),
        ] {
            let mut rounds = Vec::new();
            for _ in 0..amount.rounds {
                let own = ours(amount.rows, batch).await;
                rounds.push((own, floor(amount.rows, batch, width, triggers).await));
            }
            let micros = |seconds: f64| seconds * 1e6 / f64::from(amount.rows);
            println!(
                "| {batch} | {what} | {:.1} | {:.1} | {} | {} |",
                micros(median(rounds.iter().map(|(own, _)| own.cpu).collect())),
                micros(median(rounds.iter().map(|(_, floor)| floor.cpu).collect())),
                shares(rounds.iter().map(|(own, floor)| floor.cpu / own.cpu)),
                shares(rounds.iter().map(|(own, floor)| floor.wall / own.wall)),
            );
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (store, id) = open(&folder.path().join("bench.db")).await;
    let mut times = Vec::new();
    for n in 0..amount.appends {
        let append = append(std::iter::once(message(n)));
        let start = Instant::now();
        store.append(id, &append).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "\none durable append: p50 {:?}, p99 {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}

/// Returns a publish that replaces ten messages by a summary.
async fn leaf(store: &SqliteStore, id: ConversationId, first: u32) -> Publish {
    let at = SeqRange::new(Seq(first), Seq(first + 9)).unwrap();
    let mut source = SourceHasher::new();
    for entry in store.read(id, &LogRead::new(at)).await.unwrap().items {
        source.message(entry.hash);
    }
    let (source_hash, recipe) = (source.finish(), Recipe::new("leaf@1"));
    let text = format!("what happened in {at}");
    let sources = vec![Child::Messages { range: at }];
    let summary = Summary {
        tokens: 5,
        source_tokens: 1630,
        created_at: Timestamp(3),
        ..Summary::new(at, 0, sources, source_hash, recipe, text)
    };
    let body = SpanBody::Summary {
        id: summary.id.clone(),
        depth: 0,
    };
    Publish {
        view: ViewName::new("dag"),
        at,
        expect: vec![Span::closed(at, SpanBody::Raw, 0)],
        spans: vec![Span::closed(at, body, 5)],
        summaries: vec![summary],
        fence: None,
        erasures: 0,
        now: Timestamp(4),
    }
}

/// Returns the median time of `times` runs.
async fn time(times: u32, mut run: impl AsyncFnMut(u32) -> Duration) -> f64 {
    let mut all = Vec::new();
    for n in 0..times {
        all.push(run(n).await.as_secs_f64() * 1e6);
    }
    median(all)
}

async fn flat(size: u32) -> Vec<(&'static str, f64)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    let (store, id) = open(&path).await;
    for n in 0..size / 1000 {
        store
            .append(id, &append((n * 1000..(n + 1) * 1000).map(message)))
            .await
            .unwrap();
    }
    // Summaries over the first half of the log make the view long.
    for n in 0..size / 40 {
        let publish = leaf(&store, id, n * 20 + 1).await;
        assert!(matches!(
            store.publish(id, &publish).await.unwrap(),
            Published::Done(_)
        ));
    }
    store.close().await.unwrap();
    let view = ViewName::new("dag");
    let mut found = Vec::new();
    found.push((
        "open",
        time(21, async |_| {
            let start = Instant::now();
            let store = SqliteStore::open(&path).await.unwrap();
            let which = ConversationRef::Key("bench".into());
            assert!(store.conversation(&which).await.unwrap().is_some());
            let took = start.elapsed();
            store.close().await.unwrap();
            took
        })
        .await,
    ));
    let store = SqliteStore::open(&path).await.unwrap();
    macro_rules! measure {
        ($name:literal, $times:literal, |$n:ident| $make:expr, |$with:ident| $call:expr) => {
            found.push((
                $name,
                time($times, async |$n| {
                    let $with = $make;
                    let start = Instant::now();
                    $call.await.unwrap();
                    start.elapsed()
                })
                .await,
            ));
        };
    }
    let all = SeqRange::new(Seq(1), Seq(size)).unwrap();
    measure!("snapshot", 201, |n| n, |_with| store.snapshot(id, &view));
    let shot = store.snapshot(id, &view).await.unwrap();
    measure!("spans, newest page", 201, |n| n, |_with| store.spans(
        &shot,
        all,
        Order::NewestFirst,
        64
    ));
    measure!(
        "seq_at",
        201,
        |n| 163 * u64::from(size / 300 * (n + 1)),
        |at| store.seq_at(id, at)
    );
    measure!("running", 201, |n| [Seq(n + 1), Seq(size / 2 - n)], |at| {
        store.running(id, &at)
    });
    measure!(
        "read of one",
        201,
        |n| LogRead::new(SeqRange::single(Seq(size / 300 * (n + 1)))),
        |read| store.read(id, &read)
    );
    measure!(
        "publish of a leaf",
        41,
        |n| leaf(&store, id, size / 2 + n * 10 + 11).await,
        |publish| store.publish(id, &publish)
    );
    measure!(
        "append of one",
        201,
        |n| append(std::iter::once(message(size + n))),
        |one| store.append(id, &one)
    );
    found
}

async fn flat_table(sizes: &[u32]) {
    let mut columns = Vec::new();
    for size in sizes {
        columns.push(flat(*size).await);
    }
    let heads: Vec<String> = sizes.iter().map(|size| format!(" {size} |")).collect();
    println!("| microseconds, median | {}", heads.concat().trim_start());
    println!("|---|{}", "---|".repeat(sizes.len()));
    for row in 0..columns[0].len() {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| format!(" {:.0} |", column[row].1))
            .collect();
        println!("| {} |{}", columns[0][row].0, cells.concat());
    }
}

#[tokio::main]
async fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` passes no flag, and `cargo bench` passes `--bench`.
    if all.is_empty() || all.iter().any(|word| word == "--list") {
        return;
    }
    let words: Vec<&String> = all.iter().filter(|word| !word.starts_with("--")).collect();
    match words.split_first() {
        Some((first, sizes)) if *first == "flat" => {
            let sizes: Vec<u32> = sizes.iter().map(|size| size.parse().unwrap()).collect();
            flat_table(if sizes.is_empty() {
                &[1000, 10_000, 100_000, 1_000_000]
            } else {
                &sizes
            })
            .await;
        }
        // One of the two alone, for `perf` and `callgrind`.
        Some((first, rest)) if *first == "ours" || *first == "sqlite" => {
            let batch = rest.first().map_or(64, |batch| batch.parse().unwrap());
            match first.as_str() {
                "ours" => ours(ROWS, batch).await,
                _ => floor(ROWS, batch, 64, true).await,
            };
        }
        _ => share(Amount::of(&all)).await,
    }
}
