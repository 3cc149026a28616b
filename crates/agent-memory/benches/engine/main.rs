//! `engine/{append,append_batch,plan,leaf_pass,assemble,…}/{1k,10k,100k}`: measures operations of the engine on
//! generated conversations of several lengths, in SQLite files.
//!
//! `cargo bench -p agent-memory --bench engine` measures everything in two ways. The first measures in rounds that
//! alternate between the lengths, so that other load on the machine affects all lengths alike, and prints tables of
//! medians with their ratios to the first length. The second is criterion. Each measurement of a bench begins with a
//! separate copy of the compacted conversation, so both ways measure the same state.
//!
//! `-- table` measures only in the first way, `-- table 1k 1m` only these lengths, and `-- profile assemble 500 100k`
//! runs one operation. `-- --quick` measures two lengths in fewer rounds, and `-- --test` runs each bench once. The
//! conversations are generated once and kept in the target folder.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    missing_docs
)]

mod fixture;

use std::path::Path;
use std::time::{Duration, Instant};

use agent_memory::{Budget, Memory, Mode};
use criterion::{BenchmarkId, Criterion};
use tokio::runtime::Runtime;

use crate::fixture::{Base, Fixture};

const SIZES: [(usize, &str); 4] = [
    (1_000, "1k"),
    (10_000, "10k"),
    (100_000, "100k"),
    (1_000_000, "1m"),
];
/// Budget of a context, in tokens. The shortest conversation costs more than five times this budget.
const BUDGET: u64 = 32_000;
/// Number of messages in a batch.
const BATCH: usize = 64;

/// Lengths that are measured by default. A conversation of a million messages takes minutes to generate.
const USUAL: [&str; 3] = ["1k", "10k", "100k"];
/// Names of the benches, and their numbers of rounds.
const BENCHES: [(&str, u32); 10] = [
    ("assemble", 101),
    ("assemble_compacted", 101),
    ("assemble_large_result", 41),
    ("needs_compaction", 301),
    ("expand", 61),
    ("open", 31),
    ("plan", 61),
    ("leaf_pass", 41),
    ("append", 301),
    ("append_batch", 61),
];

/// Measures one sample of a bench: the duration of the operation in this round.
async fn sample(bench: &str, of: &mut Fixture, round: usize) -> Duration {
    macro_rules! time {
        ($work:expr) => {{
            let start = Instant::now();
            let done = $work.await.unwrap();
            let took = start.elapsed();
            (took, done)
        }};
    }
    let budget = Budget::tokens(BUDGET);
    match bench {
        "append" => {
            let message = of.more.next().unwrap();
            time!(of.session.ingest(message)).0
        }
        "append_batch" => {
            let messages = of.more.by_ref().take(BATCH).collect();
            time!(of.session.ingest_batch(messages)).0
        }
        "plan" => {
            let (took, plan) = time!(of.leaves.plan());
            assert_eq!(plan.jobs.len(), 1);
            took
        }
        "leaf_pass" => {
            of.pend().await;
            let (took, outcome) = time!(of.leaves.compact(Mode::Incremental));
            assert!(
                outcome.published.get("leaf") == 1 && outcome.published.get("condensed") == 0,
                "{outcome:?}"
            );
            took
        }
        "assemble" => {
            let (took, context) = time!(of.untouched.assemble(budget));
            assert!(context.tokens > BUDGET / 2 && context.tokens <= BUDGET);
            took
        }
        "assemble_compacted" => time!(of.session.assemble(budget)).0,
        "assemble_large_result" => {
            let (took, context) = time!(of.session.assemble(budget));
            assert!(context.tokens <= BUDGET && !context.receipt.degraded.is_empty());
            took
        }
        "needs_compaction" => {
            time!(
                of.session
                    .memory()
                    .needs_compaction(of.session.key().clone(), u64::MAX)
            )
            .0
        }
        "expand" => {
            let id = of.made[round % of.made.len()].clone();
            time!(of.session.retrieval().expand(id.as_str())).0
        }
        "open" => {
            let (took, memory) = time!(Memory::builder().sqlite(&of.path).open());
            memory.close().await.unwrap();
            took
        }
        other => unreachable!("{other}"),
    }
}

fn median(mut of: Vec<Duration>) -> f64 {
    of.sort_unstable();
    of[of.len() / 2].as_secs_f64() * 1e6
}

/// Returns the state of a bench at each length.
async fn states(bench: &str, bases: &[Base]) -> Vec<Fixture> {
    let mut states = Vec::new();
    for base in bases {
        states.push(base.state(bench).await);
    }
    states
}

