//! The commands `fork` and `view`.

use serde_json::{Value, json};

use crate::support::{Home, has, is};

/// Returns a home with a compacted session of 120 messages.
fn home() -> Home {
    let home = Home::new();
    let line = |n: u32| {
        let text =
            format!("Step {n}: the module numbered {n} was renamed and its tests were run. ");
        json!({"role": "user", "content": text.repeat(40)}).to_string() + "\n"
    };
    home.file("chat.jsonl", (1..=120).map(line).collect::<String>());
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    home.ok(&["compact", "chat"]);
    home
}

fn spans(view: &Value) -> &Vec<Value> {
    view["spans"].as_array().unwrap()
}

#[test]
fn a_fork_begins_with_its_parents_view() {
    let home = home();
    let made = home.json(&["fork", "chat", "--at", "70"]);
    has(&made, "session parent at created messages tokens views");
    assert_eq!(made["session"], "chat@70");
    is(
        &made,
        json!({"parent": "chat", "at": 70, "created": true, "messages": 70}),
    );
    let view = &made["views"][0];
    assert!(view["tokens"].as_u64().unwrap() < made["tokens"].as_u64().unwrap());
    let again = home.json(&["fork", "chat", "--at", "70"]);
    is(&again, json!({"created": false, "views": made["views"]}));

    let shown = home.json(&["view", "chat@70"]);
    let last = spans(&shown).last().unwrap();
    assert_eq!(last["last"], 70);
    assert!(spans(&shown).iter().any(|span| span["kind"] == "summary"));
    let summary = spans(&shown)[0]["summary_id"].as_str().unwrap();
    home.ok(&["expand", "chat@70", summary]);
    home.ok(&["describe", "chat@70", summary]);
    assert_eq!(home.json(&["verify"])["ok"], true);
    // What both see is counted once.
    let before = home.json(&["stats"])["summaries"].clone();
    home.ok(&["fork", "chat", "--at", "120", "--name", "twin"]);
    assert_eq!(home.json(&["stats"])["summaries"], before);
    let sessions = home.json(&["sessions"]);
    let twin = &sessions["sessions"][2];
    is(twin, json!({"origin": "fork", "parent": "chat"}));

    let text = home.ok(&["fork", "chat", "--at", "9", "--name", "early"]);
    assert!(
        text.out
            .starts_with("early is now a fork of chat at 9: 9 entries"),
        "{}",
        text.out
    );
    text.shows("context early");
    text.says("database: ");
}

#[test]
fn forks_that_cannot_be_are_refused() {
    let home = home();
    let beyond = home.run(&["fork", "chat", "--at", "121"]);
    assert_eq!(beyond.code, 4, "{}", beyond.err);
    beyond.says("ends at 120");
    let taken = home.run(&["fork", "chat", "--at", "3", "--name", "chat"]);
    assert_eq!(taken.code, 4, "{}", taken.err);
    taken.says("hint: choose another name");
    home.fails(&["fork", "none", "--at", "3"], 3);
    home.fails(&["fork", "chat"], 2);
    assert_eq!(Home::new().run(&["fork", "chat", "--at", "3"]).code, 3);
}

