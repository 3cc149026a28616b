//! Session files that are written, and read again; summaries that session files hold.

use memory_model::{EntryKind, Message, Part, RawJson, ResultContent, Role, SessionKey, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lists::any_messages;

use message_formats::{ReadOptions, SessionFile, SessionLog, SourceScope, read};

fn read_one(lines: &str) -> SessionLog {
    let transcript = read(lines.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(transcript.format, "pi");
    assert!(
        transcript.report.skipped.is_empty(),
        "{:?}",
        transcript.report
    );
    transcript.sessions.into_iter().next().unwrap()
}

fn ten() -> Vec<Message> {
    let at = |n: i64| Timestamp(1_700_000_000_000_000 + n * 1_000_000);
    let call = Message::tool_call(
        "c1",
        "read",
        RawJson::parse(r#"{ "path":"a.rs" }"#).unwrap(),
    );
    let mut several = Message::tool_result("c1", "fn main() {}");
    several.parts.push(Part::ToolResult {
        call_id: "c2".to_owned(),
        content: ResultContent::Parts(vec![Part::text("a"), Part::text("b")]),
        is_error: Some(true),
    });
    let mut thought = Message::assistant("Done \"so\" far.\n");
    thought.parts.insert(
        0,
        Part::Reasoning {
            text: "hm".to_owned(),
            signature: Some("s".to_owned()),
        },
    );
    let said = [Message::user("Read a.rs\u{2028}"), call, several, thought];
    let ids = ["m1", "m2", "m3", "m4"];
    let said = said.into_iter().zip(ids).zip(0..);
    said.map(|((message, id), n)| message.with_external_id(id).with_created_at(at(n)))
        .collect()
}

#[test]
fn what_is_written_reads_back_the_same_with_the_summary_first() {
    let messages = ten();
    let key = SessionKey::new("chat \"1\"");
    let file = SessionFile {
        key: &key,
        created_at: Timestamp(1_600_000_000_000_000),
        folder: "/srv",
        summary: Some("Goal: read a.rs.\nNext: main."),
        tokens_before: 900,
        messages: &messages,
    };
    let mut bytes = Vec::new();
    file.write(&mut bytes).unwrap();
    let log = read_one(std::str::from_utf8(&bytes).unwrap());
    assert_eq!(log.key, key);
    let said: Vec<&Message> = log
        .messages
        .iter()
        .filter(|message| message.kind == EntryKind::Message)
        .collect();
    // The summary is all that is left of what it stands for, so it is said; then come the messages.
    assert_eq!(said[0].role, Role::User);
    assert_eq!(said[0].text(), "Goal: read a.rs.\nNext: main.");
    let parts: Vec<&[Part]> = said[1..].iter().map(|message| &*message.parts).collect();
    // The form has lists of blocks alone, and says of each result whether it is an error.
    let result = [Part::ToolResult {
        call_id: "c1".to_owned(),
        content: ResultContent::Parts(vec![Part::text("fn main() {}")]),
        is_error: Some(false),
    }];
    let expected: Vec<&[Part]> = vec![
        &messages[0].parts,
        &messages[1].parts,
        &result,
        &messages[2].parts[1..],
        &messages[3].parts,
    ];
    assert_eq!(parts, expected);
    let ids: Vec<&str> = said[1..]
        .iter()
        .map(|message| message.external_id.as_deref().unwrap())
        .collect();
    assert_eq!(ids, ["m1", "m2", "m3", "m3/2", "m4"]);
    assert_eq!(said[1].created_at, messages[0].created_at);
    let [summary] = &*log.summaries else {
        panic!("{:?}", log.summaries)
    };
    assert_eq!(summary.scope, SourceScope::Before { kept_from: None });
    assert_eq!(Some(&summary.entry), said[0].external_id.as_ref());
}

#[test]
fn what_pi_reads_without_a_check_is_there() {
    let messages = ten();
    let key = SessionKey::new("chat");
    let file = SessionFile {
        key: &key,
        created_at: Timestamp(0),
        folder: "/srv",
        summary: Some("Goal."),
        tokens_before: 900,
        messages: &messages,
    };
    let lines: Vec<Value> = file
        .lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["cwd"], "/srv");
    assert_eq!(
        (&lines[1]["firstKeptEntryId"], &lines[1]["tokensBefore"]),
        (&lines[1]["id"], &json!(900))
    );
    for line in &lines[2..] {
        let message = &line["message"];
        assert!(
            message["timestamp"].is_i64() && message["content"].is_array(),
            "{line}"
        );
        match message["role"].as_str() {
            Some("assistant") => {
                let calls = message["content"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|one| one["type"] == "toolCall");
                assert_eq!(
                    message["stopReason"],
                    if calls { "toolUse" } else { "stop" }
                );
                for key in ["api", "provider", "model"] {
                    assert_eq!(message[key], "unknown");
                }
                assert_eq!(message["usage"]["cost"]["total"], 0);
            }
            Some("toolResult") => assert!(message["isError"].is_boolean()),
            _ => {}
        }
    }
    // The facts of pi's own answers stay theirs.
    let own = concat!(
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/srv"}"#,
        "\n",
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"assistant","content":[{"type":"text","text":"Yes."}],"#,
        r#""api":"x","provider":"p","model":"m","usage":{"input":3,"cacheRead":1},"stopReason":"length","timestamp":5}}"#,
    );
    let log = read_one(own);
    let said: Vec<Message> = log
        .messages
        .into_iter()
        .filter(|one| one.kind == EntryKind::Message)
        .collect();
    let line = SessionFile {
        messages: &said,
        summary: None,
        ..file
    }
    .lines()
    .pop()
    .unwrap();
    let message = &serde_json::from_str::<Value>(&line).unwrap()["message"];
    assert_eq!(message["usage"], json!({"input":3,"cacheRead":1}));
    assert_eq!(
        (&message["model"], &message["stopReason"]),
        (&json!("m"), &json!("length"))
    );
}

#[test]
fn an_estimate_of_stored_lines_counts_envelopes_and_the_summary() {
    let messages = ten();
    let key = SessionKey::new("chat");
    let mut file = SessionFile {
        key: &key,
        created_at: Timestamp(0),
        folder: "",
        summary: None,
        tokens_before: 0,
        messages: &messages,
    };
    let bytes = |file: &SessionFile<'_>| {
        let mut out = Vec::new();
        file.write(&mut out).unwrap();
        out.len() as u64 - out.iter().filter(|byte| **byte == b'\n').count() as u64
    };
    let by_bytes = |text: &str| text.len() as u64;
    assert_eq!(file.tokens(by_bytes), bytes(&file));
    let without = file.tokens(|text| text.len() as u64 / 4);
    file.summary = Some("Goal: read a.rs.");
    assert_eq!(file.tokens(by_bytes), bytes(&file));
    assert!(file.tokens(|text| text.len() as u64 / 4) > without + 4);
    let content: u64 = messages
        .iter()
        .map(|message| message.text().len() as u64)
        .sum();
    assert!(without > content / 4, "envelopes count");
}

#[test]
fn summaries_of_pi_name_what_is_kept() {
    let log = read_one(
        r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"two"}}
{"type":"compaction","id":"c","parentId":"b","summary":"One.","firstKeptEntryId":"b","tokensBefore":9,"details":{"readFiles":["x"]}}
{"type":"message","id":"d","parentId":"c","message":{"role":"user","content":"three"}}
{"type":"compaction","id":"e","parentId":"d","summary":"Gone.","firstKeptEntryId":"nobody"}
{"type":"compaction","id":"f","parentId":"e","summary":" ","firstKeptEntryId":"d"}
"#,
    );
    let [summary] = &*log.summaries else {
        panic!("{:?}", log.summaries)
    };
    assert_eq!((&*summary.entry, &*summary.text), ("c", "One."));
    let kept_from = Some("b".to_owned());
    assert_eq!(summary.scope, SourceScope::Before { kept_from });
    assert_eq!(
        summary.details.as_ref().unwrap().as_str(),
        r#"{"readFiles":["x"]}"#
    );
    // Nothing of it is said: the messages are there.
    let said = log.messages.iter().filter(|m| m.kind == EntryKind::Message);
    assert_eq!(said.count(), 3);
}

