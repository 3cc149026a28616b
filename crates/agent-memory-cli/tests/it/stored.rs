//! Databases that the program wrote and that are kept. Each opens, verifies, and returns its recorded content.
//!
//! `NAME.json` next to a database is the recorded content. If the record is missing, it is written and the test fails
//! once, so that a new record is not mistaken for an old one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::support::{Home, covers};

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
    folder.canonicalize().unwrap()
}

#[test]
fn every_stored_database_returns_its_data() {
    let mut databases: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "sqlite"))
        .collect();
    databases.sort();
    assert!(
        !databases.is_empty(),
        "no database in {}",
        folder().display()
    );
    for database in databases {
        let recorded = database.with_extension("json");
        let held = contents(&database);
        if !recorded.exists() {
            std::fs::write(&recorded, serde_json::to_string_pretty(&held).unwrap()).unwrap();
            panic!("{} is new: read it and commit it", recorded.display());
        }
        let recorded: Value = serde_json::from_slice(&std::fs::read(&recorded).unwrap()).unwrap();
        covers(&held, &recorded, &database.display().to_string());
    }
}

/// Returns the content of a database as the program prints it: entries, spans and summaries of each session.
fn contents(database: &Path) -> Value {
    let home = Home::new();
    let copy = home.path().join("copy.db");
    std::fs::copy(database, &copy).unwrap();
    let store = format!("sqlite:{}", copy.display());
    let json = |words: &[&str]| home.json(&[&["--store", &store], words].concat());
    let verified = json(&["verify"]);
    assert_eq!(verified["ok"], true, "{}: {verified}", database.display());
    let mut sessions = Map::new();
    for session in json(&["sessions"])["sessions"].as_array().unwrap() {
        let name = session["session"].as_str().unwrap();
        let exported = home.ok(&["--store", &store, "export", name]).out;
        let entries: Vec<Value> = exported
            .lines()
            // What no `Value` can hold, such as half a surrogate pair, is held as its text.
            .map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line)))
            .collect();
        let spans = json(&["view", name])["spans"].clone();
        let mut summaries = Map::new();
        let mut ids: Vec<String> = summary_ids(&spans).into_iter().collect();
        while let Some(id) = ids.pop() {
            let summary = json(&["describe", name, &id]);
            ids.extend(summary_ids(&summary["children"]));
            summaries.insert(id, summary);
        }
        let spans = ranges(&spans);
        let held = json!({"entries": entries, "spans": spans, "summaries": summaries});
        sessions.insert(name.to_owned(), held);
    }
    Value::Object(sessions)
}

/// Returns the ids of summaries anywhere in a value.
fn summary_ids(value: &Value) -> BTreeSet<String> {
    match value {
        Value::String(text) if text.starts_with("sum_") => BTreeSet::from([text.clone()]),
        Value::Array(items) => items.iter().flat_map(summary_ids).collect(),
        Value::Object(fields) => fields.values().flat_map(summary_ids).collect(),
        _ => BTreeSet::new(),
    }
}

/// Returns the ranges of spans, and the content that they show.
fn ranges(spans: &Value) -> Vec<Value> {
    let spans = spans.as_array().unwrap().iter();
    let fields = ["kind", "first", "last", "summary_id"];
    spans
        .map(|span| {
            let fields = fields.map(|name| (name.to_owned(), span[name].clone()));
            Value::Object(fields.into_iter().collect())
        })
        .collect()
}

#[test]
#[should_panic(expected = "x/a/1/b")]
fn a_changed_value_is_found() {
    let (held, recorded) = (
        json!({"a": [1, {"b": 2, "new": 3}]}),
        json!({"a": [1, {"b": 4}]}),
    );
    covers(&held, &recorded, "x");
}
