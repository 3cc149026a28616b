use memory_model::{Message, RawJson, Seq, SeqRange};
use summarize_escalation::{Extractive, Source, SummaryRequest, SummarySource, testing};
use token_estimate::{CountedMessage, EstimatorId, Preset, TokenEstimator};

use crate::fixtures;

fn extract(log: &[memory_model::LogEntry], target: u64) -> String {
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    Extractive.extract(&SummaryRequest::new(&source, &Preset::Anna).with_target_tokens(target))
}

#[test]
fn a_coding_session() {
    let log = fixtures::coding();
    insta::assert_snapshot!("coding_400", extract(&log, 400));
    insta::assert_snapshot!("coding_150", extract(&log, 150));
    insta::assert_snapshot!("coding_12", extract(&log, 12));
}

#[test]
fn a_conversation_in_japanese_and_korean() {
    let text = extract(&fixtures::planning(), 300);
    assert!(!text.contains("QUJD"));
    insta::assert_snapshot!("planning_300", text);
}

#[test]
fn extracts_of_extracts() {
    let log = fixtures::coding();
    let (first, second) = log.split_at(11);
    let texts = [extract(first, 260), extract(second, 260)];
    let ranges = [(1, 11), (12, 22)].map(|(a, b)| SeqRange::new(Seq(a), Seq(b)).unwrap());
    let mut summaries: Vec<_> = texts
        .iter()
        .zip(ranges)
        .map(|(text, range)| testing::summary(range, 0, text, &Preset::Anna))
        .collect();
    summaries.push(testing::summary(
        SeqRange::new(Seq(23), Seq(30)).unwrap(),
        0,
        "The issue was filed as #42. The user decided that parse_block must wait.\n\
         Files: none\n\
         Expand for details about: the issue's text, the label question.",
        &Preset::Anna,
    ));
    let source: Vec<Source<'_>> = summaries.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &Preset::Anna).with_target_tokens(320);
    let text = Extractive.extract(&request);
    assert!(text.contains("[1] User: The parser drops"));
    assert!(text.contains("[23..30] The issue was filed as #42."));
    assert!(text.contains("the label question"));
    insta::assert_snapshot!("condensed_320", text);
}

#[test]
fn a_huge_result_takes_milliseconds_and_shows_its_ends() {
    let noise = "some line of output that says nothing in particular\n".repeat(9_600);
    let big = format!("fatal: the disk is full\n{noise}Error: gave up after 3 tries\n");
    assert!(big.len() > 480_000);
    let log = fixtures::entries(vec![
        Message::user("Run the migration."),
        Message::tool_call(
            "1",
            "bash",
            RawJson::parse(r#"{"command":"make migrate"}"#).unwrap(),
        ),
        Message::tool_result("1", big),
    ]);
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let request = SummaryRequest::new(&source, &Preset::Anna).with_target_tokens(2_000);
    let text = Extractive.extract(&request);
    assert!(text.contains("fatal: the disk is full"), "{text}");
    assert!(text.contains("gave up after 3 tries"), "{text}");
}

#[test]
fn nothing_said_is_said() {
    let log = fixtures::entries(vec![Message::user(""), Message::assistant("  ")]);
    let text = extract(&log, 200);
    assert!(text.starts_with("Extract of messages 1..2"), "{text}");
    assert_eq!(extract(&log, 3), "No text.");
    assert_eq!(extract(&[], 100), extract(&[], 100));
}

#[test]
fn every_request_of_the_user_is_kept_where_half_the_budget_holds_it() {
    let mut messages = Vec::new();
    for n in 0..40 {
        messages.push(Message::user(format!(
            "Rule {n}: keep item {} as it is.",
            n * 7
        )));
        messages.push(Message::assistant("Understood. ".repeat(40)));
    }
    let log = fixtures::entries(messages);
    let text = extract(&log, 1_100);
    for n in 0..40 {
        assert!(
            text.contains(&format!("Rule {n}: keep item {} as it is.", n * 7)),
            "{n}\n{text}"
        );
    }
    assert!(Preset::Anna.text(&text) <= 1_100);
    // With less room: the first and the newest.
    let text = extract(&log, 300);
    assert!(text.contains("Rule 0:") && text.contains("Rule 39:") && text.contains("Rule 30:"));
}

#[test]
fn a_summary_of_prose_is_quoted_by_its_range() {
    let summary = SummarySource {
        id: "sum_1",
        range: SeqRange::new(Seq(5), Seq(9)).unwrap(),
        depth: 0,
        text: "We decided to use tea.\n\n- It is cheaper.",
        tokens: 100,
        earliest_at: Default::default(),
        latest_at: Default::default(),
    };
    let source = [Source::Summary(summary)];
    let text =
        Extractive.extract(&SummaryRequest::new(&source, &Preset::Anna).with_target_tokens(90));
    assert!(
        text.contains("- [5..9] We decided to use tea.\n- [5..9] It is cheaper."),
        "{text}"
    );
}

/// Text costs more together than in pieces: no line's cost says what the whole will cost.
#[derive(Debug)]
struct Together;

impl TokenEstimator for Together {
    fn id(&self) -> EstimatorId {
        EstimatorId::new("together", 1).unwrap()
    }

    fn text(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        bytes * bytes / 2_000
    }

    fn message(&self, _: &dyn CountedMessage) -> u64 {
        0
    }
}

#[test]
fn an_estimator_need_not_be_additive() {
    let log = fixtures::coding();
    let source: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    for target in [3, 40, 200, 700] {
        let request = SummaryRequest::new(&source, &Together).with_target_tokens(target);
        let text = Extractive.extract(&request);
        assert!(Together.text(&text) <= target, "{target}: {text}");
        let told = ["User: ", "Assistant: "];
        let told = &told[..if target < 40 { 2 } else { 1 }];
        assert!(
            told.iter().any(|who| text.contains(who)),
            "{target}: {text}"
        );
    }
}
