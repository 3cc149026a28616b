//! Searches that also use a table of word vectors.

use agent_memory::search::StaticTable;

use crate::support::{Home, tells};

/// Five messages about different subjects. One of them contains the word `port`.
const CHAT: [&str; 5] = [
    "the port opens at six",
    "bread is baked on monday",
    "the train leaves at noon",
    "a letter came for you",
    "rain is expected tonight",
];

/// Returns a home with the chat, and a table in which `harbour` and `port` have similar vectors.
fn home() -> Home {
    let home = Home::new();
    let lines =
        CHAT.map(|text| format!("{}\n", serde_json::json!({"role": "user", "content": text})));
    home.file("chat.jsonl", lines.concat());
    let rows: [(&str, [f32; 4]); 5] = [
        ("port", [1.0, 0.1, 0.0, 0.0]),
        ("harbour", [1.0, 0.0, 0.1, 0.0]),
        ("bread", [0.0, 1.0, 0.0, 0.0]),
        ("train", [0.0, 0.0, 1.0, 0.0]),
        ("rain", [0.0, 0.0, 0.0, 1.0]),
    ];
    let rows = rows.iter().map(|(word, vector)| (*word, vector.as_slice()));
    home.file("words.table", StaticTable::write("t@1", 4, rows).unwrap());
    home.ok(&["import", "--session", "chat", "chat.jsonl"]);
    home
}

const ASKED: [&str; 5] = ["grep", "--mode", "prose", "chat", "harbour"];

#[test]
fn a_question_finds_texts_of_nearly_the_same_meaning() {
    let home = home();
    let without = home.json(&ASKED);
    assert_eq!(without["hits"].as_array().unwrap().len(), 0, "{without}");
    let asked = [&ASKED[..], &["--table", "words.table"]].concat();
    let found = home.json(&asked);
    assert_eq!(found["hits"][0]["seq"], 1, "{found}");
    tells(&found["strategy"], "vectors");
    // The same with vectors that are kept, and from the environment.
    let indexed = home.json(&["index", "--table", "words.table", "chat"]);
    // The table has no word of the letter.
    assert_eq!(indexed["vectors"], 4, "{indexed}");
    let again = home.ok(&["index", "--table", "words.table", "chat"]);
    assert!(
        again.out.ends_with("made vectors of 0 messages\n"),
        "{}",
        again.out
    );
    assert_eq!(home.json(&asked)["hits"], found["hits"]);
    let mut command = home.command(&["--json", "grep", "--mode", "prose", "chat", "harbour"]);
    let output = command
        .env("AGENT_MEMORY_TABLE", "words.table")
        .output()
        .unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["hits"], found["hits"]);
    let recalled = home.ok(&["recall", "--table", "words.table", "chat", "harbour"]);
    recalled.shows(CHAT[0]);
}

/// The command for the next page of an answer also uses the vectors.
#[test]
fn the_next_page_counts_them_too() {
    let home = home();
    let asked = [
        "grep",
        "--mode",
        "prose",
        "--limit",
        "1",
        "--table",
        "words.table",
    ];
    let found = home.ok(&[&asked[..], &["chat", "train harbour"]].concat());
    found.shows(CHAT[2]);
    let next = found.out.lines().last().unwrap();
    let (_, next) = next.split_once("agent-memory ").unwrap();
    let words = next.replace("'train harbour'", "train+harbour");
    let words = words.split(' ').map(|word| word.replace('+', " "));
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let second = home.ok(&words);
    assert!(
        second.out.contains("by prose-vectors-scan"),
        "{next}: {}",
        second.out
    );
}

#[test]
fn a_wrong_table_is_refused() {
    let home = home();
    for (file, says) in [
        ("chat.jsonl", "does not begin like a table of vectors"),
        ("no.table", "the table no.table: "),
    ] {
        let refused = home.run(&[&ASKED[..], &["--table", file]].concat());
        assert_eq!(refused.code, 4, "{}", refused.err);
        refused.says(says);
        refused.says("leave out --table");
    }
    // Nothing but a question counts vectors.
    home.ok(&[
        "grep", "--mode", "words", "--table", "no.table", "chat", "port",
    ]);
    home.ok(&["recall", "--table", "no.table", "--turn", "1", "chat"]);
}
