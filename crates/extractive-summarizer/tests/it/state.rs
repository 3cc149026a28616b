//! The state of a conversation from its summaries and messages.

use agent_conventions::KnownAgents;
use extractive_summarizer::{ConversationState, ExtractiveSummarizer, FactKind, Source};
use memory_model::{LogEntry, Message, RawJson, Seq, SeqRange, SummaryBody};
use token_estimate::{HeuristicEstimator, TokenEstimator};

use crate::extract::summary;
use crate::log;

const BYTES4: HeuristicEstimator = HeuristicEstimator::Bytes4;

fn ran(id: &str, command: &str, result: &str, failed: bool) -> [Message; 2] {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let answer = match failed {
        true => Message::failed_result(id, result),
        false => Message::tool_result(id, result),
    };
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
        marked.text().contains("'_fn'. (later: [3]: _x)"),
        "{}",
        marked.text()
    );
    assert!(state.text(&[], 100, &BYTES4).unwrap().contains("'_x'"));
}

/// A user pastes changes to say that they are not wanted.
#[test]
fn pasted_changes_are_no_rules() {
    let pasted = "+ 8 - **Names**: All fixtures now always use names from the table, never\n  \
                  numbers.\n+ 9\n+ 10 - **Keys**: Never write keys into the log.\n\n\
                  Remove these lines, we only announce the table.";
    let mut messages = vec![Message::user(
        "Describe the new table of names in the changelog.",
    )];
    messages.extend(ran(
        "a",
        "cargo test -p names",
        "error: 1 test failed",
        true,
    ));
    messages.push(Message::user(pasted));
    messages.push(Message::assistant("The two lines are removed."));
    let log = log(messages, &BYTES4);
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let text = state(&pieces, &[]);
    assert!(text.contains("Remove these lines"), "{text}");
    assert!(!text.contains("Never write keys"), "{text}");
    let extract = ExtractiveSummarizer::new().extract(&pieces, 400, &BYTES4);
    let text = SummaryBody::new(extract).text().to_owned();
    assert!(text.contains("] Pasted: + 8 - **Names**"), "{text}");
}

fn tool(id: &str, name: &str, arguments: serde_json::Value, result: &str) -> [Message; 2] {
    let arguments = RawJson::parse(arguments.to_string()).unwrap();
    [
        Message::tool_call(id, name, arguments),
        Message::tool_result(id, result),
    ]
}

/// Two tasks that are created, of which one is done and another is begun; a third one is cancelled.
fn tasks() -> Vec<Message> {
    let create = |n: u32, subject: &str| {
        let result = format!("Task #{n} created successfully: {subject}");
        let arguments = serde_json::json!({ "subject": subject, "description": "x" });
        tool(&format!("c{n}"), "TaskCreate", arguments, &result)
    };
    let update = |id: &str, n: u32, status: &str| {
        let arguments = serde_json::json!({ "taskId": n.to_string(), "status": status });
        tool(
            id,
            "TaskUpdate",
            arguments,
            &format!("Updated task #{n} status"),
        )
    };
    let mut messages = vec![Message::user(
        "Move the settings into a file, please, and ship it.",
    )];
    messages.extend(create(1, "Move settings (from → to)"));
    messages.extend(create(2, "Ship the exporter"));
    messages.extend(create(3, "Write a poem"));
    messages.extend(update("u1", 1, "completed"));
    messages.extend(update("u2", 2, "in_progress"));
    messages.extend(update("u3", 3, "deleted"));
    messages
}

