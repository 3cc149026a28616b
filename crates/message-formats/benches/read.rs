//! Throughput of reading a transcript, in bytes of the source, for each format.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use message_formats::{ReadOptions, read};
use outside_checks::fixtures::{claude_code, pi, plain};

/// Turns of a transcript; each has four messages.
const TURNS: usize = 1_000;

fn read_transcripts(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    for (format, source) in [
        ("claude-code", claude_code(TURNS)),
        ("pi", pi(TURNS)),
        ("jsonl", plain(TURNS)),
    ] {
        group.throughput(Throughput::Bytes(source.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(format), |b| {
            b.iter(|| {
                let options = ReadOptions::default();
                let transcript = read(black_box(source.as_bytes()), &options).unwrap();
                assert_eq!(transcript.format, format);
                assert!(transcript.report.skipped.is_empty());
                let session = &transcript.sessions[0];
                // The header of a pi session is a note.
                assert_eq!(session.messages.len() - session.notes(), 4 * TURNS);
                transcript
            });
        });
    }
    group.finish();
}

criterion_group!(benches, read_transcripts);
criterion_main!(benches);
