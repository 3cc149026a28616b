//! Output to a terminal, and a reader that closes the pipe.

use std::io::Read as _;

use crate::support::{Home, fixture, program, tells};

const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31mred\r\u{202e}";

#[test]
fn a_transcript_cannot_control_the_terminal() {
    let home = Home::new();
    let mut lines = String::new();
    for n in 0..60 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let line = serde_json::json!({
            "session": format!("bad{EVIL}"),
            "role": role,
            "name": EVIL,
            "external_id": format!("{EVIL}{n}"),
            "content": format!("needle {n} {EVIL} and a few words more to make a summary of. "
                ).repeat(8),
        });
        lines.push_str(&format!("{line}\n"));
    }
    let file = home.file(&format!("{}.jsonl", &EVIL[..5]), lines);
    let file = file.to_str().unwrap();
    let compacted = home.json(&["compact", file]);
    let summary = compacted["summary"].as_str().unwrap();
    for arguments in [
        &["compact", file][..],
        &["import", file],
        &["context", "bad"],
        &["context", "bad", "--receipt", "--budget", "1000"],
        &["grep", "bad", "needle"],
        &["describe", "bad", summary],
        &["expand", "bad", summary],
        &["expand", "bad", "message:1"],
        &["sessions"],
        &["stats"],
        &["verify"],
        &["tokens", file],
        &["context", "bad", "--budget", "0"],
        &["context", EVIL],
        &["import", "missing\u{1b}[2J"],
        &["sessions", EVIL],
        &["--lock-timeout", EVIL, "sessions"],
        &[EVIL],
    ] {
        let ran = home.run(arguments);
        for text in [&ran.out, &ran.err] {
            let control = text
                .chars()
                .find(|c| (c.is_control() && *c != '\n' && *c != '\t') || *c == '\u{202e}');
            assert_eq!(control, None, "{arguments:?}: {text:?}");
        }
        assert!(!ran.out.is_empty() || !ran.err.is_empty());
    }
    // Programs get the bytes as they are.
    let context = home.json(&["context", "bad"]);
    let last = context["messages"].as_array().unwrap().last().unwrap();
    tells(&last["parts"][0]["text"], EVIL);
}

#[test]
fn no_name_forges_a_line_or_turns_text_around() {
    const FORGED: &str = "forged\nno violations: 9 sessions\u{2028}x\u{202e}txt\u{2067}y\u{61c}";
    let home = Home::new();
    let line = |n: usize| {
        let role = ["user", "assistant"][n % 2];
        let line = serde_json::json!({
            "session": FORGED,
            "role": role,
            "external_id": format!("{n}\nno violations"),
            "content": format!("needle {n} and a few words more to make a summary of. ").repeat(8),
        });
        format!("{line}\n")
    };
    // Broken lines, so that the file's name is in what is said about them.
    let text = (0..60).map(line).collect::<String>() + "{\n";
    let file = home.file("a\nno violations: b.jsonl", text);
    let file = file.to_str().unwrap();
    for arguments in [
        &["import", file][..],
        &["compact", file],
        &["compact", file],
        &["replay", file],
        &["sessions"],
        &["stats"],
        &["view", "forged"],
        &["fork", "forged", "--at", "3"],
        &["grep", FORGED, "needle", "--limit", "1"],
        &["expand", FORGED, "messages:1-9", "--cap", "50"],
        &["context", FORGED],
        &["tokens", file],
        &["redo", FORGED],
        &["context", "no\nno violations"],
        &["import", "no\nno violations"],
        &["verify", "forged"],
    ] {
        let ran = home.run(arguments);
        for text in [&ran.out, &ran.err] {
            let forged = text.lines().find(|line| line.starts_with("no violations"));
            let real = arguments[0] == "verify";
            assert_eq!(
                forged.is_some(),
                real && text == &ran.out,
                "{arguments:?}: {text}"
            );
            let turned = |c: char| {
                matches!(
                    c,
                    '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
                ) || ('\u{202a}'..='\u{202e}').contains(&c)
                    || ('\u{2066}'..='\u{2069}').contains(&c)
            };
            assert!(!text.contains(turned), "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = Home::new();
    home.ok(&["import", &fixture("claude-code/release-week")]);
    let mut export = home.process(program());
    let mut child = export.args(["export", &home.session()]).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut some = [0; 100];
    out.read_exact(&mut some).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert!(
        matches!(ended.status.code(), Some(0) | Some(141)),
        "{:?}",
        ended.status
    );
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
}

#[test]
fn results_and_remarks_do_not_mix() {
    let home = Home::new();
    let ran = home.ok(&["--json", "compact", &fixture("jsonl/tiny")]);
    assert!(ran.out.starts_with('{'));
    assert_eq!(
        ran.err.lines().count(),
        1,
        "only where the database is: {}",
        ran.err
    );
}

/// A terminal obeys U+009B as it obeys ESC [. JSON needs no escape for it.
#[test]
fn json_has_no_control_characters_as_they_are() {
    let home = Home::new();
    let text = "a \u{9b}31m red \u{7f} word \u{85} and é";
    let line = serde_json::json!({"session": "s", "role": "user", "content": text, "external_id": "e\u{9b}1"});
    home.file("s.jsonl", format!("{line}\n"));
    home.ok(&["--json", "import", "s.jsonl"]);
    for command in [
        &["export", "s"][..],
        &["export", "s", "--redact"],
        &["--json", "expand", "s", "message:1"],
        &["--json", "grep", "s", "red"],
        &["--json", "context", "s"],
        &["context", "s", "--as", "openai"],
        &["view", "s", "--html", "-"],
        &["--json", "sessions"],
    ] {
        let out = home.ok(command).out;
        let is_raw = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
        assert!(!out.contains(is_raw), "{command:?} {out}");
        assert!(
            out.contains("é") || command.ends_with(&["sessions"]),
            "{command:?} {out}"
        );
    }
    let exported: serde_json::Value = serde_json::from_str(&home.ok(&["export", "s"]).out).unwrap();
    assert!(exported.to_string().contains(text), "{exported}");
}
