//! `forks/{import,verify}/{Star,Chain,Comb}-{125,250,500}`: measures importing a transcript with many branches into an
//! SQLite file, and verifying the stored data.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

#[path = "../tests/it/branched.rs"]
mod branched;

use std::path::Path;
use std::time::Duration;

use agent_memory::Memory;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use message_formats::Transcript;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::branched::{Branched, SHAPES};

async fn imported(folder: &Path, transcript: &Transcript) -> Memory {
    let path = folder.join("memory.db");
    let memory = Memory::open(path).await.unwrap();
    memory.import(transcript).await.unwrap();
    memory
}

fn forks(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let empty = || TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for shape in SHAPES {
        for count in [125, 250, 500] {
            let transcript = Branched::new(shape, count).transcript();
            let name = format!("{shape:?}-{count}");
            c.bench_function(&format!("forks/import/{name}"), |b| {
                let import = |folder: TempDir| {
                    let memory = runtime.block_on(imported(folder.path(), &transcript));
                    (folder, memory)
                };
                b.iter_batched(empty, import, BatchSize::PerIteration);
            });
            let mut state = None;
            c.bench_function(&format!("forks/verify/{name}"), |b| {
                let (_, memory) = state.get_or_insert_with(|| {
                    let folder = empty();
                    let memory = runtime.block_on(imported(folder.path(), &transcript));
                    (folder, memory)
                });
                b.iter(|| assert!(runtime.block_on(memory.verify()).unwrap().is_ok()));
            });
            if let Some((_, memory)) = state {
                runtime.block_on(memory.close()).unwrap();
            }
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .without_plots();
    targets = forks
}
criterion_main!(benches);
