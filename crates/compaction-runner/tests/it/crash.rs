//! A store that fails before or after any write, and runs that are dropped.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use compaction_plan::{Mode, StopReason};
use compaction_runner::{Outcome, Result};
use handoff_compactor::{CutPolicy, HandoffPlanner, HandoffPolicy};
use memory_model::{ConversationId, Seq, SeqRange, Span, ViewName, ViewVersion};
use memory_store::{FullStore, InMemoryStore, Order, Store};
use store_conformance::{Fault, FaultyStore};
use store_sqlite::SqliteOptions;
use summarize_escalation::testing::Scripted;
use summarize_escalation::{Error, Summarizer, SummarizerResponse, SummaryRequest};

use crate::world::{Lab, append, chat, filled, small, sound, spans, spans_at, view, whole};

/// Runs a full compaction, one summary at a time.
async fn run(
    lab: &Lab,
    store: &dyn Store,
    id: ConversationId,
    model: &Scripted,
) -> Result<Outcome> {
    let mut compaction = lab.compaction(store, id, model);
    compaction.policy.concurrency = 1;
    compaction.run(Mode::Full).await
}

/// Returns the number of jobs in each batch, in order. The jobs of one transaction have the same time.
async fn batches<S: FullStore>(store: &FaultyStore<S>, id: ConversationId) -> Vec<u64> {
    let first = ViewVersion(0);
    let page = store.publications(id, &view(), first, 1_000).await;
    let page = page.unwrap().items;
    let batches = page.chunk_by(|a, b| a.created_at == b.created_at);
    batches.map(|batch| batch.len() as u64).collect()
}

/// Fails at each write of a full compaction, checks the stored state, and runs again.
async fn every_write<S: FullStore>(make: impl AsyncFn() -> S) {
    let (dry, id) = filled(FaultyStore::new(make().await), 64).await;
    let before = dry.writes();
    let lab = Lab::new(small());
    let model = Scripted::head_cut();
    let outcome = run(&lab, &dry, id, &model).await.unwrap();
    assert!(
        outcome.published.get("leaf") >= 4 && outcome.published.get("condensed") >= 2,
        "{outcome:?}"
    );
    let writes = dry.writes() - before;
    let paid = model.calls();
    // Each batch takes three writes: claim, draft and publication.
    let batches = batches(&dry, id).await;
    assert_eq!(writes, batches.len() as u64 * 3);
    assert_eq!(batches.iter().sum::<u64>(), u64::from(paid));
    assert!(batches.len() < paid as usize, "{batches:?}");
    let done = spans(&dry, id).await;

    for write in 1..=writes {
        for fault in [Fault::Before, Fault::After] {
            let (store, id) = filled(FaultyStore::new(make().await), 64).await;
            let calls = model.calls();
            store.fail_from(write, fault);
            run(&lab, &store, id, &model).await.unwrap_err();
            sound(store.inner(), id).await;
            whole(&store, id, 0).await;
            // Each batch is stored whole or not at all: the undisturbed run had the same view at some time.
            let version = store.snapshot(id, &view()).await.unwrap().version;
            let published = (write - 1) / 3 + u64::from(write % 3 == 0 && fault == Fault::After);
            let published: u64 = batches.iter().take(published as usize).sum();
            assert_eq!(version, ViewVersion(published));
            assert_eq!(spans(&store, id).await, spans_at(&dry, id, version).await);

            store.heal();
            let again = run(&lab, &store, id, &model).await.unwrap();
            assert_eq!(again.stop_reason, StopReason::NothingEligible);
            assert_eq!(spans(&store, id).await, done);
            sound(store.inner(), id).await;
            // Only drafts that could not be stored need another call.
            let lost = match write % 3 == 2 && fault == Fault::Before {
                true => batches[(write / 3) as usize],
                false => 0,
            };
            assert_eq!(
                u64::from(model.calls() - calls),
                u64::from(paid) + lost,
                "{write} {fault:?}"
            );
        }
    }
}

#[tokio::test]
async fn every_write_fails_once_in_memory() {
    every_write(async || InMemoryStore::new()).await;
}

#[tokio::test]
async fn every_write_fails_once_on_sqlite() {
    every_write(async || SqliteOptions::new().in_memory().await.unwrap()).await;
}

/// Returns the spans of the view of handoffs up to the head.
async fn handoff_spans(store: &dyn Store, id: ConversationId) -> Vec<Span> {
    let view = ViewName::new("handoff");
    let snapshot = store.snapshot(id, &view).await.unwrap();
    let all = SeqRange::new(Seq::FIRST, snapshot.head).unwrap();
    let order = Order::OldestFirst;
    let page = store.spans(&snapshot, all, order, 100).await.unwrap();
    page.items
}

/// A summarizer whose answers are never ready at once.
#[derive(Debug)]
struct Slow(Scripted);

