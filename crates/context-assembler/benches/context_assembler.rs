//! Time to assemble a context from the part of a view that the policy requests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use context_assembler::{
    AssemblyInput, AssemblyPolicy, Budget, ContextAccounting, Item, Preamble, assemble,
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use memory_model::{Accounting, Hash, LogEntry, Message, RawJson, Seq, SeqRange};
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
        let limits = policy.input_limits(running, 0, Budget::tokens(BUDGET));
        let from = running.saturating_sub(limits.message_tokens);
        // The read part begins with a round of four messages, which is the beginning of a group.
        let first = log.partition_point(|entry| entry.running <= from) / 4 * 4;
        let unread = SeqRange::new(Seq::FIRST, Seq(first as u32));
        let unread = unread.map(|range| Item::Unread(range, log[first - 1].running));
        let read = Item::Raw(log[first..].to_vec());
        let input = AssemblyInput {
            view_tokens: running,
            items: unread.into_iter().chain([read]).collect(),
            ..AssemblyInput::default()
        };
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let budget = Budget::tokens(BUDGET);
                let context =
                    assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
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
