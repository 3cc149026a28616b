//! Plain JSON lines.

use memory_model::{
    EntryKind, Media, MediaSource, Message, Part, RawJson, ResultContent, Role, Timestamp,
};
use message_formats::{ReadOptions, read};
use outside_checks::raw_check::{Source, check};

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

#[test]
fn a_time_is_read_in_each_form_and_under_each_key() {
    let moment = Timestamp::parse("2026-05-28T20:26:40Z").unwrap();
    for time in [
        r#""created_at":"2026-05-28T20:26:40Z""#,
        r#""created_at":1780000000000"#,
        r#""created_at":1780000000"#,
        r#""created_at":1780000000.0"#,
        r#""created_at":1780000000000000"#,
        r#""created_at":"1780000000""#,
        r#""created_at":"2026-05-28 20:26:40""#,
        r#""timestamp":1780000000"#,
        r#""timestamp":"2026/05/28 20:26:40 UTC""#,
        r#""created_at":null,"timestamp":"2026-05-28T22:26:40+02:00""#,
        r#""created_at":0,"timestamp":1780000000000"#,
    ] {
        let line = format!(r#"{{"role":"user","content":"hi",{time}}}"#);
        let transcript = read_str(&line);
        let log = &transcript.sessions[0];
        assert_eq!(log.messages[0].created_at, moment, "{time}");
        let again = read_str(&export(log));
        assert_eq!(again.sessions[0].messages, log.messages, "{time}");
    }
    for time in [
        "0",
        "-5",
        "12",
        r#""0""#,
        r#""soon""#,
        "null",
        r#""1970-01-01T00:00:00Z""#,
    ] {
        let line = format!(r#"{{"role":"user","content":"hi","created_at":{time}}}"#);
        let log = &read_str(&line).sessions[0];
        assert!(!log.messages[0].created_at.is_known(), "{time}");
    }
}

#[test]
fn texts_and_pictures_of_providers_are_read_as_such() {
    let picture = |source| {
        Part::Image(Media {
            media_type: "image/png".to_owned(),
            source,
        })
    };
    let data = || picture(MediaSource::Data("AAAA".to_owned()));
    for (part, read, kept) in [
        (
            r#"{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}"#,
            Part::text("go"),
            r#"{"cache_control":{"type":"ephemeral"}}"#,
        ),
        (
            r#"{"type":"text","text":"go","annotations":[],"state":"done"}"#,
            Part::text("go"),
            r#"{"annotations":[],"state":"done"}"#,
        ),
        (
            r#"{"type":"output_text","text":"go"}"#,
            Part::text("go"),
            r#"{"type":"output_text"}"#,
        ),
        (
            r#"{"type":"text","text":"go \ud83d"}"#,
            Part::text("go \u{fffd}"),
            r#"{"text":"go \ud83d"}"#,
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}"#,
            data(),
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,","detail":"low"}}"#,
        ),
        (
            r#"{"type":"input_image","image_url":"data:image/png;charset=x;base64,AAAA"}"#,
            data(),
            r#"{"type":"input_image","image_url":"data:image/png;charset=x;base64,"}"#,
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}"#,
            Part::Image(Media {
                media_type: "image/*".to_owned(),
                source: MediaSource::Url("https://example.org/a.png".to_owned()),
            }),
            r#"{"type":"image_url"}"#,
        ),
        (
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
            data(),
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png"}}"#,
        ),
    ] {
        let line = format!(r#"{{"role":"user","content":["look",{part}]}}"#);
        let transcript = read_str(&line);
        let log = &transcript.sessions[0];
        assert_eq!(
            log.messages[0].parts,
            [Part::text("look"), read.clone()],
            "{part}"
        );
        let meta = log.messages[0].meta.as_ref().unwrap().as_str();
        assert_eq!(meta, format!(r#"{{"blocks":{{"1":{kept}}}}}"#));
        let exported = export(log);
        if !part.contains("source") && !part.contains("input_image") {
            check(
                &Source::parse(line.as_bytes()),
                std::slice::from_ref(&exported),
            )
            .unwrap();
        }
        assert_eq!(read_str(&exported).sessions[0].messages, log.messages);

        let line = format!(r#"{{"role":"tool","tool_call_id":"c","content":[{part}]}}"#);
        let message = &read_str(&line).sessions[0].messages[0];
        let [
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            },
        ] = &message.parts[..]
        else {
            panic!("{message:?}")
        };
        assert_eq!(parts[..], [read]);
    }
}

#[test]
fn calls_without_ids_are_answered_by_their_names() {
    let transcript = read_str(
        r#"{"role":"user","content":"Is it raining?"}
{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{\"at\":\"port\"}"}}
{"role":"function","name":"weather","content":"rain"}
{"role":"assistant","content":"","function_call":{"name":"weather","arguments":"{}"}}
{"role":"function","name":"weather","content":"sun"}
{"role":"function","name":"tide","content":"of no call"}
{"role":"assistant","content":"It was."}"#,
    );
    assert!(transcript.report.skipped.is_empty());
    let log = &transcript.sessions[0];
    let calls = log.messages.iter().flat_map(|message| &message.parts);
    let calls: Vec<(&str, &str)> = calls
        .filter_map(|part| match part {
            Part::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
            Part::ToolResult {
                call_id,
                content: ResultContent::Text(text),
                ..
            } => Some((call_id.as_str(), text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("function-1", "weather"),
            ("function-1", "rain"),
            ("function-2", "weather"),
            ("function-2", "sun"),
            ("function-tide", "of no call"),
        ]
    );
    assert_eq!(
        log.messages[2].meta.as_ref().unwrap().as_str(),
        r#"{"role":"function"}"#
    );
    assert!(log.messages[1].meta.is_none());
    assert_eq!(read_str(&export(log)).sessions[0].messages, log.messages);
}
