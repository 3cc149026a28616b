use memory_model::{LogEntry, Message};
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    Gate, GateFailure, Ladder, LadderOutcome, Reason, Share, Source, SummaryRequest, Term, Tier,
    escalate, measure,
};
use token_estimate::HeuristicEstimator;

use crate::fixtures;

use crate::request;

const GOOD: &str = "The user wants the lexer in src/lexer.rs fixed and the public API kept. Cause: \
                    next_token returned None at comments. Fixed in /code/crumb/src/lexer.rs and \
                    /code/crumb/src/cursor.rs (E0502 settled, 4f2a91c).";

fn gate(at_least: u32, min_retained: f64) -> Gate {
    Gate {
        at_least,
        min_retained: Share::new(min_retained),
        ..Gate::default()
    }
}

fn scores(text: &str) -> summarize_escalation::Scores {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    measure(text, &request(&source, 400))
}

async fn climb(log: &[LogEntry], ladder: &Ladder, answers: Vec<Answer>) -> LadderOutcome {
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = request(&source, 300);
    let scripted = Scripted::new(answers);
    escalate(&scripted, ladder, &request).await.unwrap()
}

#[test]
fn terms_that_the_summary_retains_are_counted() {
    let good = scores(GOOD);
    assert!(
        good.paths.found >= 2 && good.paths.found <= good.paths.total,
        "{good:?}"
    );
    assert!(good.codes.found >= 1, "{good:?}");
    assert!(good.identifiers.found >= 2, "{good:?}");
    assert_eq!((good.urls.found, good.urls.total), (0, 1));
    assert!(!good.refusal && !good.echo && !good.other_language);
    let strict = gate(1, 1.0);
    let lost: Vec<Term> = strict
        .failures(&good)
        .into_iter()
        .filter_map(|failure| match failure {
            GateFailure::Lost { term, .. } => Some(term),
            _ => None,
        })
        .collect();
    assert!(lost.contains(&Term::Urls), "{lost:?}");
    let text = serde_json::to_string(&good).unwrap();
    let again: summarize_escalation::Scores = serde_json::from_str(&text).unwrap();
    assert_eq!(again, good);
}

#[test]
fn no_more_terms_are_checked_than_the_target_could_hold() {
    let paths: Vec<String> = (0..500)
        .map(|n| format!("/src/module_{n}/file.rs"))
        .collect();
    let log = testing::log(
        vec![Message::assistant(paths.join(" "))],
        &HeuristicEstimator::Bytes4,
    );
    let source = [Source::from(&log[0])];
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    assert_eq!(
        measure(
            "x",
            &SummaryRequest {
                target_tokens: 160,
                ..request
            }
        )
        .paths
        .total,
        10
    );
    assert_eq!(
        measure(
            "x",
            &SummaryRequest {
                target_tokens: 100_000,
                ..request
            }
        )
        .paths
        .total,
        64
    );
}

#[test]
fn a_share_is_rounded_down_but_not_to_zero() {
    let default = Gate::default();
    let lost = |found: u32, total: u32, gate: &Gate| {
        let mut scores = summarize_escalation::Scores::default();
        scores.paths = summarize_escalation::TermCounts { found, total };
        !gate.failures(&scores).is_empty()
    };
    for (found, total, is_lost) in [
        (0, 7, false),
        (0, 8, true),
        (1, 8, false),
        (1, 19, false),
        (1, 20, true),
        (2, 20, false),
    ] {
        assert_eq!(lost(found, total, &default), is_lost, "{found} of {total}");
    }
    let all = gate(0, 1.0);
    assert!(lost(19, 20, &all) && !lost(20, 20, &all) && !lost(0, 0, &all));
    assert!(!lost(
        0,
        20,
        &Gate {
            min_retained: Share::new(0.0),
            ..Gate::default()
        }
    ));
}

#[tokio::test]
async fn a_summary_that_fails_the_gate_goes_to_the_next_tier() {
    let log = fixtures::coding();
    let vague = "Some work on a parser was done and it went well in the end, as one might expect.";
    let ladder = Ladder {
        gate: Some(gate(2, 0.3)),
        ..Ladder::default()
    };
    let answers = vec![Answer::text(vague), Answer::text(GOOD)];
    let outcome = climb(&log, &ladder, answers).await;
    assert_eq!(outcome.tier, Tier::Aggressive);
    assert!(!outcome.provisional);
    assert!(
        outcome
            .scores
            .as_ref()
            .is_some_and(|scores| scores.paths.found >= 2)
    );
    let Reason::Gate {
        failures, scores, ..
    } = &outcome.refused[0].reason
    else {
        panic!("{:?}", outcome.refused);
    };
    assert!(!failures.is_empty() && scores.paths.found == 0);
    insta::assert_snapshot!(outcome.refused[0].to_string());
    insta::assert_snapshot!("meta", outcome.meta().unwrap().as_str());
}
