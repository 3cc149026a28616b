//! Plain JSON lines.

use memory_model::{EntryKind, Message, Part, RawJson, ResultContent, Role, Timestamp};
use message_formats::{ReadOptions, read};

use crate::support::{export, read_str};

#[test]
fn as_little_as_role_and_content() {
    let transcript = read_str(
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"user\",\"content\":\"hi\"}\n",
    );
    let session = &transcript.sessions[0];
    // SHA-256 of the first line.
    assert_eq!(session.key.as_str(), "jsonl-ae760f5ba03c31ac");
    let ids: Vec<&str> = session
        .messages
        .iter()
        .filter_map(|m| m.external_id.as_deref())
        .collect();
    let hash = &session.key.as_str()[6..];
    assert_eq!(ids, [format!("h-{hash}-1"), format!("h-{hash}-2")]);
    let named = read(
        &b"{\"role\":\"user\",\"content\":\"hi\"}"[..],
        &ReadOptions::default().with_session("chat"),
    )
    .unwrap();
    assert_eq!(named.sessions[0].key.as_str(), "chat");
    assert_eq!(
        named.sessions[0].messages[0].external_id.as_deref(),
        Some(ids[0])
    );
}

#[test]
fn lines_go_to_the_session_that_they_name() {
    let transcript = read_str(
        r#"{"role":"user","content":"1","session":"a","external_id":"x"}
{"role":"user","content":"2","session":"b","external_id":"x"}
{"role":"user","content":"3","session":"a"}
{"role":"user","content":"4"}"#,
    );
    let found: Vec<(String, usize)> = transcript
        .sessions
        .iter()
        .map(|s| (s.key.as_str().chars().take(6).collect(), s.messages.len()))
        .collect();
    assert_eq!(
        found,
        [("a".into(), 2), ("b".into(), 1), ("jsonl-".into(), 1)]
    );
}

#[test]
fn everything_that_is_exported_reads_back_the_same() {
    let mut all = vec![
        Message::system("be brief"),
        Message::user("héllo \0 \u{1F600}").with_name("Ada"),
        Message::new(
            Role::Assistant,
            vec![
                Part::Reasoning {
                    text: String::new(),
                    signature: Some("s".into()),
                },
                Part::text(""),
                Part::ToolCall {
                    id: "c".into(),
                    name: "n".into(),
                    arguments: RawJson::parse(r#"{ "a":1.00,"a":"\ud800" }"#).unwrap(),
                },
                Part::ToolCall {
                    id: "d".into(),
                    name: "n".into(),
                    arguments: RawJson::parse(r#""{\"text\":1}""#).unwrap(),
                },
                Part::Unknown {
                    raw: RawJson::parse("[1e400]").unwrap(),
                },
            ],
        )
        .with_response("r1")
        .with_turn("loop", 3)
        .with_meta(RawJson::parse(r#"{"model":"m","n":1.0}"#).unwrap()),
        Message::new(
            Role::Tool,
            vec![Part::ToolResult {
                call_id: "c".into(),
                content: ResultContent::Parts(vec![Part::text("x")]),
                is_error: Some(true),
            }],
        ),
        Message::note(Role::System, vec![]),
    ];
    for (at, message) in all.iter_mut().enumerate() {
        message.external_id = Some(format!("m{at}"));
        message.created_at = Timestamp(i64::try_from(at).unwrap() * 1_000_001);
    }
    all[4].created_at = Timestamp(i64::MAX);
    let first = read_str("{\"role\":\"user\",\"content\":\"seed\"}");
    let mut session = first.sessions[0].clone();
    session.messages = all;
    let text = export(&session);
    let again = read_str(&text);
    assert_eq!(again.sessions[0].messages, session.messages);
    assert_eq!(export(&again.sessions[0]), text);
}

#[test]
fn chat_lines_and_odd_lines_lose_nothing() {
    let transcript = read_str(
        r#"{"role":"user","content":["a",{"type":"text","text":"b"},{"type":"input_audio","x":1},2]}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]}
{"role":"tool","tool_call_id":"c1","content":"42","extra":1.0}
{"role":"developer","content":"x","created_at":"yesterday","meta":{"k":1}}
{"role":"narrator","content":"x"}
{"role":"user","content":"a","content":"b"}
{"role":"user","kind":"message","parts":7}
{"no":"role"}"#,
    );
    let messages = &transcript.sessions[0].messages;
    let raw = |json: &str| Part::Unknown {
        raw: RawJson::parse(json).unwrap(),
    };
    assert_eq!(
        messages[0].parts,
        [
            Part::text("a"),
            Part::text("b"),
            raw(r#"{"type":"input_audio","x":1}"#),
            raw("2")
        ]
    );
    assert!(
        matches!(&messages[1].parts[..], [Part::ToolCall { arguments, .. }] if arguments.as_str() == r#""{\"x\": 1}""#)
    );
    assert_eq!(
        messages[2].parts,
        [Part::ToolResult {
            call_id: "c1".into(),
            content: ResultContent::Text("42".into()),
            is_error: None
        }]
    );
    assert_eq!(
        messages[2].meta.as_ref().unwrap().as_str(),
        r#"{"extra":1.0}"#
    );
    assert_eq!(messages[3].role, Role::System);
    assert_eq!(
        messages[3].meta.as_ref().unwrap().as_str(),
        r#"{"k":1,"created_at":"yesterday","role":"developer"}"#
    );
    let kinds: Vec<EntryKind> = messages.iter().map(|m| m.kind).collect();
    use EntryKind::{Message as M, Note as N};
    assert_eq!(kinds, [M, M, M, M, N, M, M, N]);
    assert_eq!(
        messages[5].parts,
        [raw(r#"{"role":"user","content":"a","content":"b"}"#)]
    );
    assert_eq!(messages[6].parts, [raw("7")]);
}
