//! Summaries that a model is to rewrite before anything is made from them: rejected ones, and extracts that stand for
//! calls of the model that failed in a way that may pass.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent_memory::testing::{Answer, Scripted, memory};
use agent_memory::{
    Builder, CompactRequest, DagPolicy, ErrorKind, Mode, Session, Summarizer,
    compaction::{FreshTail, RedoPolicy, RedoStop, StopReason},
    model::{Summary, SummaryId},
    summaries::{SummarizerResponse, SummaryRequest},
};
use summarize_escalation::{Error, FailureKind};

use crate::redo::reached;
use crate::support::Inspect as _;
use crate::support::{both, lenient, made, talk};

/// A model that writes another text each time, under one name.
#[derive(Debug, Clone, Default)]
struct Numbering(Arc<AtomicU32>);

impl Numbering {
    fn calls(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Summarizer for Numbering {
    fn id(&self) -> &str {
        "numbering@1"
    }

    fn model(&self) -> Option<&str> {
        Some("numbering")
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        let request = SummaryRequest {
            target_tokens: request.target_tokens.saturating_sub(6),
            ..*request
        };
        let written = Scripted::head_cut().summarize(&request).await?;
        Ok(SummarizerResponse::new(format!(
            "No. {number}. {}",
            written.text
        )))
    }
}

/// Returns a policy with small leaves, and pairs of summaries if `condenses`.
fn policy(condenses: bool) -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(4),
        leaf_min_messages: 4,
        max_source_tokens: Some(260),
        condensed_min: if condenses { 2 } else { 1_000 },
        condensed_max: condenses.then_some(2),
        ..DagPolicy::default()
    }
}

fn with(summarizer: impl Summarizer + 'static, condenses: bool) -> Builder {
    let builder = memory().dag(policy(condenses)).ladder(lenient());
    builder.summarizer(Arc::new(summarizer))
}

/// Returns the leaves of a session's view, in order.
async fn leaves(session: &Session) -> Vec<Summary> {
    let all = reached(session).await.into_values();
    let mut leaves: Vec<Summary> = all.filter(Summary::is_leaf).collect();
    leaves.sort_by_key(|leaf| leaf.range);
    leaves
}

fn again(summaries: &[&Summary]) -> RedoPolicy {
    RedoPolicy {
        again: summaries.iter().map(|summary| summary.id.clone()).collect(),
        ..RedoPolicy::default()
    }
}

/// Returns the sources of all summaries of summaries in the session's view.
async fn sources(session: &Session) -> BTreeSet<SummaryId> {
    let all = reached(session).await.into_values();
    all.flat_map(|summary| summary.source_summaries().cloned().collect::<Vec<_>>())
        .collect()
}

