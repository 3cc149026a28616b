//! Compaction policies, and settings of a session.

use serde_json::json;

use crate::support::{Home, fixture, is, tells, words};

/// Returns the first position of the first raw span in a session's view.
fn raw_from(home: &Home, session: &str) -> u64 {
    let view = home.json(&["view", session]);
    let spans = view["spans"].as_array().unwrap();
    let raw = spans.iter().find(|span| span["kind"] == "raw").unwrap();
    raw["first"].as_u64().unwrap()
}

/// Writes a transcript of 60 short messages.
fn walks(home: &Home) -> String {
    let lines: String = (0..60)
        .map(|n| {
            let content = format!("Message {n}: ") + &"they walked along the shore for a while. ".repeat(6);
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            let line = json!({"session": "s", "role": role, "external_id": format!("m{n}"), "content": content});
            format!("{line}\n")
        })
        .collect();
    let file = home.file("s.jsonl", lines);
    file.to_str().unwrap().to_owned()
}

/// Compacts the transcript with these options. Returns the number of leaves, and the position at which the uncompacted
/// messages begin.
fn compacted(options: &[&str]) -> (u64, u64) {
    let home = Home::new();
    let file = walks(&home);
    let arguments = [&["compact", &file, "--mode", "incremental"], options].concat();
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
    let ran = home.fails(&["compact", session, "--threshold", "0.5"], 2);
    ran.says("--threshold has no effect without --window");
    // A dry run has the threshold too.
    let far = [
        "compact",
        session,
        "--dry-run",
        "--threshold",
        "1",
        "--window",
        &window,
    ];
    is(
        &home.json(&far),
        json!({"stop_reason": "below_threshold", "plan": {"jobs": []}}),
    );
}

#[test]
fn a_handoff_keeps_so_many_messages_and_returns_its_text() {
    let home = Home::new();
    let file = walks(&home);
    let handoff = [
        "compact",
        &file,
        "--strategy",
        "handoff",
        "--fresh-tail",
        "4",
    ];
    let plan = home.json(&[&handoff[..], &["--dry-run"]].concat());
    is(
        &plan["plan"]["jobs"][0],
        json!({"range": {"first": 1, "last": 56}}),
    );
    let done = home.json(&handoff);
    is(&done, json!({"summaries": {"handoff": 1}}));
    assert_eq!(raw_from(&home, "s"), 57);
    let text = done["summary_text"].as_str().unwrap();
    let described = home.json(&["describe", "s", done["summary"].as_str().unwrap()]);
    assert_eq!(described["content"], text);
    // None is a number too, and the text is shown whole to people.
    let all = [&handoff[..5], &["0"]].concat();
    let shown = home.ok(&all);
    shown.shows("The handoff's summary:\n  ");
    assert_eq!(
        home.json(&["view", "s"])["spans"].as_array().unwrap().len(),
        1
    );
    let again = home.json(&all);
    assert!(
        again.get("summary_text").is_none() && again["summary"].is_null(),
        "{again}"
    );
    // Summaries of other strategies have an id alone.
    let dag = home.json(&["compact", &file, "--strategy", "dag"]);
    assert!(dag.get("summary_text").is_none() && dag["summary"].is_string());
}

#[test]
fn an_option_without_effect_is_an_error_that_names_the_strategy() {
    let home = Home::new();
    let file = walks(&home);
    let config = home.file("memory.toml", "[handoff]\n");
    let config = config.to_str().unwrap();
    let options: [(&[&str], &[&str]); 5] = [
        (&["--fresh-tail", "30"], &["dag", "handoff"]),
        (&["--leaf-messages", "5"], &["dag"]),
        (&["--leaf-tokens", "500"], &["dag"]),
        (&["--config", config], &["handoff"]),
        (
            &["--threshold", "1", "--window", "99999999"],
            &["dag", "handoff", "blocks"],
        ),
    ];
    let mut refused = 0;
    for strategy in ["dag", "handoff", "blocks"] {
        for (option, strategies) in options {
            let given = [&["compact", &file, "--strategy", strategy], option].concat();
            if strategies.contains(&strategy) {
                home.json(&given);
                continue;
            }
            let error = home
                .run(&[&["--json"], &given[..]].concat())
                .ended(2)
                .error();
            let expected = format!("{} has no effect with the strategy {strategy}", option[0]);
            tells(&error["message"], &expected);
            tells(&error["hint"], &format!("--strategy {}", strategies[0]));
            home.fails(&[&given[..], &["--dry-run"]].concat(), 2);
            if option[0] != "--config" {
                let replay = [&["replay", &file, "--strategy", strategy], option].concat();
                home.fails(&replay, 2).says(&expected);
            }
            refused += 1;
        }
        // The session's own strategy counts as much as one that is given.
        home.json(&["compact", &file, "--strategy", strategy]);
        let own = home.run(&["compact", "s", "--leaf-tokens", "500"]);
        assert_eq!(
            own.code,
            if strategy == "dag" { 0 } else { 2 },
            "{}",
            own.err
        );
    }
    assert_eq!(refused, 7);
}

