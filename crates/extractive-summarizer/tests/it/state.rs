//! The state of a conversation from its summaries and messages.

use agent_conventions::KnownAgents;
use extractive_summarizer::{
    ConversationState, ExtractiveSummarizer, FactKind, KeptState, Source, overtaken,
};
use memory_model::{LogEntry, Message, Part, RawJson, Seq, SeqRange, SummaryBody};
use proptest::prelude::*;
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

fn of(log: &[LogEntry]) -> ConversationState {
    let log: Vec<&LogEntry> = log.iter().collect();
    ConversationState::of(&log, &KnownAgents)
}

fn state(log: &[LogEntry], shown: &[Seq]) -> String {
    of(log).text(Seq::NONE, shown, 400, &BYTES4).unwrap()
}

#[test]
fn goal_rules_answers_and_what_fails_are_told() {
    let log = session();
    let newest = log.last().unwrap().seq;
    insta::assert_snapshot!(state(&log, &[newest]));
}

#[test]
fn a_check_that_passed_later_does_not_fail() {
    let text = state(&session(), &[]);
    assert!(
        text.contains("cargo clippy") && !text.contains("cargo test"),
        "{text}"
    );
}

#[test]
fn no_state_is_longer_than_allowed() {
    let state = of(&session());
    for most in 0..400 {
        let text = state
            .text(Seq::NONE, &[], most, &BYTES4)
            .unwrap_or_default();
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
    insta::assert_snapshot!(state(&log(messages, &BYTES4), &[]));
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
    let overtaken = overtaken(&pieces, &KnownAgents);
    let [overtaken] = &overtaken[..] else {
        panic!("{overtaken:?}");
    };
    let marked = overtaken.mark(&SummaryBody::new(extract)).unwrap();
    assert!(
        marked.text().contains("'_fn'. (later: [3]: _x)"),
        "{}",
        marked.text()
    );
    let all = [&old[..], &newer].concat();
    let text = state(&all, &[]);
    assert!(text.contains("'_x'") && !text.contains("'_fn'"), "{text}");
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
    let text = state(&log, &[]);
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
    let text = state(&all, &[]);
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
    pieces.extend(newer.iter().map(Source::from));
    let text = state(&[&all[..], &newer].concat(), &[]);
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
    let facts = of(&log).facts();
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
    let earlier = of(&log[..9]).facts();
    let failing = earlier
        .iter()
        .find(|fact| fact.kind == FactKind::Failing)
        .unwrap();
    assert_eq!(
        (failing.text.as_str(), failing.says.as_deref()),
        ("$ cargo clippy", Some("error: unused import"))
    );
}

/// A guide that the user pasted, or that the agent's program added, is no rule of the user. Rules that a person wrote down for the
/// agent come behind all other lines.
#[test]
fn rules_are_what_the_user_typed() {
    let guide =
        "Always use tabs in code. Never write comments. Always add a test for each function.\n";
    let messages = vec![
        Message::user("From now on, keep the functions short, please."),
        Message::assistant("I will."),
        Message::user(format!("This is their guide:\n{}", guide.repeat(40))),
        Message::assistant("I read it."),
        Message::user("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\n- Never push to main.\n"),
        Message::user("Then describe it in one line."),
    ];
    let mut log = log(messages, &BYTES4);
    let state = of(&log);
    let rules = state.rules_text(400, &BYTES4).unwrap();
    assert_eq!(
        rules,
        "[n] is the message to expand.\nRules of the user, newest first:\n\
         [1] From now on, keep the functions short, please.\n[5] - Never push to main."
    );
    log.truncate(1);
    let typed = of(&log).rules_text(400, &BYTES4).unwrap();
    let least = BYTES4.text(&typed) + 4;
    assert_eq!(state.rules_text(least, &BYTES4), Some(typed));
}

/// Earlier messages are kept in part. A rule that an answer in numbers changed long ago does not come back, and a rule behind a
/// block of code stays one.
#[test]
fn messages_that_are_kept_in_part_change_no_rule() {
    let mut messages = vec![
        Message::user("From now on, start the server on port 8080."),
        Message::assistant("Which port should I use?"),
        Message::user("8081 instead"),
        Message::assistant("Done."),
        Message::user(
            "Commit messages look like this:\n```\nfeat: x\n```\nAlways write them like this.",
        ),
        Message::assistant("I will."),
    ];
    for n in 0..120 {
        messages.push(Message::user(format!(
            "Go on with the module of the exporter and its table {n}, please."
        )));
        messages.push(Message::assistant("Done."));
    }
    let state = of(&log(messages, &BYTES4));
    let rules = state.rules_text(1_000, &BYTES4).unwrap();
    assert!(!rules.contains("8080"), "{rules}");
    assert!(rules.contains("Always write them like this."), "{rules}");
}

/// Wishes that summaries have are not told again, and rules are.
#[test]
fn wishes_of_summaries_are_not_told_again() {
    let messages = vec![
        Message::user("From now on, answer in 'French'. Use port 8081 instead of 8080 this time."),
        Message::assistant("D'accord."),
    ];
    let state = of(&log(messages, &BYTES4));
    let [none, all] =
        [Seq::NONE, Seq(2)].map(|through| state.text(through, &[], 400, &BYTES4).unwrap());
    assert!(
        none.contains("Other wishes") && none.contains("8081"),
        "{none}"
    );
    assert!(!all.contains("8081") && all.contains("French"), "{all}");
}

/// One message of a generated log, or the messages of a call.
fn said() -> impl Strategy<Value = Vec<Message>> {
    let text = prop::sample::select(vec![
        "From now on, end names with '_a'.",
        "From now on, end names with '_b'.",
        "The limit is 40 now.",
        "The limit is 50, not 40.",
        "Never push to main. It rains today.",
        "yes",
        "The second one",
        "Go on with the exporter and tell me what is left, please.",
        "/compact",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\n- Never push to main.\n- Use tabs.\n",
        "# Review\n\nLook at the changes.",
    ]);
    let reply = prop::sample::select(vec![
        "Which of the two should I take?",
        "We decided to keep the defaults of the exporter.",
        "The limit is 40. Everything is done.",
        "Let me look:",
        "OK.",
    ]);
    let command = prop::sample::select(vec!["cargo test", "cargo clippy", "cargo test -p a"]);
    let path = prop::sample::select(vec!["/w/a.rs", "/w/b.rs", "/w/c/a.rs"]);
    prop_oneof![
        4 => text.prop_map(|text| vec![Message::user(text)]),
        1 => (1..4_usize).prop_map(|n| vec![Message::user("Use tabs in this long guide. ".repeat(40 * n))]),
        3 => reply.prop_map(|text| vec![Message::assistant(text)]),
        4 => (command, any::<bool>()).prop_map(|(line, fails)| {
            ran("x", line, if fails { "error: 1 test failed" } else { "12 passed" }, fails).to_vec()
        }),
        3 => (path, any::<bool>()).prop_map(|(path, has_result)| {
            let edit = serde_json::json!({ "file_path": path, "old_string": "a", "new_string": "b" });
            let mut both = tool("x", "Edit", edit, "Updated.").to_vec();
            both.truncate(if has_result { 2 } else { 1 });
            both
        }),
        1 => (0..3_u8).prop_map(|n| {
            let todos = serde_json::json!({ "todos": [{ "content": format!("Task {n}"), "status": "pending" }] });
            tool("x", "TodoWrite", todos, "Modified.").to_vec()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A state that is read in parts of any size, and kept between them, is the one that is read at once.
    #[test]
    fn any_batches_give_the_same_state(
        said in prop::collection::vec(said(), 0..400),
        sizes in prop::collection::vec(1..200_usize, 1..20),
    ) {
        let mut messages = said.concat();
        for (n, message) in messages.iter_mut().enumerate() {
            // A result belongs to the call before it.
            for part in &mut message.parts {
                match part {
                    Part::ToolCall { id, .. } => *id = format!("c{n}"),
                    Part::ToolResult { call_id, .. } => *call_id = format!("c{}", n - 1),
                    _ => {}
                }
            }
        }
        let log = log(messages, &BYTES4);
        let all: Vec<&LogEntry> = log.iter().collect();
        let mut at_once = KeptState::default();
        at_once.read(&all, &KnownAgents);
        let (mut kept, mut read, mut end) = (KeptState::default(), 0, 0);
        for size in sizes.iter().cycle() {
            if end == all.len() {
                break;
            }
            end = (end + size).min(all.len());
            read += kept.read(&all[read..end], &KnownAgents);
            let json = serde_json::to_string(&kept).unwrap();
            kept = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(kept.through().0 as usize, read);
            // In the middle, too.
            let now = kept.then(&all[read..end], &KnownAgents).card(4_000, &BYTES4);
            let anew = ConversationState::of(&all[..end], &KnownAgents).card(4_000, &BYTES4);
            prop_assert_eq!(now, anew);
        }
        let [kept, at_once] = [kept, at_once].map(|state| serde_json::to_string(&state).unwrap());
        prop_assert_eq!(kept, at_once);
    }
}
