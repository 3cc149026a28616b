//! Two compactions of the same conversation at the same time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use compaction_plan::{Mode, StopReason};
use compaction_runner::{Compaction, Outcome, RedoPolicy, RedoStop};
use dag_compactor::DagPolicy;
use memory_model::{Clock, StepClock, Timestamp};
use memory_store::{FullStore, InMemoryStore};
use proptest::prelude::*;
use store_sqlite::SqliteOptions;
use summarize_escalation::ExtractiveSummarizer;
use tokio::sync::Barrier;

use crate::gated::Gated;
use crate::world::{
    Lab, append, chat, filled, open, small, sound, spans, summaries, ungated, whole,
};

/// Lets two compactions run until both have called their model. Then opens their gates in this order, and finally for
/// all calls.
async fn race(
    store: &dyn FullStore,
    messages: u32,
    (a, b): (&Gated, &Gated),
    (first, second): (&Lab, &Lab),
    order: &[bool],
) -> (Outcome, Outcome) {
    let id = open(store, "chat").await;
    append(store, id, chat(1, messages)).await;
    let mut one = first.compaction(store, id, a);
    one.policy.owner = Some("one".to_owned());
    let mut two = second.compaction(store, id, b);
    two.policy.owner = Some("two".to_owned());
    two.policy.concurrency = 2;
    let gates = async {
        for &left in order {
            let gate = if left { &a.gate } else { &b.gate };
            gate.add_permits(1);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
        a.gate.add_permits(10_000);
        b.gate.add_permits(10_000);
    };
    let (one, two, ()) = tokio::join!(one.run(Mode::Full), two.run(Mode::Full), gates);
    let (one, two) = (one.unwrap(), two.unwrap());
    let published = one.summaries.len() + two.summaries.len();
    assert_eq!(summaries(store, id).await.len(), published, "no orphans");
    whole(store, id, 0).await;
    sound(store, id).await;
    (one, two)
}

fn pair(provisional: bool) -> (Gated, Gated) {
    let meet = Arc::new(Barrier::new(2));
    // Other names and recipes make other jobs, so no lease prevents one of them.
    let a = Gated::new("a@1", "A says").meeting(&meet);
    let b = Gated::new("b@1", "B says").meeting(&meet);
    match provisional {
        true => (a.provisional(), b.provisional()),
        false => (a, b),
    }
}

/// Runs two compactions with one job. Exactly one of them publishes it. Returns whether it was the first.
async fn one_wins(store: &dyn FullStore, provisional: bool, a_first: bool) -> bool {
    let (a, b) = pair(provisional);
    let lab = Lab::new(DagPolicy {
        max_source_tokens: None,
        ..small()
    });
    let (one, two) = race(store, 20, (&a, &b), (&lab, &lab), &[a_first, !a_first]).await;
    assert_eq!((a.calls(), b.calls()), (1, 1), "both had prepared");
    let a_won = one.published.get("leaf") == 1;
    let (winner, loser) = if a_won { (one, two) } else { (two, one) };
    assert_eq!(
        (winner.published.get("leaf"), loser.published.get("leaf")),
        (1, 0)
    );
    assert_eq!(winner.stop_reason, StopReason::NothingEligible);
    assert_eq!(loser.stop_reason, StopReason::LostRace);
    assert_eq!(loser.summaries, []);
    a_won
}

#[tokio::test]
async fn of_two_that_prepared_the_same_run_one_publishes() {
    for provisional in [false, true] {
        for a_first in [false, true] {
            let a_won = one_wins(&InMemoryStore::new(), provisional, a_first).await;
            assert_eq!(a_won, a_first);
            // The order depends on the threads.
            let store = SqliteOptions::new().in_memory().await.unwrap();
            one_wins(&store, provisional, a_first).await;
        }
    }
}

#[tokio::test]
async fn a_lease_keeps_the_second_from_paying() {
    let store = InMemoryStore::new();
    let (a, b) = (Gated::new("m@1", "says"), Gated::new("m@1", "says"));
    let lab = Lab::new(DagPolicy {
        max_source_tokens: None,
        ..small()
    });
    let (one, two) = race(&store, 20, (&a, &b), (&lab, &lab), &[]).await;
    assert_eq!((a.calls(), b.calls()), (1, 0));
    assert_eq!(
        (one.published.get("leaf"), two.published.get("leaf")),
        (1, 0)
    );
    assert_eq!(two.stop_reason, StopReason::Held);
}

/// Starts a redo of a view of extracts, whose model waits, and then a second redo beside it. Returns the second one's
/// report. `owners` are the names under which the two take leases.
async fn second_redo(
    store: &dyn FullStore,
    ids: [&str; 2],
    owners: [&str; 2],
) -> compaction_runner::RedoReport {
    let lab = Lab::new(small()).with_ladder(ungated());
    let id = open(store, "chat").await;
    append(store, id, chat(1, 40)).await;
    lab.full(store, id, &ExtractiveSummarizer::default()).await;
    let [a, b] = ids.map(|id| Gated::new(id, id));
    let mut one = lab.compaction(store, id, &a);
    one.policy.owner = Some(owners[0].to_owned());
    let mut two = lab.compaction(store, id, &b);
    two.policy.owner = Some(owners[1].to_owned());
    if owners[0] == owners[1] {
        // They belong to one process.
        two.in_flight = one.in_flight.clone();
    }
    let policy = RedoPolicy::default();
    // Nothing keeps the second one's model from answering.
    b.gate.add_permits(10_000);
    let beside = async {
        while a.calls() == 0 {
            tokio::task::yield_now().await;
        }
        let report = two.redo(&policy).await.unwrap();
        a.gate.add_permits(10_000);
        report
    };
    let (first, second) = tokio::join!(one.redo(&policy), beside);
    let first = first.unwrap();
    assert_eq!((first.stop_reason, first.left), (RedoStop::Done, 0));
    assert_eq!(b.calls(), 0, "{second:?}");
    sound(store, id).await;
    // The first one has given its lease back.
    let again = two.redo(&policy).await.unwrap();
    assert_eq!((again.stop_reason, again.calls), (RedoStop::Done, 0));
    second
}

#[tokio::test]
async fn a_second_redo_of_a_view_calls_no_model() {
    // Two processes with the same model and with different ones, and two tasks of one process.
    for (ids, owners) in [
        (["m@1", "m@1"], ["one", "two"]),
        (["a@1", "b@1"], ["one", "two"]),
        (["a@1", "b@1"], ["one", "one"]),
    ] {
        let memory = InMemoryStore::new();
        let sqlite = SqliteOptions::new().in_memory().await.unwrap();
        for store in [&memory as &dyn FullStore, &sqlite] {
            let second = second_redo(store, ids, owners).await;
            assert_eq!(second.stop_reason, RedoStop::Held, "{ids:?}");
            assert_eq!(second.held.unwrap().owner, "one");
            assert_eq!((second.calls, second.written), (0, 0));
            assert!(second.left > 0 && second.left == second.provisional);
        }
    }
}

/// A clock that runs an action on a separate thread during one of its readings.
struct Meanwhile<'a> {
    clock: StepClock,
    left: AtomicI64,
    happens: &'a (dyn Fn() + Sync),
}

