//! Codex, Gemini CLI and Qwen Code: every transcript against a second, independent reading, and the formats' rules one by one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memory_model::{EntryKind, Part, ResultContent, Role};
use message_formats::{
    Formats, Head, Origin, ReadOptions, SessionLog, SourceScope, Transcript, read, read_file,
};
use serde_json::{Value, json};

use crate::support::{corpus, read_str};

/// What stands in a transcript, in order.
#[derive(Debug, Clone, PartialEq)]
enum Said {
    Text(Role, String),
    Thought(String),
    Call(String, String, Value),
    Result(String, String, Option<bool>),
    Image,
    /// Content without a kind of its own.
    Other,
}

#[derive(Debug, Default, PartialEq)]
struct Read {
    said: Vec<Said>,
    notes: usize,
    skipped: BTreeMap<String, u64>,
}

impl Read {
    fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }
}

/// Arguments as JSON, also those that are a string which holds JSON.
fn arguments(value: &Value) -> Value {
    let inner = value
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    inner.unwrap_or_else(|| value.clone())
}

fn ours(transcript: &Transcript) -> Read {
    let mut out = Read {
        skipped: transcript.report.skipped.clone(),
        ..Read::default()
    };
    for message in transcript.sessions.iter().flat_map(|s| &s.messages) {
        if message.kind == EntryKind::Note {
            out.notes += 1;
            continue;
        }
        for part in &message.parts {
            let said = match part {
                Part::Text { text } => Said::Text(message.role, text.clone()),
                Part::Reasoning { text, .. } => Said::Thought(text.clone()),
                Part::ToolCall {
                    id,
                    name,
                    arguments: given,
                } => {
                    let given: Value = serde_json::from_str(given.as_str()).unwrap();
                    Said::Call(id.clone(), name.clone(), arguments(&given))
                }
                Part::ToolResult {
                    call_id,
                    content,
                    is_error,
                } => {
                    let result =
                        Said::Result(call_id.clone(), content.text().into_owned(), *is_error);
                    out.said.push(result);
                    if let ResultContent::Parts(parts) = content {
                        let images = parts.iter().filter(|part| matches!(part, Part::Image(_)));
                        out.said.extend(images.map(|_| Said::Image));
                    }
                    continue;
                }
                Part::Image(_) => Said::Image,
                _ => Said::Other,
            };
            out.said.push(said);
        }
    }
    out
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    match serde_json::from_str(&text) {
        Ok(Value::Object(one)) => vec![Value::Object(one)],
        _ => text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn of_codex(path: &Path) -> Read {
    let mut out = Read::default();
    let mut failed = Vec::new();
    let mut context = Value::Null;
    for line in lines(path) {
        let (tag, payload) = (text(&line["type"]), &line["payload"]);
        let kind = text(&payload["type"]);
        match (tag.as_str(), kind.as_str()) {
            ("event_msg", "turn_aborted") => out.notes += 1,
            ("event_msg", _) => {
                if payload["item"]["status"] == "failed" {
                    failed.push(text(&payload["item"]["id"]));
                }
                out.skip("event_msg");
            }
            ("token_usage_record", _) => out.skip("token_usage_record"),
            ("turn_context", _) => {
                let mut new = payload.clone();
                new.as_object_mut()
                    .unwrap()
                    .retain(|key, _| !key.ends_with("turn_id"));
                match new == context {
                    true => out.skip("turn_context"),
                    false => out.notes += 1,
                }
                context = new;
            }
            ("response_item", _) if line["metadata"]["compaction_output"] == true => out.notes += 1,
            ("response_item", "message") => {
                let role = match payload["role"].as_str().unwrap() {
                    "developer" => Role::System,
                    role => Role::parse(role).unwrap(),
                };
                for item in payload["content"].as_array().unwrap() {
                    out.said.push(Said::Text(role, text(&item["text"])));
                }
            }
            ("response_item", "reasoning") => {
                let texts = payload["summary"].as_array().unwrap();
                let texts: Vec<String> = texts.iter().map(|item| text(&item["text"])).collect();
                let texts = if texts.is_empty() {
                    vec![String::new()]
                } else {
                    texts
                };
                out.said.extend(texts.into_iter().map(Said::Thought));
            }
            ("response_item", "function_call" | "custom_tool_call") => {
                let given = payload.get("arguments").unwrap_or(&payload["input"]);
                let (id, name) = (text(&payload["call_id"]), text(&payload["name"]));
                out.said.push(Said::Call(id, name, arguments(given)));
            }
            ("response_item", "function_call_output" | "custom_tool_call_output") => {
                let (id, output) = (text(&payload["call_id"]), text(&payload["output"]));
                let stated = serde_json::from_str::<Value>(&output).unwrap_or_default();
                let exit = stated["metadata"]["exit_code"].as_i64().or_else(|| {
                    let (_, code) = output.split_once("Process exited with code ")?;
                    code.lines().next()?.parse().ok()
                });
                let refused = output.starts_with("apply_patch verification failed");
                let aborted = output.ends_with("aborted by user");
                let failed = failed.contains(&id) || refused || aborted;
                let is_error = failed.then_some(true).or(exit.map(|code| code != 0));
                out.said.push(Said::Result(id, output, is_error));
            }
            ("response_item", "web_search_call") => out.said.push(Said::Other),
            ("session_meta" | "world_state" | "compacted", _) => out.notes += 1,
            other => panic!("{other:?}"),
        }
    }
    out
}

/// The parts of Gemini's interface, results with a status from outside.
fn gemini_parts(parts: &Value, role: Role, status: Option<bool>, out: &mut Read) {
    let one = [parts.clone()];
    for part in parts.as_array().map_or(&one[..], Vec::as_slice) {
        out.said.push(match part {
            Value::String(text) => Said::Text(role, text.clone()),
            part if part["thought"] == true => Said::Thought(text(&part["text"])),
            part if part["text"].is_string() => Said::Text(role, text(&part["text"])),
            part if part["functionCall"].is_object() => {
                let call = &part["functionCall"];
                Said::Call(text(&call["id"]), text(&call["name"]), call["args"].clone())
            }
            part if part["functionResponse"].is_object() => {
                let result = &part["functionResponse"];
                let (response, id) = (&result["response"], text(&result["id"]));
                match response["error"].as_str() {
                    Some(error) => Said::Result(id, error.to_owned(), Some(true)),
                    None => Said::Result(id, text(&response["output"]), status),
                }
            }
            part if part["inlineData"].is_object() => Said::Image,
            other => panic!("{other}"),
        });
    }
}

/// The union of the records by id, of which the last wins.
fn of_gemini_cli(path: &Path) -> Read {
    let mut out = Read::default();
    let mut order: Vec<(String, Value)> = Vec::new();
    let mut records = Vec::new();
    for line in lines(path) {
        if let Some(list) = line["messages"].as_array() {
            records.extend(list.clone());
        } else if line.get("$set").is_some() {
            out.skip("$set");
        } else if line.get("projectHash").is_some() {
            out.skip("session");
        } else {
            records.push(line);
        }
    }
    let state = |record: &Value| {
        let calls = record["toolCalls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| (text(&call["id"]), call.get("result").is_some()));
        let thoughts = record["thoughts"].as_array().map_or(0, Vec::len);
        (
            text(&record["content"]),
            thoughts,
            calls.collect::<Vec<_>>(),
        )
    };
    for record in records {
        let id = text(&record["id"]);
        let known = order.iter().find(|(known, _)| *known == id);
        let known = known.map_or(Value::Null, |(_, known)| known.clone());
        if record["type"] == "gemini" && state(&record) == state(&known) {
            out.skip("unchanged");
        }
        match order.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = record,
            None => order.push((id, record)),
        }
    }
    let mut answered = Vec::new();
    for (_, record) in order {
        if record["type"] == "gemini" {
            for thought in record["thoughts"].as_array().into_iter().flatten() {
                let texts = [text(&thought["subject"]), text(&thought["description"])];
                let texts: Vec<String> = texts.into_iter().filter(|t| !t.is_empty()).collect();
                out.said.push(Said::Thought(texts.join("\n")));
            }
            if record["content"] != "" {
                out.said
                    .push(Said::Text(Role::Assistant, text(&record["content"])));
            }
            let calls = record["toolCalls"].as_array().cloned().unwrap_or_default();
            for call in &calls {
                let (id, name) = (text(&call["id"]), text(&call["name"]));
                out.said.push(Said::Call(id, name, call["args"].clone()));
            }
            for call in &calls {
                let failed = Some(call["status"] != "success");
                gemini_parts(&call["result"], Role::Tool, failed, &mut out);
                answered.push(text(&call["id"]));
            }
            continue;
        }
        assert_eq!(record["type"], "user");
        let is_repeated = |part: &Value| {
            let id = part["functionResponse"]["id"].as_str();
            id.is_some_and(|id| answered.iter().any(|known| known == id))
        };
        let parts = record["content"].as_array();
        if parts.is_some_and(|parts| parts.iter().any(is_repeated)) {
            out.skip("repeated_result");
        } else {
            gemini_parts(&record["content"], Role::User, None, &mut out);
        }
    }
    out
}

fn of_qwen_code(path: &Path) -> Read {
    let mut out = Read::default();
    for line in lines(path) {
        let subtype = text(&line["subtype"]);
        let parts = &line["message"]["parts"];
        match line["type"].as_str().unwrap() {
            "system" if ["ui_telemetry", "attribution_snapshot"].contains(&&*subtype) => {
                out.skip(&subtype);
            }
            "system" => out.notes += 1,
            "assistant" => gemini_parts(parts, Role::Assistant, None, &mut out),
            "user" => gemini_parts(parts, Role::User, None, &mut out),
            "tool_result" => {
                let failed = Some(line["toolCallResult"]["status"] != "success");
                gemini_parts(parts, Role::Tool, failed, &mut out);
            }
            other => panic!("{other}"),
        }
    }
    out
}

/// The transcripts of a format: those of this folder, those of the corpus, and those in a folder `AGENT_MEMORY_TRANSCRIPTS`.
fn transcripts(format: &str) -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let more = std::env::var_os("AGENT_MEMORY_TRANSCRIPTS");
    if more.is_none() {
        println!("left out: AGENT_MEMORY_TRANSCRIPTS is not set");
    }
    let more = more.map(|more| PathBuf::from(more).join(format.split('-').next().unwrap()));
    let mut files = match format {
        "qwen-code" => Vec::new(),
        format => corpus(format),
    };
    for folder in [Some(own.join(format)), more].into_iter().flatten() {
        let found = std::fs::read_dir(&folder).unwrap();
        files.extend(found.map(|entry| entry.unwrap().path()));
    }
    files
}

fn compare(format: &str, read_again: fn(&Path) -> Read) {
    let mut pairs_found = 0;
    for path in transcripts(format) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let transcript = read_file(&path, &ReadOptions::default()).unwrap();
        assert_eq!(transcript.format, format, "{name}");
        assert!(!transcript.report.lost_any(), "{name}");
        let (ours, theirs) = (ours(&transcript), read_again(&path));
        let pairs = ours.said.iter().zip(&theirs.said);
        for (at, (ours, theirs)) in pairs.enumerate() {
            assert_eq!(ours, theirs, "{name}, {at}");
        }
        assert_eq!(ours, theirs, "{name}");
        let count = |is: fn(&Said) -> bool| theirs.said.iter().filter(|said| is(said)).count();
        let calls = count(|said| matches!(said, Said::Call(..)));
        let results = count(|said| matches!(said, Said::Result(..)));
        println!(
            "{name}: {} said, {calls} calls, {results} results, {} notes, {:?}",
            theirs.said.len(),
            theirs.notes,
            theirs.skipped
        );
        pairs_found += paired(&transcript, &name);
    }
    assert!(pairs_found > 0, "{format}: no call has a result");
}

