//! `forks/{import,verify}/{Star,Chain,Comb}-{125,250,500}`: measures importing a transcript with many branches into an
//! SQLite file, and verifying the stored data. `cargo bench -p agent-memory --bench forks -- table` prints instead the
//! median time of each operation on the latest of some forks, its ratio to the fewest, and the statements of the last round.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::panic,
    missing_docs
)]

#[path = "../tests/it/branched.rs"]
mod branched;
#[path = "../tests/it/family.rs"]
mod family;

use std::path::Path;
use std::time::{Duration, Instant};

use agent_memory::Memory;
use criterion::{BatchSize, Criterion, criterion_group};
use message_formats::Transcript;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::branched::{Branched, SHAPES};
use crate::family::{Family, OPERATIONS};

/// Numbers of forks in the table, and measurements of which the median is printed.
const FORKS: [usize; 3] = [3, 30, 300];
const ROUNDS: usize = 21;

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

/// Prints medians. The families of one shape are measured in turns.
async fn table() {
    let forks = FORKS.map(|count| format!(" {count} forks |")).concat();
    println!(
        "| microseconds, median (ratio to the first); statements |{forks}\n|---|---:|---:|---:|"
    );
    for shape in SHAPES {
        let mut families = Vec::new();
        for count in FORKS {
            families.push(Family::new(shape, count).await);
        }
        for operation in OPERATIONS {
            let (mut took, mut statements) = (FORKS.map(|_| Vec::new()), FORKS.map(|_| 0));
            for round in 0..ROUNDS {
                let all = families.iter().zip(&mut took).zip(&mut statements);
                for ((family, took), statements) in all {
                    let (start, before) = (Instant::now(), family.store.statements());
                    family.operate(operation, round).await.unwrap();
                    took.push(start.elapsed());
                    *statements = family.store.statements() - before;
                }
            }
            let medians = took.map(|mut took| {
                took.sort();
                took[ROUNDS / 2].as_secs_f64() * 1e6
            });
            let cells = medians.iter().zip(statements).map(|(median, statements)| {
                format!(" {median:.0} ({:.2}); {statements} |", median / medians[0])
            });
            println!("| {shape:?}: {operation} |{}", cells.collect::<String>());
        }
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "table") {
        Runtime::new().unwrap().block_on(table());
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
