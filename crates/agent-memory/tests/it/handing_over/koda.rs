//! Handoffs by koda's rules.

use super::*;
use crate::support::Inspect as _;

#[tokio::test]
async fn a_short_session_and_one_that_waits_for_results_are_passed_over() {
    let session = open(writing("x").handoff(keeping(7))).await;
    let koda = HandOver {
        min_messages: 4,
        ..HandOver::default()
    };
    talk(&session, 3).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::TooShort { messages: 3 }
    );
    talk_on(&session, 4, 9).await;
    say(&session, call("a", "Bash", r#"{"command":"ls"}"#)).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::PendingToolCalls
    );
    say(&session, Message::tool_result("a", "src")).await;
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (7, Seq(8)));
}

/// A summarizer that records the messages that it receives.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<u32>>);

#[async_trait::async_trait]
impl Summarizer for Seen {
    fn id(&self) -> &str {
        "seen@1"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, summarize_escalation::Error> {
        let seen = request.source.iter().map(|piece| piece.range().first.0);
        self.0.lock().unwrap().extend(seen);
        Ok(SummarizerResponse::new("What was seen."))
    }
}

#[tokio::test]
async fn what_is_archived_is_what_was_summarized_also_beside_results_without_a_call() {
    let seen = Arc::new(Seen::default());
    let summarizer: Arc<dyn Summarizer> = seen.clone();
    let session = open(memory().summarizer(summarizer).handoff(keeping(2))).await;
    talk(&session, 4).await;
    let orphans =
        [1, 2].map(|n| Message::tool_result(format!("gone{n}"), "Its call is nowhere in the log."));
    let _ = session.ingest_batch(orphans.to_vec()).await.unwrap();
    talk_on(&session, 5, 6).await;
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (10, Seq(11)));
    let seen = seen.0.lock().unwrap().clone();
    assert!(seen.iter().copied().eq(1..=10), "{seen:?}");
    assert_eq!(shown(&session).await.1, [11, 12]);
}

#[tokio::test]
async fn a_summary_that_is_no_shorter_is_refused_and_nothing_changes() {
    let long = "word ".repeat(4_000);
    let ladder = crate::documents::ladder();
    let session = open(writing(&long).ladder(ladder).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let before = export(&session).await;
    let handed = session.hand_over(&HandOver::default()).await;
    // What is too long is cut; either way the view is not larger than before.
    if let Ok(HandOverOutcome::Done(handoff)) = handed {
        assert!(handoff.tokens_after < handoff.tokens_before);
    }
    assert_eq!(export(&session).await, before);
}

#[tokio::test]
async fn a_band_below_the_threshold_warns() {
    let policy = TurnPolicy {
        hard: Trigger::Percent { percent: 85 },
        warn: Trigger::Percent { percent: 50 },
        before_call: Action::Compact,
        ..TurnPolicy::manual()
    };
    let session = open(writing("All of it.").handoff(keeping(2)).turns(policy)).await;
    talk(&session, 60).await;
    let wide = session
        .in_window(Window::new(1_000_000))
        .await
        .context()
        .await
        .unwrap();
    let used = wide.report.usage.tokens;
    let full_to = |percent: u64| Window::new(used * 100 / percent);
    for (percent, warned) in [(40, false), (60, true)] {
        let call = session
            .in_window(full_to(percent))
            .await
            .context()
            .await
            .unwrap();
        assert_eq!(call.report.warned, warned, "{percent}");
        assert_eq!(call.report.published(), 0);
        // A step that does nothing warns too.
        let after = session
            .in_window(full_to(percent))
            .await
            .after_turn()
            .await
            .unwrap();
        assert_eq!(after.warned, warned, "{percent}");
    }
    // From the threshold on it compacts, and has nothing to warn of.
    let call = session
        .in_window(full_to(90))
        .await
        .context()
        .await
        .unwrap();
    assert_eq!((call.report.warned, call.report.published()), (false, 1));
}

fn strict(model: &Scripted, breaker: BreakerPolicy) -> Builder {
    let ladder = Ladder {
        tiers: vec![Tier::Normal],
        ..Ladder::default()
    };
    let policy = GuardPolicy {
        breaker: Some(breaker),
        ..GuardPolicy::none()
    };
    memory()
        .summarizer(Arc::new(model.clone()))
        .ladder(Ladder {
            on_error: OnError::Fail,
            ..ladder
        })
        .auto_handoff(above(100, 2))
        .guards(agent_memory::models::Guards::new(
            policy,
            Arc::new(FakeTimer::new()),
        ))
}

#[tokio::test]
async fn a_breaker_can_be_asked_and_told() {
    let model = Scripted::fixed(Ok("All of it."));
    let memory = strict(
        &model,
        BreakerPolicy {
            half_open_after_millis: None,
            ..BreakerPolicy::default()
        },
    )
    .open()
    .await
    .unwrap();
    let (session, other) = (
        memory.session("a").await.unwrap(),
        memory.session("b").await.unwrap(),
    );
    talk(&session, 12).await;
    assert!(!session.guard().is_open());
    let told: Vec<bool> = (0..3)
        .map(|_| session.guard().record_failure("no connection"))
        .collect();
    assert_eq!(told, [false, false, true]);
    assert!(session.guard().is_open() && !other.guard().is_open());
    let window = Window::new(100_000);
    let session = session.in_window(window).await;
    let report = session.before_turn().await.unwrap();
    assert!(report.failure.unwrap().contains("no connection"));
    assert_eq!(
        (report.compactions[0].published.total(), model.calls()),
        (0, 0)
    );
    session.guard().reset();
    assert!(!session.guard().is_open());
    assert_eq!(session.before_turn().await.unwrap().published(), 1);
    // Without guards there is no breaker to open.
    let free = open(writing("x").handoff(keeping(2))).await;
    assert!((0..5).all(|_| !free.guard().record_failure("x")));
}
