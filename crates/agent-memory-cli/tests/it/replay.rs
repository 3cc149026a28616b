//! `replay` drives a session and leaves nothing behind.

use serde_json::json;

use crate::support::{Home, fixture, has, is};

#[test]
fn a_replay_holds_the_laws_and_leaves_no_file() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let answer = home.json(&["replay", &file, "--window", "8000"]);
    has(
        &answer,
        "file window budget max_statements ok sessions together",
    );
    assert_eq!(answer["ok"], true);
    is(&answer, json!({"window": 8_000, "budget": 6_000}));
    let session = &answer["sessions"][0];
    for field in [
        "steps",
        "leaf",
        "publishing_steps",
        "statements",
        "most_statements",
    ] {
        assert!(session[field].as_u64().unwrap() > 0, "{field}: {session}");
    }
    assert!(session["largest_context"].as_u64().unwrap() <= 6_000);
    assert!(session["view_tokens"].as_u64() < session["log_tokens"].as_u64());
    let together = &answer["together"];
    let share = |field: &str| together[field].as_f64().unwrap();
    assert!(share("reuse") >= 0.9, "{together}");
    assert!(
        share("reuse_all") > share("reuse_newest_first"),
        "{together}"
    );
    assert!(!home.database().exists());

    let text = home.ok(&["replay", &file]).out;
    assert!(text.contains("all laws held after each of"), "{text}");
}

#[test]
fn a_broken_law_is_named_and_fails() {
    let home = Home::new();
    let file = fixture("jsonl/tiny");
    let ran = home.fails(&["replay", &file, "--max-statements", "3"], 7);
    ran.shows("Statements: ");
    home.fails(&["replay", "nowhere.jsonl"], 4);
    // A window that leaves no room for a context.
    home.fails(&["replay", &file, "--window", "10"], 6);
}