/// Checks that every result has its call before it, and that no id comes twice. Returns the number of results.
fn paired(transcript: &Transcript, name: &str) -> usize {
    let mut results = 0;
    for session in &transcript.sessions {
        let mut calls: Vec<&str> = Vec::new();
        for part in session.messages.iter().flat_map(|m| &m.parts) {
            match part {
                Part::ToolCall { id, .. } => calls.push(id),
                Part::ToolResult { call_id, .. } => {
                    let at = calls.iter().position(|call| call == call_id);
                    calls.remove(at.unwrap_or_else(|| panic!("{name}: {call_id} was not called")));
                    results += 1;
                }
                _ => {}
            }
        }
        assert!(calls.len() <= 1, "{name}: {calls:?} have no result");
        let mut ids: Vec<_> = session.messages.iter().map(|m| &m.external_id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), session.messages.len(), "{name}");
    }
    results
}

#[test]
fn a_format_is_told_by_a_line_of_it() {
    for (head, format) in [
        (
            r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","parts":[]}}"#,
            Some("qwen-code"),
        ),
        (
            r#"{"type":"system","uuid":"u","sessionId":"s","subtype":"x","systemPayload":{}}"#,
            Some("qwen-code"),
        ),
        (
            r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[]}}"#,
            Some("claude-code"),
        ),
        (
            r#"{"sessionId":"s","projectHash":"p","startTime":"t","kind":"main"}"#,
            Some("gemini-cli"),
        ),
        (
            "{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"messages\": [\n    {",
            Some("gemini-cli"),
        ),
        ("{\n  \"name\": \"p\",\n  \"messages\": []\n}", None),
        (
            r#"{"type":"event_msg","payload":{"type":"x"}}"#,
            Some("codex"),
        ),
        (r#"{"type":"event_msg","payload":1}"#, None),
    ] {
        let formats = Formats::default();
        let found = formats.detect(&Head::new(head.as_bytes(), true));
        assert_eq!(found.map(|format| format.name()), format, "{head}");
    }
}

