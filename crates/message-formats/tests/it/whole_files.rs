//! Whole JSON documents of agents and benchmarks, counted a second time without this crate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use memory_model::conventions::AgentConventions as _;
use memory_model::{EntryKind, Message, Part, ResultContent, Role};
use message_formats::{ErrorKind, KnownAgents, ReadOptions, SessionLog, Transcript, read_file};
use serde_json::{Value, json};

use crate::support::{corpus, export, read_str};

/// What a conversation holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) messages: usize,
    pub(crate) notes: usize,
    pub(crate) calls: usize,
    /// Results whose call came before.
    pub(crate) paired: usize,
    /// Results of no call.
    pub(crate) loose: usize,
    pub(crate) failed: usize,
    /// Parts of messages that are not known.
    pub(crate) unknown: usize,
}

pub(crate) fn counts(session: &SessionLog) -> Counts {
    let mut counts = Counts::default();
    let mut calls = BTreeSet::new();
    for message in &session.messages {
        if message.kind == EntryKind::Note {
            counts.notes += 1;
            continue;
        }
        counts.messages += 1;
        for part in &message.parts {
            match part {
                Part::ToolCall { id, .. } => {
                    counts.calls += 1;
                    calls.insert(id.as_str());
                }
                Part::ToolResult {
                    call_id, is_error, ..
                } => {
                    match calls.contains(call_id.as_str()) {
                        true => counts.paired += 1,
                        false => counts.loose += 1,
                    }
                    counts.failed += usize::from(*is_error == Some(true));
                }
                Part::Unknown { .. } => counts.unknown += 1,
                _ => {}
            }
        }
    }
    counts
}

/// Reads a file, checks what holds for every format, and returns the transcript beside the file as a value.
fn both(path: &Path, format: &str) -> (Transcript, Value) {
    let transcript = read_file(path, &ReadOptions::default()).unwrap();
    assert_eq!(transcript.format, format, "{}", path.display());
    let report = &transcript.report;
    assert!(
        !report.lost_any(),
        "{}: {:?}",
        path.display(),
        report.skipped
    );
    let mut keys = BTreeSet::new();
    for session in &transcript.sessions {
        assert!(keys.insert(session.key.clone()), "{} twice", session.key);
        let ids = session
            .messages
            .iter()
            .map(|m| m.external_id.clone().unwrap());
        let ids: BTreeSet<String> = ids.collect();
        assert_eq!(ids.len(), session.messages.len(), "{}", session.key);
        // What was exported reads back the same.
        let options = ReadOptions::default().with_session(session.key.as_str());
        let again = message_formats::read(export(session).as_bytes(), &options).unwrap();
        assert!(
            again.sessions[0].messages == session.messages,
            "{}",
            session.key
        );
    }
    let text = std::fs::read_to_string(path).unwrap();
    let value = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut documents: Vec<Value> = value.map(Result::unwrap).collect();
    let value = match documents.len() {
        1 => documents.remove(0),
        _ => Value::Array(documents),
    };
    (transcript, value)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Whether some text of the messages is exactly this.
fn is_told(session: &SessionLog, text: &str) -> bool {
    let messages = session
        .messages
        .iter()
        .filter(|m| m.kind == EntryKind::Message);
    messages.flat_map(|m| &m.parts).any(|part| match part {
        Part::Text { text: found } | Part::Reasoning { text: found, .. } => found == text,
        Part::ToolResult { content, .. } => content.text().contains(text),
        _ => false,
    })
}

/// Counts an export of opencode.
fn opencode_counts(export: &Value) -> Counts {
    let mut counts = Counts {
        notes: 1,
        ..Counts::default()
    };
    for message in items(&export["messages"]) {
        let parts = items(&message["parts"]);
        let kinds = || parts.iter().map(|part| str_of(part, "type"));
        if kinds().all(|kind| kind == "compaction")
            || message["info"]["summary"] == Value::Bool(true)
        {
            counts.notes += 1;
            continue;
        }
        counts.messages += 1;
        counts.notes += kinds().filter(|kind| *kind == "patch").count();
        for tool in parts.iter().filter(|part| part["type"] == "tool") {
            counts.calls += 1;
            let status = str_of(&tool["state"], "status");
            let has_result = ["completed", "error"].contains(&status);
            counts.messages += usize::from(has_result);
            counts.paired += usize::from(has_result);
            counts.failed += usize::from(status == "error");
        }
    }
    counts
}

fn opencode_agrees(path: &Path) {
    let (transcript, value) = both(path, "opencode");
    let [session] = &transcript.sessions[..] else {
        panic!("{}", path.display())
    };
    assert_eq!(session.key.as_str(), str_of(&value["info"], "id"));
    let expected = opencode_counts(&value);
    println!("{}: {expected:?}", path.display());
    assert_eq!(counts(session), expected);
    for part in items(&value["messages"])
        .iter()
        .flat_map(|message| items(&message["parts"]))
    {
        let text = match str_of(part, "type") {
            "text" | "reasoning" => str_of(part, "text"),
            "tool" => str_of(&part["state"], "output"),
            _ => continue,
        };
        let summary = session.summaries.iter().any(|summary| summary.text == text);
        assert!(
            text.is_empty() || summary || is_told(session, text),
            "{text}"
        );
    }
}

/// A sub-agent's session as opencode 1.18.33 exported it. Its words are invented.
fn subagent() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/data/opencode-subagent.json")
}

