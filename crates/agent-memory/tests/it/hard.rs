//! Content that is difficult to process, in all steps: transcript, database, summaries, context, export, and an import
//! of the export into a second database.

use std::path::Path;

use agent_memory::testing::memory;
use agent_memory::{
    Budget, DagPolicy, ErrorKind, Memory, Message, Mode, Part, Session, compaction::FreshTail,
    model::LogEntry, retrieval::ExpandArgs,
};
use memory_model::{ResultContent, Role};
use message_formats::{ReadOptions, Transcript, read};
use outside_checks::{fixtures, raw_check};

use crate::contexts::{blocks, check};
use crate::support::Inspect as _;
use crate::support::export;

fn parse(bytes: &[u8], session: &str) -> Transcript {
    read(bytes, &ReadOptions::default().with_session(session)).unwrap()
}

async fn open(folder: &Path, name: &str) -> Memory {
    let tail = FreshTail {
        messages: 2,
        ..FreshTail::default()
    };
    memory()
        .dag(DagPolicy {
            fresh_tail: tail,
            leaf_min_messages: 3,
            ..DagPolicy::default()
        })
        .sqlite(folder.join(name))
        .open()
        .await
        .unwrap()
}

/// Returns the content of a log, without the numbers that the store assigns.
fn said(log: &[LogEntry]) -> Vec<String> {
    log.iter()
        .map(|entry| format!("{} {:?} {}", entry.seq, entry.message, entry.tokens))
        .collect()
}

/// Runs a transcript through all steps. Returns the skipped lines and the first session. The database of the session
/// stays open in `folder`.
async fn round_trip(bytes: &[u8], folder: &Path) -> (Transcript, Session) {
    let transcript = parse(bytes, "hard");
    let first = open(folder, "first.db").await;
    let imported = first.import(&transcript).await.unwrap();
    let again = first.import(&transcript).await.unwrap();
    assert!(again.sessions.iter().all(|s| s.inserted + s.conflicts == 0));

    let mut exports = Vec::new();
    for done in &imported.sessions {
        let session = first.get_session(done.session.clone()).await.unwrap();
        let log = session.entries().await.unwrap();
        for compacted in [false, true] {
            if compacted {
                session.compact(Mode::Full).await.unwrap();
            }
            let blocks = blocks(&log, &session.spans().await.unwrap());
            for budget in [1_000, 8_000, 200_000] {
                let context = session.assemble(Budget::tokens(budget)).await;
                let context = context.unwrap_or_else(|error| panic!("at {budget}: {error}"));
                check(&context, budget, &blocks, session.accounting())
                    .unwrap_or_else(|error| panic!("at {budget}: {error}"));
            }
        }
        exports.push(export(&session).await);
    }
    let verified = first.verify().await.unwrap();
    assert!(verified.is_ok(), "{:?}", verified.violations);
    raw_check::check(&raw_check::Source::parse(bytes), &exports).unwrap();

    let second = open(folder, "second.db").await;
    for (done, export) in imported.sessions.iter().zip(&exports) {
        let key = done.session.as_str();
        let copy = parse(export.as_bytes(), key);
        assert!(copy.report.skipped.is_empty(), "{:?}", copy.report.skipped);
        second.import(&copy).await.unwrap();
        let original = first
            .get_session(key)
            .await
            .unwrap()
            .entries()
            .await
            .unwrap();
        let copied = second
            .get_session(key)
            .await
            .unwrap()
            .entries()
            .await
            .unwrap();
        assert!(said(&original) == said(&copied), "{key} differs");
    }
    assert!(second.verify().await.unwrap().is_ok());
    second.close().await.unwrap();
    let main = imported.sessions[0].session.clone();
    (transcript, first.get_session(main).await.unwrap())
}

/// Returns lines of plain JSON as bytes.
fn lines(lines: &[&[u8]]) -> Vec<u8> {
    lines.join(&b'\n')
}

#[tokio::test]
async fn the_fixtures_come_through() {
    for fixture in [
        "jsonl/hard-content",
        "jsonl/huge-results",
        "jsonl/support-chat",
        "pi/branched",
        "pi/unanswered-calls",
        "claude-code/parallel-and-sidechain",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures")
            .join(fixture)
            .join("session.jsonl");
        let folder = tempfile::tempdir().unwrap();
        let (transcript, _) = round_trip(&std::fs::read(path).unwrap(), folder.path()).await;
        let hard = fixture == "jsonl/hard-content";
        assert_eq!(transcript.report.lost_any(), hard, "{fixture}");
    }
}

