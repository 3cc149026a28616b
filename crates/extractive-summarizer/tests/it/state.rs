//! The state of a conversation from its summaries and messages.

use extractive_summarizer::{ConversationState, ExtractiveSummarizer, Source};
use memory_model::{LogEntry, Message, Part, RawJson, Seq, SeqRange, SummaryBody};
use message_formats::KnownAgents;
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::extract::summary;
use crate::log;

const BYTES4: HeuristicEstimator = HeuristicEstimator::Bytes4;

fn ran(id: &str, command: &str, result: &str, failed: bool) -> [Message; 2] {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let mut answer = Message::tool_result(id, result);
    if let Part::ToolResult { is_error, .. } = &mut answer.parts[0] {
        *is_error = Some(failed);
    }
    let arguments = RawJson::parse(arguments).unwrap();
    [Message::tool_call(id, "Bash", arguments), answer]
}

/// A session in which a test fails and passes again, and another command fails last.
fn session() -> Vec<LogEntry> {
    let mut messages = vec![
        Message::user("Move the settings of the exporter into a file of their own, please."),
        Message::user("From now on, name all branches with the prefix 'fix-'."),
    ];
    messages.extend(ran(
        "a",
        "cargo test -p exporter",
        "error: 1 test failed",
        true,
    ));
    messages.extend(ran("b", "cargo test -p exporter", "12 passed", false));
    messages.extend(ran("c", "cargo clippy", "error: unused import", true));
    messages.push(Message::assistant(
        "The settings are in settings.rs now. Clippy is not content yet.",
    ));
    messages.push(Message::user("Go on with clippy."));
    log(messages, &BYTES4)
}

fn state(pieces: &[Source<'_>], shown: &[Seq]) -> String {
    let state = ConversationState::of(pieces, &KnownAgents);
    state.text(shown, 400, &BYTES4).unwrap()
}

#[test]
fn goal_rules_answers_and_what_fails_are_told() {
    let log = session();
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let newest = log.last().unwrap().seq;
    insta::assert_snapshot!(state(&pieces, &[newest]));
}

#[test]
fn a_check_that_passed_later_does_not_fail() {
    let log = session();
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let text = state(&pieces, &[]);
    assert!(
        text.contains("cargo clippy") && !text.contains("cargo test"),
        "{text}"
    );
}

#[test]
fn no_state_is_longer_than_allowed() {
    let log = session();
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let state = ConversationState::of(&pieces, &KnownAgents);
    for most in 0..400 {
        let text = state.text(&[], most, &BYTES4).unwrap_or_default();
        assert!(BYTES4.text(&text) <= most, "{most}: {text}");
    }
}

#[test]
fn talk_has_no_state_but_its_rules() {
    let messages = vec![
        Message::user(
            "Have you been to the lake this summer? I went there twice with the children.",
        ),
        Message::assistant("I have heard that it is beautiful."),
        Message::user("From now on, always answer in 'French'."),
        Message::assistant("D'accord."),
    ];
    let log = log(messages, &BYTES4);
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    insta::assert_snapshot!(state(&pieces, &[]));
}

#[test]
fn a_rule_that_changed_behind_its_summary_is_marked_there() {
    let old = log(
        vec![
            Message::user("From now on, end function names with '_fn'."),
            Message::assistant("I will."),
        ],
        &BYTES4,
    );
    let source: Vec<Source<'_>> = old.iter().map(Source::from).collect();
    let extract = ExtractiveSummarizer::new().extract(&source, 200, &BYTES4);
    let range = SeqRange::new(Seq(1), Seq(2)).unwrap();
    let mut newer = log(
        vec![Message::user("From now on, end function names with '_x'.")],
        &BYTES4,
    );
    newer[0].seq = Seq(3);
    let pieces = [summary(range, &extract), Source::from(&newer[0])];
    let state = ConversationState::of(&pieces, &KnownAgents);
    let [overtaken] = state.overtaken() else {
        panic!("{:?}", state.overtaken());
    };
    let marked = overtaken.mark(&SummaryBody::new(extract)).unwrap();
    assert!(
        marked.text().contains("'_fn'. (later: [3])"),
        "{}",
        marked.text()
    );
    assert!(state.text(&[], 100, &BYTES4).unwrap().contains("'_x'"));
}
