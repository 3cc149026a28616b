//! The laws (invariants), checked in random cases: policies, families of forks and spawned sessions, interleaved
//! tasks, misbehaving models, crashes between any two writes, reopening.
//!
//! `AGENT_MEMORY_LAW_CASES` sets the number of cases, and `AGENT_MEMORY_LAW_SEED` the seed of the first. A failing
//! case is made smaller, and printed with the command that repeats it. The seed of a case gives the same case in a run
//! of one case.

mod compaction;
mod context;
mod failure;
mod lossless;
mod ops;
pub(crate) mod random;
mod stage;
mod world;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_memory::store::{FullStore, InMemoryStore, SqliteOptions};

use ops::{Script, script};
use random::Random;
use stage::Sabotage;
use world::World;

/// The laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Law {
    /// (a) Every message is reachable from the view exactly once, after any compactions.
    Reachable,
    /// (b) A context has no call without its result, and no result without its call.
    Pairs,
    /// (c) A context is in order, and a summary comes before later messages.
    Chronology,
    /// (d) The log contains all appended messages once and in order, after any compactions.
    Order,
    /// (e) A summary costs less than its source.
    Shrinking,
    /// (f) A failing write changes nothing, or is completed.
    Failure,
    /// (g) The last messages are kept, even if there are fewer than the policy keeps.
    Tail,
    /// (h) A summary leads to exactly the messages that it covers.
    Expansion,
    /// (i) A compaction without work changes nothing.
    Idempotence,
    /// (j) Budgets, limits and caps are never exceeded, and reported figures are correct.
    Limits,
    /// `verify` finds no violation.
    Verified,
}

const LAWS: [Law; 11] = [
    Law::Reachable,
    Law::Pairs,
    Law::Chronology,
    Law::Order,
    Law::Shrinking,
    Law::Failure,
    Law::Tail,
    Law::Expansion,
    Law::Idempotence,
    Law::Limits,
    Law::Verified,
];

/// A violated law, with a description of the violation.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    law: Law,
    why: String,
}

pub(crate) type Checked<T> = Result<T, Broken>;

impl Law {
    pub(crate) fn broken(self, why: String) -> Broken {
        Broken { law: self, why }
    }

    pub(crate) fn holds(self, holds: bool, why: impl FnOnce() -> String) -> Checked<()> {
        match holds {
            true => Ok(()),
            false => Err(self.broken(why())),
        }
    }
}

/// Numbers of checks, by law.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally([u64; LAWS.len()]);

impl Tally {
    /// Counts that a law was checked for this many things.
    pub(crate) fn checked(&mut self, law: Law, things: usize) {
        self.0[law as usize] += things as u64;
    }
}

/// Numbers of cases in which each law was checked, and of the checks.
#[derive(Debug, Default)]
struct Sum {
    cases: [u64; LAWS.len()],
    things: [u64; LAWS.len()],
}

impl Sum {
    fn add(&mut self, tally: &Tally) {
        for (index, things) in tally.0.iter().enumerate() {
            self.cases[index] += u64::from(*things > 0);
            self.things[index] += things;
        }
    }

    fn table(&self, cases: u64) -> String {
        let mut out = format!(
            "{cases} cases\n{:<12} {:>10} {:>12}\n",
            "law", "in cases", "checks"
        );
        for law in LAWS {
            let (cases, things) = (self.cases[law as usize], self.things[law as usize]);
            writeln!(out, "{:<12} {cases:>10} {things:>12}", format!("{law:?}")).unwrap();
        }
        out
    }
}

fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else {
        return default;
    };
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}

