//! Random sequences of calls, compared step by step with the reference store.

mod compare;
mod op;
mod simple;
mod world;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use self::compare::verified;
use self::op::{Op, op};
use self::world::{Checked, World};
use crate::Fixture;

async fn run_case<F: Fixture>(fixture: &F, ops: &[Op]) -> Checked<()> {
    let mut world = World::new(fixture).await;
    world.step(&Op::Root).await?;
    for (n, op) in ops.iter().enumerate() {
        let step = world.step(op).await;
        step.map_err(|why| format!("step {} ({op:?}): {why}", n + 1))?;
    }
    world.compare().await?;
    verified(world.store(), "the store").await?;
    verified(&world.reference, "the reference").await
}

/// Runs random sequences of calls on the tested store and on the reference,
/// [`InMemoryStore`](memory_store::InMemoryStore). Compares the two answers to each call. At the end of each sequence
/// compares all readable data of the two stores, compares logs and views with a simpler model, and verifies both
/// stores. `cases` is the number of sequences. Each run uses the same sequences. A sequence that fails is shortened
/// before it is reported.
///
/// # Panics
/// If the stores disagree, or if the verification of one finds a violation.
pub async fn random_ops<F: Fixture>(fixture: &F, cases: u32) {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(op(), 1..60);
    for case in 0..cases {
        let mut tree = strategy.new_tree(&mut runner).expect("a sequence is made");
        let Err(mut why) = run_case(fixture, &tree.current()).await else {
            continue;
        };
        let mut smallest = tree.current();
        let mut budget = 2_000;
        let mut moved = tree.simplify();
        while moved && budget > 0 {
            budget -= 1;
            match run_case(fixture, &tree.current()).await {
                Err(again) => {
                    (smallest, why) = (tree.current(), again);
                    moved = tree.simplify();
                }
                Ok(()) => moved = tree.complicate(),
            }
        }
        panic!("sequence {case} fails; the shortest that does is\n{smallest:#?}\n{why}");
    }
}
