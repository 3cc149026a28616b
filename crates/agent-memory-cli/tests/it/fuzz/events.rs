//! Events of agents' hooks.

use std::io::Write as _;
use std::process::Stdio;

use outside_checks::fuzz::Target;
use serde_json::{Value, json};

use crate::support::{Home, Ran, program};

const TRANSCRIPT: &str = r#"{"parentUuid":null,"sessionId":"s","type":"user","uuid":"a","message":{"role":"user","content":"Go."}}
{"parentUuid":"a","sessionId":"s","type":"assistant","uuid":"b","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Gone."}]}}
"#;

/// Any event is answered with JSON or nothing, and the next one stores the whole transcript.
pub(super) fn events() {
    Target::new("events", env!("CARGO_MANIFEST_DIR"), 4).run(|input| {
        let home = Home::new();
        let path = home.file("projects/-a/s.jsonl", TRANSCRIPT);
        let input = replaced(input, b"PATH", path.to_str().unwrap().as_bytes());
        let ran = hook(&home, &[], &input).ended(0);
        assert_eq!(ran.err, "");
        let answer = serde_json::from_str::<Value>(&ran.out).ok();
        assert!(answer.is_some() || ran.out.is_empty(), "{}", ran.out);
        // Its work waits for the work of the event.
        let end =
            json!({"hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": path});
        hook(
            &home,
            &["--worker", "claude-code"],
            end.to_string().as_bytes(),
        )
        .ended(0);
        let sessions = home.json(&["sessions"])["sessions"]
            .as_array()
            .unwrap()
            .clone();
        let export = |one: &Value| home.ok(&["export", one["session"].as_str().unwrap()]).out;
        let lines: String = sessions.iter().map(export).collect();
        assert!(
            lines.contains(r#""Go.""#) && lines.contains(r#""Gone.""#),
            "{lines}"
        );
        answer.map(|answer| {
            answer
                .as_object()
                .map(|fields| fields.keys().cloned().collect::<Vec<_>>())
        })
    });
}

fn hook(home: &Home, arguments: &[&str], event: &[u8]) -> Ran {
    let mut process = home.process(program());
    process.arg("hook").args(arguments).stdin(Stdio::piped());
    let mut child = process.spawn().unwrap();
    // The hook may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(event);
    Ran::from(child.wait_with_output().unwrap())
}

fn replaced(input: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    match input.windows(from.len()).position(|bytes| bytes == from) {
        Some(at) => [&input[..at], to, &input[at + from.len()..]].concat(),
        None => input.to_vec(),
    }
}