/// Returns the seed of a case. The first case has the seed of the run.
fn seed_of(run: u64, case: u64) -> u64 {
    match case {
        0 => run,
        _ => Random(run ^ case.wrapping_mul(0xd134_2543_de82_ef95)).next(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Memory,
    Sqlite,
}

async fn store(on: On) -> Arc<dyn FullStore> {
    match on {
        On::Memory => Arc::new(InMemoryStore::new()),
        On::Sqlite => Arc::new(SqliteOptions::new().in_memory().await.unwrap()),
    }
}

async fn play(on: On, script: &Script, sabotage: Option<Sabotage>) -> Result<Tally, Broken> {
    let mut world = World::new(store(on).await, script.clone(), sabotage).await;
    world.play().await?;
    Ok(world.tally)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

/// Removes operations from a script while the same law stays violated.
fn smaller(runtime: &tokio::runtime::Runtime, on: On, script: &Script, broken: &Broken) -> Script {
    let mut smallest = script.clone();
    let mut index = smallest.ops.len();
    while index > 0 {
        index -= 1;
        let mut less = smallest.clone();
        less.ops.remove(index);
        let again = runtime.block_on(play(on, &less, None));
        if again.is_err_and(|again| again.law == broken.law) {
            smallest = less;
        }
    }
    smallest
}

/// Runs cases on all processors. Panics at the first case that violates a law.
fn hold(test: &str, on: On, cases: u64) {
    let cases = number("AGENT_MEMORY_LAW_CASES", cases);
    let run = number("AGENT_MEMORY_LAW_SEED", 0x5eed);
    let next = AtomicU64::new(0);
    let failed: Mutex<Option<(u64, Broken)>> = Mutex::new(None);
    let sum = Mutex::new(Sum::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases as usize) {
            scope.spawn(|| {
                let runtime = runtime();
                loop {
                    let case = next.fetch_add(1, Ordering::Relaxed);
                    if case >= cases || failed.lock().unwrap().is_some() {
                        return;
                    }
                    let seed = seed_of(run, case);
                    let script = script(seed);
                    let guard = OnPanic { test, seed };
                    match runtime.block_on(play(on, &script, None)) {
                        Ok(tally) => sum.lock().unwrap().add(&tally),
                        Err(broken) => *failed.lock().unwrap() = Some((seed, broken)),
                    }
                    drop(guard);
                }
            });
        }
    });
    if let Some((seed, broken)) = failed.into_inner().unwrap() {
        let smallest = smaller(&runtime(), on, &script(seed), &broken);
        let Broken { law, why } = &broken;
        panic!(
            "{law:?} is broken: {why}\n{smallest:#?}\n{}",
            again(test, seed)
        );
    }
    println!(
        "{test}, seed {run:#x}: {}",
        sum.into_inner().unwrap().table(cases)
    );
}

fn again(test: &str, seed: u64) -> String {
    format!(
        "play it again: AGENT_MEMORY_LAW_SEED={seed:#x} AGENT_MEMORY_LAW_CASES=1 cargo test -p \
         agent-memory --test it -- laws::{test} --exact --nocapture"
    )
}

/// Prints the case if it panics.
struct OnPanic<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", again(self.test, self.seed));
        }
    }
}

#[test]
fn hold_in_memory() {
    hold("hold_in_memory", On::Memory, 128);
}

#[test]
fn hold_on_sqlite() {
    hold("hold_on_sqlite", On::Sqlite, 16);
}

/// After every case, the database has the same content as the reference store.
#[test]
fn sqlite_holds_what_the_reference_holds() {
    let runtime = runtime();
    let cases = number("AGENT_MEMORY_LAW_CASES", 16);
    let run = number("AGENT_MEMORY_LAW_SEED", 0x5eed);
    for case in 0..cases {
        let seed = seed_of(run, case);
        let guard = OnPanic {
            test: "sqlite_holds_what_the_reference_holds",
            seed,
        };
        let script = script(seed).serial();
        let held = |on| {
            runtime.block_on(async {
                let mut world = World::new(store(on).await, script.clone(), None).await;
                world.play().await.unwrap();
                crate::support::dump(&world.memory).await
            })
        };
        assert!(held(On::Sqlite) == held(On::Memory), "{script:#?}");
        drop(guard);
    }
}

/// A case has the same result each time, so that a failing case can be repeated.
#[test]
fn a_case_is_played_again_exactly() {
    let runtime = runtime();
    for case in 0..8 {
        let script = script(seed_of(7, case));
        let play = || runtime.block_on(play(On::Memory, &script, None)).unwrap().0;
        assert_eq!(play(), play());
    }
}

/// Returns the first law that is violated under a sabotage.
fn broken_by(sabotage: Sabotage) -> Option<Law> {
    let runtime = runtime();
    (0..64).find_map(|case| {
        let script = script(seed_of(1, case));
        let done = runtime.block_on(play(On::Memory, &script, Some(sabotage)));
        done.err().map(|broken| broken.law)
    })
}

/// Each law can fail: it is violated when the data that it checks is falsified.
#[test]
fn each_can_fail() {
    for (sabotage, law) in [
        (Sabotage::DroppedSpan, Law::Reachable),
        (Sabotage::SplitPair, Law::Pairs),
        (Sabotage::SwappedMessages, Law::Chronology),
        (Sabotage::DroppedEntry, Law::Order),
        (Sabotage::SwappedEntries, Law::Order),
        (Sabotage::Grown, Law::Shrinking),
        (Sabotage::HalfWrite, Law::Failure),
        (Sabotage::SilentPublish, Law::Failure),
        (Sabotage::NoTail, Law::Tail),
        (Sabotage::LostChild, Law::Reachable),
        (Sabotage::WrongRange, Law::Expansion),
        (Sabotage::Restless, Law::Idempotence),
        (Sabotage::MiscountedContext, Law::Limits),
        (Sabotage::OverBudget, Law::Limits),
        (Sabotage::WrongSum, Law::Limits),
        (Sabotage::WrongRunning, Law::Verified),
        (Sabotage::SkippedHash, Law::Verified),
    ] {
        assert_eq!(broken_by(sabotage), Some(law), "{sabotage:?}");
    }
}