impl fmt::Debug for Meanwhile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

impl Clock for Meanwhile<'_> {
    fn now(&self) -> Timestamp {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::thread::scope(|scope| scope.spawn(self.happens).join().unwrap());
        }
        self.clock.now()
    }
}

#[tokio::test]
async fn what_another_publishes_between_two_steps_is_not_paid_again() {
    let lab = Lab::new(small());
    let paying = || {
        let model = Gated::new("m@1", "says");
        model.gate.add_permits(10_000);
        model
    };
    let mut readings = 0;
    let alone = loop {
        readings += 1;
        let (store, id) = filled(InMemoryStore::new(), 60).await;
        let (ours, theirs) = (paying(), paying());
        let other = || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let mut run = lab.compaction(&store, id, &theirs);
            run.policy.owner = Some("two".to_owned());
            runtime.unwrap().block_on(run.run(Mode::Full)).unwrap();
        };
        let clock = Meanwhile {
            clock: StepClock::new(Timestamp(1_000), 1),
            left: AtomicI64::new(readings),
            happens: &other,
        };
        let (planner, ladder, accounting) = (&lab.planner, &lab.ladder, &lab.accounting);
        let mut run = Compaction::new(&store, id, planner, &ours, ladder, accounting, &clock);
        run.policy.owner = Some("one".to_owned());
        run.run(Mode::Full).await.unwrap();
        sound(&store, id).await;
        let (ours, theirs) = (ours.calls(), theirs.calls());
        if clock.left.into_inner() > 0 {
            break ours;
        }
        let made = summaries(&store, id).await.len() as u32;
        assert_eq!(
            ours + theirs,
            made,
            "at reading {readings}: {ours} and {theirs} calls"
        );
    };
    assert!(
        alone > 5 && readings > 2 * i64::from(alone),
        "{alone} {readings}"
    );
}

