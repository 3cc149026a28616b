//! The commands `erase` and `delete`.

use serde_json::{Value, json};

use crate::support::{Home, has, is, words};

/// Returns a word that occurs only in message `n`.
fn secret(n: u32) -> String {
    format!("passphrase-{}z", n * 7919)
}

/// Returns a home with a compacted session of 120 messages, and a fork of it at position 70.
fn home() -> Home {
    let home = Home::new();
    let line = |n: u32| {
        let text = format!("Step {n} used {} and renamed a module. ", secret(n));
        json!({"role": "user", "content": text.repeat(40)}).to_string() + "\n"
    };
    home.file("chat.jsonl", (1..=120).map(line).collect::<String>());
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    home.ok(&["compact", "chat"]);
    home.ok(&["fork", "chat", "--at", "70", "--name", "twin"]);
    home
}

/// Returns all that the program can print of a session.
fn shown(home: &Home, session: &str) -> String {
    let mut all = String::new();
    for arguments in [
        &["export", session][..],
        &["context", session, "--budget", "200000"],
        &["context", session, "--budget", "2000", "--as", "openai"],
        &["view", session],
    ] {
        all.push_str(&home.ok(arguments).out);
    }
    all
}

/// Returns the sessions and ranges in a list of the JSON output.
fn ranges(list: &Value) -> Vec<(String, u64, u64)> {
    let range = |range: &Value| {
        let session = range["session"].as_str().unwrap().to_owned();
        let end = |name: &str| range[name].as_u64().unwrap();
        (session, end("first"), end("last"))
    };
    list.as_array().unwrap().iter().map(range).collect()
}

#[test]
fn erased_words_are_gone_from_every_session_that_shows_them() {
    let home = home();
    let (gone, stays) = (secret(4), secret(5));
    let before = home.ok(&["export", "chat"]).out;
    assert!(before.contains(&gone) && shown(&home, "twin").contains(&gone));

    let asked = ["erase", "chat", "--from", "3", "--to", "4"];
    let planned = home.json(&[&asked[..], &["--dry-run"]].concat());
    has(
        &planned,
        "session erased entries summaries drafts logs seen_by",
    );
    is(&planned, json!({"erased": false, "entries": 2}));
    assert!(planned["summaries"].as_u64().unwrap() >= 1, "{planned}");
    assert_eq!(ranges(&planned["logs"]), [("chat".to_owned(), 3, 4)]);
    assert_eq!(
        ranges(&planned["seen_by"]),
        [("chat".to_owned(), 3, 4), ("twin".to_owned(), 3, 4)]
    );
    assert_eq!(home.ok(&["export", "chat"]).out, before);
    let text = home.ok(&[&asked[..], &["--dry-run"]].concat());
    text.shows("the database did not change");
    text.shows("twin shows them: entries 3-4");

    // With --json the same figures; the text says what to do next.
    let other = ["erase", "chat", "--from", "8", "--reason", "another one"];
    let text = home.ok(&other).out;
    assert!(text.contains("run `compact` again"), "{text}");
    assert!(text.contains("twin shows them: entries 8-8"), "{text}");
    let text = home.ok(&other).out;
    assert!(text.starts_with("erased 0 entries"), "{text}");
    assert!(
        !text.contains("shows them") && !text.contains("compact"),
        "{text}"
    );

    let planned = home.json(&[&asked[..], &["--dry-run"]].concat());
    let erased = home.json(&[&asked[..], &["--reason", "a password was pasted"]].concat());
    assert_eq!(erased["erased"], true);
    for figure in ["entries", "summaries", "seen_by"] {
        assert_eq!(erased[figure], planned[figure], "{figure}");
    }
    for session in ["chat", "twin"] {
        let shown = shown(&home, session);
        assert!(
            !shown.contains(&gone) && !shown.contains(&secret(3)),
            "{session}"
        );
        assert!(shown.contains(&stays), "{session}");
        let hits = home.json(&["grep", session, &gone, "--mode", "literal"]);
        assert_eq!(hits["hits"], json!([]), "{session}");
        assert_eq!(home.json(&["grep", session, &stays])["complete"], true);
        // What is left is summarized anew.
        home.ok(&["compact", session]);
    }
    assert!(!shown(&home, "chat").contains(&gone));
    assert_eq!(home.json(&["verify"])["ok"], true);
    let again = home.json(&[&asked[..], &["--reason", "to be sure"]].concat());
    assert_eq!(again["entries"], 0);
}

