//! Every command except `compact`, and the fields of its JSON output.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Home, fields, fixture, has, is, tells};

const TEAM: &str = "claude-code/parallel-and-sidechain";

#[test]
fn an_import_is_idempotent_and_reports_its_result() {
    let home = Home::new();
    let file = fixture(TEAM);
    let first = home.json(&["import", &file]);
    let sessions = first["sessions"].as_array().unwrap();
    assert!(sessions.len() > 1, "sidechains are sessions of their own");
    for (index, session) in sessions.iter().enumerate() {
        has(
            session,
            "session file format messages inserted duplicates notes skipped",
        );
        is(session, json!({"file": file, "format": "claude-code"}));
        let messages = session["messages"].as_u64().unwrap();
        let notes = session["notes"].as_u64().unwrap();
        assert_eq!(session["inserted"].as_u64().unwrap(), messages + notes);
        // Lines of the file are counted once.
        let skipped = session["skipped"].as_object().unwrap();
        assert_eq!(skipped.is_empty(), index > 0, "{skipped:?}");
    }
    let again = home.json(&["import", &file]);
    for session in again["sessions"].as_array().unwrap() {
        assert_eq!(session["inserted"], 0);
        assert_ne!(session["duplicates"], 0);
    }
    let text = home.ok(&["import", &file]);
    text.shows("claude-code");
    text.says("database: ");
    text.says("memory.db");
}

#[test]
fn a_grown_file_adds_only_new_lines() {
    let home = Home::new();
    let all = std::fs::read_to_string(fixture("jsonl/support-chat")).unwrap();
    let lines: Vec<&str> = all.lines().collect();
    home.file("chat.jsonl", lines[..20].join("\n"));
    home.json(&["import", "chat.jsonl"]);
    home.file("chat.jsonl", &all);
    let grown = home.json(&["import", "chat.jsonl"]);
    is(
        &grown["sessions"][0],
        json!({"inserted": lines.len() - 20, "duplicates": 20}),
    );
}

#[test]
fn a_directory_is_searched_and_strangers_are_reported() {
    let home = Home::new();
    home.file(
        "in/deep/er/a.jsonl",
        r#"{"session":"a","role":"user","content":"x"}"#,
    );
    home.file(
        "in/b.jsonl",
        r#"{"session":"b","role":"user","content":"x"}"#,
    );
    home.file("in/notes.txt", "just notes");
    home.file("in/picture.bin", [0xff, 0xd8, 0xff, 0, 1, 2]);
    home.file("in/empty.jsonl", "");
    let answer = home.json(&["import", "in"]);
    let sessions: Vec<&Value> = answer["sessions"].as_array().unwrap().iter().collect();
    assert_eq!(sessions[0]["session"], "b");
    assert_eq!(sessions[1]["session"], "a");
    let kinds: BTreeSet<&str> = answer["skipped_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["empty", "not_text", "unknown_format"])
    );
    let strict = home.run(&["import", "in", "--strict"]);
    assert_eq!(strict.code, 8, "{}", strict.err);
}

