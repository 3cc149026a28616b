//! How long a pass over a whole log takes to plan.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use compaction_plan::{Goal, PassInput, Planner, ReadRequest};
use context_assembler::ContextAccounting;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dag_compactor::{DagPlanner, LEAF};
use memory_model::{Accounting, Hash, LogEntry, Message, Seq, Span, SpanBody, SpanRange};
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
        let spans = [Span {
            range: SpanRange {
                first: Seq::FIRST,
                last: None,
            },
            body: SpanBody::Raw,
            tokens: log.last().unwrap().running,
        }];
        group.throughput(Throughput::Elements(u64::from(messages)));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let mut pass = planner.begin(PassInput {
                    pass: &LEAF,
                    head: Seq(messages),
                    tokens: spans[0].tokens,
                    newest: &log[log.len() - planner.tail(&LEAF).messages..],
                    room: None,
                    goal: Goal::Policy,
                    accounting: &accounting,
                });
                let mut jobs = Vec::new();
                while let Some(want) = pass.next_read() {
                    jobs.extend(match want {
                        ReadRequest::Entries(range) => {
                            let first = range.first.0 as usize - 1;
                            let last = (first + 512).min(range.last.0 as usize);
                            pass.feed_entries(&log[first..last], &accounting)
                        }
                        _ => pass.feed_spans(&spans, &accounting),
                    });
                }
                jobs.extend(pass.finish(&accounting));
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
