//! `backup` and `restore`.

use serde_json::json;

use crate::support::{Home, is, sql};

/// Writes lines of the plain format with these numbers.
fn lines(numbers: std::ops::RangeInclusive<u32>) -> String {
    let line = |n| json!({"role": "user", "content": format!("Line {n}."), "external_id": format!("e{n}")});
    numbers.map(|n| line(n).to_string() + "\n").collect()
}

/// Creates a database with a session of 10 lines, a backup, and then 2 more lines and another session.
fn home() -> Home {
    let home = Home::new();
    home.file("chat.jsonl", lines(1..=10));
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    home.ok(&["compact", "chat"]);
    let copied = home.json(&["backup", "old.db"]);
    is(
        &copied,
        json!({"sessions": 1, "entries": 10, "file": "old.db"}),
    );
    let bytes = std::fs::metadata(home.path().join("old.db")).unwrap().len();
    assert_eq!(copied["bytes"], bytes);
    home.file("chat.jsonl", lines(1..=12));
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    home.file("later.jsonl", lines(1..=3));
    home.ok(&["import", "later.jsonl", "--session", "later"]);
    home
}

fn exported(home: &Home, session: &str) -> String {
    home.ok(&["export", session]).out
}

#[test]
fn a_backup_is_restored_with_replace_alone() {
    let home = home();
    let backup = home.ok(&["export", "chat", "--store", "old.db"]).out;
    let before = exported(&home, "chat");
    let refused = home.fails(&["restore", "old.db"], 2);
    refused.says("has 2 sessions, which the backup would replace");
    refused.says("--replace");
    refused.says("not in the backup: 2 entries of chat");
    refused.says("not in the backup: the session later, 3 entries");
    assert_eq!(exported(&home, "chat"), before);

    let restored = home.json(&["restore", "old.db", "--replace"]);
    is(
        &restored,
        json!({"sessions": 1, "entries": 10, "replaced": {
            "sessions": 2,
            "lost": [
                {"session": "chat", "entries": 2, "whole": false},
                {"session": "later", "entries": 3, "whole": true},
            ],
            "erased_again": [],
        }}),
    );
    assert_eq!(exported(&home, "chat"), backup);
    home.fails(&["export", "later"], 3);
    home.ok(&["verify"]);
    // The session goes on.
    home.ok(&["import", "chat.jsonl", "--session", "chat"]);
    assert_eq!(exported(&home, "chat"), before);

    // A place without a database needs no option, and an existing file is no place for a backup.
    let text = home.ok(&["restore", "old.db", "--store", "new.db"]).out;
    assert!(
        text.starts_with("restored 1 session with 10 log entries"),
        "{text}"
    );
    assert_eq!(
        home.ok(&["export", "chat", "--store", "new.db"]).out,
        backup
    );
    home.fails(&["backup", "old.db"], 5).says("exists");
}

#[test]
fn erasures_after_a_backup_are_made_again() {
    let home = home();
    home.ok(&[
        "erase", "chat", "--from", "4", "--to", "6", "--reason", "a wish",
    ]);
    let refused = home.fails(&["restore", "old.db"], 2);
    refused.says("erased after the backup: chat, entries 4-6, at ");
    refused.says(": a wish");
    let restored = home.json(&["restore", "old.db", "--replace"]);
    is(
        &restored["replaced"]["erased_again"][0],
        json!({
            "session": "chat", "first": 4, "last": 6, "reason": "a wish",
        }),
    );
    let shown = exported(&home, "chat");
    for n in 1..=10 {
        let is_erased = (4..=6).contains(&n);
        assert_eq!(
            shown.contains(&format!("Line {n}.")),
            !is_erased,
            "{n}: {shown}"
        );
    }
    home.ok(&["verify"]);
}

#[test]
fn a_damaged_or_foreign_file_is_not_restored() {
    let home = home();
    let before = exported(&home, "chat");
    let path = home.path().join("old.db");
    std::fs::copy(&path, home.path().join("changed.db")).unwrap();
    let changed = home.path().join("changed.db");
    sql(
        &changed,
        "drop trigger message_update; update message set hash = zeroblob(32) where seq = 5",
    )
    .close();
    let refused = home.fails(&["restore", "changed.db", "--replace"], 7);
    refused.says("wrong: ");
    refused.says("the backup changed.db is damaged");
    home.file("text.db", "Only a text, no database. ".repeat(400));
    for (file, code) in [("text.db", 5), ("nowhere.db", 4)] {
        home.fails(&["restore", file, "--replace"], code);
        home.fails(&["restore", file, "--store", "place.db"], code);
    }
    home.fails(&["restore", "changed.db", "--store", "place.db"], 7);
    assert!(!home.path().join("place.db").exists());
    sql(&changed, "pragma user_version = 9999").close();
    home.fails(&["restore", "changed.db", "--replace"], 5)
        .says("has schema 9999");
    assert_eq!(exported(&home, "chat"), before);
    home.ok(&["verify"]);
}

#[test]
fn a_database_that_another_process_has_open_is_not_replaced() {
    let home = home();
    let before = exported(&home, "chat");
    let other = sql(&home.database(), "select count(*) from conversation");
    let busy = home.fails(
        &["restore", "old.db", "--replace", "--lock-timeout", "0.1"],
        9,
    );
    busy.says("has been open in another process");
    busy.says("stop the programs that use it");
    // A backup needs no lock.
    home.ok(&["backup", "now.db"]);
    other.close();
    assert_eq!(exported(&home, "chat"), before);
    home.ok(&["restore", "old.db", "--replace"]);
}

#[test]
fn an_unreadable_database_is_replaced_with_a_warning() {
    let home = home();
    let backup = home.ok(&["export", "chat", "--store", "old.db"]).out;
    let mut bytes = std::fs::read(home.database()).unwrap();
    bytes[8192..].fill(0x5a);
    std::fs::write(home.database(), bytes).unwrap();
    let refused = home.fails(&["restore", "old.db"], 2);
    refused.says("cannot be read and would be replaced");
    let restored = home.ok(&["restore", "old.db", "--replace"]);
    restored.says("erasures that were made after the backup are unknown");
    assert_eq!(exported(&home, "chat"), backup);
    home.ok(&["verify"]);
}

#[cfg(feature = "postgres")]
#[test]
fn a_server_has_backups_of_its_own() {
    let home = Home::new();
    let store = "postgres://me:secret@127.0.0.1:1/d";
    for command in ["backup", "restore"] {
        let refused = home.fails(&[command, "x.db", "--store", store], 2);
        refused.says("pg_dump");
        refused.says("migrate");
        assert!(!refused.err.contains("secret"), "{}", refused.err);
    }
    assert!(!home.path().join("x.db").exists());
}

/// A backup from elsewhere may have tables and views beside those of the program.
#[test]
fn a_backup_with_other_tables_or_views_is_refused() {
    for (statement, name) in [
        ("create table visitors (name)", "the table visitors"),
        ("create view visitors as select 1", "the view visitors"),
        (
            "create virtual table visitors using fts5(name)",
            "the table visitors",
        ),
        (
            "create view conversations as select * from message",
            "the view conversations",
        ),
    ] {
        let home = home();
        let before = exported(&home, "chat");
        sql(&home.path().join("old.db"), statement).close();
        let refused = home.fails(&["restore", "old.db", "--replace"], 4);
        refused.says(name);
        assert_eq!(exported(&home, "chat"), before);
        // What a database of the user's own has is left alone.
        sql(&home.database(), statement).close();
        home.ok(&["verify"]);
    }
}