#[test]
fn a_deleted_session_is_empty_and_its_parent_is_not() {
    let home = home();
    home.file(
        "more.jsonl",
        json!({"role": "user", "content": "The fork's own word: zanzibar."}).to_string() + "\n",
    );
    home.ok(&["import", "more.jsonl", "--session", "twin"]);
    assert!(shown(&home, "twin").contains("zanzibar"));

    let planned = home.json(&["delete", "twin", "--dry-run"]);
    assert_eq!(ranges(&planned["logs"]), [("twin".to_owned(), 71, 71)]);
    assert!(shown(&home, "twin").contains("zanzibar"));
    let erased = home.json(&["delete", "twin", "--reason", "the user asked for it"]);
    is(&erased, json!({"erased": true, "entries": 1}));
    // What it shares with its parent is the parent's.
    let left = shown(&home, "twin");
    assert!(!left.contains("zanzibar") && left.contains(&secret(70)));
    assert!(shown(&home, "chat").contains(&secret(4)));

    home.ok(&["delete", "chat", "--reason", "the user asked for it"]);
    for session in ["chat", "twin"] {
        let shown = shown(&home, session);
        let word = (1..=120).find(|n| shown.contains(&secret(*n)));
        assert_eq!(word, None, "{session}");
    }
    assert_eq!(home.json(&["verify"])["ok"], true);
}

#[test]
fn an_erasure_needs_a_reason_and_a_range_that_there_is() {
    let home = home();
    let before = home.ok(&["export", "chat"]).out;
    for (arguments, code) in [
        (&["erase", "chat", "--from", "3"][..], 2),
        (&["delete", "chat"], 2),
        (&["erase", "chat", "--from", "3", "--reason", "  "], 4),
        (
            &[
                "erase", "chat", "--from", "100", "--to", "121", "--reason", "x",
            ],
            4,
        ),
        (
            &["erase", "chat", "--from", "9", "--to", "8", "--reason", "x"],
            4,
        ),
        (&["erase", "chat", "--from", "0", "--reason", "x"], 4),
        (&["erase", "chat", "--from", "0", "--dry-run"], 4),
        (&["erase", "nobody", "--from", "1", "--reason", "x"], 3),
    ] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
        ran.says("error: ");
    }
    assert_eq!(home.ok(&["export", "chat"]).out, before);
}

#[test]
fn an_erasure_needs_more_than_a_letter_of_the_name() {
    let home = Home::new();
    let line = json!({"role": "user", "content": "Nothing to hide."}).to_string() + "\n";
    home.file("chat.jsonl", &line);
    home.file("short.jsonl", line);
    home.ok(&["import", "chat.jsonl", "--session", "morning-notes"]);
    for name in ["m", "mo", "mor", "mör"] {
        for arguments in [
            &["delete", name, "--reason", "x"][..],
            &["delete", name, "--dry-run"],
            &["erase", name, "--from", "1", "--reason", "x"],
        ] {
            let ran = home.run(arguments);
            assert!(ran.code == 2 || ran.code == 3, "{arguments:?}: {}", ran.err);
            if name.is_ascii() {
                assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
                ran.says("at least 4 characters");
                ran.says("morning-notes");
            }
        }
    }
    assert!(home.ok(&["export", "m"]).out.contains("Nothing to hide."));
    home.ok(&["delete", "morn", "--dry-run"]);
    // A whole name may be as short as it is.
    home.ok(&["import", "short.jsonl", "--session", "s"]);
    home.ok(&["delete", "s", "--reason", "x"]);
    assert!(!home.ok(&["export", "s"]).out.contains("Nothing to hide."));
}

#[test]
fn archived_entries_are_erased_by_age() {
    let home = Home::new();
    let line = |n: u32| {
        let text = format!("Step {n} used {} and renamed a module. ", secret(n));
        let at = match n {
            0..=50 => "2020-01-01T00:00:00Z",
            _ => "2999-01-01T00:00:00Z",
        };
        json!({"role": "user", "content": text.repeat(40), "created_at": at}).to_string() + "\n"
    };
    home.file("chat.jsonl", (1..=120).map(line).collect::<String>());
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    home.ok(&["compact", "chat"]);
    let before = home.ok(&["export", "chat"]).out;
    let asked = ["erase", "chat", "--archived", "--older-than", "30"];
    let planned = home.json(&[&asked[..], &["--dry-run"]].concat());
    assert_eq!(planned["archived"]["messages"], 50);
    assert_eq!(planned["entries"], 50);
    assert!(planned["archived"]["tokens"].as_u64().unwrap() > 1_000);
    assert_eq!(planned["archived"]["oldest"], "2020-01-01T00:00:00Z");
    assert!(planned["summaries"].as_u64().unwrap() > 0);
    assert_eq!(home.ok(&["export", "chat"]).out, before);
    let text = home
        .ok(&[&asked[..], &["--reason", "older than 30 days"]].concat())
        .out;
    assert!(text.starts_with("archived: 50 messages, "), "{text}");
    let after = home.ok(&["export", "chat"]).out;
    assert!(!after.contains(&secret(50)) && after.contains(&secret(51)));
    home.ok(&["verify"]);
    // Without an age all that is archived goes; positions and --archived exclude each other.
    home.ok(&["compact", "chat"]);
    let all = home.json(&["erase", "chat", "--archived", "--dry-run"]);
    assert!(all["archived"]["messages"].as_u64().unwrap() > 0, "{all}");
    assert_ne!(
        home.run(&["erase", "chat", "--archived", "--from", "1", "--dry-run"])
            .code,
        0
    );
    assert_ne!(
        home.run(&words("erase chat --older-than 3 --from 1 --dry-run"))
            .code,
        0
    );
}
