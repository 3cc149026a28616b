//! A summarizer that never returns does not delay other operations.

use std::sync::Arc;
use std::time::Duration;

use agent_memory::CompactRequest;
use agent_memory::testing::{Scripted, memory};
use agent_memory::{
    Budget, Builder, Message, Mode, Session,
    compaction::{CancellationToken, StopReason},
    model::Timestamp,
};

use crate::support::{Place, both, dump};

const INGESTS: usize = 1_000;

fn hanging(summarizer: &Scripted) -> impl Fn() -> Builder {
    let summarizer = summarizer.clone();
    move || memory().summarizer(Arc::new(summarizer.clone()))
}

/// Appends messages while a compaction waits. The messages have fixed times, because the clock of the compacting memory
/// is read more often.
async fn go_on(session: &Session) {
    for n in 0..INGESTS {
        let message = Message::user(format!("Meanwhile {n}.")).with_created_at(Timestamp(1));
        session.ingest(message).await.unwrap();
    }
}

/// Returns the content of a memory in which no session was compacted.
async fn without_compaction() -> Vec<String> {
    let mut dumps = Vec::new();
    for place in both(memory).await {
        let session = place.talked(60).await;
        go_on(&session).await;
        dumps.push(dump(&place.memory).await);
    }
    dumps
}

/// Starts a compaction that never ends.
async fn begin(
    place: &Place,
    summarizer: &Scripted,
    cancel: &CancellationToken,
) -> (
    Session,
    tokio::task::JoinHandle<agent_memory::Result<agent_memory::compaction::Outcome>>,
) {
    let session = place.talked(60).await;
    let before = summarizer.calls();
    let (clone, cancel) = (session.clone(), cancel.clone());
    let task = tokio::spawn(async move {
        clone
            .compact(CompactRequest {
                mode: Mode::Full,
                cancel,
                ..CompactRequest::default()
            })
            .await
    });
    while summarizer.calls() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (session, task)
}

/// Runs all operations that must not wait for a compaction.
async fn work(session: &Session) {
    go_on(session).await;
    let context = session.assemble(Budget::tokens(2_000)).await.unwrap();
    assert!(context.tokens > 1_000 && context.tokens <= 2_000);
    let found = session.retrieval().grep("Meanwhile 999.").await.unwrap();
    assert_eq!(found.hits.len(), 1);
}

#[tokio::test]
async fn a_waiting_compaction_holds_nothing_up_and_can_be_cancelled() {
    let expected = without_compaction().await;
    let summarizer = Scripted::hangs();
    for (place, expected) in both(hanging(&summarizer)).await.into_iter().zip(expected) {
        let cancel = CancellationToken::new();
        let (session, task) = begin(&place, &summarizer, &cancel).await;
        work(&session).await;
        assert!(!task.is_finished());
        cancel.cancel();
        let outcome = task.await.unwrap().unwrap();
        assert_eq!(outcome.stop_reason, StopReason::Cancelled);
        assert_eq!(outcome.summaries, []);
        assert_eq!(dump(&place.memory).await, expected, "{}", place.name);

        // Its lease is given back: another process can begin at once.
        let place = place
            .reopen(memory().runner(agent_memory::compaction::RunnerPolicy {
                owner: Some("another".to_owned()),
                ..agent_memory::compaction::RunnerPolicy::default()
            }))
            .await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") > 0 && outcome.stop_reason == StopReason::NothingEligible
        );
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_waiting_compaction_can_be_dropped() {
    let expected = without_compaction().await;
    let summarizer = Scripted::hangs();
    for (place, expected) in both(hanging(&summarizer)).await.into_iter().zip(expected) {
        let (session, task) = begin(&place, &summarizer, &CancellationToken::new()).await;
        work(&session).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(dump(&place.memory).await, expected, "{}", place.name);

        // The same process may begin again; so may others once the lease is over.
        let head_cut = Arc::new(Scripted::head_cut());
        let place = place.reopen(memory().summarizer(head_cut)).await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert!(
            outcome.published.get("leaf") > 0,
            "{}: {outcome:?}",
            place.name
        );
        assert!(place.memory.verify().await.unwrap().is_ok());
    }
}
