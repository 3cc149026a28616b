//! The compactions that agents record, and the contexts that they went on with.

use message_formats::{CountedInput, OwnCompaction, Shown, own_compactions};
use serde_json::{Value, json};

use crate::support::read_str;

/// Reads lines, and returns the compactions of the first session and its external ids.
fn found(lines: &[Value]) -> (Vec<OwnCompaction>, Vec<String>) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let transcript = read_str(&(lines.join("\n") + "\n"));
    let log = &transcript.sessions[0];
    let ids = log
        .messages
        .iter()
        .map(|message| message.external_id.clone().unwrap());
    (
        own_compactions(&log.messages, &log.summaries),
        ids.collect(),
    )
}

/// Returns the content of a context: texts, and entries by their ids.
fn shows(one: &OwnCompaction, ids: &[String]) -> Vec<String> {
    let shows = one.shows.iter().map(|shown| match shown {
        Shown::Text(text) => format!("{text:?}"),
        Shown::Entry(at) => ids[*at].clone(),
    });
    shows.collect()
}

/// A line of Claude Code.
fn claude(uuid: &str, mut line: Value) -> Value {
    line["uuid"] = json!(uuid);
    line["sessionId"] = json!("s");
    line["timestamp"] = json!("2026-03-02T09:00:00.000Z");
    line
}

fn user(uuid: &str, text: &str) -> Value {
    claude(
        uuid,
        json!({"type": "user", "message": {"role": "user", "content": text}}),
    )
}

fn assistant(uuid: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    claude(
        uuid,
        json!({"type": "assistant", "message": {"role": "assistant", "content": content}}),
    )
}

fn boundary(uuid: &str, facts: Value) -> Value {
    claude(
        uuid,
        json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": facts}),
    )
}

fn summary(uuid: &str, text: &str) -> Value {
    let message = json!({"role": "user", "content": text});
    claude(
        uuid,
        json!({"type": "user", "isCompactSummary": true, "message": message}),
    )
}

#[test]
fn claude_code_goes_on_with_a_summary_kept_messages_and_attached_files() {
    let command =
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>";
    let file = json!({"type": "file", "filename": "a.rs", "content": {"type": "text", "file": {"content": "fn a() {}"}}});
    let (all, ids) = found(&[
        user("u1", "Begin."),
        assistant("a1", "Done."),
        user("u2", "Go on."),
        assistant("a2", "I do."),
        boundary(
            "b1",
            json!({"trigger": "manual", "preTokens": 900, "preservedMessages": {"uuids": ["u2", "a2"]}}),
        ),
        summary("s1", "They began."),
        user("c1", command),
        claude("f1", json!({"type": "attachment", "attachment": file})),
        user("u3", "And now?"),
        assistant("a3", "The end."),
        boundary(
            "b2",
            json!({"trigger": "auto", "preservedSegment": {"headUuid": "u3", "tailUuid": "a3"}}),
        ),
        summary("s2", "It ended."),
    ]);
    let [first, second] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(
        (first.trigger.as_deref(), first.tokens_before),
        (Some("manual"), Some(900))
    );
    assert_eq!(
        shows(first, &ids),
        ["\"They began.\"", "u2", "a2", "c1", "f1"]
    );
    assert_eq!(
        (ids[first.at].as_str(), ids[first.end].as_str()),
        ("b1", "u3")
    );
    assert_eq!(
        (second.trigger.as_deref(), second.tokens_before),
        (Some("auto"), None)
    );
    assert_eq!(shows(second, &ids), ["\"It ended.\"", "u3", "a3"]);
    assert_eq!(second.end, ids.len());
}

#[test]
fn messages_that_a_hook_of_claude_code_writes_again_are_kept() {
    let again = |uuid: &str, text: &str| {
        let mut line = user(uuid, text);
        line["rowSource"] = json!("hook");
        line
    };
    let (all, ids) = found(&[
        user("u1", "Begin."),
        assistant("a1", "Done."),
        boundary("b", json!({"trigger": "auto"})),
        again("h1", "An outline."),
        again("h2", "Begin."),
        user("u2", "Go on."),
    ]);
    assert_eq!(shows(&all[0], &ids), ["\"An outline.\"", "u1"]);
    assert_eq!(ids[all[0].end], "u2");
}

#[test]
fn pi_keeps_the_entries_from_one_on() {
    let entry = |id: &str, parent: Option<&str>, mut line: Value| {
        line["id"] = json!(id);
        line["parentId"] = json!(parent);
        line["timestamp"] = json!("2026-03-02T09:00:00.000Z");
        line
    };
    let said = |role: &str, text: &str| json!({"type": "message", "message": {"role": role, "content": [{"type": "text", "text": text}]}});
    let (all, ids) = found(&[
        json!({"type": "session", "id": "s", "version": 3, "timestamp": "2026-03-02T09:00:00.000Z", "cwd": "/w"}),
        entry("a", None, said("user", "Begin.")),
        entry("b", Some("a"), said("assistant", "Done.")),
        entry("c", Some("b"), said("user", "Go on.")),
        entry(
            "d",
            Some("c"),
            json!({"type": "compaction", "summary": "They began.", "firstKeptEntryId": "c", "tokensBefore": 70}),
        ),
        entry("e", Some("d"), said("assistant", "I do.")),
    ]);
    assert_eq!(shows(&all[0], &ids), ["\"They began.\"", "c"]);
    assert_eq!(
        (all[0].trigger.as_deref(), all[0].tokens_before),
        (None, Some(70))
    );
}