#[test]
fn every_codex_rollout_is_read_as_a_second_parser_reads_it() {
    compare("codex", of_codex);
}

#[test]
fn every_gemini_chat_is_read_as_a_second_parser_reads_it() {
    compare("gemini-cli", of_gemini_cli);
}

#[test]
fn every_qwen_chat_is_read_as_a_second_parser_reads_it() {
    compare("qwen-code", of_qwen_code);
}

/// Checks that each part of a source is the beginning of what comes later.
fn grows(name: &str, parts: impl Iterator<Item = Vec<u8>>) {
    let mut before: Vec<SessionLog> = Vec::new();
    let mut compared = 0;
    for part in parts {
        let Ok(now) = read(part.as_slice(), &ReadOptions::default()) else {
            continue;
        };
        for session in &before {
            let same = now.sessions.iter().find(|other| other.key == session.key);
            let same = same.unwrap_or_else(|| panic!("{name}: {:?} is gone", session.key));
            assert_eq!(same.origin, session.origin, "{name}");
            assert!(same.messages.starts_with(&session.messages), "{name}");
            compared += 1;
        }
        before = now.sessions;
    }
    let is_empty = before.is_empty();
    assert!(compared > 0 || is_empty, "{name}: only one part was read");
}

#[test]
fn a_transcript_that_grows_adds_only_what_is_new() {
    for path in ["codex", "gemini-cli", "qwen-code"]
        .into_iter()
        .flat_map(transcripts)
    {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).unwrap();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let whole: Value = serde_json::from_slice(&bytes).unwrap();
            let number = whole["messages"].as_array().unwrap().len();
            let part = |count: usize| {
                let mut part = whole.clone();
                part["messages"].as_array_mut().unwrap().truncate(count);
                serde_json::to_vec_pretty(&part).unwrap()
            };
            grows(&name, (1..=number).map(part));
        } else {
            let step = (bytes.len() / 40).max(1);
            let ends = (1..40).map(|nth| nth * step).chain([bytes.len()]);
            grows(&name, ends.map(|end| bytes[..end].to_vec()));
        }
    }
}

