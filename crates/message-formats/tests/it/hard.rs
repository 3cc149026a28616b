//! Content that breaks lesser readers.

use std::io::{BufReader, Read};

use memory_model::{EntryKind, Part, ResultContent};
use message_formats::{ErrorKind, ReadOptions, Transcript, Warning, read};
use outside_checks::fixtures::{nested_claude_code, nested_pi, nested_plain};
use outside_checks::raw_check::{Source, check};

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
    assert!(transcript.report.skipped.is_empty());
    let messages = &transcript.sessions[0].messages;
    assert_eq!(messages.len(), 10);
    assert_eq!(messages[0].text(), "nul \0 inside");
    assert_eq!(messages[1].text(), "lone \u{fffd} surrogate");
    let meta = messages[1].meta.as_ref().unwrap().as_str();
    assert_eq!(meta, r#"{"blocks":{"0":{"text":"lone \ud83d surrogate"}}}"#);
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
    assert_eq!(odd.report.lines, 2);
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
        .report
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
    assert_eq!(transcript.report.skipped.values().sum::<u64>(), 5);
    assert_eq!(transcript.report.lines, 7);
    assert!(transcript.report.lost_any());
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

/// Runs a test with the stack that a thread of a server has.
fn with_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(test).unwrap().join().unwrap();
}

/// How deep parts nest: 1 for a message whose parts hold no parts.
fn depth(parts: &[Part]) -> usize {
    let inner = parts.iter().map(|part| match part {
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => depth(parts),
        _ => 0,
    });
    1 + inner.max().unwrap_or(0)
}

#[test]
fn results_inside_of_results_end_at_a_stated_depth() {
    with_small_stack(|| {
        for levels in [1, 2, 7, 8, 9, 10_000, 100_000] {
            for source in [
                nested_claude_code(levels),
                nested_pi(levels),
                nested_plain(levels),
            ] {
                let transcript = read_str(&source);
                let session = &transcript.sessions[0];
                let parts = &session.messages[0].parts;
                assert!(matches!(&parts[..], [Part::ToolResult { .. }]));
                assert!(depth(parts) <= memory_model::MAX_PART_DEPTH, "{levels}");
                let text = export(session);
                assert!(text.contains("the innermost word"));
                check(
                    &Source::parse(source.as_bytes()),
                    std::slice::from_ref(&text),
                )
                .unwrap();
                let again = read_str(&text);
                assert!(again.sessions[0].messages == session.messages);
            }
        }
    });
}

#[test]
fn a_null_beside_a_result_is_kept_and_the_result_stays_paired() {
    let claude = r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x","is_error":null}]}}"#;
    let pi = r#"{"type":"message","id":"1","parentId":null,"message":{"role":"toolResult","toolCallId":"t","content":"x","isError":null}}"#;
    let plain = r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"t","content":"x","is_error":null}]}"#;
    let chat = r#"{"role":"tool","tool_call_id":"t","content":"x","is_error":null}"#;
    let nested = r#"{"role":"tool","parts":[{"type":"tool_result","call_id":"t","content":[{"type":"tool_result","call_id":"i","content":"x","is_error":null}]}]}"#;
    for source in [claude, pi, plain, chat, nested] {
        let transcript = read_str(source);
        let session = &transcript.sessions[0];
        let message = &session.messages[0];
        assert!(
            matches!(&message.parts[..], [Part::ToolResult { call_id, is_error: None, .. }] if call_id == "t"),
            "{message:?}"
        );
        let text = export(session);
        assert!(
            text.contains(r#""is_error":null"#) || text.contains(r#""isError":null"#),
            "{text}"
        );
        assert!(read_str(&text).sessions[0].messages == session.messages);
        check(&Source::parse(source.as_bytes()), &[text]).unwrap();
    }
}

#[test]
fn a_role_that_is_not_known_is_reported() {
    let transcript = read_str(
        r#"{"role":"user","content":"a"}
{"role":"narrator","content":"Meanwhile."}
{"content":"nobody says this"}
{"kind":"note","text":"a note needs no role"}
{"role":"developer","content":"b"}"#,
    );
    assert_eq!(
        transcript.report.skipped,
        [("unknown_role".to_owned(), 2)].into()
    );
    let lines: Vec<u64> = transcript.report.warnings.iter().map(|w| w.line).collect();
    assert_eq!(lines, [2, 3]);
    assert!(transcript.report.lost_any());
    let messages = &transcript.sessions[0].messages;
    let kinds: Vec<EntryKind> = messages.iter().map(|message| message.kind).collect();
    use EntryKind::{Message as M, Note as N};
    assert_eq!(kinds, [M, N, N, N, M]);
}

/// A source that never ends, and says how much of it was read.
struct Endless<'a> {
    first: &'a [u8],
    unit: &'a [u8],
    read: &'a mut u64,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = if self.first.is_empty() {
            let (units, unit) = (buffer.len() / self.unit.len(), self.unit);
            buffer
                .chunks_exact_mut(unit.len())
                .for_each(|chunk| chunk.copy_from_slice(unit));
            units * unit.len()
        } else {
            self.first.read(buffer)?
        };
        *self.read += n as u64;
        Ok(n)
    }
}

#[test]
fn a_source_without_end_is_left_at_a_stated_limit() {
    const LIMIT: usize = 1 << 20;
    let message = b"{\"role\":\"user\",\"content\":\"a\"}\n";
    let options = ReadOptions::default().with_max_line_bytes(LIMIT);
    let run = |first: &[u8], unit: &[u8]| {
        let mut consumed = 0;
        let source = Endless {
            first,
            unit,
            read: &mut consumed,
        };
        let found = read(BufReader::new(source), &options);
        (found.map_err(|error| error.kind()), consumed)
    };
    // No format by the limit: no transcript.
    for (unit, kind) in [
        (&[0][..], ErrorKind::NotText),
        (b"y", ErrorKind::UnknownFormat),
        (b"y\n", ErrorKind::UnknownFormat),
        (b"\xff\n", ErrorKind::NotText),
        (b"\n", ErrorKind::Empty),
    ] {
        let (found, consumed) = run(b"", unit);
        assert_eq!(found.unwrap_err(), kind, "{unit:?}");
        assert!(consumed < 2 * LIMIT as u64, "{unit:?}: {consumed} bytes");
    }
    // A line without end behind a message: what stands before it is read, and it is reported.
    let (found, consumed) = run(message, &[0]);
    let transcript = found.unwrap();
    assert_eq!(transcript.sessions[0].messages.len(), 1);
    assert_eq!(
        transcript.report.skipped,
        [("too_long".to_owned(), 1)].into()
    );
    assert!(consumed < 5 * LIMIT as u64, "{consumed} bytes");
}

#[test]
fn what_is_no_transcript_is_refused_by_kind() {
    for (bytes, kind) in [
        (&b""[..], ErrorKind::Empty),
        (b"\n \r\n", ErrorKind::Empty),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", ErrorKind::NotText),
        (b"\xff\xfe{\0\"\0", ErrorKind::Encoding),
        (b"\xfe\xff\0{\0\"", ErrorKind::Encoding),
        (b"{\0\"\0r\0o\0l\0e\0", ErrorKind::Encoding),
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