async fn table(bases: &[Base], part: u32) {
    let names: Vec<String> = bases.iter().map(|of| format!(" {} |", of.name)).collect();
    let line = format!("|---|{}", "---:|".repeat(bases.len()));
    println!("\n| first full sweep |{}\n{line}", names.concat());
    let row = |what: &str, cell: &dyn Fn(&Base) -> String| {
        let cells: Vec<String> = bases.iter().map(|of| format!(" {} |", cell(of))).collect();
        println!("| {what} |{}", cells.concat());
    };
    row("seconds", &|of| format!("{:.2}", of.swept.seconds));
    row("summaries", &|of| of.swept.summaries.to_string());
    row("peak memory, MB", &|of| of.swept.peak.to_string());
    println!(
        "\n| microseconds, median (ratio to the first) |{}\n{line}",
        names.concat()
    );
    for (bench, rounds) in BENCHES {
        let rounds = rounds.div_ceil(part);
        let mut states = states(bench, bases).await;
        let mut all = vec![Vec::new(); states.len()];
        // Some rounds to warm up.
        for round in 0..rounds + rounds / 10 {
            for (of, samples) in states.iter_mut().zip(&mut all) {
                let took = sample(bench, of, round as usize).await;
                if round >= rounds / 10 {
                    samples.push(took);
                }
            }
        }
        for state in states {
            state.close().await;
        }
        let medians: Vec<f64> = all.into_iter().map(median).collect();
        let cells: Vec<String> = medians
            .iter()
            .map(|micros| format!(" {micros:.0} ({:.2}) |", micros / medians[0]))
            .collect();
        println!("| {bench} |{}", cells.concat());
    }
}

fn criterion(runtime: &Runtime, bases: &[Base]) {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .without_plots()
        .configure_from_args();
    for (bench, _) in BENCHES {
        let mut group = criterion.benchmark_group(format!("engine/{bench}"));
        for base in bases {
            // Made when the bench is run, not when it is listed or filtered out.
            let mut state = None;
            let mut round = 0;
            group.bench_function(BenchmarkId::from_parameter(base.name), |b| {
                b.iter_custom(|times| {
                    let mut all = Duration::ZERO;
                    for _ in 0..times {
                        all += runtime.block_on(async {
                            if state.is_none() {
                                state = Some(base.state(bench).await);
                            }
                            let took = sample(bench, state.as_mut().unwrap(), round).await;
                            round += 1;
                            took
                        });
                    }
                    all
                });
            });
            if let Some(state) = state {
                runtime.block_on(state.close());
            }
        }
        group.finish();
    }
    criterion.final_summary();
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` says `--bench`; `cargo test --benches` says nothing.
    if words.is_empty() {
        return;
    }
    let runtime = Runtime::new().unwrap();
    if let [first, path, ..] = words.as_slice()
        && first == "sweep"
    {
        return runtime.block_on(fixture::sweep(Path::new(path)));
    }
    let named = |name: &str| words.iter().any(|word| word == name);
    if named("--list") {
        return criterion(&runtime, &[]);
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let base = |(size, name)| runtime.block_on(Base::new(size, name, folder.path()));
    // `profile BENCH TIMES LENGTH`: one of them alone, for `perf` and `callgrind`.
    if let [first, bench, times, length, ..] = words.as_slice()
        && first == "profile"
    {
        let length = SIZES.into_iter().find(|(_, name)| name == length).unwrap();
        let base = base(length);
        return runtime.block_on(async {
            let mut of = base.state(bench).await;
            for round in 0..times.parse().unwrap() {
                sample(bench, &mut of, round).await;
            }
        });
    }
    let usual: &[&str] = match (named("--test"), named("--quick")) {
        (true, _) => &USUAL[..1],
        (_, true) => &USUAL[..2],
        _ => &USUAL,
    };
    let some = SIZES.iter().any(|(_, name)| named(name));
    let wanted = |name: &str| match some {
        true => named(name),
        false => usual.contains(&name),
    };
    let lengths = SIZES.into_iter().filter(|(_, name)| wanted(name));
    let bases: Vec<Base> = lengths.map(base).collect();
    let part = match (named("--test"), named("--quick")) {
        (true, _) => u32::MAX,
        (_, true) => 10,
        _ => 1,
    };
    runtime.block_on(table(&bases, part));
    if !named("table") {
        criterion(&runtime, &bases);
    }
}
