//! Measures a store in a PostgreSQL database and one in an SQLite file, in turns, and prints the tables of
//! `docs/measurements/postgres.md`.
//!
//! `cargo bench -p store-postgres --bench databases` needs the URL of a server in `AGENT_MEMORY_TEST_POSTGRES_URL`, and
//! is left out without one. It creates the schemas `bench_…` there and drops them. `--test` makes three rounds of 1,000
//! messages. Other flags have no effect.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memory_model::{ConversationId, Message, Seq, SeqRange, Timestamp, ViewName};
use memory_search::{Query, Search as _, SearchMode, SegmentSearch, extend_index};
use memory_store::{
    Append, AppendAt, Claim, FullStore, JobKey, LogRead, NewConversation, NewEntry, Owner, Publish,
};
use sqlx::{Connection as _, PgConnection};
use store_conformance::{Chat, showing};
use store_postgres::PostgresStore;
use store_sqlite::{Durability, SqliteOptions};

const URL: &str = "AGENT_MEMORY_TEST_POSTGRES_URL";
const ESTIMATOR: &str = "plain@1";
/// Messages of a leaf.
const LEAF: u32 = 20;

/// Numbers of rounds and messages.
#[derive(Clone, Copy)]
struct Size {
    rounds: usize,
    messages: usize,
    throughput: Duration,
}

/// Returns messages of 100 words of some 30,000, by Zipf's law, and a unique number.
fn entries(first: usize, count: usize) -> Append {
    let entries = (first..first + count).map(|number| {
        let mut rng = fastrand::Rng::with_seed(number as u64);
        let words: Vec<String> = (0..100)
            .map(|_| {
                let bits = rng.u32(..15);
                format!("w{:x}", (1_u32 << bits) + rng.u32(..1 << bits))
            })
            .collect();
        let message = Message::user(format!("{} needle{number}x", words.join(" ")));
        NewEntry {
            message: message.with_created_at(Timestamp(number as i64 * 60_000_000)),
            tokens: 220,
            clocked: false,
        }
    });
    Append {
        at: AppendAt::Any,
        estimator: ESTIMATOR.parse().unwrap(),
        entries: entries.collect(),
        now: Timestamp(2),
    }
}

/// A store with one conversation.
struct Side {
    name: &'static str,
    store: Arc<dyn FullStore>,
    chat: ConversationId,
    head: usize,
    search: SegmentSearch<Arc<dyn FullStore>>,
}

impl Side {
    async fn new(name: &'static str, store: Arc<dyn FullStore>) -> Self {
        let chat = conversation(&*store, "bench").await;
        let search = SegmentSearch::new(Arc::clone(&store));
        Self {
            name,
            store,
            chat,
            head: 0,
            search,
        }
    }

    async fn append(&mut self, count: usize) -> Duration {
        let append = entries(self.head, count);
        self.head += count;
        let began = Instant::now();
        self.store.append(self.chat, &append).await.unwrap();
        began.elapsed()
    }

    /// Reads the state of a view, its spans, and the last 64 messages.
    async fn page(&self) -> Duration {
        let began = Instant::now();
        let view = ViewName::from("main");
        let snapshot = self.store.snapshot(self.chat, &view).await.unwrap();
        let spans = memory_store::read_spans(&*self.store, &snapshot, range(1, self.head)).await;
        let last = LogRead::new(range(1, self.head)).newest_first();
        let page = self.store.read(self.chat, &last.with_max_rows(64)).await;
        black_box((spans.unwrap(), page.unwrap()));
        began.elapsed()
    }

    /// Takes the lease on a new leaf, and publishes the leaf.
    async fn publish(&mut self, round: usize) -> Duration {
        let first = self.head + 1;
        self.append(LEAF as usize).await;
        let chat = Chat::new(&*self.store, self.chat);
        let text = format!("summary {round} of some words about w1 and w2");
        let leaf = chat.leaf(range(first, self.head), &text).await;
        let began = Instant::now();
        let (key, owner) = (JobKey(format!("leaf-{round}")), Owner("bench".into()));
        let ttl = Duration::from_secs(60);
        let claim = self.store.claim(self.chat, &key, &owner, ttl, 0).await;
        let Claim::Granted(fence) = claim.unwrap() else {
            panic!("the lease is held");
        };
        let publish = Publish {
            fence: Some(fence),
            ..showing("main", &leaf)
        };
        self.store.publish(self.chat, &publish).await.unwrap();
        began.elapsed()
    }

    async fn find(&self, query: &Query) -> Duration {
        let began = Instant::now();
        let hits = self.search.search(self.chat, query).await.unwrap();
        let _ = black_box(hits);
        began.elapsed()
    }
}

fn range(first: usize, last: usize) -> SeqRange {
    SeqRange::new(Seq(first as u32), Seq(last as u32)).unwrap()
}

async fn conversation(store: &dyn FullStore, key: &str) -> ConversationId {
    let new = NewConversation::root(key, ESTIMATOR.parse().unwrap(), Timestamp(1));
    store.open(&new).await.unwrap().id
}