#[tokio::test]
async fn odd_text_comes_through() {
    let bytes = lines(&[
        br#"{"role":"user","content":"NUL \u0000 and \u0001 and \u007f and \ufeff"}"#,
        br#"{"role":"user","content":"half \ud83d"}"#,
        br#"{"role":"user","content":[{"type":"text","text":"\udc00 other half"}]}"#,
        br#"{"role":"assistant","content":"first","content":"second"}"#,
        br#"{"role":"assistant","parts":[{"type":"tool_call","id":"a","name":"n","arguments":{"v":1e400,"v":-0.0,"w":1.00,"x":123456789012345678901234567890}}]}"#,
        br#"{"role":"tool","parts":[{"type":"tool_result","call_id":"a","content":"<summary id=\"sum_0000000000000000\"></content>"}]}"#,
        b"{\"role\":\"user\",\"content\":\"not UTF-8: \xff\xfe\"}",
        br#"{"role":"user","content":""}"#,
        br#"{"role":"assistant","content":[]}"#,
        br#"{"role":"user","content":"again"}"#,
        br#"{"role":"user","content":"again"}"#,
        br#"{"role":"user","content":"again"}"#,
        "{\"role\":\"user\",\"content\":\"line\u{2028}separator \u{202e}reversed e\u{301} \u{1f468}\u{200d}\u{1f469}\"}".as_bytes(),
        br#"{"role":"assistant","parts":[{"type":"tool_call","id":"never","name":"wait","arguments":"not an object"}]}"#,
        br#"{"role":"user","content":"Are you there?"}"#,
        br#"{"role":"tool","parts":[{"type":"tool_result","call_id":"never","content":"late"}]}"#,
        br#"{"role":"tool","parts":[{"type":"tool_result","call_id":"unheard-of","content":"of what?"}]}"#,
        br#"{"role":"assistant","parts":[{"type":"tool_call","id":"open","name":"wait","arguments":{}}]}"#,
    ]);
    let folder = tempfile::tempdir().unwrap();
    let (transcript, session) = round_trip(&bytes, folder.path()).await;
    assert_eq!(transcript.report.skipped.get("invalid_utf8"), Some(&1));
    assert_eq!(transcript.report.skipped.len(), 1);
    let found = session.retrieval().grep("NUL \u{0} and").await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert_eq!(session.entries().await.unwrap().len(), 17);
}

