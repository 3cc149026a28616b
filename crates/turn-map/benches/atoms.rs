//! Atoms and turns of long conversations. `cargo bench -p turn-map`.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use turn_map::{CutPolicy, MessageView, PartView, Role, TurnMap};

struct Line {
    role: Role,
    response: Option<String>,
    call: Option<String>,
    result: Option<String>,
}

impl MessageView for Line {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        if let Some(id) = &self.call {
            visit(PartView::ToolCall {
                id,
                name: "",
                arguments: "",
            });
        }
        if let Some(call_id) = &self.result {
            visit(PartView::ToolResult {
                call_id,
                name: None,
                content: &[],
                is_error: false,
            });
        }
    }

    fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }
}

/// A conversation with rounds of ten messages: a question, four calls with their results in two responses, and an
/// answer.
fn conversation(messages: usize) -> Vec<Line> {
    (0..messages)
        .map(|n| {
            let (round, step) = (n / 10, n % 10);
            let response = match step {
                1..=4 => Some(format!("response-{round}-a")),
                5..=8 => Some(format!("response-{round}-b")),
                9 => Some(format!("response-{round}-c")),
                _ => None,
            };
            let id = format!("call_{round:08}_{:08}", step.div_ceil(2));
            let (role, call, result) = match step {
                0 => (Role::User, None, None),
                9 => (Role::Assistant, None, None),
                _ if step % 2 == 1 => (Role::Assistant, Some(id), None),
                _ => (Role::Tool, None, Some(id)),
            };
            Line {
                role,
                response,
                call,
                result,
            }
        })
        .collect()
}

fn benches(criterion: &mut Criterion) {
    for (name, size) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000)] {
        let messages = conversation(size);
        let mut group = criterion.benchmark_group("turn-map");
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(format!("atoms/{name}"), |bench| {
            bench.iter(|| {
                let atoms = turn_map::atoms(black_box(&messages));
                // Each round has four atoms: a question, two groups and an answer.
                assert_eq!(atoms.len(), size / 10 * 4);
                atoms
            });
        });
        group.bench_function(format!("turns/{name}"), |bench| {
            bench.iter(|| {
                let turns = TurnMap::by_role(black_box(&messages));
                assert_eq!(turns.count(), size / 10);
                turns
            });
        });
        group.finish();

        let atoms = turn_map::atoms(&messages);
        let turns = TurnMap::by_role(&messages);
        let mut group = criterion.benchmark_group("turn-map/lookup");
        group.bench_function(format!("atom_of/{name}"), |bench| {
            bench.iter(|| {
                let atom = atoms.atom_of(black_box(size / 2 + 3));
                assert_eq!(atom.map(|atom| atom.range().len()), Some(4));
            });
        });
        group.bench_function(format!("fresh_tail/{name}"), |bench| {
            bench.iter(|| {
                let cuts = CutPolicy::default().cuts(black_box(&atoms), &turns, |_| 100);
                assert_eq!(cuts.covered(), 0..size - 20);
            });
        });
        group.finish();
    }
}

criterion_group!(turn_map_benches, benches);
criterion_main!(turn_map_benches);
