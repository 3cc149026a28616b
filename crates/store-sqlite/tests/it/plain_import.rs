//! Databases of the older memory engine are read.

use memory_model::{EntryKind, Message, Part, RawJson, ResultContent, Role, Timestamp};
use memory_store::ErrorKind;
use rusqlite::Connection;
use store_sqlite::{is_sqlite_file, read_plain};

/// The tables as the older engine makes them, as far as they are read: times are text.
fn tables(prefix: &str, plural: &str) -> String {
    format!(
        "create table {prefix}conversation{plural} (id integer primary key, session_id text not null unique, title text, \
         channel text, archived integer not null default 0, created_at text default current_timestamp);
         create table {prefix}message{plural} (id integer primary key, conversation_id integer not null, seq integer not null, \
         role text not null, event_type text not null default 'text', content text not null, token_count integer not null \
         default 0, created_at text not null);
         create table {prefix}summaries (id text primary key, content text);"
    )
}

const ROWS: &[(&str, &str, &str, &str)] = &[
    ("user", "text", "Fix it.", "2026-03-08 10:00:00"),
    ("assistant", "thinking", "Where?", "2026-03-08 10:00:01"),
    ("assistant", "text", "I look.", "2026-03-08 10:00:01"),
    (
        "assistant",
        "tool_call",
        r#"{"id":"c1","tool":"read","args":{ "path":"a" }}"#,
        "2026-03-08 10:00:01",
    ),
    (
        "assistant",
        "tool_call",
        r#"{"id":"c2","tool":"bash","args":{}}"#,
        "2026-03-08 10:00:01",
    ),
    (
        "tool",
        "tool_result",
        r#"{"id":"c1","tool":"read","result":"text","error":true}"#,
        "2026-03-08 10:00:02",
    ),
    ("tool", "tool_result", "not JSON", "2026-03-08 10:00:02"),
    ("assistant", "text", "Done.", "2026-03-08 10:00:03"),
    ("assistant", "text", "Really.", "2026-03-08 10:00:03"),
    (
        "user",
        "multimodal",
        r#"[{"type":"text","text":"See"},{"type":"odd"}]"#,
        "2026-03-08 10:00:04",
    ),
    ("user", "multimodal", "no list", "2026-03-08 10:00:05"),
    ("assistant", "tool_call", "{", "2026-03-08 10:00:06"),
    ("assistant", "thinking", "Later?", "2026-03-08 10:00:08"),
    ("assistant", "text", "Later.", "2026-03-08 10:00:09"),
    ("oracle", "text", "I am nobody.", "2026-03-08 10:00:07"),
];

fn database(path: &std::path::Path, prefix: &str, plural: &str) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&tables(prefix, plural)).unwrap();
    db.execute_batch(&format!(
        "insert into {prefix}conversation{plural} (id, session_id, title, archived) values (7, 'chat', 'Fixing', 1);
         insert into {prefix}summaries values ('sum_1', 'x');"
    ))
    .unwrap();
    // The order is that of `seq`, not that of the rows.
    for (seq, (role, event, content, at)) in
        (1..).zip(ROWS).collect::<Vec<(i64, _)>>().into_iter().rev()
    {
        db.execute(
            &format!(
                "insert into {prefix}message{plural} (id, conversation_id, seq, role, event_type, content, created_at) \
                 values (?1, 7, ?1, ?2, ?3, ?4, ?5)"
            ),
            (seq, role, event, content, at),
        )
        .unwrap();
    }
}

#[tokio::test]
async fn a_database_of_the_older_engine_is_read_and_bad_rows_are_text() {
    let folder = tempfile::tempdir().unwrap();
    for (prefix, plural) in [("", "s"), ("ctx_", "s"), ("ctx_", "")] {
        let path = folder.path().join(format!("{prefix}old{plural}.db"));
        database(&path, prefix, plural);
        assert!(is_sqlite_file(&path));
        let read = read_plain(&path).await.unwrap();
        assert_eq!((read.texts, read.summaries), (3, 1));
        let [chat] = &*read.conversations else {
            panic!("{read:?}")
        };
        assert_eq!(
            (chat.key.as_str(), chat.title.as_deref(), chat.archived),
            ("chat", Some("Fixing"), true)
        );
        let said: Vec<(Role, usize)> = chat
            .messages
            .iter()
            .map(|m| (m.role, m.parts.len()))
            .collect();
        let (user, assistant, tool) = (Role::User, Role::Assistant, Role::Tool);
        assert_eq!(
            said,
            [
                (user, 1),
                (assistant, 4),
                (tool, 1),
                (tool, 1),
                (assistant, 1),
                (assistant, 1),
                (user, 2),
                (user, 1),
                (assistant, 1),
                (assistant, 1),
                (assistant, 1),
                (Role::System, 1)
            ]
        );
        let call = |message: &Message, part: usize| message.parts[part].clone();
        assert_eq!(
            call(&chat.messages[1], 2),
            Part::ToolCall {
                id: "c1".to_owned(),
                name: "read".to_owned(),
                arguments: RawJson::parse(r#"{ "path":"a" }"#).unwrap(),
            }
        );
        let result = |call_id: &str, text: &str, is_error| Part::ToolResult {
            call_id: call_id.to_owned(),
            content: ResultContent::Text(text.to_owned()),
            is_error,
        };
        assert_eq!(call(&chat.messages[2], 0), result("c1", "text", Some(true)));
        assert_eq!(call(&chat.messages[3], 0), result("c2", "not JSON", None));
        assert_eq!(call(&chat.messages[6], 0), Part::text("See"));
        assert_eq!(call(&chat.messages[7], 0), Part::text("no list"));
        assert_eq!(call(&chat.messages[8], 0), Part::text("{"));
        assert_eq!(chat.messages[11].kind, EntryKind::Note);
        let at = Timestamp::parse("2026-03-08T10:00:01Z").unwrap();
        assert_eq!(chat.messages[1].created_at, at);
        let id = chat.messages[1].external_id.as_deref();
        assert_eq!(id, Some("row-2"));
    }
}

#[tokio::test]
async fn a_database_without_these_tables_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("create table messages (id integer, body text)")
        .unwrap();
    let error = read_plain(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("other.db"), "{error}");
    let text = folder.path().join("text.jsonl");
    std::fs::write(&text, "{}\n").unwrap();
    assert!(!is_sqlite_file(&text) && !is_sqlite_file(folder.path()));
}
