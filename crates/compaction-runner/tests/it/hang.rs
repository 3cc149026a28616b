//! A summarizer that never returns blocks no other work.

use std::sync::Arc;

use compaction_plan::{Mode, StopReason};
use compaction_runner::{CancellationToken, InFlight, Liveness, Outcome, Result};
use memory_model::{ConversationId, Seq, SeqRange, StepClock, Timestamp};
use memory_search::{Query, Search, SegmentSearch};
use memory_store::{FullStore, InMemoryStore, LogRead, Order, Owner};
use summarize_escalation::testing::{Answer, Scripted};
use tokio::task::JoinHandle;

use crate::world::{
    AN_AGE, Lab, append, chat, dump, filled, in_memory, lease_clock, on_sqlite, open, small, sound,
    view, whole,
};

/// Starts a compaction of 120 messages that hangs in its first calls.
async fn hanging(
    store: &Arc<dyn FullStore>,
    id: ConversationId,
    cancel: &CancellationToken,
) -> JoinHandle<Result<Outcome>> {
    append(&**store, id, chat(1, 120)).await;
    let summarizer = Scripted::new([Answer::Hang]);
    let (theirs, hangs, cancel) = (Arc::clone(store), summarizer.clone(), cancel.clone());
    let task = tokio::spawn(async move {
        let lab = Lab::new(small());
        let mut first = lab.compaction(&*theirs, id, &hangs);
        first.cancel = cancel;
        first.policy.owner = Some("first".to_owned());
        first.run(Mode::Full).await
    });
    while summarizer.calls() < 4 {
        tokio::task::yield_now().await;
    }
    task
}

/// Makes 1,000 appends, with reads of the log, the view and searches in between.
async fn life_goes_on(store: &dyn FullStore, id: ConversationId) {
    for n in 121..1_121 {
        append(store, id, chat(n, 1)).await;
        if n % 100 == 0 {
            let snapshot = store.snapshot(id, &view()).await.unwrap();
            assert_eq!(snapshot.head, Seq(n));
            let range = SeqRange::new(Seq::FIRST, snapshot.head).unwrap();
            let spans = store.spans(&snapshot, range, Order::NewestFirst, 8).await;
            assert_eq!(spans.unwrap().items.len(), 1);
            let page = store.read(id, &LogRead::new(range)).await.unwrap();
            assert_eq!(page.items.len(), n.min(1_024) as usize);
            let query = Query::new("service 57 listens");
            let hits = SegmentSearch::without_index(store).search(id, &query).await;
            assert_eq!(hits.unwrap().hits.len(), 1);
        }
    }
}

/// Returns the content of a store without any compaction.
async fn untouched(store: Arc<dyn FullStore>) -> String {
    let id = open(&*store, "chat").await;
    append(&*store, id, chat(1, 120)).await;
    life_goes_on(&*store, id).await;
    dump(&*store, id).await
}

/// Runs a compaction of another owner, with a model that answers.
async fn second(lab: &Lab, store: &dyn FullStore, id: ConversationId) -> Outcome {
    let quick = Scripted::new([Answer::HeadCut]);
    let mut compaction = lab.compaction(store, id, &quick);
    compaction.policy.owner = Some("second".to_owned());
    compaction.run(Mode::Full).await.unwrap()
}

async fn a_cancelled_run_leaves_nothing(store: Arc<dyn FullStore>, twin: Arc<dyn FullStore>) {
    let id = open(&*store, "chat").await;
    let cancel = CancellationToken::new();
    let task = hanging(&store, id, &cancel).await;
    life_goes_on(&*store, id).await;
    cancel.cancel();
    let outcome = task.await.unwrap().unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(
        (
            outcome.calls,
            outcome.published.get("leaf"),
            outcome.published.get("condensed")
        ),
        (4, 0, 0)
    );
    assert_eq!(dump(&*store, id).await, untouched(twin).await);
    sound(&*store, id).await;

    // The leases were given back, so another owner continues at once.
    let lab = Lab::new(small());
    let outcome = second(&lab, &*store, id).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    whole(&*store, id, 0).await;
    sound(&*store, id).await;
}

async fn a_dropped_run_leaves_leases(
    store: Arc<dyn FullStore>,
    twin: Arc<dyn FullStore>,
    leases: &StepClock,
) {
    let id = open(&*store, "chat").await;
    let task = hanging(&store, id, &CancellationToken::new()).await;
    life_goes_on(&*store, id).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(dump(&*store, id).await, untouched(twin).await);
    sound(&*store, id).await;

    // The jobs in progress stay leased for a while. All other jobs can be done.
    let now = Lab::new(small());
    let outcome = second(&now, &*store, id).await;
    assert_eq!(outcome.stop_reason, StopReason::Held);
    assert!(outcome.published.get("leaf") > 0);
    // An owner of the same name takes the leases back at once, and any other owner later.
    leases.advance(AN_AGE);
    let outcome = second(&now, &*store, id).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert!(outcome.published.get("leaf") >= 4);
    whole(&*store, id, 0).await;
    sound(&*store, id).await;
}

