//! The floor of the gate: texts that are no summary of their source, whoever wrote them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memory_model::{LogEntry, Message};
use model_client::{ChatModel, ChatPrompt, Completion, Failure};
use summarize_escalation::prompt::PromptSet;
use summarize_escalation::testing::{self, Answer, Scripted};
use summarize_escalation::{
    Error, FallbackSummarizer, Gate, Ladder, LlmSummarizer, ModelWindow, Reason, Source,
    Summarizer, SummarizerResponse, SummaryRequest, Tier, escalate, is_cut, measure,
};
use token_estimate::HeuristicEstimator;

use crate::{fixtures, request};

const GOOD: &str = "The user wants the lexer in src/lexer.rs fixed; the public API and the snapshots stay. \
                    Cause: next_token returned None at comments. It now skips them with the new Cursor, which \
                    settled E0502; all 4 tests pass. Open: parse_block has the same pattern and no test.\n\
                    Files: src/lexer.rs, src/cursor.rs (changed)\n\
                    Expand for details about: the output of the tests";

fn rules(text: &str) -> Vec<&'static str> {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let scores = measure(text, &request(&source, 300));
    scores.faults.iter().map(|fault| fault.rule()).collect()
}

#[test]
fn a_good_summary_has_no_fault() {
    assert!(rules(GOOD).is_empty(), "{:?}", rules(GOOD));
    let body = GOOD.split("\nFiles").next().unwrap();
    assert!(rules(body).is_empty(), "{:?}", rules(body));
}

#[test]
fn each_rule_finds_its_fault() {
    let again = format!("{}\n", "The user wants the lexer to be fixed. ".repeat(3));
    for (text, rule) in [
        ("Files: none", "no_sentence"),
        ("It is all done now.", "short"),
        (again.as_str(), "repetition"),
        (
            "<think>\nThe user wants the lexer in src/lexer.rs fixed.",
            "reasoning",
        ),
        (
            "The user wants the lexer in src/lexer.rs fixed, and the public",
            "unfinished",
        ),
        (
            "The user wants TideTable fixed in src/tide_table.rs and src/gauge_port.rs, see TIDE-88.",
            "invented",
        ),
        (
            "The courier client tracks parcels with blockchain records, and customers receive messages about \
             delivery windows, vouchers, refunds, addresses and depots whenever drivers arrive.",
            "unrelated",
        ),
        (
            "The root cause is in next_token: on # it returns None instead of skipping to the end of the line, so \
             the loop in parse stops early. Fixed. next_token now skips comments with the new Cursor, which also \
             settles the borrow error E0502.",
            "copied",
        ),
        (
            "The lexer in src/lexer.rs was fixed.\nFiles: none",
            "no_files",
        ),
        (
            "I like the parser that you wrote! Shall we go on with tests?",
            "remark",
        ),
        (
            "The parser was fixed: the last token of a line with a comment is kept. All tests pass, and neither the public \
             interface nor the snapshots were touched.",
            "few_names",
        ),
        (
            "Files: src/lexer.rs (changed)\nConstraints: the public API and the snapshots stay as they are\n\
             Next: open an issue for parse_block instead of fixing it",
            "no_sentence",
        ),
        (
            "Commit that, and open an issue for parse_block instead of fixing it.",
            "copied",
        ),
    ] {
        assert!(
            rules(text).contains(&rule),
            "{rule}: {:?} {text}",
            rules(text)
        );
    }
}

