//! Passes that are published whole or not at all, and durations of runs.

use std::time::Duration;

use compaction_plan::StopReason;
use compaction_runner::RunnerPolicy;
use memory_model::{StepClock, Timestamp};
use memory_store::InMemoryStore;
use summarize_escalation::testing::{Answer, Scripted};

use crate::world::{Lab, append, chat, filled, small, sound, spans, strict, summaries, whole};

fn lab(policy: RunnerPolicy) -> Lab {
    let mut lab = Lab::new(small()).with_ladder(strict());
    lab.policy = policy;
    lab
}

/// Returns a model that fails only at its third call.
fn fails_once() -> Scripted {
    let well = || Answer::text("what happened, in short");
    Scripted::new([well(), well(), Answer::fail("503"), well()])
}

#[tokio::test]
async fn a_pass_publishes_all_of_its_summaries_or_none() {
    for (is_whole, concurrency) in [(true, 1), (true, 4), (false, 1)] {
        let policy = RunnerPolicy {
            whole_passes: is_whole,
            concurrency,
            ..RunnerPolicy::default()
        };
        let (lab, model) = (lab(policy), fails_once());
        let (store, id) = filled(InMemoryStore::new(), 64).await;
        let before = spans(&store, id).await;
        let failed = lab.full(&store, id, &model).await;
        assert_eq!(failed.stop_reason, StopReason::SummarizerFailed);
        assert_eq!(
            failed
                .failed_kind
                .as_ref()
                .map(ToString::to_string)
                .as_deref(),
            Some("leaf")
        );
        let published = failed.published.total();
        if !is_whole {
            assert_eq!(published, 2, "what was made before the failure");
            continue;
        }
        assert_eq!(published, 0);
        assert_eq!(spans(&store, id).await, before);
        assert!(summaries(&store, id).await.is_empty());
        // The written texts are kept, and no lease is left, so the next run continues from there.
        let (paid, done) = (failed.calls, lab.full(&store, id, &model).await);
        assert_eq!(done.stop_reason, StopReason::NothingEligible);
        assert!(done.published.get("leaf") > paid - 1, "{done:?}");
        assert_eq!(u64::from(model.calls()), paid + done.calls);
        assert_eq!(
            done.calls + paid - 1,
            done.published.total(),
            "nothing is paid for twice"
        );
        whole(&store, id, 0).await;
        sound(&store, id).await;
    }
}

#[tokio::test]
async fn whole_passes_end_in_the_same_view() {
    let (mut views, mut calls) = (Vec::new(), Vec::new());
    for is_whole in [true, false] {
        let (store, id) = filled(InMemoryStore::new(), 120).await;
        let lab = lab(RunnerPolicy {
            whole_passes: is_whole,
            ..RunnerPolicy::default()
        });
        let outcome = lab.full(&store, id, &Scripted::head_cut()).await;
        calls.push((outcome.calls, outcome.stop_reason));
        let spans = spans(&store, id).await;
        views.push(
            spans
                .iter()
                .map(|span| (span.range, span.tokens))
                .collect::<Vec<_>>(),
        );
        sound(&store, id).await;
    }
    assert_eq!((&views[0], calls[0]), (&views[1], calls[1]));
}

#[tokio::test]
async fn a_run_takes_as_long_as_its_clock_says() {
    let (store, id) = filled(InMemoryStore::new(), 3).await;
    let mut lab = lab(RunnerPolicy::default());
    // Each reading of the clock is 250 ms later. A run without jobs reads it twice.
    lab.clock = StepClock::new(Timestamp(0), 250_000);
    let idle = lab.full(&store, id, &Scripted::head_cut()).await;
    assert_eq!(idle.elapsed, Duration::from_millis(250));
    append(&store, id, chat(4, 40)).await;
    let busy = lab.full(&store, id, &Scripted::head_cut()).await;
    assert!(busy.elapsed > idle.elapsed);
    let both = idle.clone().followed_by(busy.clone());
    assert_eq!(both.elapsed, idle.elapsed + busy.elapsed);
}