/// A liveness that knows one owner as ended.
#[derive(Debug)]
struct Gone(&'static str);

impl Liveness for Gone {
    fn is_gone(&self, owner: &Owner) -> bool {
        owner.0 == self.0
    }
}

async fn the_leases_of_an_owner_that_is_gone_are_taken_over(store: Arc<dyn FullStore>) {
    let id = open(&*store, "chat").await;
    let task = hanging(&store, id, &CancellationToken::new()).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let lab = Lab::new(small());
    let quick = Scripted::new([Answer::HeadCut]);
    let mut second = lab.compaction(&*store, id, &quick);
    second.policy.owner = Some("second".to_owned());
    // That another owner has ended does not help, and the outcome names the current holder.
    second.liveness = &Gone("third");
    let outcome = second.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Held);
    let held = outcome.held.unwrap();
    assert_eq!(held.owner, "first");
    assert_eq!(held.until, Timestamp(1_000 + 600_000_000), "{held:?}");

    second.liveness = &Gone("first");
    let outcome = second.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert_eq!(outcome.held, None);
    assert!(outcome.published.get("leaf") >= 4);
    whole(&*store, id, 0).await;
    sound(&*store, id).await;
}

#[tokio::test]
async fn an_owner_that_is_gone_blocks_nobody_in_memory() {
    let store = Arc::new(in_memory(&lease_clock()));
    the_leases_of_an_owner_that_is_gone_are_taken_over(store).await;
}

#[tokio::test]
async fn an_owner_that_is_gone_blocks_nobody_on_sqlite() {
    let store = Arc::new(on_sqlite(&lease_clock()).await);
    the_leases_of_an_owner_that_is_gone_are_taken_over(store).await;
}

#[tokio::test]
async fn a_hanging_model_in_memory() {
    let leases = lease_clock();
    let store = || Arc::new(in_memory(&leases));
    a_cancelled_run_leaves_nothing(store(), store()).await;
    a_dropped_run_leaves_leases(store(), store(), &leases).await;
}

#[tokio::test]
async fn a_hanging_model_on_sqlite() {
    let leases = lease_clock();
    let store = async || Arc::new(on_sqlite(&leases).await);
    a_cancelled_run_leaves_nothing(store().await, store().await).await;
    a_dropped_run_leaves_leases(store().await, store().await, &leases).await;
}

#[tokio::test]
async fn what_was_written_before_a_cancellation_is_kept_for_the_next_run() {
    let store: Arc<dyn FullStore> = Arc::new(InMemoryStore::new());
    let id = open(&*store, "chat").await;
    append(&*store, id, chat(1, 120)).await;
    // The first call hangs, so the other texts wait for it.
    let cut = Answer::HeadCut;
    let summarizer = Scripted::new([Answer::Hang, cut.clone(), cut.clone(), cut.clone()]);
    let lab = Lab::new(small());
    let cancel = CancellationToken::new();
    let mut run = lab.compaction(&*store, id, &summarizer);
    run.cancel = cancel.clone();
    run.policy.owner = Some("first".to_owned());
    let stop = async {
        while summarizer.calls() < 4 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(run.run(Mode::Full), stop);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert_eq!((outcome.calls, outcome.published.get("leaf")), (4, 0));
    let mut run = lab.compaction(&*store, id, &summarizer);
    run.policy.owner = Some("second".to_owned());
    let outcome = run.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert_eq!(outcome.calls + 3, outcome.published.total());
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_writes_nothing() {
    let (store, id) = filled(
        store_conformance::FaultyStore::new(InMemoryStore::new()),
        120,
    )
    .await;
    let writes = store.writes();
    let lab = Lab::new(small());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let summarizer = Scripted::head_cut();
    let mut run = lab.compaction(&store, id, &summarizer);
    run.cancel = cancel;
    let outcome = run.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert_eq!((store.writes(), summarizer.calls()), (writes, 0));
}

#[tokio::test]
async fn two_runs_of_one_owner_pay_once() {
    let store: Arc<dyn FullStore> = Arc::new(InMemoryStore::new());
    let id = open(&*store, "chat").await;
    append(&*store, id, chat(1, 120)).await;
    let in_flight = InFlight::new();
    let slow = Scripted::new([Answer::Hang]);
    let (theirs, hangs, shared) = (Arc::clone(&store), slow.clone(), in_flight.clone());
    let first = tokio::spawn(async move {
        let lab = Lab::new(small());
        let mut compaction = lab.compaction(&*theirs, id, &hangs);
        compaction.in_flight = shared;
        compaction.run(Mode::Full).await
    });
    while slow.calls() < 4 {
        tokio::task::yield_now().await;
    }

    // The second run finds these four jobs in progress, although its owner has the same name.
    let lab = Lab::new(small());
    let quick = Scripted::new([Answer::HeadCut]);
    let mut again = lab.compaction(&*store, id, &quick);
    again.in_flight = in_flight;
    let outcome = again.run(Mode::Incremental).await.unwrap();
    assert_eq!(outcome.calls, outcome.published.total());
    let left = again.plan().await.unwrap().jobs.len();
    assert!(left >= 4, "{left}");

    // When the first run is dropped, they are taken back at once.
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let outcome = again.run(Mode::Full).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    whole(&*store, id, 0).await;
    sound(&*store, id).await;
}
