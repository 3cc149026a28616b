//! Codex' rollouts that go on from others.

use std::path::{Path, PathBuf};

use message_formats::{Origin, ReadOptions, SessionLog, Transcript, read_file};
use serde_json::{Value, json};

const THREAD: &str = "01b10000-0000-7000-8000-00000000000a";
const EDITED: &str = "01b10000-0000-7000-8000-00000000000b";
const FORK: &str = "01b10000-0000-7000-8000-00000000000c";

/// A rollout's lines, numbered from a number on.
fn lines(first: u64, meta: &Value, said: &[&str]) -> String {
    let mut out = String::new();
    let mut add = |at: u64, tag: &str, payload: &Value| {
        let line = json!({
            "timestamp": "2026-10-03T09:00:00.000Z", "ordinal": at, "type": tag, "payload": payload,
        });
        out.push_str(&format!("{line}\n"));
    };
    add(first, "session_meta", meta);
    for (at, said) in (first + 1..).zip(said) {
        let role = if said.starts_with('q') {
            "user"
        } else {
            "assistant"
        };
        let content = json!([{"type": "text", "text": said}]);
        let id = format!("msg_{said}");
        add(
            at,
            "response_item",
            &json!({"type": "message", "id": id, "role": role, "content": content}),
        );
    }
    out
}

fn base(rollout: &str, ordinal: u64, bytes: usize) -> Value {
    json!({"thread_id": rollout, "end_ordinal_exclusive": ordinal, "end_byte_offset": bytes})
}

fn texts(log: &SessionLog) -> String {
    let texts = log.messages.iter().map(|message| message.text());
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join(" ")
}

/// Returns each session: its key, the one that it is a fork of, its messages, and whether it is in use.
fn told(transcript: &Transcript) -> Vec<String> {
    let told = transcript.sessions.iter().map(|log| {
        let from = match &log.origin {
            Origin::Fork { parent, .. } => format!(" of {parent}"),
            _ => String::new(),
        };
        let used = if log.in_use { " *" } else { "" };
        let replaced = log.stands_for.as_ref();
        let replaced = replaced.map_or_else(String::new, |key| format!(" for {key}"));
        format!("{}{from}{replaced}{used}: {}", log.key, texts(log))
    });
    told.collect()
}

fn put(folder: &Path, day: &str, name: &str, text: &str) -> PathBuf {
    let folder = folder.join(day);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-2026-10-03T09-00-00-{name}.jsonl"));
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path) -> Transcript {
    read_file(path, &ReadOptions::default()).unwrap()
}

#[test]
fn an_edited_message_and_a_fork_go_on_from_a_part_of_another_file() {
    let home = tempfile::tempdir().unwrap();
    let first = lines(0, &json!({"id": THREAD}), &["q1", "a1", "q2", "a2"]);
    let shared = first.match_indices('\n').nth(2).unwrap().0 + 1;
    let meta = json!({"id": THREAD, "history_base": base(THREAD, 3, shared)});
    let edited = lines(3, &meta, &["q3", "a3"]);
    let shared = edited.match_indices('\n').nth(1).unwrap().0 + 1;
    let meta = json!({"id": FORK, "history_base": base(EDITED, 5, shared)});
    let fork = lines(5, &meta, &["q4"]);
    let first = put(home.path(), "sessions/2026/10/03", THREAD, &first);
    let edited_name = format!("{THREAD}_{EDITED}");
    let edited = put(home.path(), "sessions/2026/10/04", &edited_name, &edited);
    let fork = put(home.path(), "archived_sessions", FORK, &fork);
    let root = format!("{THREAD}: q1 a1 q2 a2");
    let second = format!("{THREAD}/{EDITED} of {THREAD} for {THREAD}");
    assert_eq!(told(&read(&first)), [format!("{THREAD} *: q1 a1 q2 a2")]);
    let transcript = read(&edited);
    assert_eq!(
        told(&transcript),
        [root.clone(), format!("{second} *: q3 a3")]
    );
    let after = |log: &SessionLog| match &log.origin {
        Origin::Fork { after, .. } => after.clone(),
        _ => None,
    };
    assert_eq!(after(&transcript.sessions[1]).as_deref(), Some("msg_a1"));
    let transcript = read(&fork);
    let third = format!("{FORK} of {THREAD}/{EDITED} *: q4");
    assert_eq!(told(&transcript), [root, format!("{second}: q3 a3"), third]);
    assert_eq!(after(&transcript.sessions[2]).as_deref(), Some("msg_q3"));
    // Lines without numbers are told by their bytes.
    let bare = std::fs::read_to_string(&first)
        .unwrap()
        .replace("\"ordinal\":", "\"o\":");
    let shared = bare.match_indices('\n').nth(2).unwrap().0 + 1;
    std::fs::write(&first, bare).unwrap();
    let meta = json!({"id": THREAD, "history_base": base(THREAD, 3, shared)});
    std::fs::write(&edited, lines(3, &meta, &["q3"])).unwrap();
    assert_eq!(after(&read(&edited).sessions[1]).as_deref(), Some("msg_a1"));
}

#[test]
fn a_rollout_without_its_base_is_read_alone_and_says_so() {
    let home = tempfile::tempdir().unwrap();
    let meta = json!({"id": THREAD, "history_base": base(THREAD, 3, 1)});
    let text = lines(3, &meta, &["q3", "a3"]);
    let name = format!("{THREAD}_{EDITED}");
    let path = put(home.path(), "sessions/2026/10/04", &name, &text);
    let transcript = read(&path);
    assert_eq!(told(&transcript), [format!("{THREAD}/{EDITED} *: q3 a3")]);
    assert_eq!(transcript.report.warnings[0].kind, "missing_base");
    // From a pipe, it has no name.
    let transcript = message_formats::read(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(told(&transcript), [format!("{THREAD}/{THREAD}-3 *: q3 a3")]);
    assert_eq!(transcript.report.warnings[0].kind, "missing_base");
    // Two that name each other end too.
    let other = json!({"id": THREAD, "history_base": base(EDITED, 1, 1)});
    put(
        home.path(),
        "sessions/2026/10/04",
        THREAD,
        &lines(0, &other, &["q1"]),
    );
    assert!(!read(&path).sessions.is_empty());
}

#[test]
fn compressed_rollouts_are_read_with_the_files_that_go_on_from_them() {
    let home = tempfile::tempdir().unwrap();
    let text = lines(0, &json!({"id": THREAD}), &["q1", "a1", "q2"]);
    let shared = text.match_indices('\n').nth(2).unwrap().0 + 1;
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut packed, text.as_bytes(), 3).unwrap();
    let first = put(home.path(), "sessions", THREAD, "");
    std::fs::remove_file(&first).unwrap();
    let first = first.with_extension("jsonl.zst");
    std::fs::write(&first, &packed).unwrap();
    assert_eq!(told(&read(&first)), [format!("{THREAD} *: q1 a1 q2")]);
    let meta = json!({"id": THREAD, "history_base": base(THREAD, 3, shared)});
    let name = format!("{THREAD}_{EDITED}");
    let edited = put(home.path(), "sessions", &name, &lines(3, &meta, &["q3"]));
    assert_eq!(texts(&read(&edited).sessions[1]), "q3");
    std::fs::write(&first, &packed[..packed.len() / 2]).unwrap();
    let error = read_file(&first, &ReadOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("its zstd data is damaged"),
        "{error}"
    );
}
