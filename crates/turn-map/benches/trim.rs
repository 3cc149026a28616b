//! Trimming, clearing and sanitizing. `cargo bench -p turn-map --bench trim`.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use token_estimate::HeuristicEstimator;
use turn_map::{ClearPolicy, MessageView, PartView, Role, TrimPolicy, check_anthropic, sanitize};

struct Line {
    role: Role,
    call: Option<String>,
    result: Option<(String, String)>,
}

impl MessageView for Line {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match (&self.call, &self.result) {
            (Some(id), _) => visit(PartView::ToolCall {
                id,
                name: "Read",
                arguments: "",
            }),
            (_, Some((call_id, text))) => visit(PartView::ToolResult {
                call_id,
                name: None,
                content: &[PartView::Text(text)],
                is_error: false,
            }),
            _ => visit(PartView::Text("Go on.")),
        }
    }
}

/// A conversation with rounds: a question, four calls with their results, and an answer. Every tenth round lacks a
/// result.
fn conversation(messages: usize) -> Vec<Line> {
    (0..messages)
        .map(|n| {
            let (round, step) = (n / 10, n % 10);
            let id = format!("call_{round:08}_{:08}", step.div_ceil(2));
            let lost = round % 10 == 0 && step == 8;
            let (role, call, result) = match step {
                0 => (Role::User, None, None),
                9 => (Role::Assistant, None, None),
                _ if step % 2 == 1 => (Role::Assistant, Some(id), None),
                _ if lost => (Role::User, None, None),
                _ => (Role::Tool, None, Some((id, "output ".repeat(40)))),
            };
            Line { role, call, result }
        })
        .collect()
}

fn benches(criterion: &mut Criterion) {
    let messages = conversation(100_000);
    let mut group = criterion.benchmark_group("turn-map/lists of 100k");
    group.throughput(Throughput::Elements(100_000));
    group.sample_size(20);
    group.bench_function("sanitize", |bench| {
        bench.iter(|| {
            let plan = sanitize(black_box(&messages), "[no result]");
            assert_eq!(plan.findings.len(), 1_000);
        });
    });
    group.bench_function("check_anthropic", |bench| {
        bench.iter(|| assert_eq!(check_anthropic(black_box(&messages)).len(), 1_000));
    });
    group.bench_function("clear_old", |bench| {
        let policy = ClearPolicy::default();
        bench.iter(|| {
            let edits = policy.edits(
                black_box(&messages),
                |_| String::new(),
                &HeuristicEstimator::default(),
            );
            assert_eq!(edits.len(), 39_000 - 6);
        });
    });
    group.finish();

    let text: String = (0..40_000)
        .map(|n| format!("line {n} of the output\n"))
        .collect();
    let mut group = criterion.benchmark_group("turn-map/a text of 1 MB");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("clip_lines", |bench| {
        let policy = TrimPolicy::ToolOutputLines { lines: 50 };
        bench.iter(|| {
            policy.trim_result(
                black_box(&text),
                "message:1",
                &HeuristicEstimator::default(),
            )
        });
    });
    group.bench_function("clip_tokens", |bench| {
        let policy = TrimPolicy::ToolOutputTokens { tokens: 2_000 };
        bench.iter(|| {
            policy.trim_result(
                black_box(&text),
                "message:1",
                &HeuristicEstimator::default(),
            )
        });
    });
    group.finish();
}

criterion_group!(trim_benches, benches);
criterion_main!(trim_benches);
