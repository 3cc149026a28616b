//! How long a context takes to assemble, from what the policy asks to read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use context_assembler::{AssemblyInput, AssemblyPolicy, Budget, ContextAccounting, Item, assemble};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use memory_model::{Accounting, Hash, LogEntry, Message, RawJson, Seq};
use token_estimate::default_estimator;

const BUDGET: u64 = 128_000;

fn message(seq: u32) -> Message {
    let text = "A line of some forty tokens, as people write them. ".repeat(3);
    match seq % 4 {
        1 => Message::user(text),
        2 => {
            let arguments = RawJson::parse(r#"{"path":"src/lib.rs"}"#).unwrap();
            Message::tool_call(format!("call{seq}"), "read", arguments)
        }
        3 => Message::tool_result(format!("call{}", seq - 1), text.repeat(8)),
        _ => Message::assistant(text),
    }
}

fn assembling(c: &mut Criterion) {
    let accounting = ContextAccounting::new(default_estimator());
    let policy = AssemblyPolicy::default();
    let mut group = c.benchmark_group("context-assembler/assemble");
    group.sample_size(20);
    for (name, messages) in [("1k", 1_000), ("10k", 10_000)] {
        let mut running = 0;
        let log: Vec<LogEntry> = (1..=messages)
            .map(|seq| {
                let message = message(seq);
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
            .collect();
        let from = policy.first_needed_token(running, 0, Budget::tokens(BUDGET));
        // Groups begin at every second message of four.
        let first = log.partition_point(|entry| entry.running <= from) / 4 * 4;
        let input = AssemblyInput {
            view_tokens: running,
            tokens_before: first.checked_sub(1).map_or(0, |last| log[last].running),
            items: vec![Item::Raw(log[first..].to_vec())],
        };
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let budget = Budget::tokens(BUDGET);
                let context = assemble(&input, None, budget, &policy, &accounting).unwrap();
                assert!(context.tokens <= BUDGET);
                assert!(context.tokens >= BUDGET / 4 * 3 - 1_000 || running <= BUDGET);
                context
            });
        });
    }
    group.finish();
}

criterion_group!(benches, assembling);
criterion_main!(benches);