#[test]
fn sessions_of_opencode_agree_with_a_second_count() {
    corpus("opencode")
        .iter()
        .for_each(|path| opencode_agrees(path));
    opencode_agrees(&subagent());
}

#[test]
fn task_files_of_cline_agree_with_a_second_count() {
    for path in corpus("cline") {
        let (transcript, value) = both(&path, "cline");
        let session = &transcript.sessions[0];
        let mut expected = Counts::default();
        for message in items(&value) {
            let blocks = items(&message["content"]);
            let is = |block: &&Value, kind: &str| block["type"] == kind;
            let is_result = |block: &&Value| {
                let text = str_of(block, "text");
                text.starts_with('[') && text.contains("] Result:")
            };
            let results = blocks.iter().filter(is_result).count();
            let failure = "] Result:\nThe tool execution failed with the following error";
            let has_failed = |block: &&Value| {
                let text = str_of(block, "text");
                let end = text.find("] Result:").unwrap_or_default();
                is_result(block) && text[end..].starts_with(failure)
            };
            expected.failed += blocks.iter().filter(has_failed).count();
            let others = blocks.len() - results;
            expected.messages += usize::from(results > 0) + usize::from(others > 0);
            expected.calls += blocks.iter().filter(|block| is(block, "tool_use")).count();
            expected.paired += results;
        }
        println!("{}: {expected:?}", path.display());
        assert_eq!(counts(session), expected);
        let texts = items(&value)
            .iter()
            .flat_map(|message| items(&message["content"]));
        for text in texts.filter_map(|block| block["text"].as_str()) {
            assert!(is_told(session, text), "{text}");
        }
    }
}

#[test]
fn trajectories_agree_with_a_second_count() {
    for (folder, list) in [("swe-agent", "history"), ("mini-swe-agent", "messages")] {
        for path in corpus(folder) {
            let (transcript, value) = both(&path, "swe-agent");
            let session = &transcript.sessions[0];
            let messages = items(&value[list]);
            let calls = messages
                .iter()
                .flat_map(|message| items(&message["tool_calls"]));
            let calls = calls.count();
            let expected = Counts {
                messages: messages.len(),
                notes: 1,
                calls,
                paired: messages.iter().filter(|m| m["role"] == "tool").count(),
                ..Counts::default()
            };
            println!("{}: {expected:?}", path.display());
            assert_eq!(counts(session), expected);
            for (message, read) in messages.iter().zip(&session.messages) {
                let text = str_of(message, "content");
                let found = match &read.parts[..] {
                    [Part::ToolResult { content, .. }] => content.text().into_owned(),
                    _ => read.text(),
                };
                assert_eq!(found, text);
            }
        }
    }
}

#[test]
fn runs_of_openhands_agree_with_a_second_count() {
    for path in corpus("openhands") {
        let (transcript, value) = both(&path, "openhands");
        let runs = items(&value);
        assert_eq!(transcript.sessions.len(), runs.len());
        for (run, session) in runs.iter().zip(&transcript.sessions) {
            assert_eq!(session.key.as_str(), str_of(run, "instance_id"));
            let mut expected = Counts {
                notes: 1,
                ..Counts::default()
            };
            for event in items(&run["history"]) {
                let has_call = event.get("tool_call_metadata").is_some();
                if event["action"] == "recall" {
                    expected.notes += 1;
                    continue;
                }
                expected.messages += 1;
                let is_action = event.get("action").is_some();
                expected.calls += usize::from(has_call && is_action);
                expected.paired += usize::from(has_call && !is_action);
                expected.failed += usize::from(event["success"] == Value::Bool(false));
            }
            println!("{}: {expected:?}", session.key);
            assert_eq!(counts(session), expected);
            let ids: Vec<&str> = session
                .messages
                .iter()
                .filter_map(|m| m.external_id.as_deref())
                .collect();
            let events = items(&run["history"])
                .iter()
                .map(|event| event["id"].to_string());
            let events: Vec<String> = events.collect();
            assert_eq!(ids[..events.len()], events);
        }
    }
}

#[test]
fn runs_of_tau_bench_agree_with_a_second_count() {
    for path in corpus("tau-bench") {
        let (transcript, value) = both(&path, "tau-bench");
        let runs = items(&value);
        assert_eq!(transcript.sessions.len(), runs.len());
        for (run, session) in runs.iter().zip(&transcript.sessions) {
            let key = format!("tau-bench-{}-{}", run["task_id"], run["trial"]);
            assert_eq!(session.key.as_str(), key);
            let messages = items(&run["traj"]);
            let calls = messages
                .iter()
                .flat_map(|message| items(&message["tool_calls"]));
            let expected = Counts {
                messages: messages.len(),
                notes: 1,
                calls: calls.count(),
                paired: messages.iter().filter(|m| m["role"] == "tool").count(),
                ..Counts::default()
            };
            assert_eq!(counts(session), expected);
        }
    }
}