#[test]
fn versions_are_shown_compared_and_reverted_to() {
    let home = home();
    let now = home.json(&["view", "chat", "--history"]);
    has(
        &now,
        "session view version newest head tokens spans versions",
    );
    let newest = now["newest"].as_u64().unwrap();
    assert_eq!(now["version"], newest);
    let versions = now["versions"].as_array().unwrap();
    assert_eq!(versions.len() as u64, newest);
    has(&versions[0], "version first last removed added created_at");

    let start = home.json(&["view", "chat", "--at", "0"]);
    assert_eq!(spans(&start).len(), 1);
    let diff = home.json(&["view", "chat", "--diff", "0"]);
    assert!(diff.get("spans").is_none());
    let changes = diff["diff"]["changes"].as_array().unwrap();
    assert_eq!(
        (&changes[0]["first"], &changes[0]["before"][0]["kind"]),
        (&json!(1), &json!("raw"))
    );
    assert_eq!(changes[0]["after"][0]["kind"], "summary");
    assert_eq!(
        diff["diff"]["tokens"],
        json!([start["tokens"], now["tokens"]])
    );

    let early = home.json(&["context", "chat", "--budget", "2000", "--at", "0"]);
    let late = home.json(&["context", "chat", "--budget", "2000"]);
    assert!(
        early["messages"]
            .as_array()
            .unwrap()
            .iter()
            .all(|m| m["source"]["kind"] != "summary")
    );
    assert_ne!(early["messages"], late["messages"]);

    let back = home.json(&["view", "chat", "--revert-to", "0"]);
    is(&back, json!({"reverted": "done", "newest": newest + 1}));
    assert_eq!(back["spans"], start["spans"]);
    let again = home.json(&["view", "chat", "--revert-to", "0"]);
    is(&again, json!({"reverted": "already", "newest": newest + 1}));
    assert_eq!(
        home.json(&["context", "chat", "--budget", "2000"])["messages"],
        early["messages"]
    );
    let newest = newest.to_string();
    home.ok(&["view", "chat", "--revert-to", &newest]);
    assert_eq!(home.json(&["view", "chat"])["spans"], now["spans"]);
    assert_eq!(home.json(&["verify"])["ok"], true);
    home.fails(&["view", "chat", "--at", "999"], 4);
}

#[test]
fn a_view_as_text() {
    let home = home();
    let shown = home.ok(&["view", "chat"]).out;
    assert!(shown.starts_with("View dag of chat version "), "{shown}");
    assert!(shown.contains("└─ messages "), "{shown}");
    assert!(shown.contains("sum_"), "{shown}");
    let past = home.ok(&["view", "chat", "--at", "0"]).out;
    assert!(past.contains("version 0 (the latest is "), "{past}");
    let diff = home.ok(&["view", "chat", "--diff", "0"]).out;
    assert!(
        diff.contains("\n  - raw 1-") && diff.contains("\n  + sum_"),
        "{diff}"
    );
    assert!(
        home.ok(&["view", "chat", "--at", "0", "--diff", "0"])
            .out
            .contains("no difference")
    );
    let back = home.ok(&["view", "chat", "--revert-to", "1"]);
    assert!(back.out.starts_with("Reverted: "), "{}", back.out);
    back.says("database: ");
    let history = home.ok(&["view", "chat", "--history"]).out;
    assert!(history.contains("\nversion 1 of "), "{history}");
}

#[test]
fn a_session_and_its_forks_resolve_without_ambiguity() {
    let home = Home::new();
    let line = |n: u32| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}\n");
    home.file("a.jsonl", (1..=9).map(line).collect::<String>());
    home.ok(&["import", "a.jsonl", "--session", "chatter"]);
    home.ok(&["fork", "chatter", "--at", "5"]);
    home.ok(&["fork", "chatter@5", "--at", "3"]);
    let resolved = |name: &str| home.json(&["context", name])["session"].clone();
    assert_eq!(resolved("chat"), "chatter");
    assert_eq!(resolved("chatter@"), "chatter@5");
    assert_eq!(resolved("chatter@5@"), "chatter@5@3");
    // A fork with a name of its own is one more that begins so.
    home.ok(&["fork", "chatter", "--at", "5", "--name", "chat-2"]);
    assert_eq!(resolved("chat"), "chatter");
    // Two that have nothing to do with each other are still told apart by hand.
    home.ok(&["import", "a.jsonl", "--session", "chat-3"]);
    let ran = home.fails(&["context", "chat"], 3);
    assert!(
        ran.err.contains("chat-3") && ran.err.contains("chatter"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("chatter@5"), "{}", ran.err);
}
