//! Compaction policies, and settings of a session.

use serde_json::json;

use crate::support::{Home, fixture, is, words};

/// Returns the first position of the first raw span in a session's view.
fn raw_from(home: &Home, session: &str) -> u64 {
    let view = home.json(&["view", session]);
    let spans = view["spans"].as_array().unwrap();
    let raw = spans.iter().find(|span| span["kind"] == "raw").unwrap();
    raw["first"].as_u64().unwrap()
}

/// Compacts a transcript of 60 short messages with these options. Returns the number of summaries, and the position at
/// which the uncompacted messages begin.
fn compacted(options: &[&str]) -> (u64, u64) {
    let home = Home::new();
    let lines: String = (0..60)
        .map(|n| {
            let content = format!("Message {n}: ") + &"they walked along the shore for a while. ".repeat(6);
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            let line = json!({"session": "s", "role": role, "external_id": format!("m{n}"), "content": content});
            format!("{line}\n")
        })
        .collect();
    let file = home.file("s.jsonl", lines);
    let arguments = [
        &["compact", file.to_str().unwrap(), "--mode", "incremental"],
        options,
    ]
    .concat();
    let compact = home.json(&arguments);
    assert_eq!(compact["verify"]["ok"], true);
    assert!(compact["duration_ms"].is_u64(), "{compact}");
    (
        compact["summaries"]["leaf"].as_u64().unwrap(),
        raw_from(&home, "s"),
    )
}

#[test]
fn fresh_tail_and_leaf_size_are_settings() {
    // By default fewer than 20 messages stay where they cost more than their limit of tokens.
    assert_eq!(compacted(&[]), (1, 46));
    assert_eq!(compacted(&["--fresh-tail", "6"]), (1, 55));
    let (leaves, _) = compacted(&["--leaf-tokens", "700"]);
    assert!(leaves > 2, "{leaves} leaves");
    // Forty messages are too few for a leaf of fifty.
    assert_eq!(compacted(&["--leaf-messages", "50"]), (0, 1));
}

#[test]
fn the_threshold_is_a_setting() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    home.ok(&["import", &file]);
    let session = &home.session();
    let tokens = home.json(&["sessions"])["sessions"][0]["tokens"]
        .as_u64()
        .unwrap();
    let window = (tokens * 2).to_string();
    let compact = |threshold: &str| {
        home.json(&words(&format!(
            "compact {session} --threshold {threshold} --window {window}"
        )))
    };
    let idle = compact("0.5");
    assert_eq!(idle["stop_reason"], "below_threshold", "{idle}");
    assert_eq!(idle["summaries"], json!({"leaf": 0, "condensed": 0}));
    assert_eq!(home.json(&["view", session])["version"], 0);
    let done = compact("0.49");
    assert_eq!(done["stop_reason"], "nothing_eligible", "{done}");
    assert!(done["summaries"]["leaf"].as_u64().unwrap() > 0);

    for wrong in ["0", "1.5", "much"] {
        home.fails(
            &["compact", session, "--threshold", wrong, "--window", "1000"],
            2,
        );
    }
    home.fails(&["compact", session, "--window", "1000"], 2);
}

#[test]
fn a_replay_compacts_from_the_threshold_on() {
    let home = Home::new();
    let file = fixture("claude-code/release-week");
    let publishes = |threshold: &str| {
        let window = ["--window", "16000", "--max-statements", "100000"];
        let replay =
            home.json(&[&["replay", &file, "--threshold", threshold][..], &window].concat());
        replay["together"]["publishing_steps"].as_u64().unwrap()
    };
    assert!(publishes("0.3") > publishes("0.7"));
}

#[test]
fn title_channel_and_archive_are_set() {
    let home = Home::new();
    home.ok(&["import", &fixture("jsonl/tiny")]);
    let listed = |all: &[&str]| home.json(&[&["sessions"], all].concat())["sessions"].clone();
    let session = listed(&[])[0]["session"].clone();
    let session = session.as_str().unwrap();
    assert_eq!(listed(&[])[0]["channel"], json!(null));

    let set = home.json(&[
        "set",
        session,
        "--title",
        "A short talk",
        "--channel",
        "telegram",
    ]);
    let expected = json!({"session": session, "title": "A short talk", "channel": "telegram", "archived": false});
    assert_eq!(set, expected);
    let row = &listed(&[])[0];
    is(row, json!({"title": "A short talk", "channel": "telegram"}));

    // What is not named stays.
    let set = home.json(&["set", session, "--archive"]);
    is(&set, json!({"title": "A short talk", "archived": true}));
    assert_eq!(listed(&[]), json!([]));
    assert_eq!(listed(&["--all"])[0]["archived"], true);
    home.ok(&["set", session, "--unarchive"]);
    assert_eq!(listed(&[])[0]["channel"], "telegram");

    home.fails(&["set", session], 2);
    assert_eq!(
        home.run(&["set", session, "--archive", "--unarchive"]).code,
        2
    );
    home.fails(&["set", "nobody", "--archive"], 3);
    assert_eq!(home.json(&["verify"])["ok"], true);
}
