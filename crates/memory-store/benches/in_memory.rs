//! Measures `memory-store/{append,fork,read,verify}/…`: the reference store with logs of several lengths. Run with
//! `cargo bench -p memory-store`.
#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use memory_model::ConversationId;
use memory_store::{InMemoryStore, LogRead, Store as _};
use store_conformance::{Chat, message, range, verify_store};
use tokio::runtime::{Builder, Runtime};

const SIZES: [u32; 2] = [1_000, 10_000];

/// Creates a store with one log of `size` messages. The first hundred are summarized.
async fn filled(size: u32) -> (InMemoryStore, ConversationId) {
    let store = InMemoryStore::new();
    let chat = Chat::root(&store, "bench").await;
    let words = "word ".repeat(130);
    let messages = (1..=size).map(|n| message(&format!("m{n}"), &words));
    chat.append(messages).await;
    for n in 0..10 {
        let at = range(n * 10 + 1, n * 10 + 10);
        chat.show_leaf("dag", at, "A summary.").await;
    }
    let id = chat.id;
    (store, id)
}

fn bench(c: &mut Criterion) {
    let runtime: Runtime = Builder::new_current_thread().build().unwrap();
    for size in SIZES {
        let of = |what| format!("memory-store/{what}/{size}");
        // Each measurement gets a new store, so that earlier measurements do not make it grow.
        let prepare = || runtime.block_on(filled(size));
        c.bench_function(&of("append"), |b| {
            b.iter_batched(
                prepare,
                |(store, id)| {
                    let more = [message("more", "One more.")];
                    runtime.block_on(Chat::new(&store, id).append(more));
                    store
                },
                BatchSize::PerIteration,
            );
        });
        c.bench_function(&of("fork"), |b| {
            b.iter_batched(
                prepare,
                |(store, parent)| {
                    runtime.block_on(Chat::new(&store, parent).fork("fork", size / 2));
                    store
                },
                BatchSize::PerIteration,
            );
        });
        let (store, id) = prepare();
        let page = LogRead::new(range(size - 255, size));
        c.bench_function(&of("read"), |b| {
            b.iter(|| runtime.block_on(store.read(id, &page)).unwrap());
        });
        c.bench_function(&of("verify"), |b| {
            b.iter(|| {
                let reports = runtime.block_on(verify_store(&store));
                assert!(reports.iter().all(memory_store::Report::is_ok));
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
