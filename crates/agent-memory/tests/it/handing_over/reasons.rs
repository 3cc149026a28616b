//! Reasons for skipping a handoff.

use super::*;
use crate::support::Inspect as _;

/// A model whose window is too small for any source.
#[derive(Debug)]
struct SmallWindow;

#[async_trait::async_trait]
impl Summarizer for SmallWindow {
    fn id(&self) -> &str {
        "small@1"
    }

    async fn summarize(
        &self,
        _: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, agent_memory::summaries::Error> {
        let failure = Failure::new(FailureKind::TooLong, "the prompt is too long");
        Err(agent_memory::summaries::Error::provider("small@1", failure))
    }
}

/// Hooks that refuse every job.
#[derive(Debug)]
struct Refuse;

#[async_trait::async_trait]
impl Hooks for Refuse {
    async fn before(&self, _: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Cancel
    }
}

#[tokio::test]
async fn every_reason_to_do_nothing_has_a_name_and_changes_nothing() {
    let strict = || {
        let ladder = Ladder {
            tiers: vec![Tier::Normal],
            ..Ladder::default()
        };
        memory()
            .ladder(Ladder {
                on_error: OnError::Fail,
                ..ladder
            })
            .handoff(keeping(4))
    };
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let cases = [
        (
            strict().summarizer(Arc::new(SmallWindow)),
            HandOver::default(),
            HandOverSkip::HistoryTooLarge,
        ),
        (
            strict().summarizer(Arc::new(Scripted::longer())),
            HandOver::default(),
            HandOverSkip::CannotShrink,
        ),
        (
            writing("x").handoff(keeping(4)),
            HandOver {
                cancel: cancelled,
                ..HandOver::default()
            },
            HandOverSkip::Cancelled,
        ),
        (
            writing("x").handoff(keeping(4)).hooks(Arc::new(Refuse)),
            HandOver::default(),
            HandOverSkip::Cancelled,
        ),
    ];
    for (builder, request, expected) in cases {
        let session = open(builder).await;
        talk(&session, 10).await;
        let before = (session.spans().await.unwrap(), export(&session).await);
        assert_eq!(skipped(&session, &request).await, expected);
        let after = (session.spans().await.unwrap(), export(&session).await);
        assert_eq!(after, before, "{expected:?}");
    }
}

#[tokio::test]
async fn a_threshold_is_a_reason_too() {
    let recorder = Recorder::new();
    let builder = writing("All of it.")
        .auto_handoff(above(100, 4))
        .hooks(Arc::new(recorder.clone()));
    let session = open(builder).await;
    talk(&session, 12).await;
    session
        .in_window(Window::new(100_000))
        .await
        .before_turn()
        .await
        .unwrap();
    let reason = CompactionReason::Threshold;
    assert_eq!(recorder.events()[0], Event::Triggered { reason });
}

/// A model that answers when two calls wait for it.
#[derive(Debug)]
struct Both(tokio::sync::Barrier);

#[async_trait::async_trait]
impl Summarizer for Both {
    fn id(&self) -> &str {
        "both@1"
    }

    async fn summarize(
        &self,
        _: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, agent_memory::summaries::Error> {
        self.0.wait().await;
        Ok(SummarizerResponse::new("Half of it."))
    }
}

#[tokio::test]
async fn the_two_summaries_of_a_split_turn_are_written_at_the_same_time() {
    let policy = HandoffPolicy {
        split_turns: true,
        ..keeping(1)
    };
    let both = Both(tokio::sync::Barrier::new(2));
    let session = open(memory().summarizer(Arc::new(both)).handoff(policy)).await;
    talk(&session, 8).await;
    let mut turn = vec![said(9)];
    turn.extend((0..8).map(|n| Message::assistant(said(10 + n).text())));
    let _ = session.ingest_batch(turn).await.unwrap();
    let handoff = done(&session).await;
    assert_eq!(handoff.summaries.len(), 2);
}

#[tokio::test]
async fn a_session_that_is_known_to_the_store_alone_is_handed_over() {
    let [_, place] = crate::support::both(|| writing("All of it.").handoff(keeping(4))).await;
    let session = place.memory.session("chat").await.unwrap();
    talk(&session, 12).await;
    drop(session);
    let place = place
        .reopen(writing("All of it.").handoff(keeping(4)))
        .await;
    let session = place.memory.get_session("chat").await.unwrap();
    assert_eq!(done(&session).await.archived, 8);
    // And what was handed over is there when it is opened once more.
    let place = place.reopen(memory().handoff(keeping(4))).await;
    let session = place.memory.get_session("chat").await.unwrap();
    let (summary, messages) = shown(&session).await;
    assert!(summary.contains("All of it."));
    assert_eq!(messages, [9, 10, 11, 12]);
}
