//! Summarizers that fail their users in ten ways: every climb ends, and nothing that they write
//! passes for a summary. Invented wishes are refused only by a gate that asks for it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use memory_model::Message;
use proptest::prelude::*;
use summarize_escalation::testing::{self, Answer, Scripted, misbehaviours};
use summarize_escalation::{
    Error, ErrorKind, Gate, Ladder, OnEmpty, OnError, Share, Source, Summarizer,
    SummarizerResponse, SummaryRequest, Tier, escalate,
};
use token_estimate::HeuristicEstimator;

use crate::fixtures;

use crate::request;

/// What a time-out around a summarizer does, without a clock: a call that is not ready when it is
/// polled never will be.
#[derive(Debug)]
struct Impatient<'a>(&'a Scripted);

#[async_trait]
impl Summarizer for Impatient<'_> {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn model(&self) -> Option<&str> {
        self.0.model()
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let mut call = self.0.summarize(request);
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(Error::provider(self.id(), "timed out")),
        }
    }
}

/// Nothing here waits: the first poll ends.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn no_misbehaviour_passes_for_a_summary() {
    for (name, log) in [
        ("coding", fixtures::coding()),
        ("planning", fixtures::planning()),
    ] {
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        for target in [40, 120, 300] {
            let request = request(&source, target);
            for answer in misbehaviours() {
                let ladder = Ladder::default();
                let scripted = Scripted::new([answer.clone()]);
                let outcome = now(escalate(&Impatient(&scripted), &ladder, &request));
                let outcome = outcome.unwrap();
                assert!(
                    outcome.provisional,
                    "{name} {target} {answer:?}: {}",
                    outcome.text
                );
                assert_eq!(outcome.tier, Tier::Extractive, "{name} {target} {answer:?}");
                assert!(!outcome.refused.is_empty());
                // A model that failed is not asked again; one whose text was refused is, once.
                let failed = matches!(answer, Answer::Fail(_) | Answer::Hang);
                assert_eq!(scripted.calls(), if failed { 1 } else { 2 }, "{answer:?}");
            }
        }
    }
}

#[test]
fn a_summarizer_that_hangs_is_left_by_dropping_the_climb() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    let scripted = Scripted::hangs();
    let ladder = Ladder::default();
    let mut climb = Box::pin(escalate(&scripted, &ladder, &request));
    let polled = climb.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    drop(climb);
    assert_eq!(scripted.calls(), 1);
}

fn ladder() -> impl Strategy<Value = Ladder> {
    let tiers = vec![Tier::Normal, Tier::Aggressive, Tier::Extractive, Tier::Cut];
    (
        prop::sample::subsequence(tiers, 1..=4).prop_shuffle(),
        prop::sample::select(vec![OnError::Fail, OnError::NextTier, OnError::Offline]),
        prop::sample::select(vec![OnEmpty::Fail, OnEmpty::NextTier]),
        prop::option::of((0.0..1.0, 0_u32..4)),
    )
        .prop_map(|(tiers, on_error, on_empty, gate)| Ladder {
            tiers,
            on_error,
            on_empty,
            gate: gate.map(|(share, at_least)| Gate {
                min_retained: Share::new(share),
                at_least,
                ..Gate::default()
            }),
            ..Ladder::default()
        })
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    let all = misbehaviours().to_vec();
    prop::collection::vec(prop::sample::select(all), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_climb_ends(
        texts in prop::collection::vec(".{0,120}", 1..8), answers in answers(), ladder in ladder(),
        target in 0_u64..120, overhead in 0_u64..12,
    ) {
        let messages = texts.into_iter().enumerate().map(|(n, text)| match n % 2 {
            0 => Message::user(text),
            _ => Message::assistant(text),
        });
        let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
        let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
        let request = SummaryRequest { target_tokens: target, overhead_tokens: overhead, ..SummaryRequest::new(&source, &HeuristicEstimator::Bytes4) };
        let scripted = Scripted::new(answers);
        let tiers = ladder.tiers.len() as u32;
        match now(escalate(&Impatient(&scripted), &ladder, &request)) {
            Ok(outcome) => {
                prop_assert!(ladder.tiers.contains(&outcome.tier));
                prop_assert!(outcome.calls <= tiers);
                let grown = outcome.tokens_out + overhead >= request.source_tokens();
                prop_assert!(!grown, "{outcome:?}");
                prop_assert_eq!(outcome.tokens_in, request.source_tokens());
                if ladder.gate.is_some() {
                    prop_assert!(outcome.scores.is_some());
                }
            }
            Err(error) => prop_assert!(matches!(
                error.kind(),
                ErrorKind::Provider
                    | ErrorKind::Empty
                    | ErrorKind::CannotShrink
                    | ErrorKind::Exhausted
            )),
        }
        prop_assert!(scripted.calls() <= tiers);
    }
}
