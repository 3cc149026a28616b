//! Erasures during imports and compactions. Every process completes, every message that was not erased reads back, and
//! no erased word appears again.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Value, json};

use super::tools::{SESSION, assert_sound, cases, command, completes, end, start, text};
use crate::endpoint::{Answer, Endpoint, completion};
use crate::support::{Home, Ran};

/// Number of erasures in a case. Each runs at the same time as an import and a compaction.
const ROUNDS: usize = 10;

/// Returns a word that occurs only in message `n`.
fn mark(n: usize) -> String {
    format!("quillon{n}zz")
}

fn line(rng: &mut Rng, n: usize) -> String {
    let role = if n.is_multiple_of(2) {
        "user"
    } else {
        "assistant"
    };
    let line = json!({
        "role": role,
        "content": format!("{} {}", text(rng, 6), mark(n)),
        "session": SESSION,
        "external_id": format!("message-{n}"),
        "created_at": format!("2026-01-01T00:{:02}:{:02}Z", n / 60, n % 60),
        // Facts that messages share are stored once, in a text that an erasure may rewrite.
        "folder": "/home/somebody/project",
        "pair": mark(10_000 + n / 2),
        "note": mark(n),
    });
    format!("{line}\n")
}

/// A model that repeats the marks in its source.
fn repeats(body: &str) -> Answer {
    let words = body.split(|c: char| !c.is_ascii_alphanumeric());
    let marks: BTreeSet<&str> = words.filter(|word| word.starts_with("quillon")).collect();
    let marks: Vec<&str> = marks.into_iter().take(12).collect();
    let said = format!(
        "They spoke of {}, and the harbour was closed.",
        marks.join(" and ")
    );
    Answer::Status(200, String::new(), completion(&said))
}

/// Asserts that every message reads back unchanged, and that erased messages have no words.
fn assert_reads_back(home: &Home, lines: &[String], erased: &BTreeSet<usize>, after: &str) {
    let exported = home.ok(&["export", SESSION]).out;
    assert_eq!(
        exported.lines().count(),
        lines.len(),
        "entries after {after}"
    );
    for (n, entry) in exported.lines().enumerate() {
        let is_gone = erased.contains(&n);
        assert_eq!(
            entry.contains(&mark(n)),
            !is_gone,
            "entry {} after {after}: {entry}",
            n + 1
        );
        if !is_gone {
            let entry: Value = serde_json::from_str(entry).unwrap();
            let said: Value = serde_json::from_str(&lines[n]).unwrap();
            assert_eq!(entry["parts"][0]["text"], said["content"], "after {after}");
            assert_eq!(entry["meta"]["pair"], said["pair"], "after {after}");
        }
    }
}

#[test]
fn erasures_between_imports_and_compactions() {
    cases(|rng| {
        let endpoint = Endpoint::start(|request| repeats(&request.body));
        let compact = [
            "compact",
            SESSION,
            "--min-retained",
            "0",
            "--leaf-tokens",
            "600",
        ];
        let compact = endpoint.asked_by(&compact);
        let home = Home::new();
        let mut lines: Vec<String> = (0..30).map(|n| line(rng, n)).collect();
        let file = home.file("session.jsonl", lines.concat());
        let file = file.to_str().unwrap().to_owned();
        home.ok(&["import", &file]);
        let mut erased = BTreeSet::new();
        for round in 0..ROUNDS {
            let stored = lines.len();
            lines.extend((stored..stored + 10).map(|n| line(rng, n)));
            home.file("session.jsonl", lines.concat());
            let first = rng.usize(..stored);
            let last = (first + rng.usize(..4)).min(stored - 1);
            let (from, to) = ((first + 1).to_string(), (last + 1).to_string());
            let erase = [
                "erase",
                SESSION,
                "--from",
                &from,
                "--to",
                &to,
                "--reason",
                "asked for",
            ];

            let importing = start(command(&home, &["import", &file]));
            let compacting = start(command(&home, &compact));
            let erasing = Ran::from(end(start(command(&home, &erase))));
            let imported = Ran::from(end(importing));
            let compacted = Ran::from(end(compacting));
            let after = format!("round {round}: entries {from}-{to} were erased");
            assert_eq!(imported.code, 0, "{after}: {}", imported.err);
            assert_eq!(compacted.code, 0, "{after}: {}", compacted.err);
            if erasing.code != 0 {
                assert!(
                    erasing.err.contains("still in the files"),
                    "{after}: {}",
                    erasing.err
                );
                home.ok(&erase);
            }
            erased.extend(first..=last);
            assert_reads_back(&home, &lines, &erased, &after);
        }
        assert_sound(&home, "erasures between imports and compactions");
        completes(&home, &compact, "erasures between imports and compactions");
        for n in &erased {
            let found = home.json(&["grep", SESSION, &mark(*n), "--mode", "literal"]);
            assert_eq!(found["hits"], json!([]), "entry {} comes back", n + 1);
        }
        for budget in ["2000", "8000", "32000"] {
            let context = home.ok(&["context", SESSION, "--budget", budget]).out;
            for n in &erased {
                assert!(
                    !context.contains(&mark(*n)),
                    "entry {} is in a context",
                    n + 1
                );
            }
        }
        let stats = home.json(&["stats"]);
        assert_eq!(stats["pending_wipe"], Value::Null);
    });
}