#[async_trait]
impl Summarizer for Slow {
    fn id(&self) -> &str {
        self.0.id()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, Error> {
        tokio::task::yield_now().await;
        self.0.summarize(request).await
    }
}

/// Fails at each write of a handoff with two summaries, checks the stored state, and runs again.
async fn every_write_of_a_handoff<S: FullStore>(make: impl AsyncFn() -> S) {
    let planner = HandoffPlanner::new(HandoffPolicy {
        keep: CutPolicy::LastMessages { messages: 2 },
        min_tokens: 0,
        ..HandoffPolicy::default()
    });
    let lab = Lab::new(small());
    let model = Slow(Scripted::head_cut());
    let hand_over = async |store: &dyn Store, id| {
        let mut compaction = lab.compaction(store, id, &model);
        compaction.planner = &planner;
        compaction.policy.whole_passes = true;
        compaction.policy.concurrency = 1;
        compaction.run(Mode::Incremental).await
    };
    let talked = async || {
        let (store, id) = filled(make().await, 20).await;
        let mut turn = chat(21, 1);
        turn.extend((0..8).flat_map(|_| chat(24, 1)));
        append(&store, id, turn).await;
        (FaultyStore::new(store), id)
    };
    let (dry, id) = talked().await;
    let untouched = handoff_spans(&dry, id).await;
    let before = dry.writes();
    let outcome = hand_over(&dry, id).await.unwrap();
    assert_eq!(outcome.published.total(), 2, "{outcome:?}");
    let writes = dry.writes() - before;
    let done = handoff_spans(&dry, id).await;
    assert!(
        writes >= 4,
        "a claim, two drafts and a publication: {writes}"
    );

    for write in 1..=writes {
        for fault in [Fault::Before, Fault::After] {
            let (store, id) = talked().await;
            store.fail_once(write, fault);
            let outcome = hand_over(&store, id).await;
            sound(store.inner(), id).await;
            // Both summaries or neither, whichever write failed. A draft that could not be stored is published.
            let shown = handoff_spans(&store, id).await;
            let expected = match (&outcome, fault) {
                (Ok(_), _) => &done,
                (Err(_), Fault::After) if write == writes => &done,
                (Err(_), _) => &untouched,
            };
            assert_eq!(&shown, expected, "{write} {fault:?}");
            assert_eq!(
                outcome.is_ok(),
                write == 2 || write == 3,
                "{write} {fault:?}"
            );
            store.heal();
            hand_over(&store, id).await.unwrap();
            assert_eq!(handoff_spans(&store, id).await, done);
            sound(store.inner(), id).await;
        }
    }
}

#[tokio::test]
async fn every_write_of_a_handoff_fails_once_in_memory() {
    every_write_of_a_handoff(async || InMemoryStore::new()).await;
}

#[tokio::test]
async fn every_write_of_a_handoff_fails_once_on_sqlite() {
    every_write_of_a_handoff(async || SqliteOptions::new().in_memory().await.unwrap()).await;
}

/// After a temporary failure, no lease is left for which another owner would have to wait.
#[tokio::test]
async fn a_failure_that_passes_gives_everything_back() {
    let (dry, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let before = dry.writes();
    let lab = Lab::new(small());
    let model = Scripted::head_cut();
    lab.full(&dry, id, &model).await;
    let (writes, paid) = (dry.writes() - before, model.calls());
    for write in 1..=writes {
        for fault in [Fault::Before, Fault::After] {
            let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
            let calls = model.calls();
            store.fail_once(write, fault);
            let mut first = lab.compaction(&store, id, &model);
            first.policy.owner = Some("first".to_owned());
            let first = first.run(Mode::Full).await;
            sound(store.inner(), id).await;
            store.heal();
            let mut second = lab.compaction(&store, id, &model);
            second.policy.owner = Some("second".to_owned());
            let second = second.run(Mode::Full).await.unwrap();
            sound(store.inner(), id).await;
            whole(&store, id, 0).await;
            // A draft that could not be stored is published nevertheless. Only a claim with a lost answer is not given
            // back.
            let expected = match (&first, fault) {
                (Err(_), Fault::After) if second.stop_reason == StopReason::Held => continue,
                _ => StopReason::NothingEligible,
            };
            assert_eq!(second.stop_reason, expected, "{write} {fault:?} {first:?}");
            // Calls in progress when the store failed were stopped: at most three others.
            assert!(model.calls() - calls <= paid + 3, "{write} {fault:?}");
        }
    }
}

/// A summarizer that never answers its first call, and answers all others at once.
#[derive(Debug)]
struct FirstCallHangs {
    calls: AtomicU32,
    writer: Scripted,
}

#[async_trait]
impl Summarizer for FirstCallHangs {
    fn id(&self) -> &str {
        self.writer.id()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, Error> {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            std::future::pending::<()>().await;
        }
        self.writer.summarize(request).await
    }
}

#[tokio::test]
async fn what_was_written_beside_a_slow_call_is_not_paid_again() {
    let lab = Lab::new(small());
    let (dry, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let model = Scripted::head_cut();
    lab.full(&dry, id, &model).await;
    let alone = model.calls();

    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let model = FirstCallHangs {
        calls: AtomicU32::new(0),
        writer: Scripted::head_cut(),
    };
    let compaction = lab.compaction(&store, id, &model);
    let mut run = Box::pin(compaction.run(Mode::Full));
    for _ in 0..100 {
        assert!(futures::poll!(&mut run).is_pending());
        tokio::task::yield_now().await;
    }
    drop(run);
    let written = model.writer.calls();
    assert!(written > 0, "calls run beside each other");
    sound(store.inner(), id).await;

    let outcome = lab.full(&store, id, &model.writer).await;
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    assert_eq!(model.writer.calls(), alone);
    whole(&store, id, 0).await;
}