#[test]
fn the_first_version_counts_entries_and_a_branch_names_its_end() {
    let log = read_one(
        r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z"}
{"type":"message","message":{"role":"user","content":"one"}}
{"type":"message","message":{"role":"user","content":"two"}}
{"type":"compaction","summary":"One.","firstKeptEntryIndex":2}
"#,
    );
    let second = log.messages[2].external_id.clone();
    assert_eq!(
        log.summaries[0].scope,
        SourceScope::Before { kept_from: second }
    );
    let transcript = read(
        &br#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"two"}}
{"type":"branch_summary","id":"c","parentId":"a","fromId":"b","summary":"Tried two."}
{"type":"message","id":"d","parentId":"c","message":{"role":"user","content":"three"}}
"#[..],
        &ReadOptions::default(),
    )
    .unwrap();
    let [summary] = &*transcript.sessions[1].summaries else {
        panic!("{transcript:?}")
    };
    let left_at = Some("b".to_owned());
    assert_eq!(summary.scope, SourceScope::Branch { left_at });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_of_a_session_file_is_read_again_and_no_word_is_lost(
        messages in any_messages(),
        summary in proptest::option::of("[a-z\"\\\\\n]{1,20}"),
    ) {
        let key = SessionKey::new("chat");
        let at = |(n, message): (i64, Message)| message.with_created_at(Timestamp(1_700_000_000_000_000 + n * 1_000_000));
        // A message of the system is read as a note.
        let said = messages.into_iter().filter(|message| message.role != Role::System);
        let messages: Vec<Message> = (1..).zip(said).map(at).collect();
        let file = SessionFile {
            key: &key,
            created_at: Timestamp(1_600_000_000_000_000),
            folder: "/srv",
            summary: summary.as_deref().filter(|text| !text.trim().is_empty()),
            tokens_before: 900,
            messages: &messages,
        };
        let read_back = |file: &SessionFile<'_>| -> Vec<Message> {
            let log = read_one(&file.lines().join("\n"));
            let is_summary = |message: &Message| {
                let mut summaries = log.summaries.iter();
                summaries.any(|one| Some(&one.entry) == message.external_id.as_ref())
            };
            let messages = log.messages.iter();
            let said = messages.filter(|one| one.kind == EntryKind::Message && !is_summary(one));
            said.cloned().collect()
        };
        let words = |messages: &[Message]| -> Vec<String> {
            let parts = messages.iter().flat_map(|message| &message.parts);
            let words = parts.filter_map(|part| match part {
                Part::Text { text } | Part::Reasoning { text, .. } => Some(text.clone()),
                _ => None,
            });
            words.collect()
        };
        let once = read_back(&file);
        let read = words(&once);
        let lost: Vec<String> = words(&messages).into_iter().filter(|text| !read.contains(text)).collect();
        prop_assert_eq!(lost, Vec::<String>::new());
        let again = read_back(&SessionFile { messages: &once, ..file });
        let parts = |messages: Vec<Message>| -> Vec<(Role, Option<String>, Vec<Part>)> {
            let all = messages.into_iter();
            all.map(|one| (one.role, one.external_id, one.parts)).collect()
        };
        prop_assert_eq!(parts(again), parts(once));
    }
}