fn micros(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Prints the bytes of each part of the stores, per message.
async fn print_bytes(title: &str, sides: &[Side]) {
    for side in sides {
        let usage = side.store.usage().await.unwrap();
        let all = usage.log + usage.summaries + usage.views + usage.search + usage.other;
        let of = |bytes: u64| bytes as f64 / side.head as f64;
        println!(
            "| {title}, {} | {:.0} | {:.0} | {:.0} |",
            side.name,
            of(usage.log),
            of(usage.search),
            of(all)
        );
    }
}

async fn measure(url: &str, size: Size) {
    let folder = tempfile::tempdir().unwrap();
    let mut sides = Vec::new();
    for (name, durability) in [
        ("SQLite, `process`", Durability::Process),
        ("SQLite, `power`", Durability::Power),
    ] {
        let path = folder.path().join(format!("{durability:?}.db"));
        let options = SqliteOptions::new().with_durability(durability);
        sides.push(Side::new(name, Arc::new(options.open(path).await.unwrap())).await);
    }
    let schema = format!("{url}?schema=bench_one");
    let store = PostgresStore::open(&schema).await.unwrap();
    sides.push(Side::new("PostgreSQL", Arc::new(store)).await);
    for side in &mut sides {
        while side.head < size.messages {
            side.append(500).await;
        }
    }
    let texts = entries(0, size.messages).entries;
    let bytes: usize = texts.iter().map(|one| one.message.text().len()).sum();
    println!(
        "{} messages of {} bytes of text\n",
        size.messages,
        bytes / size.messages
    );
    println!("| bytes a message | log | search index | all |\n|---|--:|--:|--:|");
    print_bytes("log alone", &sides).await;
    extend_indexes(&sides).await;
    print_bytes("indexed", &sides).await;
    run(url, "vacuum bench_one.message, bench_one.payload, bench_one.conversation, bench_one.search_segment, bench_one.search_chunk").await;
    print_bytes("after vacuum", &sides[2..]).await;
    run(
        url,
        "vacuum full bench_one.search_segment, bench_one.search_chunk",
    )
    .await;
    print_bytes("index rewritten (vacuum full)", &sides[2..]).await;

    let rare = Query::new("needle777x").with_mode(SearchMode::Words);
    let common = Query::new("w1").with_mode(SearchMode::Prose);
    let names = [
        "append of 1 message",
        "append of 64 messages",
        "a page: view, spans and 64 messages",
        "claim and publish of a leaf of 20 messages",
        "search of a rare word",
        "search of a word in most messages, by relevance",
        "the same after `analyze`",
    ];
    println!(
        "\n| microseconds, median of {} |{}",
        size.rounds,
        header(&sides)
    );
    for (which, name) in names.into_iter().enumerate() {
        extend_indexes(&sides).await;
        if which == 6 {
            run(url, "analyze").await;
        }
        let mut times = vec![Vec::new(); sides.len()];
        for round in 0..size.rounds {
            for (side, times) in sides.iter_mut().zip(&mut times) {
                times.push(match which {
                    0 => side.append(1).await,
                    1 => side.append(64).await,
                    2 => side.page().await,
                    3 => side.publish(round).await,
                    4 => side.find(&rare).await,
                    _ => side.find(&common).await,
                });
            }
        }
        let medians: Vec<f64> = times.into_iter().map(micros).collect();
        let cells = medians.iter().map(|median| format!(" {median:.0} |"));
        let cells: String = cells.collect();
        let (process, power) = (medians[2] / medians[0], medians[2] / medians[1]);
        println!("| {name} |{cells} {process:.1} | {power:.1} |");
    }

    println!(
        "\n| clients | appends of 1 message a second | messages a second in appends of 64 |\n|--:|--:|--:|"
    );
    for clients in [1, 2, 4, 8] {
        let mut rates = Vec::new();
        for count in [1, 64] {
            let running = (0..clients).map(|client| {
                let url = format!("{url}?schema=bench_one");
                tokio::spawn(async move {
                    let store = PostgresStore::open(&url).await.unwrap();
                    let key = format!("{clients}-{client}-{count}");
                    let chat = conversation(&store, &key).await;
                    let append = entries(0, count);
                    let (began, mut appended) = (Instant::now(), 0);
                    while began.elapsed() < size.throughput {
                        memory_store::Store::append(&store, chat, &append)
                            .await
                            .unwrap();
                        appended += count;
                    }
                    appended as f64 / began.elapsed().as_secs_f64()
                })
            });
            let rate = futures::future::join_all(running.collect::<Vec<_>>()).await;
            rates.push(rate.into_iter().map(Result::unwrap).sum::<f64>());
        }
        println!("| {clients} | {:.0} | {:.0} |", rates[0], rates[1]);
    }
}

async fn extend_indexes(sides: &[Side]) {
    for side in sides {
        let extended = extend_index(&*side.store, side.chat, u64::MAX).await;
        extended.unwrap();
    }
}

fn header(sides: &[Side]) -> String {
    let names: String = sides
        .iter()
        .map(|side| format!(" {} |", side.name))
        .collect();
    let dashes = "--:|".repeat(sides.len() + 2);
    format!("{names} to `process` | to `power` |\n|---|{dashes}")
}

async fn run(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn main() {
    let Some(url) = std::env::var(URL).ok().filter(|url| !url.is_empty()) else {
        println!(
            "left out: {URL} is not set; `cargo xtask postgres` starts a server, without durability"
        );
        return;
    };
    let size = match std::env::args().any(|word| word == "--test") {
        true => Size {
            rounds: 3,
            messages: 1_000,
            throughput: Duration::from_millis(100),
        },
        false => Size {
            rounds: 101,
            messages: 10_000,
            throughput: Duration::from_secs(5),
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        const DROP: &str = "drop schema if exists bench_one cascade";
        run(&url, DROP).await;
        measure(&url, size).await;
        run(&url, DROP).await;
    });
}