#[test]
fn data_sets_and_prose_are_not_taken_for_lists_of_messages() {
    for folder in ["text", "locomo", "beam", "memorycode"] {
        for path in corpus(folder) {
            let error = read_file(&path, &ReadOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{}", path.display());
        }
    }
}

/// Every document that a list of messages grows through is the beginning of the next, ids included.
#[test]
fn a_document_that_grows_keeps_what_it_had() {
    let read_value = |value: &Value| {
        let transcript = read_str(&value.to_string());
        transcript.sessions.into_iter().next().unwrap()
    };
    let files: Vec<PathBuf> = ["opencode", "cline", "swe-agent", "mini-swe-agent"]
        .into_iter()
        .flat_map(corpus)
        .collect();
    for path in files {
        let whole: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let list = ["/messages", "/history", ""]
            .into_iter()
            .find(|list| whole.pointer(list).is_some_and(Value::is_array))
            .unwrap();
        let finished = read_value(&whole);
        let count = whole.pointer(list).unwrap().as_array().unwrap().len();
        for length in [4, count / 2, count - 1] {
            let mut part = whole.clone();
            part.pointer_mut(list)
                .unwrap()
                .as_array_mut()
                .unwrap()
                .truncate(length);
            if let Some(info) = part.get_mut("info").and_then(Value::as_object_mut) {
                // Of a run that goes on.
                info.remove("exit_status");
            }
            let part = read_value(&part);
            assert_eq!(part.key, finished.key, "{}", path.display());
            assert!(
                finished.messages.starts_with(&part.messages),
                "{} at {length}",
                path.display()
            );
        }
    }
}

#[test]
fn a_document_that_is_cut_or_too_long_is_refused_with_advice() {
    let cut = r#"{"messages":[{"role":"user","content":"Go."},{"role":"assis"#;
    let error = message_formats::read(cut.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("read it once it is written"),
        "{error}"
    );
    let long = format!(
        r#"{{"info":{{"mini_version":"1"}},"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(300)
    );
    let options = ReadOptions::default().with_max_line_bytes(200);
    let error = message_formats::read(long.as_bytes(), &options).unwrap_err();
    assert!(error.to_string().contains("more than 200 bytes"), "{error}");
    // Behind a whole document it is counted.
    let lines = format!("{long}\n{cut}");
    let report = read_str(&lines).report;
    assert_eq!(report.skipped.get("incomplete"), Some(&1));
}

fn texts(session: &SessionLog) -> Vec<(Role, EntryKind, String)> {
    let entry = |message: &Message| (message.role, message.kind, message.text());
    session.messages.iter().map(entry).collect()
}

/// A message of opencode with these facts and parts, each of which gets an id.
fn opencode_message(id: &str, info: &str, parts: &[&str]) -> String {
    let parts = parts.iter().enumerate().map(|(at, part)| {
        format!(r#"{{"id":"prt_{id}_{at}","sessionID":"ses_1","messageID":"{id}",{part}}}"#)
    });
    let parts: Vec<String> = parts.collect();
    format!(
        r#"{{"info":{{"id":"{id}","sessionID":"ses_1",{info}}},"parts":[{}]}}"#,
        parts.join(",")
    )
}

fn opencode(messages: &[String]) -> SessionLog {
    let text = format!(
        r#"{{"info":{{"id":"ses_1","directory":"/srv/app","title":"t","time":{{"created":1,"updated":{}}}}},"messages":[{}]}}"#,
        messages.len(),
        messages.join(",\n")
    );
    let transcript = read_str(&text);
    assert_eq!(transcript.format, "opencode");
    transcript.sessions.into_iter().next().unwrap()
}

#[test]
fn opencode_is_read_as_the_model_saw_it() {
    const USER: &str = r#""role":"user","time":{"created":1780000000000},"summary":{"diffs":[]}"#;
    const DONE: &str = r#""role":"assistant","path":{"cwd":"/srv/app"},"time":{"created":1780000000000,"completed":1780000001000}"#;
    const LEFT: &str = r#""role":"assistant","time":{"created":1780000002000}"#;
    let messages = [
        opencode_message(
            "msg_1",
            USER,
            &[
                r#""type":"text","text":"Look at a.txt.""#,
                r#""type":"text","synthetic":true,"text":"Called the Read tool.""#,
                r#""type":"file","mime":"text/plain","url":"file:///a.txt""#,
                r#""type":"file","mime":"image/png","url":"data:image/png;base64,AAAA""#,
                r#""type":"text","ignored":true,"text":"Only shown.""#,
            ],
        ),
        opencode_message(
            "msg_2",
            DONE,
            &[
                r#""type":"step-start""#,
                r#""type":"text","text":"Two at once.""#,
                r#""type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"ls"},"output":"a.txt","time":{"start":1,"end":2,"compacted":3}}"#,
                r#""type":"tool","tool":"read","callID":"c2","state":{"status":"error","input":{"filePath":"/b"},"error":"File not found"}"#,
                r#""type":"step-start""#,
                r#""type":"text","text":"One is missing.""#,
                r#""type":"hologram","beam":1"#,
            ],
        ),
        opencode_message(
            "msg_3",
            LEFT,
            &[
                r#""type":"tool","tool":"bash","callID":"c3","state":{"status":"running","input":{"command":"sleep 9"}}"#,
            ],
        ),
        opencode_message(
            "msg_4",
            USER,
            &[r#""type":"compaction","auto":false,"tail_start_id":"msg_3""#],
        ),
        opencode_message(
            "msg_5",
            &format!(r#""summary":true,{DONE}"#),
            &[r#""type":"text","text":"They looked at a.txt.""#],
        ),
        opencode_message(
            "msg_6",
            &format!(r#""error":{{"name":"MessageAbortedError"}},{LEFT}"#),
            &[r#""type":"step-start""#],
        ),
    ];
    let log = opencode(&messages);
    use EntryKind::{Message as M, Note as N};
    let kinds: Vec<(Role, EntryKind)> = texts(&log)
        .iter()
        .map(|(role, kind, _)| (*role, *kind))
        .collect();
    use Role::{Assistant as A, System as S, Tool as T, User as U};
    assert_eq!(
        kinds,
        [
            (S, N),
            (U, M),
            (U, M),
            (U, M),
            (U, N),
            (U, N),
            (A, M),
            (T, M),
            (T, M),
            (A, M),
            (A, M),
            (U, N),
            (A, N),
            (A, N),
        ]
    );
    let ids: Vec<&str> = log
        .messages
        .iter()
        .filter_map(|m| m.external_id.as_deref())
        .collect();
    assert_eq!(
        ids,
        [
            "ses_1",
            "msg_1",
            "prt_msg_1_1",
            "prt_msg_1_3",
            "prt_msg_1_2",
            "prt_msg_1_4",
            "msg_2",
            "prt_msg_2_2",
            "prt_msg_2_3",
            "prt_msg_2_5",
            "msg_3",
            "msg_4",
            "msg_5",
            "msg_6",
        ]
    );
    let counted = counts(&log);
    assert_eq!(
        (
            counted.calls,
            counted.paired,
            counted.failed,
            counted.unknown
        ),
        (3, 2, 1, 1)
    );
    let meta = |at: usize| log.messages[at].meta.as_ref().unwrap().as_str();
    assert!(meta(2).contains(r#""synthetic":true"#) && log.messages[1].meta.is_none());
    assert!(meta(6).contains(r#""cwd":"/srv/app""#) && !meta(7).contains("compacted"));
    assert_eq!(log.summaries.len(), 1);
    assert_eq!(
        (
            log.summaries[0].entry.as_str(),
            log.summaries[0].text.as_str()
        ),
        ("msg_5", "They looked at a.txt.")
    );

    // The last message waits for its end.
    for length in 1..=messages.len() {
        let part = opencode(&messages[..length]);
        assert!(log.messages.starts_with(&part.messages), "{length}");
        let is_told = part
            .messages
            .iter()
            .any(|m| m.external_id.as_deref() == Some("msg_3"));
        assert_eq!(is_told, length > 3);
    }
}

#[test]
fn a_call_of_opencode_that_begins_an_entry_keeps_its_result() {
    const DONE: &str =
        r#""role":"assistant","time":{"created":1780000000000,"completed":1780000001000}"#;
    let tool = |id: u8| {
        format!(
            r#""type":"tool","tool":"bash","callID":"c{id}","state":{{"status":"completed","input":{{}},"output":"out-c{id}"}}"#
        )
    };
    let step = r#""type":"step-start""#;
    let synthetic = r#""type":"text","synthetic":true,"text":"Go on.""#;
    for (parts, ids) in [
        (
            [step, &tool(1), step, &tool(2)],
            [
                "ses_1",
                "msg_1",
                "prt_msg_1_1",
                "prt_msg_1_3",
                "prt_msg_1_3-result",
            ],
        ),
        (
            [step, synthetic, &tool(1), step],
            ["ses_1", "msg_1", "prt_msg_1_2", "prt_msg_1_2-result", ""],
        ),
    ] {
        let log = opencode(&[opencode_message("msg_1", DONE, &parts)]);
        let found = log.messages.iter().filter_map(|m| m.external_id.as_deref());
        let ids = ids.into_iter().filter(|id| !id.is_empty());
        assert_eq!(found.collect::<Vec<_>>(), ids.collect::<Vec<_>>());
        let counted = counts(&log);
        let calls = parts.iter().filter(|part| part.contains("callID")).count();
        assert_eq!(
            (counted.calls, counted.paired, counted.loose),
            (calls, calls, 0)
        );
        assert!((1..=calls).all(|call| is_told(&log, &format!("out-c{call}"))));
    }
}

#[test]
fn texts_of_agents_with_half_a_surrogate_pair_are_kept_as_they_came() {
    let parts = [
        r#""type":"text","text":"a\ud800""#,
        r#""type":"tool","tool":"bash","callID":"c1","state":{"status":"completed","input":{},"output":"b\ud800"}"#,
    ];
    const DONE: &str =
        r#""role":"assistant","time":{"created":1780000000000,"completed":1780000001000}"#;
    let log = opencode(&[opencode_message("msg_1", DONE, &parts)]);
    let events = r#"[{"id":0,"source":"user","action":"message","args":{"content":"a\ud800"}},
{"id":1,"source":"agent","action":"run","args":{"command":"ls"}},
{"id":2,"source":"agent","observation":"run","cause":1,"content":"b\ud800","extras":{}}]"#;
    let events = read_str(events).sessions.remove(0);
    let cline = r#"[{"role":"user","content":[{"type":"text","text":"<task>a\ud800"}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read_file","input":{}}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:\nb\ud800"}]}]"#;
    let cline = read_str(cline).sessions.remove(0);
    for log in [&log, &events, &cline] {
        let counted = counts(log);
        assert_eq!((counted.paired, counted.loose, counted.unknown), (1, 0, 0));
        let metas = log.messages.iter().filter_map(|m| m.meta.as_ref());
        let metas: String = metas.map(|meta| meta.as_str()).collect();
        for text in ["a", "b"] {
            let message = log
                .messages
                .iter()
                .flat_map(|m| &m.parts)
                .any(|part| match part {
                    Part::Text { text: found } => found.ends_with(&format!("{text}\u{fffd}")),
                    Part::ToolResult { content, .. } => {
                        content.text().ends_with(&format!("{text}\u{fffd}"))
                    }
                    _ => false,
                });
            assert!(message, "{text}: {log:?}");
            assert!(metas.contains(&format!(r"{text}\ud800")), "{metas}");
        }
    }
}

#[test]
fn a_sub_agent_of_opencode_is_linked_to_its_parent() {
    let transcript = read_file(&subagent(), &ReadOptions::default()).unwrap();
    let message_formats::Origin::Spawn { parent, .. } = &transcript.sessions[0].origin else {
        panic!("{:?}", transcript.sessions[0].origin)
    };
    assert_eq!(parent.as_str(), "ses_deb145a13ffehu1wpIP12WXgdp");
}

#[test]
fn a_task_of_cline_is_named_by_its_folder() {
    let text = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nFix it.\n</task>"}],"ts":1780000000000},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"a"}},{"type":"tool_use","id":"t2","name":"read_file","input":{"path":"b"}},{"type":"tool_use","id":"t3","name":"execute_command","input":{"command":"ls"}}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'a'] Result:"},{"type":"text","text":"one"},{"type":"text","text":"[read_file for 'b'] Result:\nThe tool execution failed with the following error: none"},{"type":"tool_result","tool_use_id":"t3","content":"a b"},{"type":"text","text":"<environment_details>\nx\n</environment_details>"}]}]"#;
    let folder = tempfile::tempdir().unwrap();
    let task = folder.path().join("1770913324799");
    std::fs::create_dir(&task).unwrap();
    let path = task.join("api_conversation_history.json");
    std::fs::write(&path, text).unwrap();
    let transcript = read_file(&path, &ReadOptions::default()).unwrap();
    let log = &transcript.sessions[0];
    assert_eq!((log.key.as_str(), log.named), ("1770913324799", true));
    let counted = counts(log);
    assert_eq!(
        (
            counted.messages,
            counted.calls,
            counted.paired,
            counted.failed
        ),
        (4, 3, 3, 1)
    );
    assert!(log.messages[0].created_at.is_known());
    let [
        Part::ToolResult {
            call_id, content, ..
        },
        ..,
    ] = &log.messages[2].parts[..]
    else {
        panic!("{:?}", log.messages[2])
    };
    assert_eq!(
        (call_id.as_str(), content.text().as_ref()),
        ("t1", "[read_file for 'a'] Result:\none")
    );
    assert_eq!(
        (log.messages[2].role, log.messages[3].role),
        (Role::Tool, Role::User)
    );
    let unnamed = read_str(text);
    assert!(!unnamed.sessions[0].named && unnamed.sessions[0].messages == log.messages);
}

#[test]
fn a_result_of_cline_that_quotes_a_failure_has_not_failed() {
    const FAILED: &str = "The tool execution failed with the following error";
    let results = [
        (format!("[read_file for 'a'] Result:\n{FAILED}: none"), true),
        (
            format!("[read_file for 'b'] Result:\nconst A = '{FAILED}';"),
            false,
        ),
        (
            format!("[execute_command for 'grep {FAILED}'] Result:\na.ts"),
            false,
        ),
    ];
    let calls = ["read_file", "read_file", "execute_command"]
        .into_iter()
        .enumerate();
    let calls = calls
        .map(|(at, name)| json!({"type":"tool_use","id":format!("t{at}"),"name":name,"input":{}}));
    let texts = |texts: &[String]| -> Vec<Value> {
        let texts = texts.iter();
        texts
            .map(|text| json!({"type":"text","text":text}))
            .collect()
    };
    let told: Vec<String> = results.iter().map(|(text, _)| text.clone()).collect();
    let apart = [
        "[read_file for 'a'] Result:".to_owned(),
        format!("{FAILED}:\n<error>none</error>"),
        "[read_file for 'b'] Result:".to_owned(),
        format!("It says: {FAILED}"),
        "[execute_command] Result: done".to_owned(),
    ];
    let task = json!({"role":"user","content":texts(&["<task>\nFix it.\n</task>".to_owned()])});
    let called = json!({"role":"assistant","content":calls.collect::<Vec<_>>()});
    for (told, expected) in [
        (&told[..], results.each_ref().map(|(_, failed)| *failed)),
        (&apart, [true, false, false]),
    ] {
        let list = json!([task, called, {"role":"user","content":texts(told)}]);
        let transcript = read_str(&list.to_string());
        assert_eq!(transcript.format, "cline");
        let parts = transcript.sessions[0].messages[2].parts.iter();
        let failed = parts.map(|part| {
            matches!(
                part,
                Part::ToolResult {
                    is_error: Some(true),
                    ..
                }
            )
        });
        assert_eq!(failed.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_run_that_goes_on_has_no_note_and_its_exit_is_one() {
    let run = |info: &str, more: &str| {
        let text = format!(
            r#"{{"info":{info},"messages":[{{"role":"system","content":"s"}},{{"role":"user","content":"Fix it."}},
{{"role":"assistant","content":"","tool_calls":[{{"id":"c","type":"function","function":{{"name":"bash","arguments":"{{}}"}}}}]}},
{{"role":"tool","tool_call_id":"c","content":"ok"}}{more}],"trajectory_format":"mini-swe-agent-1.1"}}"#
        );
        read_str(&text)
    };
    let part = run(r#"{"exit_status":""}"#, "");
    let whole = run(
        r#"{"exit_status":"Submitted"}"#,
        r#",{"role":"exit","content":"diff"}"#,
    );
    assert_eq!(whole.format, "swe-agent");
    assert!(!whole.report.lost_any());
    let (part, whole) = (&part.sessions[0], &whole.sessions[0]);
    assert!(whole.messages.starts_with(&part.messages) && part.key == whole.key);
    assert_eq!(
        (
            counts(part).notes,
            counts(whole).notes,
            counts(whole).paired
        ),
        (0, 2, 1)
    );
}

#[test]
fn events_of_openhands_without_tool_calls_and_in_pairs_are_read() {
    let event = |id: u8, rest: &str| {
        format!(r#"{{"id":{id},"timestamp":"2026-01-01T00:00:00","message":"m",{rest}}}"#)
    };
    let text = format!(
        "[{},[{},{}],{},{},{}]",
        event(
            0,
            r#""source":"user","action":"message","args":{"content":"Go."}"#
        ),
        event(
            1,
            r#""source":"agent","action":"run","args":{"command":"ls","thought":"I look."}"#
        ),
        event(
            2,
            r#""source":"agent","observation":"run","cause":1,"content":"a","success":false"#
        ),
        event(
            3,
            r#""source":"environment","observation":"agent_state_changed","content":"","extras":{}"#
        ),
        event(4, r#""source":"agent","action":"levitate","args":{}"#),
        event(
            5,
            r#""source":"agent","observation":"error","content":"No such parameter.","extras":{}"#
        ),
    );
    let transcript = read_str(&text);
    assert_eq!(transcript.format, "openhands");
    assert_eq!(transcript.report.skipped.get("levitate"), Some(&1));
    let log = &transcript.sessions[0];
    assert_eq!(
        counts(log),
        Counts {
            messages: 4,
            notes: 2,
            calls: 1,
            paired: 1,
            failed: 1,
            ..Counts::default()
        }
    );
    assert_eq!(
        (log.messages[5].role, log.messages[5].text().as_str()),
        (Role::Tool, "No such parameter.")
    );
    assert!(log.messages[0].created_at.is_known());
}

/// OpenHands writes the local time of its machine, without an offset.
#[test]
fn times_of_openhands_are_those_of_the_zone() {
    let text = r#"[{"id":0,"timestamp":"2026-07-01T12:00:00.5","source":"user","action":"message","args":{"content":"Go."}},
        {"id":1,"timestamp":"2026-07-01T12:00:00Z","source":"user","action":"message","args":{"content":"On."}}]"#;
    let zone = memory_model::Zone::from_posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    for (options, first) in [
        (ReadOptions::default(), "2026-07-01T12:00:00.5Z"),
        (
            ReadOptions::default().with_zone(zone),
            "2026-07-01T10:00:00.5Z",
        ),
    ] {
        let log = message_formats::read(text.as_bytes(), &options)
            .unwrap()
            .sessions
            .remove(0);
        let times: Vec<String> = log
            .messages
            .iter()
            .map(|one| one.created_at.to_string())
            .collect();
        assert_eq!(times, [first, "2026-07-01T12:00:00Z"]);
    }
}

#[test]
fn an_empty_id_of_openhands_is_none() {
    let event = r#"{"id":"","source":"user","action":"message","args":{"content":"Go."}}"#;
    let ids = |source: &str| {
        let log = read_str(source).sessions.remove(0);
        let ids = log.messages.into_iter().map(|one| one.external_id.unwrap());
        ids.collect::<Vec<_>>()
    };
    let [first, second] = &ids(&format!("[{event},{event}]"))[..] else {
        panic!("two events")
    };
    assert!(first.starts_with("h-") && first.ends_with("-1") && second.ends_with("-2"));
}

/// An action of OpenHands with this call, and its observation.
fn openhands_call(metadata: &Value) -> Value {
    json!([
        {"id":0,"source":"user","action":"message","args":{"content":"Go."}},
        {"id":1,"source":"agent","action":"run","args":{"command":"ls","thought":"I look."},"tool_call_metadata":metadata},
        {"id":2,"source":"agent","observation":"run","cause":1,"content":"a","tool_call_metadata":metadata},
    ])
}

#[test]
fn a_call_of_openhands_keeps_what_the_model_thought() {
    let call =
        json!({"id":"c1","type":"function","function":{"name":"execute_bash","arguments":"{}"}});
    let said = json!({"role":"assistant","content":"I look.","reasoning_content":"A folder.",
        "thinking_blocks":[{"thinking":"A folder.","signature":"s"}],"tool_calls":[call]});
    let metadata = json!({"tool_call_id":"c1","function_name":"execute_bash",
        "model_response":{"id":"r1","model":"m","choices":[{"message":said}]}});
    let transcript = read_str(&openhands_call(&metadata).to_string());
    let log = &transcript.sessions[0];
    let message = &log.messages[1];
    let [
        Part::Reasoning { text, .. },
        Part::Text { .. },
        Part::ToolCall { name, .. },
    ] = &message.parts[..]
    else {
        panic!("{message:?}")
    };
    assert_eq!(
        (text.as_str(), name.as_str()),
        ("A folder.", "execute_bash")
    );
    let meta = message.meta.as_ref().unwrap().as_str();
    assert!(
        meta.contains(r#""signature":"s""#) && meta.contains(r#""model":"m""#),
        "{meta}"
    );
    assert!(!meta.contains("tool_calls"), "{meta}");
}

#[test]
fn a_call_of_openhands_that_the_response_does_not_hold_is_the_action_itself() {
    for metadata in [
        json!({"tool_call_id":"c1","function_name":"execute_bash","model_response":null}),
        json!({"tool_call_id":"c1","function_name":"execute_bash","model_response":{"id":"r","choices":[]}}),
        json!({"tool_call_id":"c1","function_name":"execute_bash","model_response":{"choices":[{"message":{"tool_calls":[]}}]}}),
        json!({"tool_call_id":"c1"}),
        json!({}),
        Value::Null,
    ] {
        let transcript = read_str(&openhands_call(&metadata).to_string());
        let log = &transcript.sessions[0];
        let expected = Counts {
            messages: 3,
            calls: 1,
            paired: 1,
            ..Counts::default()
        };
        assert_eq!(counts(log), expected, "{metadata}");
        assert!(!transcript.report.lost_any());
        let message = &log.messages[1];
        assert!(matches!(&message.parts[1], Part::ToolCall { name, .. } if name == "run"));
        // Its arguments are not kept a second time.
        let meta = message.meta.as_ref().unwrap().as_str();
        assert!(!meta.contains("command"), "{meta}");
    }
    let lost = json!([{"id":0,"source":"user","action":"message","args":{}},
        {"id":1,"source":"agent","action":"run","extras":{}}]);
    let transcript = read_str(&lost.to_string());
    let skipped = [("message".to_owned(), 1), ("run".to_owned(), 1)];
    assert_eq!(transcript.report.skipped, skipped.into());
    assert_eq!(transcript.sessions[0].notes(), 2);
}

#[test]
fn a_list_of_rules_is_no_history_of_openhands() {
    let rules = r#"[{"source":"10.0.0.0/8","action":"allow","port":22}]"#;
    let error = message_formats::read(rules.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
}

#[test]
fn the_key_of_a_run_is_made_of_its_task() {
    let said = json!([{"role":"user","content":"Go."},{"role":"assistant","content":"Done."}]);
    let runs = json!([
        {"task_id":"refund","trial":1,"reward":1.0,"traj":said},
        {"task_id":3,"trial":0,"reward":0.0,"traj":said},
        {"task_id":4,"trial":0,"reward":0.0,"traj":"none"},
    ]);
    let transcript = read_str(&runs.to_string());
    assert_eq!(transcript.format, "tau-bench");
    let keys: Vec<&str> = transcript
        .sessions
        .iter()
        .map(|log| log.key.as_str())
        .collect();
    assert_eq!(keys, ["tau-bench-refund-1", "tau-bench-3-0"]);
    assert!(transcript.sessions.iter().all(|log| !log.named));
    assert_eq!(
        transcript.report.skipped,
        [("no_messages".to_owned(), 1)].into()
    );
}

#[test]
fn documents_without_a_list_of_messages_are_counted() {
    let run =
        json!({"instance_id":"a","trajectory":[],"history":[{"role":"user","content":"Go."}]});
    let openhands = json!({"instance_id":"a","history":[{"source":"user","action":"message","args":{"content":"Go."}}]});
    let export = json!({"info":{"id":"ses_1"},"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"Go."}]}]});
    let task = json!([{"role":"user","content":"<task>Go."}]);
    let runs = json!([{"task_id":1,"trial":0,"traj":[{"role":"user","content":"Go."}]}]);
    for (format, document, other) in [
        ("swe-agent", &run, json!({"trajectory":[],"history":"none"})),
        (
            "openhands",
            &openhands,
            json!({"instance_id":"b","history":7}),
        ),
        (
            "opencode",
            &export,
            json!({"info":{"id":"ses_2"},"messages":"none"}),
        ),
        ("cline", &task, json!({"role":"user"})),
        ("tau-bench", &runs, json!({"task_id":2})),
    ] {
        let transcript = read_str(&format!("{document}\n{other}"));
        assert_eq!(transcript.format, format);
        assert_eq!(transcript.sessions.len(), 1, "{format}");
        let skipped = &transcript.report.skipped;
        assert_eq!(
            skipped.get("no_messages"),
            Some(&1),
            "{format}: {skipped:?}"
        );
        assert!(transcript.report.lost_any());
    }
}

/// Returns the conversations of an export, each with whether it is in use, and its messages and notes.
fn conversations(info: &str, messages: &[&str]) -> Vec<(String, bool, Vec<String>)> {
    let messages = messages.join(",");
    let text = format!(r#"{{"info":{{"id":"ses_1",{info}}},"messages":[{messages}]}}"#);
    let transcript = read_str(&text);
    assert_eq!(transcript.format, "opencode");
    let logs = transcript.sessions.iter().map(|log| {
        let told = log.messages.iter().map(|message| {
            let id = message.external_id.as_deref().unwrap_or_default();
            let mark = if message.kind == EntryKind::Note {
                "-"
            } else {
                ""
            };
            let results = message.parts.iter().filter_map(|part| match part {
                Part::ToolResult {
                    content: ResultContent::Text(text),
                    ..
                } => Some(text.clone()),
                Part::ToolResult {
                    content: ResultContent::Parts(parts),
                    ..
                } => Some(Message::new(Role::Tool, parts.clone()).text()),
                _ => None,
            });
            let text = message.text() + &results.collect::<String>();
            format!("{mark}{id} {text}").trim_end().to_owned()
        });
        (log.key.to_string(), log.in_use, told.collect())
    });
    logs.collect()
}

#[test]
fn opencode_messages_that_were_taken_back_are_a_fork() {
    const DONE: &str = r#""role":"assistant","time":{"created":2,"completed":3}"#;
    const USER: &str = r#""role":"user","time":{"created":1}"#;
    let first = opencode_message("msg_1", USER, &[r#""type":"text","text":"Fill the pond.""#]);
    let second = opencode_message(
        "msg_2",
        DONE,
        &[
            r#""type":"text","text":"I fill it.""#,
            r#""type":"text","text":"It is full.""#,
        ],
    );
    let third = opencode_message("msg_3", USER, &[r#""type":"text","text":"Drain it.""#]);
    let messages = [&*first, &*second, &*third];
    let told = conversations(r#""revert" : { "messageID" : "msg_2" }"#, &messages);
    let [(_, true, shown), (key, false, back)] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(shown[1..], ["msg_1 Fill the pond."]);
    assert_eq!(key, "ses_1/msg_2");
    assert_eq!(
        back[..],
        ["msg_2 I fill it.\nIt is full.", "msg_3 Drain it."]
    );
    // The message itself may be gone.
    let told = conversations(r#""revert":{"messageID":"msg_1x"}"#, &messages);
    assert_eq!(told[0].2.len(), 2);
    assert_eq!(told[1].2.len(), 2);
    // A part of a message stays.
    let revert = r#""revert":{"messageID":"msg_2","partID":"prt_msg_2_1"}"#;
    let told = conversations(revert, &messages);
    let before = "msg_2-before-prt_msg_2_1 I fill it.";
    assert_eq!(told[0].2[1..], ["msg_1 Fill the pond.", before]);
    assert_eq!(
        told[1].2[..],
        ["msg_2 I fill it.\nIt is full.", "msg_3 Drain it."]
    );
    for info in [r#""revert":null"#, r#""title":"t""#] {
        assert_eq!(conversations(info, &messages).len(), 1);
    }
}

#[test]
fn messages_of_opencode_2_are_read_as_the_model_saw_them() {
    let messages = [
        r#"{"id":"msg_1","type":"user","time":{"created":1780000000000},"text":"Look.","files":[{"mime":"image/png","data":"AAAA","name":"a"}]}"#,
        r#"{"id":"msg_2","type":"model-switched","time":{"created":1},"model":{"id":"m"}}"#,
        r#"{"id":"msg_3","type":"assistant","time":{"created":1,"completed":2},"content":[{"type":"reasoning","text":"Hm."},{"type":"tool","id":"c1","name":"ls","state":{"status":"completed","input":{"a":1.0},"content":[{"type":"text","text":"a.txt"}]},"time":{"created":1}},{"type":"tool","id":"c2","name":"cat","state":{"status":"error","input":{},"error":{"type":"x","message":"It is gone."}},"time":{"created":1}}]}"#,
        r#"{"id":"msg_4","type":"synthetic","time":{"created":1},"text":"Go on."}"#,
        r#"{"id":"msg_5","type":"shell","time":{"created":1},"shellID":"s","command":"ls","status":"done","output":{"output":"b.txt"}}"#,
        r#"{"id":"msg_6","type":"compaction","time":{"created":1},"status":"completed","reason":"auto","summary":"They looked.","recent":""}"#,
        r#"{"id":"msg_7","type":"idle","time":{"created":1},"outcome":"succeeded"}"#,
        r#"{"id":"msg_8","type":"hologram","time":{"created":1}}"#,
        r#"{"id":"msg_9","type":"assistant","time":{"created":1},"content":[{"type":"text","text":"I am"}]}"#,
    ];
    let told = conversations(r#""directory":"/pond""#, &messages);
    assert_eq!(
        told[0].2,
        [
            "-ses_1",
            "msg_1 Look.",
            "-msg_2",
            "msg_3",
            "msg_3-c1 a.txt",
            "msg_3-c2 It is gone.",
            "msg_4 Go on.",
            "msg_5 Shell command: ls\n\nb.txt",
            "-msg_6",
            "-msg_8",
        ]
    );
    let text = format!(
        r#"{{"info":{{"id":"ses_1"}},"messages":[{}]}}"#,
        messages.join(",")
    );
    let transcript = read_str(&text);
    let log = &transcript.sessions[0];
    assert_eq!(log.summaries[0].text, "They looked.");
    let skipped = &transcript.report.skipped;
    assert_eq!(
        (skipped["idle"], skipped["hologram"], skipped["incomplete"]),
        (1, 1, 1)
    );
    let call = log.messages[3].parts.get(1).unwrap();
    assert!(
        matches!(call, Part::ToolCall { arguments, .. } if arguments.as_str() == r#"{"a":1.0}"#)
    );
    assert!(matches!(&log.messages[1].parts[1], Part::Image(_)));
    for at in [6, 7] {
        let meta = log.messages[at].meta.as_ref();
        let text = log.messages[at].text();
        assert!(KnownAgents.user_text(&text, meta).typed.is_empty());
    }
}
