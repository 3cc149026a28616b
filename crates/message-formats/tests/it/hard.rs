//! Content that breaks lesser readers.

use memory_model::Part;
use message_formats::testing::raw_check::{Source, check};
use message_formats::{ErrorKind, ReadOptions, Transcript, Warning, read};

use crate::support::{export, read_str};

fn text_of(transcript: &Transcript) -> Vec<String> {
    let messages = transcript.sessions[0].messages.iter();
    messages.map(|message| message.text()).collect()
}

#[test]
fn escapes_numbers_and_keys_survive() {
    let source = [
        r#"{"role":"user","content":"nul \u0000 inside"}"#,
        r#"{"role":"user","content":"lone \ud83d surrogate"}"#,
        r#"{"role":"user","content":"a","content":"twice"}"#,
        r#"{"role":"assistant","parts":[{"type":"tool_call","id":"1","name":"n","arguments":{"x":1e400,"x":-0.0,"\udfff":[]}}]}"#,
        r#"{"role":"user","content":""}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":"same"}"#,
        r#"{"role":"user","content":"same"}"#,
        r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"1","content":[{"type":"text","text":"\udc00"}]}]}"#,
        r#"{"role":"assistant","parts":[{"type":"tool_call","id":"never answered","name":"n","arguments":"{"}]}"#,
    ]
    .join("\n");
    let transcript = read_str(&source);
    assert!(transcript.skipped.is_empty());
    let messages = &transcript.sessions[0].messages;
    assert_eq!(messages.len(), 10);
    assert_eq!(messages[0].text(), "nul \0 inside");
    assert!(
        matches!(&messages[1].parts[..], [Part::Unknown { raw }] if raw.as_str() == r#""lone \ud83d surrogate""#)
    );
    assert_eq!(messages[4].parts, [Part::text("")]);
    assert!(messages[5].parts.is_empty());
    assert_ne!(messages[6].external_id, messages[7].external_id);
    let exports = [export(&transcript.sessions[0])];
    let checked = check(&Source::parse(source.as_bytes()), &exports).unwrap();
    assert_eq!(checked.messages, 10);
}

#[test]
fn bytes_around_the_lines_do_not_matter() {
    let plain = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n";
    let odd = "\u{feff}{\"role\":\"user\",\"content\":\"a\"}\r\n\r\n \n{\"role\":\"user\",\"content\":\"b\"}";
    let (plain, odd) = (read_str(plain), read_str(odd));
    assert_eq!(plain.sessions, odd.sessions);
    assert_eq!(odd.lines, 2);
}

#[test]
fn lines_that_cannot_be_read_are_counted_by_kind() {
    let mut source = b"{\"role\":\"user\",\"content\":\"a\"}\n".to_vec();
    source.extend(b"{\"role\":\"user\",\"content\":\"\xff\"}\n");
    source.extend(b"{\"role\":\n[1]\n\n");
    source.extend(
        format!(
            "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
            "x".repeat(200)
        )
        .bytes(),
    );
    source.extend(b"{\"role\":\"user\",\"content\":\"b\"}\n{\"role\":\"user\",\"conte");
    let options = ReadOptions::default().with_max_line_bytes(100);
    let transcript = read(source.as_slice(), &options).unwrap();
    assert_eq!(text_of(&transcript), ["a", "b"]);
    let warned: Vec<(u64, &str)> = transcript
        .warnings
        .iter()
        .map(|w: &Warning| (w.line, w.kind.as_str()))
        .collect();
    assert_eq!(
        warned,
        [
            (2, "invalid_utf8"),
            (3, "invalid_json"),
            (4, "not_an_object"),
            (6, "too_long"),
            (8, "incomplete")
        ]
    );
    assert_eq!(transcript.skipped.values().sum::<u64>(), 5);
    assert_eq!(transcript.lines, 7);
    assert!(transcript.lost_any());
}

#[test]
fn a_line_of_fifty_megabytes_is_a_message() {
    let long = "0123456789".repeat(5_000_000);
    let source = format!(
        r#"{{"type":"user","uuid":"u","sessionId":"s","message":{{"role":"user","content":"{long}"}}}}"#
    );
    let transcript = read_str(&source);
    assert!(transcript.sessions[0].messages[0].text() == long);
}

#[test]
fn deep_nesting_does_not_overflow() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let source = format!(
        r#"{{"role":"assistant","parts":[{{"type":"tool_call","id":"1","name":"n","arguments":{deep}}}]}}
{{"role":"user","content":{deep}}}"#
    );
    let transcript = read_str(&source);
    assert_eq!(transcript.sessions[0].messages.len(), 2);
}

#[test]
fn what_is_no_transcript_is_refused_by_kind() {
    for (bytes, kind) in [
        (&b""[..], ErrorKind::Empty),
        (b"\n \r\n", ErrorKind::Empty),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", ErrorKind::NotText),
        (b"plain words\n", ErrorKind::UnknownFormat),
        (b"{\"some\":\"json\"}\n", ErrorKind::UnknownFormat),
    ] {
        let error = read(bytes, &ReadOptions::default().with_name("notes.bin")).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().starts_with("notes.bin "), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    for path in [
        folder.path().join("missing.jsonl"),
        folder.path().to_owned(),
    ] {
        let error = message_formats::read_file(&path, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(path.to_str().unwrap()));
        assert!(std::error::Error::source(&error).is_some());
    }
}
