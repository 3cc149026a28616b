//! How long a pass over a whole log takes to plan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use compaction_plan::InMemoryView;
use context_assembler::ContextAccounting;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dag_compactor::{DagPlanner, LEAF};
use memory_model::{Accounting, Hash, LogEntry, Message, Seq};
use token_estimate::default_estimator;

fn log(messages: u32) -> Vec<LogEntry> {
    let accounting = ContextAccounting::new(default_estimator());
    let mut running = 0;
    (1..=messages)
        .map(|seq| {
            let message = Message::user("A message of some forty tokens. ".repeat(5));
            let tokens = accounting.message(&message);
            running += tokens;
            LogEntry {
                seq: Seq(seq),
                message,
                tokens,
                running,
                hash: Hash::ZERO,
            }
        })
        .collect()
}

fn plan(c: &mut Criterion) {
    let accounting = ContextAccounting::new(default_estimator());
    let planner = DagPlanner::default();
    let mut group = c.benchmark_group("dag-compactor/plan");
    group.sample_size(20);
    for (name, messages) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000)] {
        let log = log(messages);
        let view = InMemoryView::new(log).with_page_size(512);
        group.throughput(Throughput::Elements(u64::from(messages)));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let jobs = view.plan(&planner, view.input(&LEAF, &accounting)).unwrap();
                let covered: u64 = jobs.iter().map(|job| job.range.len()).sum();
                assert_eq!(covered, u64::from(messages) - 20);
                assert!(jobs.iter().all(|job| job.source_tokens <= 20_000));
                jobs
            });
        });
    }
    group.finish();
}

criterion_group!(benches, plan);
criterion_main!(benches);