#[test]
fn strict_fails_after_importing_the_rest() {
    let home = Home::new();
    let file = fixture("jsonl/hard-content");
    let strict = home.run(&["--json", "import", "--strict", &file]);
    assert_eq!(strict.code, 8, "{}", strict.err);
    let answer: Value = serde_json::from_str(&strict.out).unwrap();
    assert_eq!(
        answer["sessions"][0]["skipped"],
        json!({"invalid_json": 1, "invalid_utf8": 1, "unknown_role": 1})
    );
    assert_ne!(answer["sessions"][0]["inserted"], 0);
    assert_eq!(
        home.json(&["sessions"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // Without the flag the same is fine, and nothing was skipped in a clean file.
    home.ok(&["import", &file]);
    home.ok(&["import", "--strict", &fixture("jsonl/tiny")]);
}

#[test]
fn json_lines_take_the_session_that_is_given() {
    let home = Home::new();
    let answer = home.json(&["import", "--session", "chess", &fixture("jsonl/tiny")]);
    assert_eq!(answer["sessions"][0]["session"], "chess");
}

#[test]
fn a_context_is_within_its_budget() {
    let home = Home::new();
    home.ok(&["compact", &fixture("claude-code/release-week")]);
    let key = only_session(&home);
    for budget in [1000_u64, 4000, 100_000] {
        let text = budget.to_string();
        let context = home.json(&["context", &key, "--budget", &text]);
        has(&context, "session budget tokens messages receipt");
        is(&context, json!({"session": key, "budget": budget}));
        assert!(context["tokens"].as_u64().unwrap() <= budget);
        let messages = context["messages"].as_array().unwrap();
        let mut sum = 0;
        for message in messages {
            has(message, "role tokens source parts");
            has(&message["source"], "kind first last");
            sum += message["tokens"].as_u64().unwrap();
        }
        assert_eq!(sum, context["tokens"].as_u64().unwrap());
        let with_summary = messages.iter().any(|m| m["source"]["kind"] == "summary");
        // A log that fits is shown whole.
        assert_eq!(with_summary, budget < 10_000, "at {budget}");
        let shortened = context["receipt"]["shortened"].as_array();
        assert_eq!(shortened.is_some(), budget < 10_000, "at {budget}");
        assert_eq!(context["receipt"]["dropped"], json!([]), "at {budget}");
        let as_json = home.ok(&["context", &key, "--budget", &text, "--as", "json"]);
        assert_eq!(
            serde_json::from_str::<Value>(&as_json.out).unwrap(),
            context
        );
    }
    let text = home.ok(&["context", &key, "--budget", "4000", "--receipt"]);
    text.shows("of a budget of 4,000");
    text.shows("1 summary");
    assert!(!text.out.contains("left out: messages 1-"), "{}", text.out);
}

#[test]
fn a_context_is_printed_as_the_fields_of_each_providers_request() {
    let home = Home::new();
    home.ok(&["compact", &fixture("claude-code/release-week")]);
    let key = only_session(&home);
    let system = home.file("system.txt", "You are a careful engineer.");
    let system = system.to_str().unwrap();
    let context = |form: &str, system: &[&str]| {
        let args = ["context", &key, "--budget", "4000", "--as", form];
        let printed = home.ok(&[&args, system].concat());
        serde_json::from_str::<Value>(&printed.out).unwrap()
    };
    for (form, prompt, messages) in [
        ("openai", None, "messages"),
        ("responses", Some("instructions"), "input"),
        ("anthropic", Some("system"), "messages"),
        ("gemini", Some("systemInstruction"), "contents"),
    ] {
        let plain = context(form, &[]);
        assert_eq!(fields(&plain), [messages]);
        let with_system = context(form, &["--system", system]);
        let mut expected: Vec<&str> = prompt.into_iter().chain([messages]).collect();
        expected.sort_unstable();
        assert_eq!(fields(&with_system), expected);
        assert!(
            with_system
                .to_string()
                .contains("You are a careful engineer.")
        );
        assert!(
            with_system[messages].as_array().unwrap().len() > 4,
            "{form}"
        );
    }
    // The prompt is first, and counts.
    let context = home.json(&["context", &key, "--budget", "4000", "--system", system]);
    assert_eq!(context["messages"][0]["source"]["kind"], "system");
    assert!(context["receipt"]["system_tokens"].as_u64().unwrap() > 4);
    assert!(context["tokens"].as_u64().unwrap() <= 4000);

    let failed = home.run(&["context", &key, "--system", "nowhere.txt"]);
    assert_eq!(failed.code, 4);
    assert!(
        failed
            .err
            .contains("cannot read the system prompt nowhere.txt"),
        "{}",
        failed.err
    );
}

#[test]
fn hits_can_be_described_and_expanded_to_the_words() {
    let home = Home::new();
    let compacted = home.json(&["compact", &fixture("claude-code/release-week")]);
    let key = compacted["session"].as_str().unwrap();
    let top = compacted["summary"].as_str().unwrap();

    let found = home.json(&["grep", key, "retries", "--limit", "2"]);
    has(&found, "pattern strategy scope complete cursor hits");
    assert_eq!(found["complete"], false);
    assert_eq!(found["hits"].as_array().unwrap().len(), 2);
    for hit in found["hits"].as_array().unwrap() {
        has(hit, "kind seq external_id role score snippet created_at");
    }
    let cursor = found["cursor"].as_str().unwrap();
    let next = home.json(&["grep", key, "retries", "--limit", "2", "--cursor", cursor]);
    assert_ne!(next["hits"][0]["seq"], found["hits"][0]["seq"]);
    let summaries = home.json(&["grep", key, "the", "--scope", "summaries"]);
    for hit in summaries["hits"].as_array().unwrap() {
        assert_eq!(hit["kind"], "summary");
        has(hit, "summary_id snippet score created_at");
    }
    let none = home.json(&["grep", key, "xyzzy plugh"]);
    is(&none, json!({"hits": [], "complete": true}));

    let described = home.json(&["describe", key, top]);
    has(
        &described,
        "summary_id kind depth first last tokens source_tokens content parents children provisional tier model created_at",
    );
    assert_eq!(described["kind"], "condensed");

    // Down to the leaves, and every message of the range is there once.
    let mut seqs = Vec::new();
    unfold(&home, key, top, &mut seqs);
    let (first, last) = (&described["first"], &described["last"]);
    let all: Vec<u64> = (first.as_u64().unwrap()..=last.as_u64().unwrap()).collect();
    assert_eq!(seqs, all);

    let text = home.ok(&["expand", key, "messages:1-3", "--cap", "20"]);
    text.shows("next: ");
    let text = home.ok(&["grep", key, "retries", "--limit", "1"]);
    text.shows("--cursor lm");
    let text = home.ok(&["describe", key, top]);
    text.shows("expand it: ");
    assert!(!text.out.contains("memory_expand"), "{}", text.out);
}

fn unfold(home: &Home, key: &str, target: &str, seqs: &mut Vec<u64>) {
    let mut cursor: Option<String> = None;
    loop {
        let mut arguments = vec!["expand", key, target, "--cap", "100000"];
        if let Some(cursor) = &cursor {
            arguments.extend(["--cursor", cursor]);
        }
        let page = home.json(&arguments);
        has(&page, "summary_id tokens complete cursor children");
        for child in page["children"].as_array().unwrap() {
            match child["kind"].as_str().unwrap() {
                "message" => seqs.push(child["seq"].as_u64().unwrap()),
                _ => unfold(home, key, child["summary_id"].as_str().unwrap(), seqs),
            }
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return,
        }
    }
}

#[test]
fn sessions_stats_and_verify_agree() {
    let home = Home::new();
    home.ok(&["import", &fixture("pi/branched")]);
    home.ok(&["compact", &fixture("claude-code/bugfix")]);
    let sessions = home.json(&["sessions"]);
    let sessions = sessions["sessions"].as_array().unwrap();
    assert_eq!(
        sessions.len(),
        4,
        "a root, a fork, a fork of the fork, and the bug"
    );
    for session in sessions {
        has(
            session,
            "session messages tokens views first_at last_at created_at updated_at",
        );
    }
    let origins: Vec<&str> = sessions
        .iter()
        .map(|s| s["origin"].as_str().unwrap())
        .collect();
    assert_eq!(origins, ["root", "fork", "fork", "root"]);
    assert_eq!(sessions[1]["parent"], sessions[0]["session"]);
    let view = &sessions[3]["views"][0];
    has(view, "name version spans tokens");
    assert_eq!(view["name"], "dag");
    assert!(view["tokens"].as_u64() < sessions[3]["tokens"].as_u64());

    let stats = home.json(&["stats"]);
    has(
        &stats,
        "database bytes conversations messages tokens summaries views",
    );
    is(
        &stats,
        json!({"database": home.database(), "conversations": 4}),
    );
    is(
        &stats["views"][0],
        json!({"name": "dag", "tokens": view["tokens"]}),
    );
    let bytes = stats["bytes"].as_u64().unwrap();
    assert!(bytes > 100_000);
    let parts = stats["parts"].as_object().unwrap().values();
    let parts: u64 = parts.map(|bytes| bytes.as_u64().unwrap()).sum();
    assert!((bytes / 2..=bytes).contains(&parts), "{parts} of {bytes}");
    let sum = |name: &str| -> u64 {
        let numbers = stats[name].as_object().unwrap().values();
        numbers.map(|n| n.as_u64().unwrap()).sum()
    };
    assert_eq!(sum("tiers"), stats["summaries"].as_u64().unwrap());
    assert!(sum("months") <= stats["messages"].as_u64().unwrap());

    let verified = home.json(&["verify"]);
    has(
        &verified,
        "ok conversations messages summaries views violations",
    );
    is(
        &verified,
        json!({"ok": true, "conversations": 4, "summaries": stats["summaries"], "violations": []}),
    );
    let key = sessions[3]["session"].as_str().unwrap();
    let one = home.json(&["verify", &key[..6]]);
    is(&one, json!({"ok": true, "conversations": 1}));
    for command in ["sessions", "stats", "verify"] {
        assert!(!home.ok(&[command]).out.is_empty());
    }
}

#[test]
fn an_export_comes_back_as_it_was() {
    let home = Home::new();
    home.ok(&["import", &fixture(TEAM)]);
    let key = &home.session();
    let exported = home.ok(&["export", key]).out;
    let mut kinds = BTreeSet::new();
    for (index, line) in exported.lines().enumerate() {
        let entry: Value = serde_json::from_str(line).unwrap();
        has(
            &entry,
            "seq kind external_id role name parts created_at tokens",
        );
        assert_eq!(entry["seq"], index + 1);
        kinds.insert(entry["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.len(), 2, "notes are written too");

    let other = Home::new();
    other.file("export.jsonl", &exported);
    other.ok(&["import", "export.jsonl", "--session", key]);
    assert_eq!(other.ok(&["export", key]).out, exported);
}

/// Names of the estimators in alphabetical order, as in JSON.
const ESTIMATORS: [&str; 11] = [
    "anna",
    "anna-handoff",
    "calibrated",
    "calibrated-cl100k",
    "calibrated-unknown",
    "cl100k",
    "koda",
    "o200k",
    "operator-use",
    "phi-core",
    "pi",
];

#[test]
fn tokens_are_counted_without_a_database() {
    let home = Home::new();
    home.file("a.txt", "Deploy only after the tests are green.");
    let answer = home.json(&["tokens", "a.txt"]);
    let file = &answer["files"][0];
    has(file, "file bytes estimates");
    is(file, json!({"file": "a.txt", "bytes": 38}));
    let estimates = file["estimates"].as_object().unwrap();
    let names: Vec<&str> = estimates.keys().map(String::as_str).collect();
    assert_eq!(names, ESTIMATORS);
    assert!(estimates.values().all(|n| n.as_u64().unwrap() > 0));
    // OpenAI's own count, and what is made of it.
    is(
        &file["estimates"],
        json!({"o200k": 8, "cl100k": 8, "calibrated": 8, "anna": 10}),
    );
    home.file("b.txt", "");
    let table = home.ok(&["tokens", "a.txt", "b.txt"]).out;
    let row = |name: &str| {
        let found = table
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name));
        found
            .unwrap_or_else(|| panic!("no {name} in\n{table}"))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(row("file"), ["file", "a.txt", "b.txt"]);
    assert_eq!(row("bytes"), ["bytes", "38", "0"]);
    assert_eq!(row("o200k"), ["o200k", "8", "0"]);
    assert!(ESTIMATORS.into_iter().all(|name| row(name).len() == 3));
    assert!(!home.database().exists());
}

#[test]
fn completions_are_for_this_program() {
    let script = Home::new().ok(&["completions", "bash"]).out;
    assert!(script.contains("agent-memory") && script.contains("compact"));
}

#[test]
fn the_store_can_be_named_in_three_ways() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    home.ok(&["--store", "one.db", "import", &file]);
    home.ok(&["import", &file, "--store", "sqlite:two.db"]);
    let mut third = home.command(&["import", &file]);
    third
        .env("AGENT_MEMORY_STORE", "three.db")
        .assert()
        .success();
    for name in ["one.db", "two.db", "three.db"] {
        assert!(home.path().join(name).is_file(), "{name}");
    }
    assert!(!home.database().exists());
    // Commands to paste name it only when the command line did.
    let named = home.ok(&["compact", &file, "--store", "one.db"]).out;
    assert!(named.contains("--store one.db expand"), "{named}");
    let mut by_environment = home.command(&["compact", &file]);
    by_environment.env("AGENT_MEMORY_STORE", "three.db");
    let out = String::from_utf8(by_environment.output().unwrap().stdout).unwrap();
    assert!(out.contains("expand") && !out.contains("--store"), "{out}");
}

#[test]
fn an_empty_store_option_is_an_error() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    for arguments in [
        &["--store", "", "import", &file][..],
        &["import", &file, "--store="],
        &["sessions", "--store", ""],
    ] {
        let mut command = home.command(arguments);
        for variable in [None, Some("three.db")] {
            if let Some(variable) = variable {
                command.env("AGENT_MEMORY_STORE", variable);
            }
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            let err = String::from_utf8(output.stderr).unwrap();
            assert!(err.contains("--store is empty"), "{err}");
            assert!(err.contains("sqlite:PATH"), "{err}");
        }
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    // A variable without a value is as none.
    let mut unset = home.command(&["import", &file]);
    unset.env("AGENT_MEMORY_STORE", "").assert().success();
    assert!(home.database().is_file());
}

/// The key of the only session.
fn only_session(home: &Home) -> String {
    let sessions = home.json(&["sessions"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    sessions["sessions"][0]["session"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn names_that_begin_with_a_dash_are_pasted_after_two() {
    let home = Home::new();
    let line = |n: u32| format!("{{\"role\":\"user\",\"content\":\"--cap {n}\"}}\n");
    home.file("a.jsonl", (1..4).map(line).collect::<String>());
    home.ok(&["import", "a.jsonl", "--session=-s"]);
    let found = home.ok(&["grep", "--limit", "1", "--", "-s", "--cap"]);
    assert!(
        found.out.contains("--cursor lm1@") && found.out.contains(" -- -s --cap"),
        "{}",
        found.out
    );
}

#[test]
fn an_export_writes_plain_tables() {
    let home = Home::new();
    home.ok(&["compact", &fixture(TEAM)]);
    let out = home.ok(&["export", "--sqlite", "plain.db"]).out;
    assert!(
        out.starts_with("plain.db: ") && out.contains("summar"),
        "{out}"
    );
    let bytes = std::fs::read(home.path().join("plain.db")).unwrap();
    assert!(bytes.starts_with(b"SQLite format 3"));
    // A file that exists is left alone, and lines are written for one session.
    let refused = home.run(&["export", "--sqlite", "plain.db"]);
    refused.says("does not exist yet");
    assert_eq!(std::fs::read(home.path().join("plain.db")).unwrap(), bytes);
    let wrong = home.run(&["export", "one", "two"]);
    wrong.says("--sqlite FILE");
}

#[test]
fn a_search_says_how_it_was_done() {
    let home = Home::new();
    let line = |role: &str, text: &str| {
        let at = "2026-01-01T00:00:00Z";
        format!(
            "{}\n",
            json!({"role": role, "content": text, "created_at": at})
        )
    };
    let lines = [
        line("user", "Why did the build fail on Tuesday?"),
        line("assistant", "The linker ran out of memory."),
        line("user", "Memory is cheap, E404."),
    ];
    home.file("a.jsonl", lines.concat());
    home.ok(&["import", "a.jsonl", "--session", "s"]);
    let found = |more: &[&str]| {
        let mut all = vec!["grep", "s"];
        all.extend(more);
        let found = home.json(&all);
        let hits = found["hits"].as_array().unwrap().clone();
        let seqs: Vec<u64> = hits.iter().filter_map(|hit| hit["seq"].as_u64()).collect();
        (found, seqs)
    };
    let (answer, seqs) = found(&["memory linker"]);
    assert_eq!((&answer["strategy"], seqs), (&json!("words-scan"), vec![2]));
    tells(&answer["fallback"], "exact phrase");
    assert!(found(&["memory linker", "--mode", "literal"]).1.is_empty());
    assert_eq!(found(&[r"e\d+", "--mode", "regex"]).1, [3]);
    assert_eq!(found(&["E", "--mode", "literal", "--smart-case"]).1, [3]);
    assert_eq!(found(&["linker zebra", "--mode", "prose"]).1[0], 2);
    assert_eq!(
        found(&["m", "--mode", "literal", "--order", "newest"]).1,
        [3, 2]
    );
    assert_eq!(found(&["m", "--role", "assistant"]).1, [2]);
    assert_eq!(found(&["m", "--from", "3", "--to", "9"]).1, [3]);
    assert!(found(&["m", "--until", "1999-01-01"]).1.is_empty());
    assert!(found(&["m", "--tool", "read_file"]).1.is_empty());
    assert_eq!(
        found(&["E", "--mode", "literal", "--smart-case", "--echoes"]).1,
        [3]
    );
    let near = found(&["linker", "--around", "1"]).0;
    assert_eq!(near["hits"][0]["before"][0]["seq"], 1);
    assert_eq!(near["hits"][0]["after"][0]["seq"], 3);
    let none = home.ok(&["grep", "s", "m", "--role", "system", "--scope", "messages"]);
    none.shows("0 in messages; ");
    let wrong = home.run(&["grep", "s", "m", "--since", "yesterday"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let wrong = home.run(&["grep", "s", "m", "--from", "9", "--to", "3"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    // The next command asks the same.
    let more = [
        "grep",
        "s",
        "m",
        "--role",
        "user",
        "--role",
        "assistant",
        "--mode",
        "literal",
    ];
    let text = home.ok(&[&more[..], &["--limit", "1", "--since", "2000-01-01"]].concat());
    let next = text.out.lines().last().unwrap();
    let next: Vec<&str> = next.split_whitespace().skip(2).collect();
    let second = home.ok(&next);
    assert!(second.out.contains("[3] user"), "{next:?} {}", second.out);
}

#[test]
fn messages_and_file_uses_are_recalled() {
    let home = Home::new();
    let compacted = home.json(&["compact", &fixture("claude-code/release-week")]);
    let key = compacted["session"].as_str().unwrap();
    let recalled = home.json(&["recall", key, "why do retries fail", "--budget", "300"]);
    has(&recalled, "query tokens complete passages");
    assert!(recalled["tokens"].as_u64().unwrap() <= 300);
    let passage = &recalled["passages"][0];
    has(passage, "seq path text score");
    let paths = recalled["passages"].as_array().unwrap().iter();
    let paths: Vec<_> = paths.filter(|one| one["path"] != json!([])).collect();
    let leaf = paths[0]["path"].as_array().unwrap().last().unwrap();
    let described = home.json(&["describe", key, leaf.as_str().unwrap()]);
    let seq = paths[0]["seq"].as_u64().unwrap();
    assert!(
        described["first"].as_u64().unwrap() <= seq && seq <= described["last"].as_u64().unwrap()
    );
    let turn = home.json(&["recall", key, "--turn", "1"]);
    assert_eq!(turn["passages"][0]["seq"], 1);
    let text = home.ok(&["recall", key, "retries", "--budget", "60"]);
    text.shows("read the first: ");
    assert!(!text.out.contains("memory_expand"), "{}", text.out);
    home.fails(&["recall", key], 2);

    let files = home.json(&["files", key, "--limit", "500"]);
    has(&files, "path command complete cursor uses");
    let uses = files["uses"].as_array().unwrap();
    let changed = uses.iter().find(|one| one["action"] == "changed").unwrap();
    has(
        changed,
        "seq result_seq tool action paths outcome created_at",
    );
    let path = changed["paths"][0].as_str().unwrap();
    let of = home.json(&["files", key, path, "--action", "changed"]);
    assert_eq!(of["uses"][0]["paths"], changed["paths"]);
    let ran = uses.iter().find(|one| one["action"] == "ran").unwrap();
    let command = ran["command"].as_str().unwrap();
    let of = home.json(&["files", key, "--command", command]);
    assert!(of["uses"].as_array().unwrap().contains(ran));
    let text = home.ok(&["files", key, "--limit", "1"]);
    text.shows("next: ");
}

#[test]
fn the_list_of_sessions_says_when_they_were() {
    let home = Home::new();
    let line = |role: &str, text: &str, at: Option<&str>| {
        let mut line = json!({"role": role, "content": text});
        if let Some(at) = at {
            line["created_at"] = at.into();
        }
        format!("{line}\n")
    };
    let (early, late) = ("2026-03-01T08:00:00Z", "2026-03-04T17:30:00Z");
    for (key, times) in [
        ("plain", [Some(early), None, Some(late)]),
        ("without", [None, None, None]),
        ("between", [None, Some(early), None]),
        // A clock that was set back.
        ("back", [Some(late), Some(early), Some(early)]),
    ] {
        let lines = times.map(|at| line("user", "the lamp", at)).concat();
        let file = home.file(&format!("{key}.jsonl"), lines);
        home.ok(&["import", file.to_str().unwrap(), "--session", key]);
    }
    let list = home.json(&["sessions"]);
    let shown = home.ok(&["sessions"]).out;
    for (key, first, last) in [
        ("plain", Some(early), Some(late)),
        ("without", None, None),
        ("between", Some(early), Some(early)),
        ("back", Some(early), Some(late)),
    ] {
        let sessions = list["sessions"].as_array().unwrap().iter();
        let session = sessions.clone().find(|session| session["session"] == key);
        is(
            session.unwrap(),
            json!({"first_at": first, "last_at": last}),
        );
        let row = shown.lines().find(|line| line.starts_with(key)).unwrap();
        for time in [first, last].into_iter().flatten() {
            assert!(row.contains(&time[..16]), "{row}");
        }
        assert!(!row.contains("1970"), "{row}");
    }
}
