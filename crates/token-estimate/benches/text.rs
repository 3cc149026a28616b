//! Throughput of the estimators on texts of one kind.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use token_estimate::{HeuristicEstimator, TokenEstimator};

/// Names, texts, and the expected count of each preset, in the order of `HeuristicEstimator::ALL`.
fn samples() -> [(&'static str, String, [u64; 6]); 3] {
    [
        (
            "ascii",
            "fn main() { let answer = 42; } // words, digits 1234, punctuation!? and so on. "
                .repeat(1_000),
            [19_750, 19_750, 19_750, 19_750, 22_571, 19_750],
        ),
        (
            "cjk",
            "我们只在测试全部通过之后才部署。".repeat(1_000),
            [12_000, 12_000, 4_000, 4_000, 13_714, 12_000],
        ),
        (
            "emoji",
            "🦀🎉🚀🙂".repeat(1_000),
            [4_000, 4_000, 1_000, 2_000, 4_571, 4_000],
        ),
    ]
}

fn text(criterion: &mut Criterion) {
    for (kind, text, expected) in samples() {
        let mut group = criterion.benchmark_group(format!("token-estimate/text/{kind}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        for (preset, expected) in HeuristicEstimator::ALL.into_iter().zip(expected) {
            group.bench_with_input(BenchmarkId::from_parameter(preset), &text, |bench, text| {
                bench.iter(|| {
                    let tokens = preset.text(black_box(text));
                    assert_eq!(tokens, expected, "{preset} on {kind}");
                    tokens
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, text);
criterion_main!(benches);
