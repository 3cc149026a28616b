use memory_model::LogEntry;
use proptest::prelude::*;
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    ErrorKind, Ladder, LadderOutcome, OnEmpty, OnError, Source, SummaryRequest, Tier, escalate,
};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::strategies::{conversation, estimator, text};

use crate::request;

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        text().prop_map(Answer::text),
        Just(Answer::fail("500")),
        Just(Answer::Empty),
        Just(Answer::Blank),
        Just(Answer::Longer),
        Just(Answer::Echo),
        Just(Answer::HeadCut),
    ]
}

fn sources(log: &[LogEntry]) -> Vec<Source<'_>> {
    log.iter().map(Source::from).collect()
}

fn run(
    scripted: &Scripted,
    ladder: &Ladder,
    request: &SummaryRequest<'_>,
) -> Result<LadderOutcome, ErrorKind> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(escalate(scripted, ladder, request))
        .map_err(|error| error.kind())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_default_ladder_shrinks_or_says_that_it_cannot(
        messages in conversation(), answers in prop::collection::vec(answer(), 0..4),
        target in 0_u64..200, overhead in 0_u64..20, estimator in estimator(),
    ) {
        let log = testing::log(messages, &estimator);
        let source = sources(&log);
        let request = SummaryRequest { target_tokens: target, overhead_tokens: overhead, ..SummaryRequest::new(&source, &estimator) };
        let scripted = Scripted::new(answers);
        match run(&scripted, &Ladder::default(), &request) {
            Ok(outcome) => {
                prop_assert_eq!(outcome.tokens_out, estimator.text(&outcome.text));
                prop_assert!(outcome.tokens_out + overhead < request.source_tokens());
                prop_assert!(outcome.tokens_out <= outcome.target_tokens * 3 / 2);
                prop_assert!(!outcome.text.trim().is_empty());
                let offline = matches!(outcome.tier, Tier::Extractive | Tier::Cut);
                prop_assert_eq!(outcome.provisional, offline);
                prop_assert!(outcome.scores.is_some());
                if outcome.tier == Tier::Cut {
                    prop_assert!(outcome.tokens_out <= outcome.target_tokens);
                }
            }
            Err(kind) => {
                prop_assert_eq!(kind, ErrorKind::CannotShrink);
                prop_assert!(request.source_tokens() <= overhead + 2);
            }
        }
        prop_assert!(scripted.calls() <= 2);
    }

    #[test]
    fn any_ladder_ends_within_a_call_a_tier(
        messages in conversation(), answers in prop::collection::vec(answer(), 0..6),
        tiers in prop::sample::subsequence(
            vec![Tier::Normal, Tier::Aggressive, Tier::Extractive, Tier::Cut], 1..=4,
        ).prop_shuffle(),
        on_error in prop::sample::select(vec![OnError::Fail, OnError::NextTier, OnError::Offline]),
        on_empty in prop::sample::select(vec![OnEmpty::Fail, OnEmpty::NextTier]),
        target in 0_u64..100,
    ) {
        let log = testing::log(messages, &HeuristicEstimator::Bytes4);
        let source = sources(&log);
        let request = request(&source, target);
        let count = u32::try_from(tiers.len()).unwrap();
        let ladder = Ladder { tiers: tiers.into_iter().collect(), on_error, on_empty, ..Ladder::default() };
        let scripted = Scripted::new(answers);
        if let Ok(outcome) = run(&scripted, &ladder, &request) {
            prop_assert!(outcome.calls <= count);
            prop_assert!(ladder.tiers.contains(&outcome.tier));
        }
        prop_assert!(scripted.calls() <= count);
    }
}
