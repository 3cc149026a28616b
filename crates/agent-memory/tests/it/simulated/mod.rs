//! Databases on a simulated disk: power cuts, kills and failures at every call to the file system.
//!
//! An operation is a series of steps. The contents that the database has between its transactions are recorded, from
//! kills of all processes before each of the calls. After a cut or a failure anywhere, the database
//! has one of these contents, and not one from before the last step that returned.
//!
//! `AGENT_MEMORY_SIMULATED_SEED` and `AGENT_MEMORY_SIMULATED_CASES` set the first seed and the number of power cuts, and
//! with `AGENT_MEMORY_SIMULATED_ALL=1` every call fails instead of a sample; of `AGENT_MEMORY_SIMULATED_PARTS` parts of
//! these calls `AGENT_MEMORY_SIMULATED_PART` is played, from 1. `cargo xtask simulate` sets them. Seeds in `seeds.txt` are
//! always played.

mod database;
mod operation;

use std::collections::BTreeMap;

use agent_memory::store::Durability;
use simulated_disk::{Call, Fault, Plan};

use database::Database;
use operation::{History, Operation};

/// Number of power cuts without `AGENT_MEMORY_SIMULATED_CASES`.
const CASES: u64 = 100;
/// One of so many calls fails without `AGENT_MEMORY_SIMULATED_ALL`; the second number is for the frequent reads and writes.
const SAMPLE: [u64; 2] = [31, 241];

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

fn all() -> bool {
    number("AGENT_MEMORY_SIMULATED_ALL", 0) == 1
}

/// The played part of all calls, from 1, and the number of parts.
fn part() -> (u64, u64) {
    let part = number("AGENT_MEMORY_SIMULATED_PART", 1);
    let parts = number("AGENT_MEMORY_SIMULATED_PARTS", 1);
    assert!(
        (1..=parts).contains(&part),
        "there is no part {part} of {parts}"
    );
    (part, parts)
}