#[test]
fn a_configuration_file_says_when_a_session_is_handed_over_and_what_stays() {
    let home = Home::new();
    let file = walks(&home);
    home.ok(&["import", &file]);
    // The lines of the session's file are what counts.
    let lines = home.ok(&["export", "s", "--session-file"]).out;
    let tokens = lines.lines().map(str::len).sum::<usize>() as u64 / 4;
    let cost = home.json(&["sessions"])["sessions"][0]["tokens"].clone();
    assert!(cost.as_u64().unwrap() < tokens - 1);
    let compact = |table: &str, options: &[&str]| {
        let config = home.file("memory.toml", table);
        let config = [
            "--config",
            config.to_str().unwrap(),
            "--strategy",
            "handoff",
        ];
        home.json(&[&["compact", "s"], &config[..], options].concat())
    };
    // The threshold is exclusive, and by default 80,000 tokens.
    for threshold in [
        format!("max_tokens = {tokens}"),
        "max_tokens = 0".to_owned(),
        String::new(),
    ] {
        let idle = compact(&format!("[handoff]\n{threshold}\nkeep_tail = 9\n"), &[]);
        is(
            &idle,
            json!({"stop_reason": "below_threshold", "summary": null}),
        );
    }
    let above = format!("[handoff]\nmax_tokens = {}\nkeep_tail = 9\n", tokens - 1);
    is(
        &compact(&above, &["--dry-run"])["plan"]["jobs"][0],
        json!({"range": {"last": 51}}),
    );
    assert!(compact(&above, &[])["summary_text"].is_string());
    assert_eq!(raw_from(&home, "s"), 52);
    // Without a threshold a person's command compacts at once; 20 messages stay by default.
    home.json(&["view", "s", "--revert-to", "0"]);
    assert!(compact("[handoff]\nmax_tokens = -1\n", &[])["summary_text"].is_string());
    assert_eq!(raw_from(&home, "s"), 41);
    // The command line takes precedence.
    assert!(
        compact(
            &above,
            &[
                "--fresh-tail",
                "2",
                "--threshold",
                "0.01",
                "--window",
                "2000"
            ]
        )["summary_text"]
            .is_string()
    );
    assert_eq!(raw_from(&home, "s"), 59);
}

#[test]
fn an_error_of_a_configuration_file_names_file_key_and_values() {
    let home = Home::new();
    let file = walks(&home);
    for (text, expected) in [
        (
            "[handoff]\nkeep_tall = 3\n",
            "line 2, `keep_tall = 3`: unknown field",
        ),
        (
            "[handoff]\nmax_tokens = \"many\"\n",
            "line 2, `max_tokens = \"many\"`: invalid type",
        ),
        (
            "[handoff]\nkeep_tail = -3\n",
            "line 2, `keep_tail = -3`: invalid value",
        ),
        ("[handover]\n", "line 1, `[handover]`: unknown field"),
        (
            "handoff = 3\n",
            "line 1, `handoff = 3`: invalid type: integer `3`, expected a table",
        ),
        ("[handoff\n", "line 1, `[handoff`: "),
    ] {
        let config = home.file("memory.toml", text);
        let config = config.to_str().unwrap();
        let ran = home.run(&[
            "--json",
            "compact",
            &file,
            "--strategy",
            "handoff",
            "--config",
            config,
        ]);
        let error = ran.ended(4).error();
        tells(&error["message"], &format!("{config}, {expected}"));
        tells(
            &error["hint"],
            "max_tokens, a number of tokens (0 for 80000, -1 for no threshold)",
        );
        tells(&error["hint"], "keep_tail, a number of messages (0 for 20)");
    }
    let gone = home.fails(&["compact", &file, "--config", "gone.toml"], 4);
    gone.says("cannot read gone.toml");
    assert!(!home.database().exists(), "nothing was imported");
}