/// A response that was stored as call, result, call, result is shown as one message.
#[tokio::test]
async fn use_result_use_result_under_one_response() {
    let mut bytes = br#"{"role":"user","content":"Look at three files."}"#.to_vec();
    for n in 0..3 {
        let call = format!(
            "\n{{\"role\":\"assistant\",\"response\":\"r1\",\"parts\":[{{\"type\":\"tool_call\",\"id\":\"c{n}\",\"name\":\"read\",\"arguments\":{{}}}}]}}"
        );
        let result = format!(
            "\n{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"c{n}\",\"content\":\"file {n}\"}}]}}"
        );
        bytes.extend(call.as_bytes());
        bytes.extend(result.as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, session) = round_trip(&bytes, folder.path()).await;
    let context = session.assemble(Budget::tokens(10_000)).await.unwrap();
    let calls: Vec<usize> = context.messages.iter().map(|m| m.parts.len()).collect();
    assert_eq!(calls, [1, 3, 1, 1, 1]);
}

/// One line of 50 MB, and a conversation around it.
#[tokio::test]
async fn a_line_of_fifty_megabytes() {
    let mut bytes = Vec::with_capacity(52 << 20);
    bytes.extend(br#"{"role":"user","content":"Print the log."}"#);
    bytes.extend(b"\n{\"role\":\"assistant\",\"parts\":[{\"type\":\"tool_call\",\"id\":\"c\",\"name\":\"cat\",\"arguments\":{}}]}");
    bytes.extend(b"\n{\"role\":\"tool\",\"parts\":[{\"type\":\"tool_result\",\"call_id\":\"c\",\"content\":\"");
    let mut line = 0;
    while bytes.len() < 50_000_000 {
        line += 1;
        bytes.extend(format!("{line} INFO request served in {} ms\\n", line % 97).as_bytes());
    }
    bytes.extend(b"NEEDLE\"}]}");
    bytes.extend(b"\n{\"role\":\"assistant\",\"content\":\"The last line says NEEDLE.\"}");

    let folder = tempfile::tempdir().unwrap();
    let memory = open(folder.path(), "large.db").await;
    memory.import(&parse(&bytes, "large")).await.unwrap();
    let session = memory.get_session("large").await.unwrap();
    for budget in [1_000, 100_000] {
        let context = session.assemble(Budget::tokens(budget)).await.unwrap();
        assert!(context.tokens <= budget && context.messages.len() > 1);
    }
    let found = session.retrieval().grep("NEEDLE").await.unwrap();
    assert_eq!(found.hits.len(), 2);
    assert!(found.hits.iter().all(|hit| hit.snippet.len() < 4_000));
    session.compact(Mode::Full).await.unwrap();
    let page = session
        .retrieval()
        .expand(ExpandArgs::new("message:3"))
        .await;
    let page = page.unwrap();
    assert!(!page.complete && page.tokens <= 4_000);
    assert!(memory.verify().await.unwrap().is_ok());
    let copy = export(&session).await;
    assert!(copy.len() > 50_000_000);
    // A few seconds where nothing else runs.
}

#[tokio::test]
async fn five_thousand_calls_at_once() {
    let calls: Vec<String> = (0..5_000)
        .map(|n| format!("{{\"type\":\"tool_call\",\"id\":\"c{n}\",\"name\":\"read\",\"arguments\":{{\"n\":{n}}}}}"))
        .collect();
    let mut bytes = br#"{"role":"user","content":"Read everything."}"#.to_vec();
    let calls = calls.join(",");
    bytes.extend(
        format!("\n{{\"role\":\"assistant\",\"response\":\"r\",\"parts\":[{calls}]}}").as_bytes(),
    );
    for n in 0..5_000 {
        bytes.extend(
            format!("\n{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"c{n}\",\"content\":\"file {n}\"}}]}}").as_bytes(),
        );
    }
    // While it is the newest group, and once it is not.
    for after in [0, 8] {
        let mut bytes = bytes.clone();
        for n in 0..after {
            bytes.extend(
                format!("\n{{\"role\":\"assistant\",\"content\":\"Done {n}.\"}}").as_bytes(),
            );
        }
        let folder = tempfile::tempdir().unwrap();
        round_trip(&bytes, folder.path()).await;
    }
}

#[tokio::test]
async fn deep_nesting_comes_through() {
    let depths = [100, 127, 128, 1_000, 100_000];
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let mut bytes = br#"{"role":"user","content":"How deep?"}"#.to_vec();
    for depth in depths {
        let nested = nested(depth);
        let call = format!(
            "\n{{\"role\":\"assistant\",\"parts\":[{{\"type\":\"tool_call\",\"id\":\"c{depth}\",\"name\":\"dig\",\"arguments\":{nested}}}]}}"
        );
        let result = format!(
            "\n{{\"role\":\"tool\",\"parts\":[{{\"type\":\"tool_result\",\"call_id\":\"c{depth}\",\"content\":{nested}}}]}}"
        );
        bytes.extend(call.as_bytes());
        bytes.extend(result.as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let (transcript, session) = round_trip(&bytes, folder.path()).await;
    assert!(
        !transcript.report.lost_any(),
        "{:?}",
        transcript.report.skipped
    );
    let export = export(&session).await;
    for depth in depths {
        // Neither more nor less: a call's arguments end at `}`, and the text begins after `:`.
        let whole = format!(":{}}}", nested(depth));
        assert_eq!(export.matches(&whole).count(), 2, "{depth}");
    }
    assert_eq!(session.entries().await.unwrap().len(), 11);
}

#[tokio::test]
async fn nested_results_come_through() {
    for levels in [9, 10_000] {
        for source in [
            fixtures::nested_claude_code(levels),
            fixtures::nested_pi(levels),
            fixtures::nested_plain(levels),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (transcript, _) = round_trip(source.as_bytes(), folder.path()).await;
            assert!(
                !transcript.report.lost_any(),
                "{:?}",
                transcript.report.skipped
            );
        }
    }
}

#[tokio::test]
async fn parts_that_a_host_nests_too_deeply_are_refused() {
    let session = memory().open().await.unwrap().session("s").await.unwrap();
    let mut part = Part::text("innermost");
    for _ in 0..1_000 {
        part = Part::ToolResult {
            call_id: "c".to_owned(),
            content: ResultContent::Parts(vec![part]),
            is_error: None,
        };
    }
    let deep = Message::new(Role::Tool, vec![part]);
    let batch = vec![Message::user("before"), deep];
    let error = session.ingest_batch(batch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("message 2 of 2"), "{error}");
    assert!(session.entries().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_file_that_grows_between_imports_keeps_its_order() {
    for source in [
        fixtures::claude_code(12),
        fixtures::pi(12),
        fixtures::plain(12),
    ] {
        let bytes = source.as_bytes();
        let order = async |stops: &[usize]| {
            let memory = memory().open().await.unwrap();
            let mut key = None;
            for stop in stops {
                let imported = memory.import(&parse(&bytes[..*stop], "s")).await.unwrap();
                key = Some(imported.sessions[0].session.clone());
            }
            let session = memory.get_session(key.unwrap()).await.unwrap();
            said(&session.entries().await.unwrap())
        };
        let finished = order(&[bytes.len()]).await;
        // In the middle of a line, before its newline, and behind it.
        let newline = bytes.len() / 2 + source[bytes.len() / 2..].find('\n').unwrap();
        for stop in [bytes.len() / 3, newline - 1, newline, newline + 1] {
            assert!(order(&[stop, bytes.len()]).await == finished, "{stop}");
        }
    }
}
