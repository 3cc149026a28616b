//! pi's session files.

use memory_model::{EntryKind, Part, ResultContent, Role, Timestamp};
use message_formats::{Origin, SourceScope};
use outside_checks::raw_check::{Source, check};

use crate::support::{export, read_str};

const HEAD: &str =
    r#"{"type":"session","version":3,"id":"p1","timestamp":"2026-03-02T09:00:00Z","cwd":"/w"}"#;

fn entry(id: &str, parent: &str, text: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{text}"}}}}"#
    )
}

#[test]
fn every_role_is_read() {
    let source = [
        r#"{"type":"session","id":"p1","timestamp":"2026-03-02T09:00:00Z"}"#,
        r#"{"type":"model_change","provider":"x","modelId":"y"}"#,
        r#"{"type":"message","timestamp":"2026-03-02T09:00:01Z","message":{"role":"user","content":[{"type":"text","text":"list"},{"type":"image","mimeType":"image/png","data":"AA"}]}}"#,
        r#"{"type":"message","message":{"role":"assistant","content":[{"type":"thinking","thinking":"","thinkingSignature":"s"},{"type":"toolCall","id":"c1","name":"bash","arguments":{"n":1e400},"partialJson":"{"}],"model":"m","stopReason":"toolUse","timestamp":1780000000500}}"#,
        r#"{"type":"message","message":{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"a.rs"}],"isError":false,"details":{"diff":"+1"}}}"#,
        r#"{"type":"message","message":{"role":"assistant","content":[],"stopReason":"aborted","errorMessage":"stopped"}}"#,
        r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0}}"#,
        r#"{"type":"message","message":{"role":"custom","content":"x"}}"#,
        r#"{"type":"compaction","summary":"long ago"}"#,
    ]
    .join("\n");
    let transcript = read_str(&source);
    assert_eq!(transcript.format, "pi");
    let session = &transcript.sessions[0];
    assert_eq!(session.key.as_str(), "p1");
    let shape: Vec<(EntryKind, Role)> = session.messages.iter().map(|m| (m.kind, m.role)).collect();
    use EntryKind::{Message, Note};
    assert_eq!(
        shape,
        [
            (Note, Role::System),
            (Note, Role::System),
            (Message, Role::User),
            (Message, Role::Assistant),
            (Message, Role::Tool),
            (Message, Role::Assistant),
            (Message, Role::User),
            (Message, Role::User),
            (Note, Role::System),
        ]
    );
    let call = &session.messages[3];
    assert_eq!(call.created_at, Timestamp::from_millis(1_780_000_000_500));
    assert!(
        matches!(&call.parts[1], Part::ToolCall { arguments, .. } if arguments.as_str() == r#"{"n":1e400}"#)
    );
    assert_eq!(
        call.meta.as_ref().unwrap().as_str(),
        r#"{"message":{"model":"m","stopReason":"toolUse","timestamp":1780000000500},"blocks":{"1":{"partialJson":"{"}}}"#
    );
    let answer = &session.messages[4];
    assert_eq!(
        answer.parts,
        [Part::ToolResult {
            call_id: "c1".into(),
            content: ResultContent::Parts(vec![Part::text("a.rs")]),
            is_error: Some(false),
        }]
    );
    assert_eq!(
        answer.meta.as_ref().unwrap().as_str(),
        r#"{"message":{"toolName":"bash","details":{"diff":"+1"}}}"#
    );
    assert!(session.messages[5].parts.is_empty());
    assert_eq!(session.messages[6].text(), "ls\na\nb");
}

#[test]
fn a_later_branch_is_a_fork_at_its_parent() {
    let source = [
        HEAD.to_owned(),
        entry("a", "", "one"),
        entry("b", "a", "two"),
        entry("c", "b", "three"),
        entry("d", "b", "instead of three"),
        entry("e", "d", "four"),
        entry("f", "c", "back on the first branch"),
        entry("g", "d", "a fork of the fork"),
        entry("h", "", "from the very start"),
        entry("i", "lost", "its parent's line is missing"),
        entry("b", "a", "two"),
    ]
    .join("\n");
    let transcript = read_str(&source);
    let found: Vec<(&str, Vec<String>, Option<(&str, Option<&str>)>)> = transcript
        .sessions
        .iter()
        .map(|session| {
            let texts = session
                .messages
                .iter()
                .filter(|m| m.kind == EntryKind::Message);
            let origin = match &session.origin {
                Origin::Fork { parent, after } => Some((parent.as_str(), after.as_deref())),
                _ => None,
            };
            (
                session.key.as_str(),
                texts.map(|m| m.external_id.clone().unwrap()).collect(),
                origin,
            )
        })
        .collect();
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("p1", ids(&["a", "b", "c", "f"]), None),
            ("p1/d", ids(&["d", "e"]), Some(("p1", Some("b")))),
            ("p1/g", ids(&["g"]), Some(("p1/d", Some("d")))),
            ("p1/h", ids(&["h", "i"]), Some(("p1", None))),
        ]
    );
    assert_eq!(transcript.sessions[0].duplicates, 1);
}

#[test]
fn what_extensions_say_counts_and_what_the_user_hides_does_not() {
    let bash = |id: &str, parent: &str, output: &str, more: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"bashExecution","command":"cat","output":"{output}"{more}}}}}"#
        )
    };
    let source = [
        HEAD.to_owned(),
        entry("a", "", "hello"),
        r#"{"type":"custom_message","customType":"schedule","content":"at nine","display":false,"id":"b","parentId":"a","timestamp":"2026-03-02T09:00:01Z"}"#.to_owned(),
        r#"{"type":"custom_message","customType":"x","content":[{"type":"text","text":"in blocks"}],"id":"c","parentId":"b"}"#.to_owned(),
        r#"{"type":"message","id":"d","parentId":"c","message":{"role":"custom","customType":"y","content":"by a role","display":true}}"#.to_owned(),
        r#"{"type":"custom","customType":"state","data":{"n":1},"id":"e","parentId":"d"}"#.to_owned(),
        bash("f", "e", "TOKEN", r#","excludeFromContext":true"#),
        bash("g", "f", "README", r#","excludeFromContext":false"#),
    ]
    .join("\n");
    let transcript = read_str(&source);
    let log = &transcript.sessions[0];
    let said = log
        .messages
        .iter()
        .filter(|message| message.kind == EntryKind::Message);
    let said: Vec<(Role, String)> = said.map(|message| (message.role, message.text())).collect();
    let users = ["hello", "at nine", "in blocks", "by a role", "cat\nREADME"];
    assert_eq!(said, users.map(|text| (Role::User, text.to_owned())));
    let exported = export(log);
    check(
        &Source::parse(source.as_bytes()),
        std::slice::from_ref(&exported),
    )
    .unwrap();
    assert!(exported.contains("TOKEN"));
}

#[test]
fn a_compaction_may_keep_nothing() {
    for kept in ["", "c"] {
        let source = [
            HEAD.to_owned(),
            entry("a", "", "hello"),
            format!(r#"{{"type":"compaction","id":"c","parentId":"a","summary":"They greeted.","firstKeptEntryId":"{kept}"}}"#),
            entry("b", "c", "go on"),
        ]
        .join("\n");
        let transcript = read_str(&source);
        let [summary] = &transcript.sessions[0].summaries[..] else {
            panic!("{:?}", transcript.sessions[0].summaries)
        };
        assert_eq!(summary.text, "They greeted.");
        assert_eq!(summary.scope, SourceScope::Before { kept_from: None });
    }
}