#[test]
fn tasks_that_are_changed_one_by_one_are_told_as_a_list() {
    let all = log(tasks(), &BYTES4);
    let pieces: Vec<Source<'_>> = all.iter().map(Source::from).collect();
    let text = state(&pieces, &[]);
    assert!(
        text.contains("Tasks:\n[12] doing: #2 Ship the exporter | done: #1 | dropped: #3"),
        "{text}"
    );
    // A summary keeps the list, and later messages change it.
    let extract = ExtractiveSummarizer::new().with_conventions(std::sync::Arc::new(KnownAgents));
    let extract = extract.extract(&pieces, 300, &BYTES4);
    let range = SeqRange::new(Seq(1), Seq(13)).unwrap();
    let arguments = serde_json::json!({ "taskId": "2", "status": "completed" });
    let mut newer = log(
        tool("u4", "TaskUpdate", arguments, "Updated").to_vec(),
        &BYTES4,
    );
    (newer[0].seq, newer[1].seq) = (Seq(14), Seq(15));
    let mut pieces = vec![summary(range, &extract)];
    assert!(state(&pieces, &[]).contains("doing: #2 Ship the exporter"));
    pieces.extend(newer.iter().map(Source::from));
    let text = state(&pieces, &[]);
    assert!(
        !text.contains("Tasks:") && !text.contains("exporter |"),
        "{text}"
    );
    // Nor does what an earlier summary tells come back.
    let both = ExtractiveSummarizer::new().with_conventions(std::sync::Arc::new(KnownAgents));
    let both = both.extract(&pieces, 300, &BYTES4);
    assert!(!both.contains("doing:"), "{both}");
}

#[test]
fn facts_hold_at_the_end_and_are_listed_once() {
    let mut log = session();
    let todos = r#"{"todos":[{"content":"Move it","status":"completed"},{"content":"Test it","status":"in_progress"},{"content":"Ship it","status":"pending"}]}"#;
    let asked = r#"{"questions":[{"question":"Which colour?","header":"Colour","options":[]}]}"#;
    let edit = r#"{"file_path":"/w/settings.rs","old_string":"a","new_string":"b"}"#;
    let more = [
        Message::tool_call("t", "TodoWrite", RawJson::parse(todos).unwrap()),
        Message::tool_result("t", "Modified."),
        Message::tool_call("q", "AskUserQuestion", RawJson::parse(asked).unwrap()),
        Message::tool_result(
            "q",
            "User has answered your questions: \"Which colour?\"=\"Blue\". You can now continue with the user's answers in mind.",
        ),
        Message::tool_call("e", "Edit", RawJson::parse(edit).unwrap()),
        Message::tool_result("e", "Updated."),
        Message::assistant(
            "We decided to keep the defaults of the exporter. Have you decided on the colour yet?",
        ),
        Message::user("From now on, name all branches with the prefix 'fix-'."),
    ];
    let last = log.last().unwrap().seq.0;
    let more = crate::log(more.to_vec(), &BYTES4).into_iter();
    log.extend(more.map(|mut entry| {
        entry.seq.0 += last;
        entry
    }));
    let pieces: Vec<Source<'_>> = log.iter().map(Source::from).collect();
    let facts = ConversationState::of(&pieces, &KnownAgents).facts();
    let facts: Vec<(FactKind, Option<u32>, &str)> = facts
        .iter()
        .map(|fact| (fact.kind, fact.seq.map(|seq| seq.0), fact.text.as_str()))
        .collect();
    assert_eq!(
        facts,
        [
            (
                FactKind::Rule,
                Some(18),
                "From now on, name all branches with the prefix 'fix-'."
            ),
            (FactKind::Decision, Some(14), "Which colour → Blue"),
            (
                FactKind::Decision,
                Some(17),
                "We decided to keep the defaults of the exporter."
            ),
            (FactKind::File, None, "/w/settings.rs"),
            (FactKind::Task, Some(11), "Test it"),
            (FactKind::Task, Some(11), "Ship it"),
        ]
    );
    let earlier = ConversationState::of(&pieces[..9], &KnownAgents).facts();
    let failing = earlier
        .iter()
        .find(|fact| fact.kind == FactKind::Failing)
        .unwrap();
    assert_eq!(
        (failing.text.as_str(), failing.says.as_deref()),
        ("$ cargo clippy", Some("error: unused import"))
    );
}