fn kept_seeds() -> impl Iterator<Item = u64> {
    include_str!("seeds.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .map(|seed| seed.parse().unwrap())
}

fn durability(random: &mut fastrand::Rng) -> Durability {
    match random.bool() {
        true => Durability::Power,
        false => Durability::Process,
    }
}

/// Cuts the power at a random call of a random operation.
async fn cut(seed: u64, histories: &mut BTreeMap<(Operation, bool), History>) -> Operation {
    let mut random = fastrand::Rng::with_seed(seed);
    let operation = Operation::ALL[random.usize(..Operation::ALL.len())];
    let durability = durability(&mut random);
    let key = (operation, durability == Durability::Power);
    let history = match histories.remove(&key) {
        Some(history) => history,
        None => {
            println!("seed {seed}: {operation:?} with {durability:?} for the first time");
            History::record(operation, durability, false).await
        }
    };
    let mut database = Database::new(durability);
    database.clock.jump_with(random.u64(..));
    database.disk.put(&history.base);
    database.disk.plan(Plan {
        calls: Call::CHANGING,
        // The last one is after the operation.
        nth: random.u64(1..=history.changes + 1),
        fault: Fault::Cut,
        lasting: true,
    });
    let done = history.run(&mut database).await;
    let what = format!("seed {seed}, {operation:?} with {durability:?} after {done:?}");
    database.lose_connections();
    database.disk.restart(&mut random);
    if random.bool() {
        // The power is cut again, while the database is opened.
        database.disk.plan(Plan {
            calls: Call::CHANGING,
            nth: random.u64(1..=10),
            fault: Fault::Cut,
            lasting: true,
        });
        let _ = database.memory().await;
        database.lose_connections();
        database.disk.restart(&mut random);
    }
    // At `Process`, a power cut may undo any of the last steps, unless the database was closed.
    let first = match durability {
        Durability::Process if operation != Operation::Checkpoint && done.error.is_some() => 0,
        _ => history.after(done.steps),
    };
    history
        .check(&mut database, first..=history.after(done.steps + 1), &what)
        .await;
    history.complete(&mut database, &what).await;
    histories.insert(key, history);
    operation
}

#[tokio::test]
async fn a_power_cut_at_any_call_loses_nothing() {
    let first = number("AGENT_MEMORY_SIMULATED_SEED", 1);
    let cases = number("AGENT_MEMORY_SIMULATED_CASES", CASES);
    let mut histories = BTreeMap::new();
    let mut counts: BTreeMap<Operation, u64> = BTreeMap::new();
    for seed in kept_seeds().chain(first..first + cases) {
        *counts.entry(cut(seed, &mut histories).await).or_default() += 1;
    }
    println!("power cuts: {counts:?}");
}

/// The contents between transactions are recorded from kills before every call, so that this also tests kills.
#[tokio::test]
async fn a_kill_at_any_call_leaves_whole_transactions() {
    let (part, parts) = part();
    for (index, operation) in (0..).zip(Operation::ALL) {
        if index % parts != part - 1 {
            continue;
        }
        for durability in [Durability::Process, Durability::Power] {
            let history = History::record(*operation, durability, all()).await;
            println!(
                "{operation:?} with {durability:?}: {} calls that change files, {} contents",
                history.changes,
                history.contents()
            );
            assert_eq!(
                history.contents(),
                operation.transactions(),
                "{operation:?} with {durability:?}: the number of contents between its transactions"
            );
        }
    }
}

const WRITES: &[Call] = &[Call::Write];
const SYNCS: &[Call] = &[Call::Sync];
const FAULTS: &[(&[Call], Fault)] = &[
    (WRITES, Fault::Full),
    (WRITES, Fault::Short),
    (WRITES, Fault::Io),
    (SYNCS, Fault::Io),
    (SYNCS, Fault::Dropped),
    (&[Call::Truncate], Fault::Io),
    (&[Call::Delete], Fault::Io),
    (&[Call::Open], Fault::Io),
    (&[Call::Size], Fault::Io),
    (&[Call::Map], Fault::Io),
    (&[Call::Read], Fault::Io),
];

#[tokio::test]
async fn a_failure_of_any_call_is_reported_and_leaves_whole_transactions() {
    let (all, (part, parts)) = (all(), part());
    let mut random = fastrand::Rng::with_seed(number("AGENT_MEMORY_SIMULATED_SEED", 1));
    let mut counts: BTreeMap<Operation, u64> = BTreeMap::new();
    for operation in Operation::ALL {
        let durability = match operation {
            // At `Power`, the writes before a checkpoint fail.
            Operation::Checkpoint => Durability::Process,
            _ => durability(&mut random),
        };
        let history = History::record(*operation, durability, false).await;
        for (calls, fault) in FAULTS {
            let sample = match calls {
                _ if all => parts,
                [Call::Read | Call::Write] => SAMPLE[1],
                _ => SAMPLE[0],
            };
            for lasting in [false, true] {
                let mut nth = if all { part } else { random.u64(1..=sample) };
                while fail(&history, calls, *fault, nth, lasting, &mut random).await {
                    *counts.entry(*operation).or_default() += 1;
                    nth += if all {
                        parts
                    } else {
                        random.u64(1..=(2 * sample - 1))
                    };
                }
            }
        }
    }
    println!("failures: {counts:?}");
}

/// Lets a call fail. Returns whether there was such a call.
async fn fail(
    history: &History,
    calls: &[Call],
    fault: Fault,
    nth: u64,
    lasting: bool,
    random: &mut fastrand::Rng,
) -> bool {
    let operation = history.operation;
    let mut database = Database::new(history.durability);
    database.disk.put(&history.base);
    database.disk.plan(Plan {
        calls,
        nth,
        fault,
        lasting,
    });
    let done = history.run(&mut database).await;
    if !database.disk.mend() {
        assert!(
            done.error.is_none(),
            "{operation:?} failed by itself: {done:?}"
        );
        return false;
    }
    let what = format!(
        "{operation:?} with {:?}: {fault:?} at the {nth}th of {calls:?}, lasting: {lasting}: {done:?}",
        history.durability
    );
    let allowed = history.after(done.steps)..=history.after(done.steps + 1);
    let is_closed = done.error.is_none();
    assert!(
        !is_closed || !lasting || ![WRITES, SYNCS].contains(&calls),
        "{what}: it is not reported"
    );
    if !is_closed {
        // The same process goes on.
        history.check(&mut database, allowed.clone(), &what).await;
    }
    // And so does another one, after this one was killed, or the power was cut.
    database.lose_connections();
    match history.durability {
        Durability::Process if !is_closed => database.disk.kill(),
        _ => database.disk.restart(random),
    }
    history.check(&mut database, allowed, &what).await;
    history.complete(&mut database, &what).await;
    // Once the database is closed, its content is durable, also after a sync that dropped writes.
    let closed = database.close().await;
    assert!(closed.is_ok(), "{what}: {closed:?}");
    database.disk.restart(random);
    let last = history.contents() - 1;
    history
        .check(&mut database, last..=last, &format!("{what}, closed"))
        .await;
    true
}