fn own(name: &str) -> Transcript {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    read_file(&folder.join(name), &ReadOptions::default()).unwrap()
}

fn texts(session: &SessionLog) -> Vec<String> {
    let messages = session.messages.iter();
    let said = messages.filter(|message| message.kind == EntryKind::Message);
    said.map(|message| message.text()).collect()
}

fn ids(session: &SessionLog) -> Vec<&str> {
    let messages = session.messages.iter();
    messages
        .map(|message| message.external_id.as_deref().unwrap())
        .collect()
}

fn source(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

const CODEX: &str = "codex/rollout-2026-11-25T22-52-46-01a214e9-5690-7e72-93c6-5d393e136127.jsonl";
const SUB_AGENT: &str =
    "codex/rollout-2026-11-25T22-53-11-01a214e9-bb82-7230-9a91-eed30a6c7b4b.jsonl";

#[test]
fn a_codex_summary_is_a_note_that_stands_for_what_came_before() {
    let transcript = own(CODEX);
    let [session] = transcript.sessions.as_slice() else {
        panic!("{}", transcript.sessions.len())
    };
    assert_eq!(session.key.as_str(), "01a214e9-5690-7e72-93c6-5d393e136127");
    let [summary] = session.summaries.as_slice() else {
        panic!("{:?}", session.summaries)
    };
    assert!(summary.text.contains("MOCK-BUILT-IN-SUMMARY"));
    assert_eq!(summary.scope, SourceScope::Before { kept_from: None });
    assert!(!texts(session).join("").contains("MOCK-BUILT-IN-SUMMARY"));
    // The prompts of the replacement history are not there again.
    let overview = texts(session)
        .into_iter()
        .filter(|text| text.contains("Give me an overview"));
    assert_eq!(overview.count(), 1);
}

#[test]
fn the_items_of_one_codex_response_belong_together() {
    let transcript = own(CODEX);
    let messages = &transcript.sessions[0].messages;
    let response = |id: &str| {
        let found = messages
            .iter()
            .find(|m| m.external_id.as_deref() == Some(id));
        found.unwrap().response.clone().unwrap()
    };
    assert_eq!(response("rs_000056"), response("msg_000057"));
    assert_eq!(response("rs_000056"), response("fc_000058"));
    assert_ne!(response("fc_000058"), response("fc_000061"));
    assert_eq!(response("fc_000061"), response("fc_000063"));
}

#[test]
fn a_codex_sub_agent_names_the_session_that_started_it() {
    let transcript = own(SUB_AGENT);
    let session = &transcript.sessions[0];
    assert_eq!(session.key.as_str(), "01a214e9-bb82-7230-9a91-eed30a6c7b4b");
    let Origin::Spawn { parent, .. } = &session.origin else {
        panic!("{:?}", session.origin)
    };
    assert_eq!(parent.as_str(), "01a214e9-5690-7e72-93c6-5d393e136127");
    let aborted = session.messages.iter().flat_map(|m| &m.parts).any(|part| {
        matches!(part, Part::ToolResult { is_error: Some(true), content, .. } if content.text().ends_with("aborted by user"))
    });
    assert!(aborted);
}

/// A line of Codex.
fn codex(tag: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-11-25T22:52:46.221Z", "type": tag, "payload": payload})
}

fn item(payload: Value) -> Value {
    codex("response_item", payload)
}

fn codex_said(role: &str, text: &str) -> Value {
    item(
        json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}),
    )
}

