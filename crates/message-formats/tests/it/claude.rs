//! Claude Code's session files.

use memory_model::{EntryKind, MediaSource, Message, Part, Role, Timestamp};
use message_formats::{Origin, SessionLog};
use outside_checks::raw_check::{Source, check};

use crate::support::{export, read_str};

/// A line with the keys that every conversational line has.
fn line(uuid: &str, parent: &str, tag: &str, message: &str, more: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        r#"{{"parentUuid":{parent},"sessionId":"s1","type":"{tag}","uuid":"{uuid}","timestamp":"2026-03-02T09:00:00.5Z","message":{message}{more}}}"#
    ) + "\n"
}

fn user(uuid: &str, parent: &str, text: &str, more: &str) -> String {
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    line(uuid, parent, "user", &message, more)
}

fn assistant(uuid: &str, parent: &str, id: &str, block: &str, more: &str) -> String {
    let message = format!(
        r#"{{"id":"{id}","type":"message","role":"assistant","model":"m","content":[{block}]}}"#
    );
    line(uuid, parent, "assistant", &message, more)
}

fn task(id: &str, prompt: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"Task","input":{{"prompt":"{prompt}"}}}}"#)
}

fn result(uuid: &str, call: &str) -> String {
    let message = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done","is_error":true}}]}}"#
    );
    line(
        uuid,
        "",
        "user",
        &message,
        r#","toolUseResult":{"big":"copy"}"#,
    )
}

const SIDE: &str = r#","isSidechain":true"#;

