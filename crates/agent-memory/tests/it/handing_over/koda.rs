//! Handoffs by koda's rules.

use super::*;

#[tokio::test]
async fn a_short_session_and_one_that_waits_for_results_are_passed_over() {
    let session = open(writing("x").handoff(HandoffPolicy::koda())).await;
    let koda = HandOver::default().with_min_messages(4);
    talk(&session, 3).await;
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::TooShort { messages: 3 }
    );
    talk_on(&session, 4, 9).await;
    let _ = session
        .ingest(call("a", "Bash", r#"{"command":"ls"}"#))
        .await
        .unwrap();
    assert_eq!(
        skipped(&session, &koda).await,
        HandOverSkip::PendingToolCalls
    );
    let _ = session.ingest(result("a", "src")).await.unwrap();
    // 14 messages: 7 stay.
    let handoff = done(&session).await;
    assert_eq!((handoff.archived, handoff.kept_from), (7, Seq(8)));
}

#[tokio::test]
async fn of_ten_messages_koda_archives_eight_when_two_are_kept() {
    let session = open(writing("Eight messages.").handoff(keeping(2))).await;
    talk(&session, 10).await;
    let handoff = done(&session).await;
    assert_eq!(handoff.archived, 8);
    let (summary, messages) = shown(&session).await;
    assert!(
        summary.contains("Eight messages."),
        "the summary stands before what is kept"
    );
    assert_eq!(messages, [9, 10]);
}

#[tokio::test]
async fn a_summary_that_is_no_shorter_is_refused_and_nothing_changes() {
    let long = "word ".repeat(4_000);
    let ladder = agent_memory::Ladder::anna();
    let session = open(writing(&long).ladder(ladder).handoff(keeping(4))).await;
    talk(&session, 10).await;
    let before = export(&session).await;
    let handed = session.hand_over(&HandOver::default()).await;
    // anna's ladder cuts what is too long; either way the view is not larger than before.
    if let Ok(HandOverOutcome::Done(handoff)) = handed {
        assert!(handoff.tokens_after < handoff.tokens_before);
    }
    assert_eq!(export(&session).await, before);
}