#[tokio::test]
async fn an_answer_that_outlives_its_lease_is_still_published() {
    // The second run begins after the lease has ended, so both work on the job. The slow one ends first.
    for a_first in [true, false] {
        let meet = Arc::new(Barrier::new(2));
        let a = Gated::new("m@1", "A says").meeting(&meet);
        let b = Gated::new("m@1", "B says").meeting(&meet);
        let store = InMemoryStore::new();
        let policy = DagPolicy {
            max_source_tokens: None,
            ..small()
        };
        let (now, later) = (
            Lab::new(policy.clone()).with_brief_leases(),
            Lab::new(policy),
        );
        let (one, two) = race(&store, 20, (&a, &b), (&now, &later), &[a_first, !a_first]).await;
        assert_eq!(
            (
                one.published.get("leaf") == 1,
                two.published.get("leaf") == 1
            ),
            (a_first, !a_first)
        );
        assert_eq!((one.calls, two.calls), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_on_several_threads() {
    for round in 0..8 {
        let store: Arc<dyn FullStore> = match round % 2 {
            0 => Arc::new(InMemoryStore::new()),
            _ => Arc::new(SqliteOptions::new().in_memory().await.unwrap()),
        };
        let id = open(&*store, "chat").await;
        append(&*store, id, chat(1, 120)).await;
        let tasks: Vec<_> = (0..3)
            .map(|n| {
                let store = Arc::clone(&store);
                let gated = Gated::new(&format!("m{n}@1"), &format!("{n} says"));
                gated.gate.add_permits(10_000);
                tokio::spawn(async move {
                    let lab = Lab::new(small());
                    let mut run = lab.compaction(&*store, id, &gated);
                    run.policy.owner = Some(format!("owner {n}"));
                    run.run(Mode::Full).await.unwrap()
                })
            })
            .collect();
        let mut published = 0;
        for task in tasks {
            published += task.await.unwrap().summaries.len();
        }
        assert_eq!(summaries(&*store, id).await.len(), published);
        whole(&*store, id, 0).await;
        sound(&*store, id).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_the_order_each_range_is_published_once(
        order in prop::collection::vec(any::<bool>(), 0..40),
        provisional: bool,
        messages in 12_u32..70,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = InMemoryStore::new();
            let (a, b) = pair(provisional);
            let lab = Lab::new(small());
            let (one, two) = race(&store, messages, (&a, &b), (&lab, &lab), &order).await;
            // The remaining run finishes the work.
            let id = open(&store, "chat").await;
            let mut last = lab.compaction(&store, id, &a);
            last.policy.owner = Some("one".to_owned());
            let last = last.run(Mode::Full).await.unwrap();
            prop_assert_eq!(last.stop_reason, StopReason::NothingEligible);
            prop_assert!(one.published.get("leaf") + two.published.get("leaf") + last.published.get("leaf") > 0);
            prop_assert!(!spans(&store, id).await.is_empty());
            Ok(())
        })?;
    }
}