#[test]
fn turns_that_codex_took_back_stay_in_their_branch() {
    let back = |turns: u8| {
        codex(
            "event_msg",
            json!({"type": "thread_rolled_back", "num_turns": turns}),
        )
    };
    let lines = [
        codex("session_meta", json!({"id": "s"})),
        codex_said("user", "<environment_context>x</environment_context>"),
        codex_said("user", "# One\n\nor <b>two</b>"),
        codex_said("assistant", "1"),
        codex_said("user", "two"),
        codex_said("user", "# AGENTS.md instructions for /a\n\nx"),
        codex_said("user", "<skill>\n<name>b</name>\n</skill>"),
        codex_said("assistant", "2"),
        codex_said("user", "three"),
        back(2),
        codex_said("user", "other"),
        codex_said("assistant", "3"),
        back(1),
        codex_said("user", "two"),
    ];
    let transcript = read_str(&source(&lines));
    let [root, first, second] = transcript.sessions.as_slice() else {
        panic!("{:?}", transcript.sessions)
    };
    let ends = ["1", "two", "2", "three"].map(str::to_owned);
    assert!(ends.iter().all(|text| texts(root).contains(text)));
    assert_eq!(
        (texts(first), texts(second)),
        (vec!["other".into(), "3".into()], vec!["two".into()])
    );
    // The first fork begins with the note of its rollback, and the second one behind it.
    let note = &first.messages[0];
    assert_eq!(note.kind, EntryKind::Note);
    for (fork, place) in [
        (first, (&root.key, &root.messages[3].external_id)),
        (second, (&first.key, &note.external_id)),
    ] {
        let Origin::Fork { parent, after } = &fork.origin else {
            panic!("{:?}", fork.origin)
        };
        assert_eq!((parent, after), place);
    }
    assert!(second.in_use && !root.in_use && !first.in_use);
    // The same words in another branch have another id.
    assert!(!ids(root).contains(&ids(second)[0]));
    let parts = (1..=lines.len()).map(|end| source(&lines[..end]).into_bytes());
    grows("taken back", parts);
}

