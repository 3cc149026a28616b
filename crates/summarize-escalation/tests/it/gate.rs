use memory_model::{LogEntry, Message};
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    Gate, GateFailure, Ladder, LadderOutcome, OnGate, Reason, Rules, Source, SummaryRequest, Term,
    Tier, escalate, measure,
};
use token_estimate::HeuristicEstimator;

use crate::fixtures;

const GOOD: &str = "The user wants the lexer in src/lexer.rs fixed and the public API kept. Cause: \
                    next_token returned None at comments. Fixed in /code/crumb/src/lexer.rs and \
                    /code/crumb/src/cursor.rs (E0502 settled, 4f2a91c).";

fn scores(text: &str) -> summarize_escalation::Scores {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    measure(
        text,
        &SummaryRequest::new(&source, &HeuristicEstimator::Bytes4).with_target_tokens(400),
    )
}

async fn climb(log: &[LogEntry], ladder: &Ladder, answers: Vec<Answer>) -> LadderOutcome {
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4).with_target_tokens(300);
    let scripted = Scripted::new(answers);
    escalate(&scripted, ladder, &request).await.unwrap()
}

#[test]
fn terms_that_the_summary_retains_are_counted() {
    let good = scores(GOOD);
    assert!(
        good.paths.found >= 3 && good.paths.found <= good.paths.total,
        "{good:?}"
    );
    assert!(good.codes.found >= 1, "{good:?}");
    assert!(good.identifiers.found >= 2, "{good:?}");
    assert_eq!((good.urls.found, good.urls.total), (0, 1));
    assert!(!good.refusal && !good.echo && !good.other_language);
    assert!(good.unsupported.is_empty());
    let strict = Gate::default().with_at_least(1).with_min_retained(1.0);
    let lost: Vec<Term> = strict
        .failures(&good)
        .into_iter()
        .filter_map(|failure| match failure {
            GateFailure::Lost { term, .. } => Some(term),
            _ => None,
        })
        .collect();
    assert!(lost.contains(&Term::Urls), "{lost:?}");
    assert!(Gate::accept_all().failures(&scores("Nothing.")).is_empty());
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
        vec![Message::user(paths.join(" "))],
        &HeuristicEstimator::Bytes4,
    );
    let source = [Source::from(&log[0])];
    let request = SummaryRequest::new(&source, &HeuristicEstimator::Bytes4);
    assert_eq!(
        measure("x", &request.with_target_tokens(160)).paths.total,
        10
    );
    assert_eq!(
        measure("x", &request.with_target_tokens(100_000))
            .paths
            .total,
        64
    );
}

#[test]
fn a_share_is_rounded_down_but_not_to_nothing() {
    let gate = Gate::default();
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
        assert_eq!(lost(found, total, &gate), is_lost, "{found} of {total}");
    }
    let all = Gate::default().with_at_least(0).with_min_retained(1.0);
    assert!(lost(19, 20, &all) && !lost(20, 20, &all) && !lost(0, 0, &all));
    assert!(!lost(0, 20, &Gate::default().with_min_retained(0.0)));
}

#[tokio::test]
async fn a_summary_that_fails_the_gate_goes_to_the_next_tier() {
    let log = fixtures::coding();
    let vague = "Some work on a parser was done and it went well in the end, as one might expect.";
    let ladder = Ladder::default().with_gate(Some(
        Gate::default().with_at_least(2).with_min_retained(0.3),
    ));
    let answers = vec![Answer::text(vague), Answer::text(GOOD)];
    let outcome = climb(&log, &ladder, answers.clone()).await;
    assert_eq!(outcome.tier, Tier::Aggressive);
    assert!(!outcome.provisional);
    assert!(
        outcome
            .scores
            .as_ref()
            .is_some_and(|scores| scores.paths.found >= 3)
    );
    let Reason::Gate { failures, scores } = &outcome.refused[0].reason else {
        panic!("{:?}", outcome.refused);
    };
    assert!(!failures.is_empty() && scores.paths.found == 0);
    insta::assert_snapshot!(outcome.refused[0].to_string());
    insta::assert_snapshot!("meta", outcome.meta().unwrap().as_str());

    // The same, recorded only.
    let mut lenient = ladder.clone();
    lenient.on_gate = OnGate::Accept;
    let outcome = climb(&log, &lenient, answers.clone()).await;
    assert_eq!((outcome.tier, &*outcome.text), (Tier::Normal, vague));

    // Lenient in the aggressive style alone.
    let mut rules = Rules::default();
    rules.on_gate = OnGate::Accept;
    let mixed = ladder.with_rules(Tier::Aggressive, rules);
    let outcome = climb(&log, &mixed, vec![Answer::text(vague)]).await;
    assert_eq!(outcome.tier, Tier::Aggressive);
    let text = serde_json::to_string(&mixed).unwrap();
    assert_eq!(serde_json::from_str::<Ladder>(&text).unwrap(), mixed);
}

#[tokio::test]
async fn annas_ladder_looks_at_nothing_but_the_length() {
    let log = fixtures::coding();
    let ladder = Ladder::anna();
    let outcome = climb(&log, &ladder, vec![Answer::Refuse]).await;
    assert_eq!((outcome.tier, outcome.scores), (Tier::Normal, None));
    assert!(!outcome.provisional);
}

/// What users asked for, and how an honest summary tells it in other words.
const PARAPHRASES: [(&str, &str); 5] = [
    (
        "Keep it short please, I read this on my phone.",
        "The user prefers concise replies.",
    ),
    (
        "Don't push anything before I have had a look.",
        "The user wants to review changes prior to publication.",
    ),
    (
        "We only ever ship on Fridays.",
        "The user requires that releases happen at the end of the week.",
    ),
    (
        "No new crates, it takes ages to build as it is.",
        "The user insists on avoiding additional dependencies because of compile times.",
    ),
    (
        "短くまとめてください。",
        "The user asked for brevity in all answers.",
    ),
];

#[tokio::test]
async fn a_wish_in_other_words_is_recorded_and_refused_only_where_the_policy_says_so() {
    for (said, told) in PARAPHRASES {
        let mut messages = vec![Message::user(said)];
        let work = "I went through the parser once more and found where the comment is lost. ";
        messages.extend((0..6).map(|_| Message::assistant(work.repeat(3))));
        let log = testing::log(messages, &HeuristicEstimator::Bytes4);
        let told = format!("{told} The place where the parser loses the comment was found.");
        let answers = vec![Answer::text(told.as_str())];
        let outcome = climb(&log, &Ladder::default(), answers.clone()).await;
        assert_eq!((outcome.tier, &outcome.text), (Tier::Normal, &told));
        assert!(!outcome.provisional && outcome.refused.is_empty());
        let recorded = outcome.scores.as_ref().unwrap().unsupported.clone();
        assert_eq!(recorded.len(), 1, "{told}");
        assert!(told.starts_with(&recorded[0]), "{recorded:?}");
        assert!(
            outcome
                .meta()
                .unwrap()
                .as_str()
                .contains("\"unsupported\":[\"The user")
        );

        let strict = Gate::default().with_directives(true);
        let ladder = Ladder::default().with_gate(Some(strict));
        let outcome = climb(&log, &ladder, answers).await;
        assert_eq!(outcome.tier, Tier::Extractive, "{told}");
        assert!(matches!(&outcome.refused[0].reason,
            Reason::Gate { failures, .. } if failures == &[GateFailure::Unsupported]));
    }
}
