//! Summaries that are written in advance, and published later without a model.

use std::sync::Arc;

use compaction_plan::{Mode, StopReason};
use compaction_runner::{Event, Recorder, RunnerPolicy, SkipReason};
use memory_model::{ConversationId, StepClock, ViewVersion};
use memory_store::{FullStore, InMemoryStore, Store};
use store_conformance::{Fault, FaultyStore};
use summarize_escalation::ExtractiveSummarizer;
use summarize_escalation::testing::Scripted;

use crate::world::{
    AN_AGE, Lab, filled, in_memory, lease_clock, on_sqlite, small, sound, spans, view, whole,
};

fn policy() -> RunnerPolicy {
    RunnerPolicy {
        concurrency: 1,
        prefetch_min_tokens: 100,
        ..RunnerPolicy::default()
    }
}

/// Prepares and publishes until no job is left.
async fn to_the_end(
    lab: &Lab,
    store: &dyn Store,
    id: ConversationId,
    model: &Scripted,
) -> compaction_runner::Result<u64> {
    let mut compaction = lab.compaction(store, id, model);
    compaction.policy = policy();
    let mut published = 0;
    loop {
        let ahead = compaction.prefetch_summaries().await?;
        let called = model.calls();
        let outcome = compaction.publish_ready().await?;
        assert_eq!((outcome.calls, model.calls()), (0, called));
        published += outcome.published.total();
        if ahead.ready == 0 {
            return Ok(published);
        }
    }
}

#[tokio::test]
async fn it_ends_where_a_compaction_ends() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let published = to_the_end(&lab, &store, id, &model).await.unwrap();
    let paid = model.calls();
    assert_eq!(published, u64::from(paid), "each call was published once");

    let (twin, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let outcome = lab.full(&twin, id, &model).await;
    assert_eq!(outcome.published.total(), published);
    assert_eq!(spans(&store, id).await, spans(&twin, id).await);
    sound(store.inner(), id).await;
}

#[tokio::test]
async fn preparing_changes_no_view_and_plans_beyond_what_is_ready() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let before = spans(&store, id).await;
    let one = RunnerPolicy {
        prefetch_jobs: 1,
        ..policy()
    };
    let mut compaction = lab.compaction(&store, id, &model);
    compaction.policy = one;
    let first = compaction.prefetch_summaries().await.unwrap();
    let second = compaction.prefetch_summaries().await.unwrap();
    assert_eq!((first.prepared, first.ready, first.calls), (1, 1, 1));
    assert_eq!((second.prepared, second.ready, second.calls), (1, 2, 1));
    assert_eq!(spans(&store, id).await, before);
    let outcome = compaction.publish_ready().await.unwrap();
    assert_eq!(
        (outcome.published.get("leaf"), outcome.stop_reason),
        (2, StopReason::PassesDone)
    );
    sound(store.inner(), id).await;
    whole(&store, id, 0).await;
}

#[tokio::test]
async fn a_draft_that_is_gone_is_not_made_in_the_foreground() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let mut ahead = lab.compaction(&store, id, &model);
    ahead.policy = policy();
    let ready = ahead.prefetch_summaries().await.unwrap().ready;
    // With another recipe, the waiting drafts are not used.
    let other = Scripted::fixed(Ok("Short."));
    let recorder = Recorder::new();
    let mut outcome = lab.compaction(&store, id, &other);
    outcome.hooks = &recorder;
    let outcome = outcome.publish_ready().await.unwrap();
    assert_eq!(
        (outcome.published.get("leaf"), outcome.calls, other.calls()),
        (0, 0, 0)
    );
    assert_eq!(outcome.stop_reason, StopReason::NothingEligible);
    let skipped = recorder.events().into_iter().filter(
        |event| matches!(event, Event::Skipped { reason, .. } if *reason == SkipReason::NotReady),
    );
    assert_eq!(skipped.count() as u64, ready);
    sound(store.inner(), id).await;
}

#[tokio::test]
async fn work_that_costs_nothing_is_not_prepared() {
    let lab = Lab::new(small());
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let extractive = ExtractiveSummarizer::new();
    let compaction = lab.compaction(&store, id, &extractive);
    assert_eq!(compaction.prefetch_summaries().await.unwrap().ready, 0);
    let outcome = compaction.publish_ready().await.unwrap();
    assert!(
        outcome.published.get("leaf") > 0,
        "it is done where it is needed"
    );
}

#[tokio::test]
async fn what_the_view_no_longer_wants_is_forgotten() {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let (store, id) = filled(FaultyStore::new(InMemoryStore::new()), 64).await;
    let mut ahead = lab.compaction(&store, id, &model);
    ahead.policy = policy();
    assert!(ahead.prefetch_summaries().await.unwrap().ready > 0);
    // Another compaction changes the view.
    let extractive = ExtractiveSummarizer::new();
    let extracts = lab.compaction(&store, id, &extractive);
    extracts.run(Mode::Full).await.unwrap();
    let after = spans(&store, id).await;
    assert_eq!(ahead.prefetch_summaries().await.unwrap().ready, 0);
    assert_eq!(
        ahead.publish_ready().await.unwrap().published.get("leaf"),
        0
    );
    assert_eq!(spans(&store, id).await, after);
    sound(store.inner(), id).await;
}

/// Fails at each write of preparing and publishing, checks the stored state, and continues.
async fn every_write<S: FullStore>(make: impl AsyncFn(&Arc<StepClock>) -> S) {
    let (lab, model) = (Lab::new(small()), Scripted::head_cut());
    let leases = lease_clock();
    let (dry, id) = filled(FaultyStore::new(make(&leases).await), 64).await;
    let before = dry.writes();
    to_the_end(&lab, &dry, id, &model).await.unwrap();
    let (writes, paid) = (dry.writes() - before, model.calls());
    let done = spans(&dry, id).await;
    for write in 1..=writes {
        for fault in [Fault::Before, Fault::After] {
            let (store, id) = filled(FaultyStore::new(make(&leases).await), 64).await;
            let calls = model.calls();
            store.fail_from(write, fault);
            // A draft that cannot be stored is no failure of the jobs that are published at once.
            let _ = to_the_end(&lab, &store, id, &model).await;
            sound(store.inner(), id).await;
            whole(&store, id, 0).await;
            store.heal();
            // A later run does not wait for leases of the failed one.
            leases.advance(AN_AGE);
            to_the_end(&lab, &store, id, &model).await.unwrap();
            assert_eq!(spans(&store, id).await, done, "{write} {fault:?}");
            sound(store.inner(), id).await;
            assert!(model.calls() - calls <= paid + 8, "{write} {fault:?}");
        }
    }
    assert_ne!(
        dry.snapshot(id, &view()).await.unwrap().version,
        ViewVersion(0)
    );
}

#[tokio::test]
async fn every_write_fails_once_in_memory() {
    every_write(async |leases| in_memory(leases)).await;
}

#[tokio::test]
async fn every_write_fails_once_on_sqlite() {
    every_write(async |leases| on_sqlite(leases).await).await;
}
