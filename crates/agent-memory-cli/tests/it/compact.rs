//! The command `compact`.

use serde_json::{Value, json};

use crate::support::{Home, fixture, has, is};

#[test]
fn a_file_is_imported_compacted_and_shown() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let first = home.json(&["compact", &file]);
    has(
        &first,
        "session imported before after summaries summary calls stop_reason verify",
    );
    let imported = &first["imported"]["sessions"][0];
    assert_eq!(imported["session"], first["session"]);
    assert_eq!(first["before"]["messages"], imported["messages"]);
    // Right after a first import, before is the whole log.
    let session = home.json(&["sessions"])["sessions"][0].clone();
    assert_eq!(first["before"]["tokens"], session["tokens"]);
    let (before, after) = (tokens(&first["before"]), tokens(&first["after"]));
    assert!(after * 10 <= before * 6, "{before} to {after}");
    is(
        &first["after"],
        json!({"spans": session["views"][0]["spans"], "tokens": session["views"][0]["tokens"]}),
    );
    assert!(first["summaries"]["leaf"].as_u64().unwrap() > 0);
    assert!(first["summaries"]["condensed"].is_u64());
    assert!(first["summary"].as_str().unwrap().starts_with("sum_"));
    assert!(first["calls"].as_u64().unwrap() > 0);
    assert_eq!(first["stop_reason"], "nothing_eligible");
    assert_eq!(first["verify"], json!({"ok": true, "violations": []}));

    let again = home.json(&["compact", &file]);
    assert_eq!(again["imported"]["sessions"][0]["inserted"], 0);
    assert_eq!(again["before"]["tokens"], first["after"]["tokens"]);
    assert_eq!(again["after"], first["after"]);
    assert_eq!(again["summaries"], json!({"leaf": 0, "condensed": 0}));
    is(&again, json!({"summary": null, "calls": 0}));

    let key = first["session"].as_str().unwrap();
    let by_name = home.json(&["compact", &key[..8]]);
    is(
        &by_name,
        json!({"imported": null, "session": first["session"]}),
    );
}

fn tokens(size: &Value) -> u64 {
    size["tokens"].as_u64().unwrap()
}

#[test]
fn what_a_person_sees() {
    for (name, file) in [
        ("release_week", "claude-code/release-week"),
        ("huge_results", "jsonl/huge-results"),
    ] {
        let home = Home::new();
        let file = fixture(file);
        let first = home.ok(&["compact", &file]);
        let second = home.ok(&["compact", &file]);
        second.shows("Nothing is left to do");
        assert_eq!(tree_of(&first.out), tree_of(&second.out));
        insta::assert_snapshot!(name, redacted(&home, &first.out));
        if name == "release_week" {
            let readme = include_str!("../../../../README.md");
            let (_, block) = readme.split_once("```text\n").unwrap();
            let (block, _) = block.split_once("```\n").unwrap();
            assert!(
                first.out.contains(block),
                "README.md shows older output:\n{block}"
            );
        }
        if name == "huge_results" {
            insta::assert_snapshot!("huge_results_again", redacted(&home, &second.out));
        }
    }
}

/// Returns the part of the output from the tree on, without the next commands.
fn tree_of(out: &str) -> &str {
    out.split_once("\nView ").unwrap().1
}

/// Returns the output without parts that differ between machines.
fn redacted(home: &Home, out: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("agent-memory");
    let program = program.to_str().unwrap();
    let real = home.path().canonicalize().unwrap();
    let fixtures = fixture("jsonl/tiny");
    let fixtures = fixtures.strip_suffix("jsonl/tiny/session.jsonl").unwrap();
    out.replace(program, "agent-memory")
        .replace(real.to_str().unwrap(), "[home]")
        .replace(home.path().to_str().unwrap(), "[home]")
        .replace(fixtures, "fixtures/")
}

#[test]
fn a_view_shows_the_time_and_the_topic_of_each_span() {
    let home = Home::new();
    let session = home.json(&["compact", &fixture("claude-code/release-week")])["session"].clone();
    let view = home.ok(&["view", session.as_str().unwrap()]).out;
    for line in [
        "│    2026-03-02 09:00 to 2026-03-03 09:19: Hi! Release 2.4 of parcelwatch is due on Friday.",
        "\n     2026-03-06 09:13 to 2026-03-06 09:17: What did we decide about retries",
    ] {
        assert!(view.contains(line), "{view}");
    }
}

#[cfg(unix)]
#[test]
fn pasted_commands_work() {
    let home = Home::new();
    let shown = home.ok(&[
        "compact",
        &fixture("claude-code/bugfix"),
        "--store",
        "it's mine.db",
    ]);
    let (_, commands) = shown.out.split_once("To go on:\n").unwrap();
    let commands: Vec<&str> = commands.lines().collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for command in commands {
        let mut shell = assert_cmd::Command::new("sh");
        let ran = shell
            .current_dir(home.path())
            .args(["-c", command])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{command}");
        assert!(!ran.stdout.is_empty(), "{command}");
    }
}

#[test]
fn modes_are_taken() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let one = home.json(&[
        "compact",
        &file,
        "--mode",
        "incremental",
        "--strategy",
        "dag",
        "--summarizer",
        "extractive",
    ]);
    assert_eq!(one["stop_reason"], "passes_done");
    let rest = home.json(&["compact", &file]);
    assert_eq!(rest["stop_reason"], "nothing_eligible");
}

#[test]
fn a_dry_run_does_not_change_the_database() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let plan = home.json(&["compact", &file, "--dry-run"]);
    is(&plan, json!({"stop_reason": "dry_run", "calls": 0}));
    assert!(!plan["plan"]["jobs"].as_array().unwrap().is_empty());
    assert!(!home.database().exists());
    assert!(
        home.ok(&["compact", &file, "--dry-run"])
            .out
            .contains("Nothing was written.")
    );

    // Of a session that is there, the plan is what is left.
    let done = home.json(&["compact", &file]);
    let key = done["session"].as_str().unwrap();
    for target in [file.as_str(), key] {
        let plan = home.json(&["compact", target, "--dry-run"]);
        assert_eq!(plan["plan"]["jobs"], json!([]));
        assert_eq!(plan["before"]["tokens"], done["after"]["tokens"]);
    }
}

#[test]
fn a_small_budget_still_compacts() {
    let home = Home::new();
    let shown = home.ok(&["compact", &fixture("claude-code/bugfix"), "--budget", "1"]);
    shown.shows("no context: a budget of 1");
}

#[test]
fn of_a_file_with_several_sessions_the_root_is_compacted() {
    let home = Home::new();
    let answer = home.json(&["compact", &fixture("claude-code/parallel-and-sidechain")]);
    let sessions = answer["imported"]["sessions"].as_array().unwrap();
    assert!(sessions.len() > 1);
    assert_eq!(answer["session"], sessions[0]["session"]);
}

#[test]
fn a_session_may_be_called_like_a_directory() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("chess")).unwrap();
    home.ok(&["import", "--session", "chess", &fixture("jsonl/tiny")]);
    assert_eq!(home.json(&["compact", "chess"])["session"], "chess");
}