#[test]
fn what_codex_may_write_later_is_kept_and_counted() {
    let lines = [
        codex("session_meta", json!({"id": "s"})),
        codex("new_kind", json!({})),
        item(json!({"type": "new_item", "id": "n"})),
        item(json!({"type": "function_call", "name": "no id"})),
        item(json!({"type": "web_search_call", "status": "completed"})),
        item(json!({"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}})),
        item(
            json!({"type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            ]}),
        ),
        item(json!({"type": "reasoning", "summary": [], "encrypted_content": "zz"})),
        codex("response_item", json!(1)),
    ];
    let transcript = read_str(&source(&lines));
    let kinds = [
        ("function_call", 1),
        ("new_item", 1),
        ("new_kind", 1),
        ("response_item", 1),
    ];
    let kinds = kinds.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(transcript.report.skipped, kinds.into());
    let session = &transcript.sessions[0];
    assert_eq!((session.messages.len(), session.notes()), (9, 5));
    let said = ours(&transcript).said;
    assert_eq!(
        said,
        [
            Said::Other,
            Said::Call("c".into(), "local_shell".into(), json!({"command": ["ls"]})),
            Said::Result("c".into(), "a".into(), None),
            Said::Image,
            Said::Thought(String::new()),
        ]
    );
    let [Part::Reasoning { signature, .. }] = session.messages[7].parts.as_slice() else {
        panic!("{:?}", session.messages[7])
    };
    let whole = &lines[7]["payload"];
    assert_eq!(signature.as_deref(), Some(&*whole.to_string()));
    assert_eq!(session.messages[7].meta, None);
}

#[test]
fn a_codex_call_has_failed_if_its_text_or_its_event_says_so() {
    for (output, failed) in [
        (
            json!("Chunk ID: a\nProcess exited with code 0\nOutput:\nProcess exited with code 3"),
            Some(false),
        ),
        (
            json!("Chunk ID: a\nProcess exited with code 3\nOutput:\n"),
            Some(true),
        ),
        (
            json!("Exit code: 1\nWall time: 1 seconds\nOutput:\nx"),
            Some(true),
        ),
        (
            json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":2}}"),
            Some(true),
        ),
        (
            json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"),
            Some(false),
        ),
        (json!("{\"output\":\"x\"}"), None),
        (json!("aborted by user"), Some(true)),
        (json!("aborted by user after 3.6s"), Some(true)),
        (json!("Wall time: 3.6 seconds\naborted by user"), Some(true)),
        (json!("exec command rejected by user"), Some(true)),
        (json!("patch rejected by user"), Some(true)),
        (json!("The log:\nExit code: 1\naborted by user"), None),
        (json!("Exit code: 1\nand nothing else"), None),
        (
            json!("apply_patch verification failed: no such file"),
            Some(true),
        ),
        (json!("Plan updated"), None),
    ] {
        let result = json!({"type": "function_call_output", "call_id": "c", "output": output});
        let transcript = read_str(&source(&[
            codex("session_meta", json!({"id": "s"})),
            item(result),
        ]));
        let expected = Said::Result("c".into(), text(&output), failed);
        assert_eq!(ours(&transcript).said, [expected], "{output}");
    }
    let event = json!({"type": "item_completed", "item": {"type": "McpToolCall", "id": "c", "status": "failed"}});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let transcript = read_str(&source(&[codex("event_msg", event), item(result)]));
    assert_eq!(
        ours(&transcript).said,
        [Said::Result("c".into(), "x".into(), Some(true))]
    );
    assert!(!transcript.sessions[0].named);
}

#[test]
fn a_codex_summary_with_nothing_before_it_is_all_that_is_left() {
    let compacted = json!({"message": "They met.", "replacement_history": [{"type": "message"}]});
    let lines = [
        codex("session_meta", json!({"id": "s"})),
        codex("compacted", compacted),
    ];
    let transcript = read_str(&source(&lines));
    assert_eq!(texts(&transcript.sessions[0]), ["They met."]);
}

/// A header of Gemini CLI.
fn gemini_header() -> Value {
    json!({"sessionId": "s", "projectHash": "p", "startTime": "2026-11-25T23:04:24.172Z", "kind": "main"})
}

fn gemini_user(id: &str, content: Value) -> Value {
    json!({"id": id, "timestamp": "2026-11-25T23:04:28.505Z", "type": "user", "content": content})
}

fn gemini_says(id: &str, content: &str, calls: Value) -> Value {
    json!({"id": id, "timestamp": "2026-11-25T23:04:29.371Z", "type": "gemini", "content": content,
        "thoughts": [{"subject": "A", "description": "b"}], "model": "m", "toolCalls": calls})
}

fn gemini_call(id: &str, output: Option<&str>) -> Value {
    let mut call = json!({"id": id, "name": "ls", "args": {"dir": id}});
    if let Some(output) = output {
        let response = json!({"id": id, "name": "ls", "response": {"output": output}});
        call["result"] = json!([{"functionResponse": response}]);
        call["status"] = json!("success");
    }
    call
}

#[test]
fn a_gemini_record_that_grows_is_read_once() {
    let response = |id: &str| json!({"functionResponse": {"id": id, "name": "ls", "response": {"output": id}}});
    let lines = [
        gemini_header(),
        json!({"$set": {"messages": [gemini_user("x", json!("not read"))]}}),
        gemini_user("u", json!([{"text": "go"}])),
        gemini_says("g", "I will", json!([])),
        gemini_says("g", "I will look.", json!([gemini_call("a", None)])),
        gemini_says(
            "g",
            "I will look.",
            json!([gemini_call("a", Some("a")), gemini_call("b", Some("b"))]),
        ),
        gemini_user("r", json!([response("a"), response("b")])),
        json!({"id": "i", "type": "info", "content": "a new version"}),
        json!({"id": "n", "type": "new_kind"}),
        gemini_says("h", "Done.", json!([gemini_call("c", None)])),
        gemini_user("q", json!([response("c")])),
        gemini_says("h", "Done.", json!([gemini_call("c", Some("c"))])),
    ];
    let transcript = read_str(&source(&lines));
    let session = &transcript.sessions[0];
    assert_eq!(session.key.as_str(), "s");
    let expected = [
        "u",
        "g",
        "g#2",
        "g/a",
        "g/b",
        "g/a/result",
        "g/b/result",
        "i",
        "n",
        "h",
        "h/c",
        "q",
    ];
    assert_eq!(ids(session), expected);
    assert_eq!(texts(session)[..3], ["go", "I will", " look."]);
    let responses: Vec<_> = session
        .messages
        .iter()
        .filter_map(|m| m.response.as_deref())
        .collect();
    assert_eq!(responses, ["g", "g", "g", "g", "h", "h"]);
    assert_eq!(session.notes(), 2);
    let kinds = [
        ("$set", 1),
        ("new_kind", 1),
        ("repeated_result", 1),
        ("session", 1),
        ("unchanged", 1),
    ];
    let kinds = kinds.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(transcript.report.skipped, kinds.into());
    assert_eq!(paired(&transcript, "grown"), 3);
    grows(
        "grown",
        (1..=lines.len()).map(|end| source(&lines[..end]).into_bytes()),
    );
}

#[test]
fn repeated_records_and_late_facts_of_gemini_cli_make_no_second_message() {
    let response =
        json!([{"functionResponse": {"id": "a", "name": "ls", "response": {"output": "a"}}}]);
    let with = |mut record: Value, key: &str, value: Value| {
        record[key] = value;
        record
    };
    let tokens = json!({"total": 7});
    let says = |call: Value| with(gemini_says("g", "I look.", call), "tokens", tokens.clone());
    let running = with(gemini_call("a", None), "status", json!("executing"));
    let masked = gemini_call("a", Some("masked"));
    let lines = [
        gemini_header(),
        gemini_user("u", json!([{"text": "go"}])),
        with(gemini_user("u", json!([{"text": "go"}])), "x", json!(1)),
        gemini_says("g", "I look.", json!([])),
        says(json!([])),
        says(json!([running])),
        says(json!([gemini_call("a", Some("a"))])),
        gemini_user("r", response.clone()),
        with(gemini_user("r", response.clone()), "x", json!(1)),
        with(gemini_user("r", response), "x", json!(2)),
        says(json!([masked])),
    ];
    let transcript = read_str(&source(&lines));
    let session = &transcript.sessions[0];
    assert_eq!(ids(session), ["u", "g", "g/a", "g/a/result"]);
    let result = Said::Result("a".into(), "a".into(), Some(false));
    assert_eq!(ours(&transcript).said.last(), Some(&result));
    let with_tokens = session.messages.iter().filter(|message| {
        let meta = message.meta.as_ref();
        meta.is_some_and(|meta| meta.as_str().contains(r#""tokens":{"total":7}"#))
    });
    let with_tokens: Vec<_> = with_tokens.map(|m| m.external_id.as_deref()).collect();
    assert_eq!(with_tokens, [Some("g/a")]);
    let kinds = [("repeated_result", 1), ("session", 1), ("unchanged", 5)];
    let kinds = kinds.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(transcript.report.skipped, kinds.into());
    grows(
        "repeated",
        (1..=lines.len()).map(|end| source(&lines[..end]).into_bytes()),
    );
}

#[test]
fn content_of_gemini_cli_may_be_a_part_or_a_list() {
    let call = json!({"functionCall": {"id": "a", "name": "ls", "args": {"dir": "a"}}});
    let says = |content: Value, calls: Value| {
        let mut record = gemini_says("g", "", calls);
        record["content"] = content;
        record
    };
    let lines = [
        gemini_header(),
        gemini_user("u", json!({"text": "go"})),
        says(json!([{"text": "I "}]), json!([])),
        says(
            json!([{"text": "I look."}, {"text": "Now."}, call]),
            json!([gemini_call("a", Some("a"))]),
        ),
    ];
    let transcript = read_str(&source(&lines));
    let text = |role, text: &str| Said::Text(role, text.to_owned());
    let expected = [
        text(Role::User, "go"),
        Said::Thought("A\nb".into()),
        text(Role::Assistant, "I "),
        text(Role::Assistant, "look."),
        text(Role::Assistant, "Now."),
        Said::Call("a".into(), "ls".into(), json!({"dir": "a"})),
        Said::Result("a".into(), "a".into(), Some(false)),
    ];
    assert_eq!(ours(&transcript).said, expected);
    assert_eq!(paired(&transcript, "list"), 1);
}

#[test]
fn records_that_gemini_cli_took_back_stay_in_their_branch() {
    let lines = [
        gemini_header(),
        gemini_user("a", json!("one")),
        gemini_says("b", "1", json!([])),
        gemini_user("c", json!("two")),
        json!({"$rewindTo": "c"}),
        gemini_user("d", json!("other")),
    ];
    let transcript = read_str(&source(&lines));
    let [root, fork] = transcript.sessions.as_slice() else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!(
        (texts(root), texts(fork)),
        (
            vec!["one".into(), "1".into(), "two".into()],
            vec!["other".into()]
        )
    );
    let after = Some("b".to_owned());
    let parent = root.key.clone();
    assert_eq!(fork.origin, Origin::Fork { parent, after });
    grows(
        "rewound",
        (1..=lines.len()).map(|end| source(&lines[..end]).into_bytes()),
    );
}

#[test]
fn a_gemini_document_is_read_however_it_is_laid_out() {
    let said = [
        gemini_user("u", json!("go")),
        gemini_says("g", "Yes.", json!([gemini_call("a", Some("x"))])),
    ];
    let of_lines = read_str(&source(&[
        gemini_header(),
        said[0].clone(),
        said[1].clone(),
    ]));
    let whole = |indent: &str, said: String| {
        let keys = ["sessionId", "projectHash", "startTime"];
        let header: String = keys
            .map(|key| format!("{indent}\"{key}\": \"s\","))
            .concat();
        format!("{{{header}{indent}\"messages\": {said}}}")
    };
    let laid_out = whole("\n  ", format!("{:#}", json!(said)));
    for text in [
        whole("", json!(said).to_string()),
        format!("\u{feff}{laid_out}"),
        format!("\n\n{laid_out}\n"),
    ] {
        let transcript = read_str(&text);
        let lines = transcript.report.lines;
        assert_eq!((&*transcript.format, lines), ("gemini-cli", 2));
        let session = &transcript.sessions[0];
        assert_eq!(ids(session), ids(&of_lines.sessions[0]));
        assert_eq!(ours(&transcript).said, ours(&of_lines).said);
    }
    let half = &laid_out.as_bytes()[..laid_out.len() / 2];
    let error = read(half, &ReadOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("read it once it is written"),
        "{error}"
    );
}

#[test]
fn a_qwen_summary_is_a_note_and_qwen_is_not_claude_code() {
    let transcript = own("qwen-code/42caf678-8182-4045-99c7-df1b7f986a11.jsonl");
    assert_eq!(transcript.format, "qwen-code");
    let session = &transcript.sessions[0];
    assert_eq!(session.notes(), 1);
    assert!(session.summaries[0].text.contains("MOCK-BUILT-IN-SUMMARY"));
    assert!(texts(session).contains(&"#play hello After compress.".to_owned()));
}

#[test]
fn a_qwen_tree_forks_where_the_user_went_back() {
    let line = |uuid: &str, parent: Value, tag: &str, rest: Value| {
        let mut line = json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": tag});
        line.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        line
    };
    let said = |text: &str| json!({"message": {"role": "user", "parts": [{"text": text}]}});
    let lines = [
        line("a", Value::Null, "user", said("one")),
        line(
            "b",
            json!("a"),
            "system",
            json!({"subtype": "ui_telemetry", "systemPayload": {}}),
        ),
        line("c", json!("b"), "assistant", said("1")),
        line(
            "d",
            json!("c"),
            "system",
            json!({"subtype": "new_kind", "systemPayload": {}}),
        ),
        line("e", json!("b"), "user", said("other")),
        line("f", json!("e"), "new_type", said("x")),
    ];
    let transcript = read_str(&source(&lines));
    let [root, fork] = transcript.sessions.as_slice() else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!(
        (ids(root), ids(fork)),
        (vec!["a", "c", "d"], vec!["e", "f"])
    );
    let (parent, after) = (root.key.clone(), Some("a".to_owned()));
    assert_eq!(fork.origin, Origin::Fork { parent, after });
    let kinds = ["new_kind", "new_type", "ui_telemetry"].map(|kind| (kind.to_owned(), 1));
    assert_eq!(transcript.report.skipped, kinds.into());
    grows(
        "forked",
        (1..=lines.len()).map(|end| source(&lines[..end]).into_bytes()),
    );
}

/// A fork of a conversation without an entry would have no parent.
#[test]
fn a_record_without_an_entry_before_the_first_one_begins_no_fork() {
    let line = |uuid: &str, parent: Value, subtype: &str| {
        json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "system", "subtype": subtype,
            "systemPayload": {}})
    };
    let lines = [
        line("a", Value::Null, "ui_telemetry"),
        line("b", Value::Null, "slash_command"),
        line("c", json!("a"), "slash_command"),
    ];
    let transcript = read_str(&source(&lines));
    let [root, fork] = transcript.sessions.as_slice() else {
        panic!("{:?}", transcript.sessions)
    };
    assert_eq!((root.key.as_str(), &root.origin), ("s", &Origin::Root));
    assert_eq!((ids(root), ids(fork)), (vec!["b"], vec!["c"]));
}

#[test]
fn kimis_sessions_are_named_by_their_folders() {
    let lines = [
        r#"{"role":"_system_prompt","content":"Be terse."}"#,
        r#"{"role":"_checkpoint","id":0}"#,
        r#"{"role":"user","content":"List the files."}"#,
        r#"{"role":"assistant","content":[{"type":"think","think":"ls will do.","encrypted":"sig"},{"type":"text","text":"I look."}],"tool_calls":[{"type":"function","id":"c1","function":{"name":"Shell","arguments":"{\"command\":\"ls\"}"}}]}"#,
        r#"{"role":"tool","content":[{"type":"text","text":"README.md"}],"tool_call_id":"c1"}"#,
        r#"{"role":"_usage","token_count":321}"#,
    ];
    let source = lines.join("\n") + "\n";
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("hash/6d1f");
    std::fs::create_dir_all(&session).unwrap();
    for (file, key) in [("context.jsonl", "6d1f"), ("context_1.jsonl", "6d1f_1")] {
        std::fs::write(session.join(file), &source).unwrap();
        let transcript = read_file(&session.join(file), &ReadOptions::default()).unwrap();
        assert_eq!(transcript.format, "kimi-code");
        let [log] = &*transcript.sessions else {
            panic!("{transcript:?}")
        };
        assert_eq!((log.key.as_str(), log.named), (key, true));
        let roles: Vec<Role> = log.messages.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [Role::System, Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(log.notes(), 1);
        let [
            Part::Reasoning { text, signature },
            Part::Text { .. },
            Part::ToolCall {
                id,
                name,
                arguments,
            },
        ] = &*log.messages[2].parts
        else {
            panic!("{:?}", log.messages[2])
        };
        assert_eq!(
            (text.as_str(), signature.as_deref()),
            ("ls will do.", Some("sig"))
        );
        assert_eq!(
            (id.as_str(), name.as_str(), arguments.as_str()),
            ("c1", "Shell", r#""{\"command\":\"ls\"}""#)
        );
        let Part::ToolResult { call_id, .. } = &log.messages[3].parts[0] else {
            panic!("{:?}", log.messages[3])
        };
        assert_eq!(call_id, "c1");
        let skipped = [("_checkpoint".to_owned(), 1), ("_usage".to_owned(), 1)];
        assert_eq!(transcript.report.skipped, skipped.into());
    }
    // Two sources without a path begin with equal records, and are told apart by their first messages.
    let other = source.replace("List the files.", "Say hello.");
    let key = |source: &str| read_str(source).sessions[0].key.to_string();
    assert_ne!(key(&source), key(&other));
}
