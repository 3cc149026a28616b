//! Every fixture is read, and nothing of it is lost.

use std::collections::BTreeMap;
use std::path::Path;

use memory_model::EntryKind;
use message_formats::{Origin, ReadOptions, Transcript, read_file};
use outside_checks::raw_check::{Source, check};

use crate::support::export;

fn fixture(name: &str) -> Transcript {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let path = root.join(name).join("session.jsonl");
    let transcript = read_file(&path, &ReadOptions::default()).unwrap();
    assert_eq!(transcript.format.as_str(), name.split('/').next().unwrap());
    let exports: Vec<String> = transcript.sessions.iter().map(export).collect();
    let source = Source::parse(&std::fs::read(&path).unwrap());
    let checked = check(&source, &exports).unwrap_or_else(|error| panic!("{name}: {error}"));
    let entries: usize = transcript.sessions.iter().map(|s| s.messages.len()).sum();
    assert_eq!(checked.messages + checked.notes, entries);
    transcript
}

/// Bytes of a conversation's text, of all its messages.
fn bytes(transcript: &Transcript) -> usize {
    let mut bytes = 0;
    for message in transcript.sessions.iter().flat_map(|s| &s.messages) {
        if message.kind == EntryKind::Message {
            bytes += message.body().unwrap().len();
        }
    }
    bytes
}

#[test]
fn conversations_of_claude_code() {
    let bugfix = fixture("claude-code/bugfix");
    assert_eq!(bugfix.sessions.len(), 1);
    assert!(bytes(&bugfix) / 4 > 15_000, "{}", bytes(&bugfix));
    let week = fixture("claude-code/release-week");
    assert!(
        (35_000..60_000).contains(&(bytes(&week) / 4)),
        "{}",
        bytes(&week)
    );
    let team = fixture("claude-code/parallel-and-sidechain");
    assert_eq!(team.sessions.len(), 4);
    for session in &team.sessions[1..] {
        let Origin::Spawn { parent, call, .. } = &session.origin else {
            panic!("{:?}", session.origin)
        };
        assert_eq!(*parent, team.sessions[0].key);
        assert!(call.is_some());
    }
    assert_eq!(team.sessions[0].notes(), 3);
}

#[test]
fn conversations_of_pi() {
    let branched = fixture("pi/branched");
    let forks: Vec<bool> = branched
        .sessions
        .iter()
        .map(|session| matches!(session.origin, Origin::Fork { after: Some(_), .. }))
        .collect();
    assert_eq!(forks, [false, true, true]);
    let unanswered = fixture("pi/unanswered-calls");
    assert_eq!(unanswered.sessions.len(), 1);
}

#[test]
fn conversations_in_plain_lines() {
    assert_eq!(fixture("jsonl/tiny").sessions[0].messages.len(), 5);
    let chat = fixture("jsonl/support-chat");
    assert_eq!(chat.sessions[0].key.as_str(), "support-desk-3");
    assert!(bytes(&fixture("jsonl/huge-results")) > 200_000);
    let hard = fixture("jsonl/hard-content");
    let kinds = ["invalid_json", "invalid_utf8", "unknown_role"];
    let skipped: BTreeMap<String, u64> = kinds.map(|kind| (kind.to_owned(), 1)).into();
    assert_eq!(hard.report.skipped, skipped);
    assert_eq!(hard.sessions[0].messages.len(), 22);
}
