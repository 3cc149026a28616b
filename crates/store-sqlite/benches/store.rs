//! Measures `store-sqlite/{append,append_batch,read}/…`: one durable append, 64 appends in one transaction, and a page
//! from the end, for logs of several lengths. Run with `cargo bench -p store-sqlite`.
#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use memory_model::{ConversationId, Message, Seq, SeqRange, Timestamp};
use memory_store::{Append, AppendAt, LogRead, NewConversation, NewEntry, Store as _};
use store_sqlite::SqliteStore;
use tokio::runtime::Runtime;

const SIZES: [u32; 2] = [1_000, 100_000];

/// Creates an append of messages of about 650 bytes.
fn entries(count: usize) -> Append {
    let entry = NewEntry {
        message: Message::user("word ".repeat(130)),
        tokens: 163,
        clocked: false,
    };
    Append {
        at: AppendAt::Any,
        estimator: "anna@2".parse().unwrap(),
        entries: vec![entry; count],
        now: Timestamp(0),
    }
}

async fn filled(folder: &tempfile::TempDir, size: u32) -> (SqliteStore, ConversationId) {
    let store = SqliteStore::open(folder.path().join("bench.db"))
        .await
        .unwrap();
    let new = NewConversation::root("bench", "anna@2".parse().unwrap(), Timestamp(0));
    let id = store.open(&new).await.unwrap().id;
    for _ in 0..size / 1000 {
        store.append(id, &entries(1000)).await.unwrap();
    }
    (store, id)
}

fn bench(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    for (what, count) in [("append", 1), ("append_batch", 64)] {
        let mut group = c.benchmark_group(format!("store-sqlite/{what}"));
        group.throughput(Throughput::Elements(count as u64));
        for size in SIZES {
            let folder = tempfile::tempdir().unwrap();
            let (store, id) = runtime.block_on(filled(&folder, size));
            let append = entries(count);
            group.bench_function(BenchmarkId::from_parameter(size), |b| {
                b.to_async(&runtime)
                    .iter(async || store.append(id, &append).await.unwrap());
            });
        }
        group.finish();
    }
    let mut group = c.benchmark_group("store-sqlite/read");
    group.throughput(Throughput::Elements(256));
    for size in SIZES {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = runtime.block_on(filled(&folder, size));
        let range = SeqRange::new(Seq(1), Seq(size)).unwrap();
        let read = LogRead::new(range).newest_first().with_max_rows(256);
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.to_async(&runtime)
                .iter(async || store.read(id, &read).await.unwrap());
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = bench
}
criterion_main!(benches);