#[test]
fn a_short_source_is_told_in_a_few_words_and_not_in_none() {
    let messages = vec![
        Message::user("Which port does the gauge of Ostermoor have?"),
        Message::assistant("It has port 4471."),
    ];
    let log = testing::log(messages, &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let rules = |text: &str| -> Vec<&str> {
        let scores = measure(text, &request(&source, 20));
        scores.faults.iter().map(|fault| fault.rule()).collect()
    };
    assert_eq!(rules("Ostermoor: 4471"), [""; 0]);
    assert_eq!(rules("The gauge of Ostermoor has port 4471."), [""; 0]);
    assert_eq!(rules("Files: none"), ["no_sentence"]);
    assert_eq!(rules("The user asked for the gauge of"), ["unfinished"]);
    assert_eq!(rules("<think>Ostermoor: 4471"), ["reasoning"]);
}

#[test]
fn a_text_in_another_script_has_names_or_numbers_of_its_source() {
    let said = [
        "荷物4711は営業所にありますか。明日の午前中に再配達してください。",
        "はい、荷物4711は西営業所に届いています。受付番号は88213です。",
        "반품 9120번은 언제 수거하나요? 아파트 110동이에요.",
        "반품 9120번은 내일 10시에서 12시 사이에 수거합니다. 운임 2500원은 저희가 부담합니다.",
        "पार्सल 6650 टूटा हुआ मिला। 1450 रुपये लौटाएँ।",
    ];
    let messages = said
        .iter()
        .cycle()
        .take(20)
        .map(|text| Message::user(*text));
    let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let rules = |text: &str| -> Vec<&str> {
        let scores = measure(text, &request(&source, 100));
        scores.faults.iter().map(|fault| fault.rule()).collect()
    };
    let about = "Several customers ask about parcels: 4711 is delivered again tomorrow, return 9120 is collected, and broken \
                 parcel 6650 is refunded with 1450 rupees.";
    assert_eq!(rules(about), [""; 0]);
    let nothing = "Several engineers discuss automated flying machines that transport heavy goods across mountains, and \
                   compare their speed, their range and their price with those of ordinary lorries.";
    assert_eq!(rules(nothing), ["unrelated"]);
}

#[test]
fn names_within_longer_names_are_known() {
    let messages = vec![Message::assistant(
        "handleBeforeToolCall, handleAfterToolCall and handleSessionStart are renamed in hooks.rs. ".repeat(12),
    )];
    let log = testing::log(messages, &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let scores = measure(
        "The hooks for BeforeTool, AfterTool and SessionStart get other names in hooks.rs.",
        &request(&source, 60),
    );
    assert_eq!(scores.faults, []);
    let scores = measure(
        "The hooks for BeforeTide, AfterTide and SessionHalt get other names in hooks.rs.",
        &request(&source, 60),
    );
    assert!(scores.faults.iter().any(|fault| fault.rule() == "invented"));
}

#[test]
fn a_source_whose_words_are_gone_may_be_told_in_other_words() {
    let hidden = |n: usize| Message::user(format!("[HIDDEN len={n} sum=9f3a{n}c07e]"));
    let log = testing::log((0..60).map(hidden).collect(), &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let summary = "All messages were replaced by placeholders that give their length and a checksum, so the \
                   conversation's subject, decisions and constraints cannot be known from this segment.";
    let scores = measure(summary, &request(&source, 60));
    let faults: Vec<&str> = scores.faults.iter().map(|fault| fault.rule()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    // The messages themselves are no summary, although none of them is long.
    let copy: String = (5..30)
        .map(|n| format!("[HIDDEN len={n} sum=9f3a{n}c07e]\n"))
        .collect();
    let scores = measure(&copy, &request(&source, 200));
    assert!(
        scores.faults.iter().any(|fault| fault.rule() == "copied"),
        "{:?}",
        scores.faults
    );
}

#[test]
fn a_long_answer_without_the_lines_at_its_end_was_cut() {
    let items: String = (0..12)
        .map(|n| {
            format!("- The ferry {n} to the northern islands now leaves at {n} in the morning\n")
        })
        .collect();
    let standard = PromptSet::standard();
    assert!(is_cut(&standard.leaf, &items));
    assert!(!is_cut(&standard.leaf, &format!("{items}Files: none")));
    assert!(!is_cut(&standard.leaf, &format!("{items}That is all.")));
    assert!(!is_cut(&standard.leaf, "- The ferry now leaves at noon"));
    // These prompts do not ask for them.
    let own = PromptSet::single("own@1", "List the facts. {data_rule}", "{source}").unwrap();
    assert!(!is_cut(&own.leaf, &items));
}

#[test]
fn a_gate_without_a_floor_knows_no_faults() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let scores = measure("Files: none", &request(&source, 40));
    let lax = Gate {
        floor: false,
        ..Gate::default()
    };
    assert!(lax.failures(&scores).is_empty());
    assert!(!Gate::default().failures(&scores).is_empty());
}

/// Keeps the reasons that each request names.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<Option<Reason>>>);

#[async_trait]
impl Summarizer for Told {
    fn id(&self) -> &str {
        "told@1"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        let mut told = self.0.lock().unwrap();
        told.push(request.refused.cloned());
        let text = if told.len() == 1 {
            "It went well in the end, as all had hoped it would."
        } else {
            GOOD
        };
        Ok(SummarizerResponse::new(text))
    }
}

#[tokio::test]
async fn the_second_answer_is_told_what_the_first_one_lacks() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let ladder = Ladder {
        gate: Some(Gate {
            at_least: 2,
            ..Gate::default()
        }),
        ..Ladder::default()
    };
    let told = Told::default();
    let outcome = escalate(&told, &ladder, &request(&source, 300))
        .await
        .unwrap();
    assert_eq!(
        (outcome.tier, outcome.text.as_str()),
        (Tier::Aggressive, GOOD)
    );
    let told = told.0.into_inner().unwrap();
    let [None, Some(Reason::Gate { missing, .. })] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(
        missing.iter().any(|term| term == "next_token"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_fallback_goes_on_after_an_answer_that_is_no_summary() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let small = Scripted::new([Answer::text("Files: none")]);
    let large = Scripted::new([Answer::text(GOOD)]);
    let both = FallbackSummarizer::new(small.clone()).or(large.clone());
    let outcome = escalate(&both, &Ladder::default(), &request(&source, 300))
        .await
        .unwrap();
    assert_eq!((outcome.tier, outcome.text.as_str()), (Tier::Normal, GOOD));
    assert_eq!((small.calls(), large.calls()), (1, 1));
    let outcome = escalate(&small, &Ladder::default(), &request(&source, 300))
        .await
        .unwrap();
    assert_eq!(outcome.tier, Tier::Extractive);
}

/// Refuses the first `refusals` parts, and keeps the prompts of merges.
#[derive(Debug, Clone)]
struct Parts {
    refusals: Arc<Mutex<u32>>,
    merges: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ChatModel for Parts {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        if prompt.user.contains("<summaries") {
            self.merges.lock().unwrap().push(prompt.user.clone());
            return Ok(Completion::new(GOOD));
        }
        let mut left = self.refusals.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            return Ok(Completion::new(
                "I'm sorry, but I can't assist with that request.",
            ));
        }
        Ok(Completion::new(
            "The parser in src/lexer.rs was fixed with the new Cursor: next_token skips comments, and all tests of crumb pass.",
        ))
    }
}

async fn in_parts(refusals: u32) -> (summarize_escalation::LadderOutcome, Vec<String>) {
    let messages = (0..4).flat_map(|_| fixtures::coding());
    let messages = messages.map(|entry: LogEntry| entry.message);
    let log = testing::log(messages.collect(), &HeuristicEstimator::Bytes4);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let model = Parts {
        refusals: Arc::new(Mutex::new(refusals)),
        merges: Arc::default(),
    };
    let summarizer = LlmSummarizer::new("m", model.clone()).with_window(ModelWindow::tokens(2_400));
    let outcome = escalate(&summarizer, &Ladder::default(), &request(&source, 300))
        .await
        .unwrap();
    let merges = model.merges.lock().unwrap().clone();
    (outcome, merges)
}

#[tokio::test]
async fn a_part_that_is_no_summary_is_asked_for_again_and_never_merged() {
    let (outcome, merges) = in_parts(1).await;
    assert_eq!((outcome.tier, outcome.text.as_str()), (Tier::Normal, GOOD));
    assert!(!merges.is_empty() && merges.iter().all(|prompt| !prompt.contains("assist")));
    let (outcome, merges) = in_parts(100).await;
    assert_eq!(outcome.tier, Tier::Extractive);
    assert!(merges.is_empty(), "{merges:?}");
    assert!(
        outcome
            .refused
            .iter()
            .all(|refused| refused.reason == Reason::Refused)
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_held_against_the_floor(text in "\\PC{0,300}", cut in 0..GOOD.len()) {
        rules(&text);
        rules(GOOD.get(..cut).unwrap_or_default());
    }
}