#[test]
fn lines_become_messages_notes_or_are_counted() {
    let source = [
        r#"{"type":"summary","summary":"About ships","leafUuid":"z"}"#.to_owned() + "\n",
        r#"{"type":"file-history-snapshot","messageId":"u1"}"#.to_owned() + "\n",
        user("u1", "", "hello", ""),
        assistant("a1", "u1", "r1", r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#, ""),
        assistant(
            "a2",
            "a1",
            "r1",
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{ "b":1.0 },"caller":{"type":"direct"}}"#,
            r#","requestId":"q""#,
        ),
        result("u2", "t1"),
        user("u3", "u2", "a caveat", r#","isMeta":true"#),
        user("u4", "u3", "what happened so far", r#","isCompactSummary":true"#),
        r#"{"type":"system","subtype":"compact_boundary","uuid":"y1","sessionId":"s1"}"#.to_owned() + "\n",
        r#"{"type":"pr-link","sessionId":"s1","prNumber":4}"#.to_owned() + "\n",
        r#"{"type":"brand-new","sessionId":"s1","message":{"role":"user","content":"x"}}"#.to_owned() + "\n",
        r#"{"type":"progress","uuid":"p1","sessionId":"s1"}"#.to_owned() + "\n",
    ]
    .concat();
    let transcript = read_str(&source);
    assert_eq!(transcript.format, "claude-code");
    assert_eq!(transcript.report.lines, 12);
    assert!(!transcript.report.lost_any());
    let skipped: Vec<(&str, u64)> = transcript
        .report
        .skipped
        .iter()
        .map(|(kind, n)| (kind.as_str(), *n))
        .collect();
    assert_eq!(skipped, [("file-history-snapshot", 1), ("progress", 1)]);
    assert_eq!(transcript.sessions.len(), 1);
    let session = &transcript.sessions[0];
    assert_eq!(session.key.as_str(), "s1");
    let shape: Vec<(EntryKind, Role)> = session.messages.iter().map(|m| (m.kind, m.role)).collect();
    use EntryKind::{Message, Note};
    assert_eq!(
        shape,
        [
            (Note, Role::System),
            (Message, Role::User),
            (Message, Role::Assistant),
            (Message, Role::Assistant),
            (Message, Role::Tool),
            (Message, Role::User),
            (Note, Role::User),
            (Note, Role::System),
            (Note, Role::System),
            (Note, Role::System),
        ]
    );
    assert_eq!(session.notes(), 5);

    let call = &session.messages[3];
    assert_eq!(call.external_id.as_deref(), Some("a2"));
    assert_eq!(call.response.as_deref(), Some("r1"));
    assert_eq!(
        call.created_at,
        Timestamp::parse("2026-03-02T09:00:00.5Z").unwrap()
    );
    let Part::ToolCall { arguments, .. } = &call.parts[0] else {
        panic!("{call:?}")
    };
    assert_eq!(arguments.as_str(), r#"{ "b":1.0 }"#);
    assert_eq!(
        call.meta.as_ref().unwrap().as_str(),
        r#"{"parentUuid":"a1","sessionId":"s1","requestId":"q","message":{"model":"m"},"blocks":{"0":{"caller":{"type":"direct"}}}}"#
    );
    let meta = session.messages[4].meta.as_ref().unwrap().as_str();
    assert!(meta.contains(r#""toolUseResult":{"big":"copy"}"#), "{meta}");
    let Part::Unknown { raw } = &session.messages[6].parts[0] else {
        panic!("a note keeps its line")
    };
    assert!(source.contains(raw.as_str()) && raw.as_str().contains("so far"));
}

#[test]
fn the_programs_own_copy_of_a_result_is_kept_once() {
    let line_of = |content: &str, copy: &str| {
        let message = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]}}"#
        );
        line(
            "u",
            "",
            "user",
            &message,
            &format!(r#","toolUseResult":{copy}"#),
        )
    };
    let clipped = r#"{ "stdout":"all of it","n":1.00,"n":2 }"#;
    for (content, copy, kept) in [
        (r#""[output clipped]""#, clipped, true),
        (r#""[output clipped]""#, r#""Error: all of it""#, true),
        (r#""[output clipped]""#, "null", true),
        (r#""done""#, r#""done""#, false),
        (
            r#"[{"type":"text","text":"done"}]"#,
            r#"[{"type":"text","text":"done"}]"#,
            false,
        ),
    ] {
        let source = line_of(content, copy);
        let transcript = read_str(&source);
        assert!(transcript.report.skipped.is_empty());
        let text = export(&transcript.sessions[0]);
        assert_eq!(
            text.contains(&format!(r#""toolUseResult":{copy}"#)),
            kept,
            "{text}"
        );
        assert_eq!(
            text.matches("all of it").count(),
            usize::from(copy.contains("all"))
        );
        assert_eq!(text.matches("done").count(), usize::from(!kept), "{text}");
        let source = Source::parse(source.as_bytes());
        check(&source, std::slice::from_ref(&text)).unwrap();
        // The checker sees the loss.
        if kept {
            let meta = text.find(r#","meta":"#).unwrap();
            let without = format!("{}}}", &text[..meta]);
            assert!(check(&source, &[without]).is_err());
        }
    }
}

#[test]
fn parallel_calls_keep_their_response_however_they_come() {
    let call = |n: u32| format!(r#"{{"type":"tool_use","id":"t{n}","name":"Read","input":{{}}}}"#);
    let source = [
        user("u", "", "read both", ""),
        assistant("a1", "u", "r1", &call(1), ""),
        result("u1", "t1"),
        assistant("a2", "a1", "r1", &call(2), ""),
        result("u2", "t2"),
        assistant("a3", "a2", "r2", &call(3), ""),
    ]
    .concat();
    let transcript = read_str(&source);
    let messages = &transcript.sessions[0].messages;
    let responses: Vec<Option<&str>> = messages.iter().map(|m| m.response.as_deref()).collect();
    assert_eq!(
        responses,
        [None, Some("r1"), None, Some("r1"), None, Some("r2")]
    );
}

#[test]
fn side_chains_are_conversations_linked_to_their_calls() {
    let source = [
        user("u", "", "go", ""),
        assistant("a1", "u", "r1", &task("t1", "first job"), ""),
        assistant("a2", "a1", "r1", &task("t2", "second job"), ""),
        // The first call's chain is known by its prompt; the other call is what is left for the
        // second chain. Lines of both interleave.
        user("s2", "", "first job", SIDE),
        user("s1", "", "job with another wording", SIDE),
        assistant("s2a", "s2", "r3", r#"{"type":"text","text":"two"}"#, SIDE),
        assistant("s1a", "s1", "r2", &task("t9", "deeper"), SIDE),
        user("d1", "", "deeper", SIDE),
        assistant("s1b", "s1a", "r2", r#"{"type":"text","text":"one"}"#, SIDE),
        result("u2", "t2"),
        user(
            "n1",
            "",
            "known agent",
            r#","isSidechain":true,"agentId":"ag7""#,
        ),
        user(
            "n2",
            "gone",
            "same agent",
            r#","isSidechain":true,"agentId":"ag7""#,
        ),
    ]
    .concat();
    let transcript = read_str(&source);
    let found: Vec<(&str, usize, Option<&str>, Option<&str>, Option<&str>)> = transcript
        .sessions
        .iter()
        .map(|session| {
            let (parent, call, after) = match &session.origin {
                Origin::Spawn {
                    parent,
                    call,
                    after,
                } => (Some(parent.as_str()), call.as_deref(), after.as_deref()),
                _ => (None, None, None),
            };
            (
                session.key.as_str(),
                session.messages.len(),
                parent,
                call,
                after,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("s1", 4, None, None, None),
            ("s1/s2", 2, Some("s1"), Some("t1"), Some("a1")),
            ("s1/s1", 3, Some("s1"), Some("t2"), Some("a2")),
            ("s1/d1", 1, Some("s1/s1"), Some("t9"), Some("s1a")),
            ("s1/ag7", 2, Some("s1"), None, None),
        ]
    );
}

#[test]
fn a_sub_agents_own_file_names_a_parent_that_is_elsewhere() {
    let transcript = read_str(&user(
        "x",
        "",
        "warm up",
        r#","isSidechain":true,"agentId":"ag""#,
    ));
    assert_eq!(transcript.sessions.len(), 1);
    assert_eq!(transcript.sessions[0].key.as_str(), "s1/ag");
    let Origin::Spawn {
        parent, call: None, ..
    } = &transcript.sessions[0].origin
    else {
        panic!("{:?}", transcript.sessions[0].origin)
    };
    assert_eq!(parent.as_str(), "s1");
}

#[test]
fn a_resumed_session_stays_one_conversation() {
    let old = user("u1", "", "before", "");
    let new = user("u2", "u1", "after", "").replace("\"s1\"", "\"s2\"");
    let changed = user("u1", "", "before, edited", "");
    let transcript = read_str(&[old.clone(), old, new, changed].concat());
    let [session] = transcript.sessions.as_slice() else {
        panic!("one conversation")
    };
    assert_eq!(session.key.as_str(), "s1");
    assert_eq!(session.duplicates, 1);
    let ids: Vec<&str> = session
        .messages
        .iter()
        .filter_map(|m| m.external_id.as_deref())
        .collect();
    assert_eq!(ids, ["u1", "u2", "u1#2"]);
}

#[test]
fn lines_before_the_first_message_wait_for_their_session() {
    let head = "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"z\"}\n";
    let early = read_str(head);
    assert!(early.sessions.is_empty() && early.report.lost_any());
    assert_eq!(early.report.skipped["no_session"], 1);
    let grown = read_str(&(head.to_owned() + &user("u", "", "hi", "")));
    assert_eq!(grown.sessions[0].messages.len(), 2);
    assert!(!grown.report.lost_any());
}

/// A line of the queue.
fn queue(operation: &str, more: &str) -> String {
    format!(
        r#"{{"type":"queue-operation","operation":"{operation}","timestamp":"2026-03-02T09:00:01Z","sessionId":"s1"{more}}}"#
    ) + "\n"
}

fn enqueue(words: &str) -> String {
    queue("enqueue", &format!(r#","content":"{words}""#))
}

fn attachment(uuid: &str, attachment: &str) -> String {
    format!(
        r#"{{"parentUuid":"a1","isSidechain":false,"attachment":{attachment},"type":"attachment","uuid":"{uuid}","timestamp":"2026-03-02T09:00:02Z","sessionId":"s1"}}"#
    ) + "\n"
}

fn queued(uuid: &str, words: &str) -> String {
    attachment(
        uuid,
        &format!(r#"{{"type":"queued_command","prompt":"{words}","commandMode":"prompt"}}"#),
    )
}

fn reply(uuid: &str) -> String {
    assistant(uuid, "", uuid, r#"{"type":"text","text":"Noted."}"#, "")
}

/// Reads a file line by line. Asserts that fewer lines yield a prefix of the conversation, and that nothing is lost.
fn grown(lines: &[String]) -> SessionLog {
    let whole = read_str(&lines.concat());
    for count in 1..lines.len() {
        let part = read_str(&lines[..count].concat());
        if let Some(part) = part.sessions.first() {
            let messages = &whole.sessions[0].messages;
            assert!(messages.starts_with(&part.messages), "{count} lines");
        }
    }
    let exports: Vec<String> = whole.sessions.iter().map(export).collect();
    check(&Source::parse(lines.concat().as_bytes()), &exports).unwrap();
    whole.sessions[0].clone()
}

fn users_words(log: &SessionLog) -> Vec<String> {
    let messages = log.messages.iter();
    messages
        .filter(|message| message.kind == EntryKind::Message && message.role == Role::User)
        .map(Message::text)
        .collect()
}

#[test]
fn what_was_typed_while_a_tool_ran_is_said_once() {
    let start = [
        user("u1", "", "start the lamp", ""),
        assistant("a1", "u1", "r1", &task("t1", "lamp"), ""),
    ];
    let absorbed = r#","reason":"absorbed_mid_turn""#;
    let announced = r#","content":"use gas","commandUuid":"c1","deliveryId":"d1""#;
    let end = [result("r1", "t1"), reply("a2")];
    for (name, middle, words) in [
        (
            "an attachment alone",
            vec![queued("q1", "use gas")],
            vec!["use gas"],
        ),
        (
            "a record of the queue alone",
            vec![enqueue("use gas"), queue("remove", absorbed)],
            vec!["use gas"],
        ),
        (
            "both, as announced",
            vec![
                enqueue("use gas"),
                queue("remove", announced),
                queued("q1", "use gas"),
            ],
            vec!["use gas"],
        ),
        (
            "an announced copy that does not come",
            vec![enqueue("use gas"), queue("remove", announced)],
            vec!["use gas"],
        ),
        (
            "a copy that nothing announced",
            vec![
                enqueue("use gas"),
                queue("remove", ""),
                queued("q1", "use gas"),
            ],
            vec!["use gas"],
        ),
        (
            "the copy first",
            vec![
                enqueue("use gas"),
                queued("q1", "use gas"),
                queue("remove", ""),
            ],
            vec!["use gas"],
        ),
        (
            "run as a prompt",
            vec![
                enqueue("use gas"),
                queue("dequeue", ""),
                user("u2", "a1", "use gas", ""),
            ],
            vec!["use gas"],
        ),
        (
            "said once more by hand before the answer",
            vec![
                enqueue("use gas"),
                queue("remove", absorbed),
                user("u2", "a1", "use gas", ""),
            ],
            vec!["use gas"],
        ),
        (
            "sent twice before an answer",
            vec![
                user("u2", "a1", "use gas", ""),
                enqueue("use gas"),
                queue("remove", ""),
            ],
            vec!["use gas"],
        ),
        (
            "said again after an answer",
            vec![
                enqueue("use gas"),
                queue("remove", absorbed),
                reply("a9"),
                user("u2", "a1", "use gas", ""),
            ],
            vec!["use gas", "use gas"],
        ),
        (
            "several, the oldest first",
            vec![
                enqueue("one"),
                enqueue("two"),
                queue("remove", absorbed),
                enqueue("three"),
                queue("remove", r#","content":"three""#),
                queue("dequeue", ""),
                user("u2", "a1", "two", ""),
            ],
            vec!["one", "three", "two"],
        ),
        (
            "taken back",
            vec![
                enqueue("use gas"),
                queue("popAll", r#","content":"use gas""#),
            ],
            vec![],
        ),
        ("not sent yet", vec![enqueue("use gas")], vec![]),
    ] {
        let lines = [start.to_vec(), middle, end.to_vec()].concat();
        let log = grown(&lines);
        let mut expected = vec!["start the lamp"];
        expected.extend(words);
        assert_eq!(users_words(&log), expected, "{name}");
        // A file that repeats its history says nothing twice.
        let twice = [lines.clone(), lines].concat();
        assert_eq!(
            users_words(&read_str(&twice.concat()).sessions[0]),
            expected,
            "{name}"
        );
    }
}

#[test]
fn words_in_the_queue_are_named_until_a_line_says_that_they_were_sent() {
    let start = user("u1", "", "start", "") + &enqueue("use gas");
    let report = read_str(&start).report;
    assert!(!report.lost_any());
    assert_eq!(report.skipped["queue-operation"], 1);
    let named: Vec<(u64, &str)> = report
        .warnings
        .iter()
        .map(|w| (w.line, w.kind.as_str()))
        .collect();
    assert_eq!(named, [(2, "queued")]);
    let sent = start + &queue("remove", "");
    let transcript = read_str(&sent);
    assert!(transcript.report.warnings.is_empty());
    let message = &transcript.sessions[0].messages[1];
    assert_eq!(
        message.created_at,
        Timestamp::parse("2026-03-02T09:00:01Z").unwrap()
    );
    assert_eq!(
        message.meta.as_ref().unwrap().as_str(),
        r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s1"}"#
    );
}

#[test]
fn queued_words_may_come_with_pictures() {
    let picture =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
    let prompt = format!(r#"[{{"type":"text","text":"like this"}},{picture}]"#);
    let lines = [
        user("u1", "", "start", ""),
        attachment(
            "q1",
            &format!(r#"{{"type":"queued_command","prompt":{prompt}}}"#),
        ),
        queue(
            "enqueue",
            &format!(r#","content":{}"#, prompt.replace("like", "or like")),
        ),
        queue("remove", ""),
    ];
    let log = read_str(&lines.concat()).sessions[0].clone();
    assert_eq!(users_words(&log), ["start", "like this", "or like this"]);
    for message in &log.messages[1..] {
        let [_, Part::Image(media)] = &message.parts[..] else {
            panic!("{message:?}")
        };
        assert_eq!(media.source, MediaSource::Data("AAAA".to_owned()));
    }
}

/// A picture may come with the words' copy alone, whether the copy was announced or not.
#[test]
fn a_picture_comes_with_the_copy_of_queued_words() {
    let picture =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
    let words = "[Image #1] like this";
    let prompt = |text: &str| format!(r#"[{{"type":"text","text":"{text}"}},{picture}]"#);
    let attached = |text: &str| {
        let queued = format!(r#"{{"type":"queued_command","prompt":{}}}"#, prompt(text));
        attachment("q1", &queued)
    };
    let typed = format!(r#"{{"role":"user","content":{}}}"#, prompt(words));
    let begin = [
        user("u1", "", "start the lamp", ""),
        assistant("a1", "u1", "r1", &task("t1", "lamp"), ""),
        enqueue(words),
        result("r1", "t1"),
    ];
    let absorbed = queue("remove", r#","reason":"absorbed_mid_turn""#);
    for (name, middle, count) in [
        ("announced", vec![absorbed.clone(), attached(words)], 1),
        (
            "without the mark",
            vec![absorbed.clone(), attached("like  this")],
            1,
        ),
        (
            "not announced",
            vec![queue("remove", ""), attached(words)],
            2,
        ),
        (
            "the copy first",
            vec![attached(words), queue("remove", "")],
            1,
        ),
        (
            "typed once more",
            vec![queue("remove", ""), line("u2", "r1", "user", &typed, "")],
            2,
        ),
        (
            "the queue's record has the picture too",
            vec![
                queue("remove", ""),
                queue("enqueue", &format!(r#","content":{}"#, prompt("and this"))),
                queue("remove", ""),
                attached("and this"),
                attached(words).replace("q1", "q2"),
            ],
            3,
        ),
    ] {
        let lines = [begin.to_vec(), middle, vec![reply("a2")]].concat();
        let both = name.starts_with("the queue");
        let log = match both {
            true => read_str(&lines.concat()).sessions[0].clone(),
            false => grown(&lines),
        };
        let said: Vec<&Message> = log
            .messages
            .iter()
            .filter(|one| one.kind == EntryKind::Message && one.role == Role::User)
            .skip(1)
            .collect();
        assert_eq!(said.len(), count, "{name}: {said:?}");
        let parts = || said.iter().flat_map(|message| &message.parts);
        let is_picture = |part: &&Part| matches!(part, Part::Image(_));
        let pictures = parts().filter(is_picture).count();
        let texts = parts().filter(|part| matches!(part, Part::Text { .. }));
        let all = 1 + usize::from(both);
        assert_eq!((pictures, texts.count()), (all, all), "{name}");
    }
}

#[test]
fn what_the_client_attaches_is_given_by_a_tool() {
    let file = r#"{"type":"file","filename":"/w/tax.rs","content":{"type":"text","file":{"filePath":"/w/tax.rs","content":"fn rate() {}","numLines":1}}}"#;
    let hook = r#"{"type":"hook_additional_context","content":["Amounts are in mills.","Be brief."],"hookName":"UserPromptSubmit","hookEvent":"UserPromptSubmit"}"#;
    let other = r#"{"type":"skill_listing","content":"- review"}"#;
    let lines = [
        user("u1", "", "fix @tax.rs", ""),
        attachment("t1", file),
        attachment("t2", hook),
        attachment("t3", other),
        reply("a1"),
    ];
    let log = grown(&lines);
    let shape: Vec<(EntryKind, Role, String)> = log
        .messages
        .iter()
        .map(|message| (message.kind, message.role, message.text()))
        .collect();
    use EntryKind::{Message, Note};
    let is = |kind, role, text: &str| (kind, role, text.to_owned());
    assert_eq!(
        shape,
        [
            is(Message, Role::User, "fix @tax.rs"),
            is(
                Message,
                Role::Tool,
                "Attached file: /w/tax.rs\nfn rate() {}"
            ),
            is(
                Message,
                Role::Tool,
                "Context from the hook UserPromptSubmit:\nAmounts are in mills.\nBe brief."
            ),
            is(Note, Role::System, ""),
            is(Message, Role::Assistant, "Noted."),
        ]
    );
    // The text is kept once, and everything else beside it.
    let meta = log.messages[1].meta.as_ref().unwrap().as_str();
    assert_eq!(
        meta,
        r#"{"parentUuid":"a1","isSidechain":false,"attachment":{"type":"file","filename":"/w/tax.rs","content":{"type":"text","file":{"filePath":"/w/tax.rs","numLines":1}}},"type":"attachment","sessionId":"s1"}"#
    );
    let picture = r#"{"type":"file","filename":"/w/a.png","content":{"type":"image","file":{"base64":"AAAA","type":"image/png"}}}"#;
    let lines = [user("u1", "", "look", ""), attachment("t1", picture)];
    let log = &read_str(&lines.concat()).sessions[0];
    assert!(matches!(log.messages[1].parts[..], [_, Part::Image(_)]));
    assert!(
        !log.messages[1]
            .meta
            .as_ref()
            .unwrap()
            .as_str()
            .contains("AAAA")
    );
}

#[test]
fn a_clients_own_errors_are_notes() {
    let error = r#","isApiErrorMessage":true,"error":"server_error""#;
    let lines = [
        user("u1", "", "go", ""),
        assistant(
            "e1",
            "u1",
            "x1",
            r#"{"type":"text","text":"API Error: 529"}"#,
            error,
        ),
        reply("a1"),
    ];
    let log = grown(&lines);
    assert_eq!(log.messages[1].kind, EntryKind::Note);
    assert!(export(&log).contains("API Error: 529"));
}

#[test]
fn a_summary_that_a_file_begins_with_is_what_is_left() {
    let summary = |uuid: &str| user(uuid, "", "what happened", r#","isCompactSummary":true"#);
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"y1","sessionId":"s1"}"#
        .to_owned()
        + "\n";
    let lines = [
        boundary.clone(),
        summary("u0"),
        user("u1", "", "go on", ""),
        summary("u2"),
    ];
    let log = grown(&lines);
    assert_eq!(users_words(&log), ["what happened", "go on"]);
    let lines = [user("u1", "", "go", ""), boundary, summary("u2")];
    assert_eq!(users_words(&grown(&lines)), ["go"]);
}

#[test]
fn half_a_surrogate_pair_leaves_texts_readable() {
    let block = r#"{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"due \ud83d"}]}"#;
    let message = format!(r#"{{"role":"user","content":[{block}]}}"#);
    let lines = [
        user("u1", "", r#"bill \ud83d says \"net 30\""#, ""),
        assistant("a1", "u1", "r1", &task("t1", "x"), ""),
        line("r1", "a1", "user", &message, ""),
    ];
    let log = grown(&lines);
    assert_eq!(users_words(&log), ["bill \u{fffd} says \"net 30\""]);
    let Part::ToolResult { content, .. } = &log.messages[2].parts[0] else {
        panic!("{:?}", log.messages[2])
    };
    assert_eq!(content.text(), "due \u{fffd}");
    let exported = export(&log);
    assert_eq!(exported.matches(r"\ud83d").count(), 2);
}

/// Returns the conversations of a source: key, ids of the messages, the parent and entry of a fork, and whether in use.
fn courses(source: &str) -> Vec<(String, Vec<String>, Option<String>, bool)> {
    let transcript = read_str(source);
    let sessions = transcript.sessions.iter().map(|session| {
        let ids = session.messages.iter();
        let after = match &session.origin {
            Origin::Fork { parent, after } => {
                Some(format!("{parent}:{}", after.as_deref().unwrap_or("")))
            }
            _ => None,
        };
        (
            session.key.to_string(),
            ids.map(|m| m.external_id.clone().unwrap()).collect(),
            after,
            session.in_use,
        )
    });
    sessions.collect()
}

fn said(uuid: &str, parent: &str) -> String {
    let block = format!(r#"{{"type":"text","text":"answer {uuid}"}}"#);
    assistant(uuid, parent, &format!("r-{uuid}"), &block, "")
}

fn aside(uuid: &str, parent: &str) -> String {
    line(
        uuid,
        parent,
        "system",
        "{}",
        r#","subtype":"turn_duration""#,
    )
}

fn course(
    key: &str,
    ids: &str,
    after: Option<&str>,
    in_use: bool,
) -> (String, Vec<String>, Option<String>, bool) {
    let ids = ids.split(' ').map(str::to_owned).collect();
    (key.to_owned(), ids, after.map(str::to_owned), in_use)
}

#[test]
fn a_turn_that_was_taken_back_is_left_behind_in_its_branch() {
    let begin = user("u1", "", "hello", "") + &said("a1", "u1") + &aside("n1", "a1");
    let turn = user("u2", "n1", "paint it red", "") + &said("a2", "u2");
    // The user goes back to the answer, or to the program's note behind it.
    for parent in ["a1", "n1"] {
        let again = user("u3", parent, "paint it blue", "") + &said("a3", "u3");
        assert_eq!(
            courses(&(begin.clone() + &turn + &again)),
            [
                course("s1", "u1 a1 n1 u2 a2", None, false),
                course("s1/u3", "u3 a3", Some("s1:n1"), true),
            ]
        );
    }
    // The prompt alone was taken back, twice.
    let source = begin.clone()
        + &user("u2", "n1", "paint it red", "")
        + &user("u3", "n1", "paint it green", "")
        + &user("u4", "n1", "paint it blue", "")
        + &said("a4", "u4");
    assert_eq!(
        courses(&source),
        [
            course("s1", "u1 a1 n1 u2", None, false),
            course("s1/u3", "u3", Some("s1:n1"), false),
            course("s1/u4", "u4 a4", Some("s1:n1"), true),
        ]
    );
    // To the very first message; then back to the first branch, and before a turn of it.
    let source = begin
        + &turn
        + &user("u3", "", "hello again", "")
        + &said("a3", "u3")
        + &user("u4", "a2", "as it was", "")
        + &said("a4", "u4")
        + &user("u5", "a2", "as it was, but larger", "");
    assert_eq!(
        courses(&source),
        [
            course("s1", "u1 a1 n1 u2 a2 u4 a4", None, false),
            course("s1/u3", "u3 a3", Some("s1:"), false),
            course("s1/u5", "u5", Some("s1:a2"), true),
        ]
    );
}

/// The rows of a compaction that took the conversation up to the row `last`.
fn compacted(number: u8, last: &str) -> String {
    let boundary = format!(
        r#","subtype":"compact_boundary","logicalParentUuid":"{last}","compactMetadata":{{}}"#
    );
    let [boundary_id, summary, command] = ["b", "s", "c"].map(|one| format!("{one}{number}"));
    line(&boundary_id, "", "system", "{}", &boundary)
        + &user(
            &summary,
            &boundary_id,
            "So far",
            r#","isCompactSummary":true"#,
        )
        + &user(&command, last, "<command-name>/compact</command-name>", "")
}

#[test]
fn rows_that_are_written_again_take_nothing_back() {
    let old = user("u1", "", "one", "") + &said("a1", "u1") + &user("u2", "a1", "two", "");
    let begin = old.clone()
        + &said("a2", "u2")
        + &aside("n1", "a2")
        + &compacted(1, "n1")
        + &user("u3", "c1", "three", "")
        + &said("a3", "u3");
    let shown = "u1 a1 u2 a2 n1 b1 s1 c1 u3 a3";
    // The second compaction of a process writes the rows before the first one again, and goes on behind them.
    let source = begin.clone()
        + &old
        + &aside("n2", "u2")
        + &compacted(2, "n2")
        + &user("u4", "c2", "four", "")
        + &said("a4", "u4");
    let all = format!("{shown} n2 b2 s2 c2 u4 a4");
    assert_eq!(courses(&source), [course("s1", &all, None, true)]);
    // It may also go on there without the rows: the boundary says where the conversation was.
    let source = source.replacen(&(old.clone() + &aside("n2", "u2")), &aside("n2", "u2"), 1);
    assert_eq!(courses(&source), [course("s1", &all, None, true)]);
    // A compaction of a sub-agent has no boundary here. Each one writes the same rows again.
    let source = begin
        + &old
        + &user("u4", "u2", "four", "")
        + &said("a4", "u4")
        + &old
        + &user("u5", "u2", "five", "")
        + &said("a5", "u5");
    let all = format!("{shown} u4 a4 u5 a5");
    assert_eq!(courses(&source), [course("s1", &all, None, true)]);
    // The user goes back to the answer before the last turn, which does not hang on that answer.
    let source = source + &user("u6", "a4", "another five", "");
    assert_eq!(
        courses(&source),
        [
            course("s1", &all, None, false),
            course("s1/u6", "u6", Some("s1:a4"), true)
        ]
    );
}

#[test]
fn words_from_the_queue_and_attachments_are_taken_back_with_their_turn() {
    let file = |uuid: &str, parent: &str| {
        let attached = r#","attachment":{"type":"directory","path":"/w","content":"tax.rs"}"#;
        line(uuid, parent, "attachment", "{}", attached)
    };
    let source = user("u1", "", "hello", "")
        + &said("a1", "u1")
        + &enqueue("before")
        + &queue("remove", "")
        + &user("u2", "a1", "paint it red", "")
        + &file("t2", "u2")
        + &enqueue("darker")
        + &queue("remove", "")
        + &said("a2", "t2")
        + &user("u3", "a1", "paint it blue", "")
        + &file("t3", "u3")
        + &enqueue("lighter")
        + &queue("remove", r#","commandUuid":"c1""#)
        + &said("a3", "t3")
        + &user("u4", "a3", "paint it green", "")
        + &said("a4", "u4")
        + &user("u5", "a3", "paint it grey", "");
    let words: Vec<String> = ["before", "darker", "lighter"]
        .iter()
        .map(|words| {
            let messages = read_str(&source).sessions.into_iter();
            let mut messages = messages.flat_map(|session| session.messages);
            let message = messages.find(|message| message.text() == *words);
            message.unwrap().external_id.unwrap()
        })
        .collect();
    let [before, darker, lighter] = &words[..] else {
        panic!("{words:?}")
    };
    let left = format!("u1 a1 {before} u2 t2 {darker} a2");
    let again = format!("u3 t3 {lighter} a3 u4 a4");
    // The history once more says nothing twice.
    let twice = source.repeat(2);
    for source in [source, twice] {
        assert_eq!(
            courses(&source),
            [
                course("s1", &left, None, false),
                course("s1/u3", &again, Some(&format!("s1:{before}")), false),
                course("s1/u5", "u5", Some("s1/u3:a3"), true),
            ]
        );
    }
}

#[test]
fn other_branches_of_the_tree_stay_in_line() {
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#);
    let answer = |uuid: &str, parent: &str, call: &str| {
        let message = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done"}}]}}"#
        );
        line(uuid, parent, "user", &message, "")
    };
    // The results of parallel calls. The conversation goes on from the first, although the second follows it in the
    // file.
    let parallel = user("u1", "", "read both", "")
        + &assistant("a1", "u1", "r1", &call("c1"), "")
        + &assistant("a2", "a1", "r1", &call("c2"), "")
        + &answer("t1", "a1", "c1")
        + &answer("t2", "a2", "c2")
        + &said("a3", "t1")
        + &user("u2", "a3", "thanks", "")
        + &said("a4", "u2");
    // A command that the program alone answers, beside the way.
    let command = user("c", "a4", "<command-name>/cost</command-name>", "")
        + &user(
            "o",
            "c",
            "<local-command-stdout>3</local-command-stdout>",
            "",
        )
        + &user("u3", "a4", "go on", "")
        + &said("a5", "u3");
    // A compaction begins a tree of its own; a resume may too.
    let boundary = line("b", "", "system", "{}", r#","subtype":"compact_boundary""#)
        + &user("s", "b", "Summary so far", r#","isCompactSummary":true"#)
        + &user("u4", "s", "and now", "")
        + &said("a6", "u4")
        + &user("u5", "", "a root behind the boundary", "")
        + &said("a7", "u5");
    // The history once more, a late result of the first turn, and an answer that was asked for again.
    let source = parallel.clone()
        + &command
        + &boundary
        + &parallel
        + &answer("t3", "a1", "c1")
        + &said("a8", "u5");
    let transcript = courses(&source);
    assert_eq!(
        transcript,
        [course(
            "s1",
            "u1 a1 a2 t1 t2 a3 u2 a4 c o u3 a5 b s u4 a6 u5 a7 t3 a8",
            None,
            true
        )]
    );
    // Lines that say of none which one they follow.
    let source =
        user("u1", "", "one", "") + &said("a1", "") + &user("u2", "", "two", "") + &said("a2", "");
    assert_eq!(courses(&source), [course("s1", "u1 a1 u2 a2", None, true)]);
}

#[test]
fn what_comes_late_to_a_branch_that_was_left_goes_there_and_does_not_bring_it_back() {
    let call = r#"{"type":"tool_use","id":"c1","name":"Read","input":{}}"#;
    let result =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"}]}"#;
    let note = r#"{"type":"title","title":"ships"}"#.to_owned() + "\n";
    let source = user("u1", "", "hello", "")
        + &said("a1", "u1")
        + &user("u2", "a1", "read it", "")
        + &assistant("a2", "u2", "r2", call, "")
        + &note
        + &user("u3", "a1", "do not read it", "")
        + &note
        + &line("t2", "a2", "user", result, "")
        + &said("a3", "u3");
    let hash = "h-";
    let found = courses(&source);
    let shorten = |id: &String| match id.starts_with(hash) {
        true => format!("note{}", id.rsplit('-').next().unwrap()),
        false => id.clone(),
    };
    let found: Vec<_> = found
        .into_iter()
        .map(|(key, ids, after, in_use)| {
            (
                key,
                ids.iter().map(shorten).collect::<Vec<_>>(),
                after,
                in_use,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            course("s1", "u1 a1 u2 a2 note1 t2", None, false),
            course("s1/u3", "u3 note2 a3", Some("s1:a1"), true),
        ]
    );
}

#[test]
fn a_source_tells_which_sessions_it_names_further_on() {
    let other = |text: String, key: &str| text.replace("\"sessionId\":\"s1\"", key);
    let source = user("u1", "", "hello", "")
        + &other(said("a1", "u1"), "\"sessionId\":\"s2\"")
        + &user("u2", "a1", "more", "");
    let transcript = read_str(&source);
    let session = &transcript.sessions[0];
    assert!(session.named && session.linked);
    let later = session.later_keys.iter();
    let later: Vec<(&str, &str)> = later.map(|(id, key)| (id.as_str(), key.as_str())).collect();
    assert_eq!(later, [("a1", "s2"), ("u2", "s1")]);
    let transcript = read_str(&other(user("u1", "", "hello", ""), "\"version\":\"2\""));
    assert!(!transcript.sessions[0].named);
}

fn ids_said(log: &SessionLog) -> Vec<&str> {
    let messages = log.messages.iter();
    let messages = messages.filter(|message| message.kind == EntryKind::Message);
    messages
        .map(|message| message.external_id.as_deref().unwrap())
        .collect()
}

#[test]
fn messages_that_a_compaction_writes_again_are_notes() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"y1","parentUuid":null,"sessionId":"s1","timestamp":"2026-03-02T09:01:00Z"}"#;
    let call = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"b":1}}"#;
    let made = |block: &str| {
        format!(r#"{{"id":"made","role":"assistant","model":"<synthetic>","content":[{block}]}}"#)
    };
    let hook = r#","rowSource":"hook""#;
    let shorter = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[shortened]"}]}"#;
    let source = [
        user("u1", "", "hello", ""),
        assistant("a1", "u1", "r1", call, ""),
        result("u2", "t1"),
        boundary.to_owned() + "\n",
        user("b1", "y1", "what was said", hook),
        user("b2", "b1", "hello", ""),
        line("b3", "b2", "assistant", &made(call), ""),
        line("b4", "b3", "user", shorter, hook),
        user("u3", "b4", "hello, anew", ""),
        // The user says it again.
        user("u4", "u3", "hello", ""),
    ]
    .concat();
    let transcript = read_str(&source);
    let [log] = &*transcript.sessions else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!(ids_said(log), ["u1", "a1", "u2", "u3", "u4"]);
    let note = |id: &str| {
        let mut notes = log.messages.iter();
        let note = notes.find(|one| one.external_id.as_deref() == Some(id));
        let [Part::Unknown { raw }] = &*note.unwrap().parts else {
            panic!("{note:?}")
        };
        raw.as_str()
    };
    assert!(note("b1").contains("what was said"), "kept as it came");
    let again = note("b2");
    assert!(again.contains(r#""repeats":"u1""#) && !again.contains("hello"));
    assert!(
        note("b4").contains("[shortened]"),
        "a result that differs is kept"
    );
    // Without a boundary before it, it is said.
    let without = read_str(&source.replace("compact_boundary", "turn_duration"));
    let mut logs = without.sessions.iter();
    assert!(logs.any(|log| ids_said(log).contains(&"b2")));
}

#[test]
fn an_outline_that_a_compaction_writes_again_ends_nothing() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"y1","parentUuid":null,"sessionId":"s1","timestamp":"2026-03-02T09:01:00Z"}"#;
    let outline = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"attachment","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"s1","timestamp":"2026-03-02T09:00:30Z","attachment":{{"type":"hook_additional_context","hookName":"SessionStart","hookEvent":"SessionStart","content":["<agent-memory>\\nx\\n</agent-memory>"]}}}}"#
        ) + "\n"
    };
    let call = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"b":1}}"#;
    let made =
        format!(r#"{{"id":"m","role":"assistant","model":"<synthetic>","content":[{call}]}}"#);
    let source = [
        user("u1", "", "hello", ""),
        outline("o1", "u1"),
        assistant("a1", "o1", "r1", call, ""),
        result("u2", "t1"),
        boundary.to_owned() + "\n",
        outline("o2", "y1"),
        user("b1", "o2", "hello", ""),
        line("b2", "b1", "assistant", &made, ""),
    ]
    .concat();
    let transcript = read_str(&source);
    assert_eq!(ids_said(&transcript.sessions[0]), ["u1", "a1", "u2"]);
}

#[test]
fn requests_in_a_sub_agents_file_are_the_sub_agents() {
    let side = r#","isSidechain":true,"agentId":"ag1""#;
    let request = r#"{"type":"api-request","sessionId":"s1","agentId":"ag1","id":"x","params":{"model":"m"}}"#;
    let source = [
        user("s1", "", "count", side),
        request.to_owned() + "\n",
        assistant("s2", "s1", "r9", r#"{"type":"text","text":"one"}"#, side),
    ]
    .concat();
    let transcript = read_str(&source);
    let [log] = &*transcript.sessions else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!(log.key.as_str(), "s1/ag1");
    assert_eq!((ids_said(log), log.notes()), (vec!["s1", "s2"], 1));
}

#[test]
fn an_output_stream_names_its_session_and_the_calls_of_sub_agents() {
    let line = |tag: &str, uuid: &str, call: &str, message: &str| {
        format!(
            r#"{{"type":"{tag}","uuid":"{uuid}","session_id":"s9","parent_tool_use_id":{call},"message":{message}}}"#
        ) + "\n"
    };
    let said_by = |role: &str, block: &str| format!(r#"{{"role":"{role}","content":[{block}]}}"#);
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let done = r#"{"type":"tool_result","tool_use_id":"t1","content":"done"}"#;
    let source = [
        r#"{"type":"system","subtype":"init","session_id":"s9","uuid":"i1"}"#.to_owned() + "\n",
        line("user", "u1", "null", &said_by("user", &text("go"))),
        line(
            "assistant",
            "a1",
            "null",
            &said_by("assistant", &task("t0", "look")),
        ),
        line(
            "assistant",
            "a2",
            "null",
            &said_by("assistant", &task("t1", "look")),
        ),
        line("user", "x1", r#""t1""#, &said_by("user", &text("look"))),
        line(
            "assistant",
            "x2",
            r#""t1""#,
            &said_by("assistant", &text("seen")),
        ),
        line("user", "r1", "null", &said_by("user", done)),
        r#"{"type":"result","subtype":"success","session_id":"s9","result":"seen","uuid":"z1"}"#
            .to_owned()
            + "\n",
    ]
    .concat();
    let transcript = read_str(&source);
    assert_eq!(transcript.format, "claude-code");
    let [main, side] = &*transcript.sessions else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!(
        (main.key.as_str(), main.named, main.linked),
        ("s9", true, false)
    );
    assert_eq!(ids_said(main), ["u1", "a1", "a2", "r1"]);
    assert_eq!(
        (side.key.as_str(), ids_said(side)),
        ("s9/t1", vec!["x1", "x2"])
    );
    let Origin::Spawn { call, after, .. } = &side.origin else {
        panic!("{:?}", side.origin)
    };
    assert_eq!(
        (call.as_deref(), after.as_deref()),
        (Some("t1"), Some("a2"))
    );
}

#[test]
fn a_sub_agents_own_file_is_linked_to_its_call_by_the_file_of_facts() {
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/claude-code");
    let folder = root.join("a6737539-e1d2-4567-9a63-931cf1b75242/subagents");
    let path = folder.join("agent-acff9958fcaa2f501.jsonl");
    let transcript =
        message_formats::read_file(&path, &message_formats::ReadOptions::default()).unwrap();
    let [log] = &*transcript.sessions else {
        panic!("{:?}", transcript.sessions)
    };
    let Origin::Spawn { parent, call, .. } = &log.origin else {
        panic!("{:?}", log.origin)
    };
    assert_eq!(parent.as_str(), "a6737539-e1d2-4567-9a63-931cf1b75242");
    let facts = std::fs::read_to_string(folder.join("agent-acff9958fcaa2f501.meta.json")).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(call.as_deref(), facts["toolUseId"].as_str());
    assert!(call.is_some());
}

/// Writes a session with three results, of which the program saved the whole outputs, and reads it.
fn with_saved_outputs(folder: &std::path::Path) -> message_formats::Transcript {
    let shown = |call: &str, path: &str| {
        let text = format!(
            "<persisted-output>\\nOutput too large (9KB). Full output saved to: {path}\\n\\nPreview (first 2KB):\\nline 1\\n</persisted-output>"
        );
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]}}"#
        )
    };
    let call = |id: &str| {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}"#)
    };
    let lines = [
        user("u1", "", "List them.", ""),
        assistant("a1", "u1", "m1", &call("c1"), ""),
        line(
            "r1",
            "a1",
            "user",
            &shown("c1", "/home/dev/s/tool-results/b1.txt"),
            "",
        ),
        assistant("a2", "r1", "m2", &call("c2"), ""),
        line("r2", "a2", "user", &shown("c2", "/etc/../outside.txt"), ""),
        assistant("a3", "r2", "m3", &call("c3"), ""),
        line(
            "r3",
            "a3",
            "user",
            &shown("c3", "C:\\\\s\\\\tool-results\\\\linked.txt"),
            "",
        ),
        assistant(
            "a4",
            "r3",
            "m4",
            r#"{"type":"text","text":"Full output saved to: b1.txt"}"#,
            "",
        ),
    ];
    let path = folder.join("s.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    message_formats::read_file(&path, &message_formats::ReadOptions::default()).unwrap()
}

#[test]
fn a_saved_output_is_a_note_behind_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let before = with_saved_outputs(folder.path());
    let outputs = folder.path().join("s/tool-results");
    std::fs::create_dir_all(&outputs).unwrap();
    std::fs::write(outputs.join("b1.txt"), "line 1\nline 2\n").unwrap();
    std::fs::write(folder.path().join("outside.txt"), "not part of the session").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../../outside.txt", outputs.join("linked.txt")).unwrap();
    let after = with_saved_outputs(folder.path());
    let [log] = &*after.sessions else {
        panic!("{:?}", after.sessions)
    };
    let notes = log.messages.iter().enumerate();
    let notes: Vec<(usize, &Message)> = notes
        .filter(|(_, message)| message.kind == EntryKind::Note)
        .collect();
    let [(3, note)] = notes.as_slice() else {
        panic!("{notes:?}")
    };
    assert_eq!(note.text(), "line 1\nline 2\n");
    assert_eq!(note.external_id.as_deref(), Some("r1/output"));
    let mut rest = log.messages.clone();
    rest.remove(3);
    assert_eq!(rest, before.sessions[0].messages);
}