#[test]
fn a_configuration_file_sets_the_policy_of_each_strategy() {
    let home = Home::new();
    let file = walks(&home);
    let runs = |strategy: &str, text: &str| {
        let config = home.file("memory.toml", text);
        let config = config.to_str().unwrap();
        let store = format!("{}.db", text.len());
        let command = ["compact", &file, "--strategy", strategy, "--config", config];
        home.json(&[&command[..], &["--store", &store]].concat())
    };
    let leaves = |text| runs("dag", text)["summaries"]["leaf"].as_u64().unwrap_or(0);
    let usual = leaves("[dag]\n");
    let small = leaves("[dag]\nleaf_min_messages = 2\nmax_source_tokens = 300\n");
    assert!(small > usual && usual > 0, "{small} {usual}");
    // Without crossing the threshold there is no work.
    let none = runs(
        "dag",
        "[turns]\nhard = { kind = \"absolute\", tokens = 1000000 }\n",
    );
    assert_eq!(none["stop_reason"], "below_threshold");
    let blocks = runs("blocks", "[blocks]\nkeep_recent_turns = 1\n");
    assert!(blocks["after"]["tokens"].as_u64() > Some(0), "{blocks}");
}

#[test]
fn a_refused_option_imports_no_file() {
    let home = Home::new();
    let file = walks(&home);
    let config = home.file("memory.toml", "[handoff]\n");
    let config = ["compact", &file, "--config", config.to_str().unwrap()];
    home.fails(&config, 2)
        .says("--config has no effect with the strategy dag");
    assert_eq!(home.json(&["sessions"])["sessions"], json!([]));
    // The strategy of a stored session counts, also for a file that has grown.
    let log = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    home.file("s.jsonl", lines[..40].join("\n") + "\n");
    home.ok(&["compact", &file, "--strategy", "handoff"]);
    home.file("s.jsonl", &log);
    home.fails(&["compact", &file, "--leaf-messages", "5"], 2);
    let messages = || home.json(&["sessions"])["sessions"][0]["messages"].clone();
    assert_eq!(messages(), 40);
    home.ok(&config);
    assert_eq!(messages(), 60);
}

#[test]
fn summaries_are_acknowledged_if_asked_for() {
    let home = Home::new();
    let file = walks(&home);
    home.ok(&[
        "compact",
        &file,
        "--strategy",
        "handoff",
        "--fresh-tail",
        "4",
    ]);
    let context =
        |options: &[&str]| home.json(&[&["context", "s", "--budget", "2000"], options].concat());
    let roles = |context: &serde_json::Value| {
        let messages = context["messages"].as_array().unwrap().iter();
        let of = |message: &serde_json::Value| {
            (
                message["role"].clone(),
                message["source"]["kind"] == "summary",
            )
        };
        messages.map(of).collect::<Vec<_>>()
    };
    let (plain, pair) = (context(&[]), context(&["--acknowledge-summaries"]));
    assert!(pair["tokens"].as_u64().unwrap() <= 2_000, "{pair}");
    let (plain, pair) = (roles(&plain), roles(&pair));
    assert_eq!(plain.iter().filter(|(_, summary)| *summary).count(), 1);
    assert_eq!(
        pair[..2],
        [(json!("user"), true), (json!("assistant"), true)]
    );
    assert!(
        pair.windows(2).all(|pair| pair[0].0 != pair[1].0),
        "{pair:?}"
    );
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

/// Each message beyond the tail is handed over, however little it costs.
#[test]
fn a_replay_of_handoffs_keeps_so_many_messages() {
    let home = Home::new();
    let file = walks(&home);
    let handoffs = |options: &str| {
        let line = "--strategy handoff --window 6000 --threshold 0.05 --max-statements 100000";
        let replay =
            home.json(&[&["replay", &file], &words(&format!("{line}{options}"))[..]].concat());
        replay["sessions"][0]["handoff"].as_u64().unwrap()
    };
    assert!(handoffs("") < 10);
    assert!(handoffs(" --fresh-tail 9") > 30);
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