#[tokio::test]
async fn a_rejected_summary_is_made_anew_and_nothing_is_made_from_it_meanwhile() {
    let model = Numbering::default();
    for place in both(|| with(model.clone(), false)).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let olds = leaves(&session).await;
        assert!(olds.len() > 4 && olds.iter().all(|leaf| !leaf.provisional));
        let bad = &olds[1];
        let plan = session.plan_redo(&again(&[bad])).await.unwrap();
        assert_eq!((plan.nodes.len(), plan.provisional()), (1, 0));
        assert!(plan.nodes[0].rejected && plan.nodes[0].id == bad.id);
        // A plan rejects nothing.
        assert!(
            session
                .plan_redo(&RedoPolicy::default())
                .await
                .unwrap()
                .nodes
                .is_empty()
        );

        // The model is down: the summary stays, and stays rejected.
        let place = place.reopen(with(Scripted::fails(), true)).await;
        let session = place.memory.session("s").await.unwrap();
        let redone = session.redo(again(&[bad])).await.unwrap();
        assert_eq!(
            (redone.stop_reason, redone.left),
            (RedoStop::SummarizerFailed, 1)
        );
        let copy = session.copy_to_ram(with(Scripted::fails(), true)).await;
        let plan = copy
            .unwrap()
            .plan_redo(&RedoPolicy::default())
            .await
            .unwrap();
        assert!(plan.nodes.len() == 1 && plan.nodes[0].rejected);
        let place = place.reopen(with(model.clone(), true)).await;
        let session = place.memory.session("s").await.unwrap();
        session.compact(Mode::Full).await.unwrap();
        let made_from = sources(&session).await;
        assert!(
            !made_from.is_empty() && !made_from.contains(&bad.id),
            "{}",
            place.name
        );
        assert!(leaves(&session).await.contains(bad));

        // The next redo remembers it, and leaves the others alone.
        let before = model.calls();
        let redone = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!(
            (redone.stop_reason, redone.left),
            (RedoStop::Done, 0),
            "{redone:?}"
        );
        assert_eq!(model.calls() - before, 1);
        assert_eq!(
            (redone.replaced.len(), &redone.replaced[0].old),
            (1, &bad.id)
        );
        let new = &leaves(&session).await[1];
        assert_eq!((new.range, new.source_hash), (bad.range, bad.source_hash));
        assert_eq!(new.recipe, bad.recipe);
        assert_ne!(new.text(), bad.text());
        // The old one stays in the log, and the new one is condensed.
        assert!(
            session
                .summaries(std::slice::from_ref(&bad.id))
                .await
                .unwrap()[0]
                .is_some()
        );
        let again = session.redo(RedoPolicy::default()).await.unwrap();
        assert_eq!((again.stop_reason, again.calls), (RedoStop::Done, 0));
        session.compact(Mode::Full).await.unwrap();
        assert!(sources(&session).await.contains(&new.id), "{}", place.name);
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn what_is_made_from_a_rejected_summary_is_made_anew_and_no_provisional_one() {
    // The first leaf is an extract, and all others are written.
    let model = Numbering::default();
    for place in both(|| with(Scripted::fails(), false)).await {
        let session = place.talked(12).await;
        session.compact(Mode::Full).await.unwrap();
        assert!(leaves(&session).await[0].provisional);
        let place = place.reopen(with(model.clone(), true)).await;
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 40).await;
        session.compact(Mode::Full).await.unwrap();
        let olds = leaves(&session).await;
        let made_from = sources(&session).await;
        let bad = olds
            .iter()
            .find(|leaf| !leaf.provisional && made_from.contains(&leaf.id));
        let bad = bad.unwrap();
        let redone = session.redo(again(&[bad])).await.unwrap();
        assert_eq!(redone.stop_reason, RedoStop::Done, "{redone:?}");
        assert!(redone.replaced.len() > 1, "and those above it");
        let news = leaves(&session).await;
        let changed = olds.iter().zip(&news).filter(|(old, new)| old != new);
        let changed: Vec<_> = changed.map(|(old, _)| &old.id).collect();
        assert_eq!(changed, [&bad.id]);
        assert!(session.verify().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_summary_that_the_view_does_not_have_and_the_same_text_are_refused() {
    let memory = with(Scripted::head_cut(), false).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 20).await;
    session.compact(Mode::Full).await.unwrap();
    let unknown = RedoPolicy {
        again: vec![SummaryId::new("sum_0000000000000000")],
        ..RedoPolicy::default()
    };
    for error in [
        session.plan_redo(&unknown).await.unwrap_err(),
        session.redo(unknown).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(
            error.to_string().contains("sum_0000000000000000"),
            "{error}"
        );
    }
    // This model always writes the same.
    let olds = leaves(&session).await;
    let redone = session.redo(again(&[&olds[0]])).await.unwrap();
    assert_eq!(
        (redone.stop_reason, redone.left),
        (RedoStop::SummarizerFailed, 1)
    );
    assert!(redone.failures[0].error.contains("again"), "{redone:?}");
    assert_eq!(leaves(&session).await, olds);
}

/// Compacts, with a maximum cost of the view up to which summaries of summaries wait for the model.
fn within(fits: Option<u64>) -> CompactRequest {
    CompactRequest {
        fits,
        ..CompactRequest::from(Mode::Full)
    }
}

#[tokio::test]
async fn extracts_of_calls_that_timed_out_are_condensed_only_where_the_view_would_not_fit() {
    for kind in [
        FailureKind::TimedOut,
        FailureKind::Overloaded,
        FailureKind::BreakerOpen,
    ] {
        let failing = || Scripted::new([Answer::Failure(kind, None)]);
        for place in both(|| with(failing(), true)).await {
            let session = place.talked(60).await;
            let outcome = session.compact(Mode::Full).await.unwrap();
            let (leaf, condensed) = made(&outcome);
            assert!(leaf > 4 && condensed == 0, "{outcome:?}");
            assert_eq!(outcome.stop_reason, StopReason::WaitsForModel);
            assert_eq!(outcome.provisional, leaf);
            assert!(outcome.after.tokens < outcome.before.tokens);
            // Each of them says why.
            let plan = session.plan_redo(&RedoPolicy::default()).await.unwrap();
            assert!(
                plan.nodes.iter().all(|node| node.failure.is_some()),
                "{plan:?}"
            );
            // The view fits, and then it does not: only as many are condensed as it needs.
            let cost = outcome.after.tokens;
            let outcome = session.compact(within(Some(cost))).await.unwrap();
            assert_eq!(made(&outcome), (0, 0));
            let outcome = session.compact(within(Some(cost - 1))).await.unwrap();
            assert_eq!(made(&outcome), (0, 1), "{outcome:?}");
            assert!(outcome.after.tokens < cost);
            let outcome = session.compact(within(Some(1))).await.unwrap();
            assert!(made(&outcome).1 > 2, "{outcome:?}");
            assert!(session.verify().await.unwrap().is_ok());
        }
    }
}

#[tokio::test]
async fn a_refused_key_is_no_reason_to_wait() {
    let failing = Scripted::new([Answer::Failure(FailureKind::Auth, None)]);
    let memory = with(failing, true).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    talk(&session, 60).await;
    let outcome = session.compact(Mode::Full).await.unwrap();
    assert!(made(&outcome).1 > 2, "{outcome:?}");
}

#[tokio::test]
async fn written_leaves_are_not_replaced_by_an_extract_while_the_model_fails() {
    for place in both(|| with(Numbering::default(), false)).await {
        let session = place.talked(60).await;
        session.compact(Mode::Full).await.unwrap();
        let olds = leaves(&session).await;
        let failing = Scripted::new([Answer::Failure(FailureKind::TimedOut, None)]);
        let place = place.reopen(with(failing.clone(), true)).await;
        let session = place.memory.session("s").await.unwrap();
        let outcome = session.compact(Mode::Full).await.unwrap();
        assert_eq!(made(&outcome), (0, 0));
        assert_eq!(outcome.stop_reason, StopReason::WaitsForModel);
        assert_eq!((outcome.model.without_model, outcome.provisional), (0, 0));
        assert_eq!(outcome.model.not_made, u64::from(failing.calls()));
        assert_eq!(outcome.model.causes[0].cause.kind, "timed_out");
        assert_eq!(leaves(&session).await, olds);
        // Where the view would not fit, an extract is better than nothing.
        let outcome = session
            .compact(within(Some(outcome.after.tokens - 1)))
            .await
            .unwrap();
        assert_eq!((made(&outcome), outcome.provisional), ((0, 1), 1));
    }
}

#[tokio::test]
async fn redo_writes_first_what_waits_for_the_model() {
    // Without a model on purpose, and after it timed out.
    for place in both(|| with(Scripted::fails(), false)).await {
        let session = place.talked(20).await;
        session.compact(Mode::Full).await.unwrap();
        let extracts = leaves(&session).await.len();
        let failing = Scripted::new([Answer::Failure(FailureKind::TimedOut, None)]);
        let place = place.reopen(with(failing, false)).await;
        let session = place.memory.session("s").await.unwrap();
        talk(&session, 40).await;
        session.compact(Mode::Full).await.unwrap();
        let all = leaves(&session).await;
        assert!(all.len() > extracts + 1 && all.iter().all(|leaf| leaf.provisional));
        let place = place.reopen(with(Numbering::default(), false)).await;
        let session = place.memory.session("s").await.unwrap();
        let one = RedoPolicy {
            max_calls: Some(1),
            ..RedoPolicy::default()
        };
        for expected in all.iter().skip(extracts).chain(all.iter().take(extracts)) {
            let redone = session.redo(one.clone()).await.unwrap();
            assert_eq!(redone.replaced[0].old, expected.id, "{}", place.name);
        }
    }
}