#[test]
fn codex_and_qwen_code_replace_the_conversation_by_a_list() {
    let codex = |kind: &str, payload: Value| json!({"timestamp": "2026-03-02T09:00:00.000Z", "type": kind, "payload": payload});
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let history = json!([said("user", "Begin."), said("user", "Summary: they began.")]);
    let (all, ids) = found(&[
        codex("session_meta", json!({"id": "s"})),
        codex("response_item", said("user", "Begin.")),
        codex("response_item", said("assistant", "Done.")),
        codex(
            "compacted",
            json!({"message": "they began", "replacement_history": history}),
        ),
        codex("response_item", said("user", "Go on.")),
    ]);
    assert_eq!(
        shows(&all[0], &ids),
        [ids[1].as_str(), "\"Summary: they began.\""]
    );
    assert_eq!(ids[all[0].end], ids[4]);

    let qwen = |uuid: &str, parent: Option<&str>, mut line: Value| {
        line["uuid"] = json!(uuid);
        line["parentUuid"] = json!(parent);
        line["sessionId"] = json!("s");
        line["version"] = json!("0.24.4");
        line["timestamp"] = json!("2026-03-02T09:00:00.000Z");
        line
    };
    let text = |text: &str| json!([{"text": text}]);
    let history = json!([{"role": "user", "parts": text("They began.")}, {"role": "model", "parts": text("Done.")}]);
    let info = json!({"triggerReason": "auto", "originalTokenCount": 80});
    let payload = json!({"info": info, "compressedHistory": history});
    let (all, ids) = found(&[
        qwen(
            "a",
            None,
            json!({"type": "user", "message": {"role": "user", "parts": text("Begin.")}}),
        ),
        qwen(
            "b",
            Some("a"),
            json!({"type": "assistant", "message": {"role": "model", "parts": text("Done.")}}),
        ),
        qwen(
            "c",
            Some("b"),
            json!({"type": "system", "subtype": "chat_compression", "systemPayload": payload}),
        ),
    ]);
    assert_eq!(shows(&all[0], &ids), ["\"They began.\"", "b"]);
    assert_eq!(
        (all[0].trigger.as_deref(), all[0].tokens_before),
        (Some("auto"), Some(80))
    );
}

#[test]
fn opencode_keeps_the_end_of_the_conversation() {
    let message = |id: &str, role: &str, time: u64, more: Value, parts: Value| {
        let mut info = json!({"id": id, "role": role, "sessionID": "s", "time": {"created": time, "completed": time}});
        info.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"info": info, "parts": parts})
    };
    let text = |text: &str| json!([{"id": format!("p-{text}"), "type": "text", "text": text}]);
    let asked = json!([{"id": "p", "type": "compaction", "auto": true, "tail_start_id": "b"}]);
    let export = json!({"info": {"id": "s", "version": "1", "time": {"created": 1, "updated": 9}}, "messages": [
        message("a", "user", 1, json!({}), text("Begin.")),
        message("b", "assistant", 2, json!({}), text("Done.")),
        message("c", "user", 3, json!({}), asked),
        message("d", "assistant", 4, json!({"summary": true}), text("They began.")),
        message("e", "user", 5, json!({}), text("Go on.")),
    ]});
    let transcript = read_str(&export.to_string());
    let log = &transcript.sessions[0];
    let ids: Vec<String> = log
        .messages
        .iter()
        .map(|one| one.external_id.clone().unwrap())
        .collect();
    let all = own_compactions(&log.messages, &log.summaries);
    assert_eq!(shows(&all[0], &ids), ["\"They began.\"", "b"]);
    assert_eq!(all[0].trigger.as_deref(), Some("auto"));
}

#[test]
fn a_conversation_that_begins_with_a_summary_has_no_compaction() {
    let (all, _) = found(&[
        boundary("b", json!({"trigger": "auto"})),
        summary("s", "They began."),
        user("u", "Go on."),
    ]);
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn the_providers_count_of_a_request_is_read_from_its_answer() {
    let mut line = assistant("a", "Done.");
    line["message"]["usage"] = json!({"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 500, "output_tokens": 9});
    let lines = format!(
        "{}\n{line}\n{}\n",
        user("u", "Begin."),
        assistant("b", "No count.")
    );
    let transcript = read_str(&lines);
    let counts: Vec<Option<CountedInput>> = transcript.sessions[0]
        .messages
        .iter()
        .map(CountedInput::of)
        .collect();
    assert_eq!(
        counts,
        [
            None,
            Some(CountedInput {
                cached: 500,
                new: 43
            }),
            None
        ]
    );
}
