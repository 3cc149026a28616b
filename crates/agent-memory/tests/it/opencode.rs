//! opencode's database.

use std::path::Path;

use agent_memory::transcripts::{Formats, OpenCodeDatabase, ReadOptions, Transcript, read};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{AssertSqlSafe, Connection as _};

const SCHEMA: &str =
    "create table session (id text primary key, slug text, project_id text, directory text,
        parent_id text, version text, title text, time_created integer);
    create table message (id text primary key, session_id text, time_created integer, data text);
    create table part (id text primary key, message_id text, session_id text, data text);";

const ROWS: &str = r#"
    insert into session values ('ses_b', 'calm', 'p', '/srv', 'ses_a', '1', 't', 2), ('ses_a', 'bold', 'p', '/srv', null, '1', 't', 1),
        ('ses_empty', 'new', 'p', '/srv', null, '1', 't', 3);
    insert into message values
        ('msg_2', 'ses_a', 12, '{"role":"assistant","time":{"created":12,"completed":13}}'),
        ('msg_1', 'ses_a', 11, '{"role":"user","time":{"created":11}}'),
        ('msg_3', 'ses_b', 14, '{"role":"user","time":{"created":14}}');
    insert into part values
        ('prt_1', 'msg_1', 'ses_a', '{"type":"text","text":"Count \"it\"."}'),
        ('prt_3', 'msg_2', 'ses_a', '{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{ "n":1.0 },"output":"2"}}'),
        ('prt_2', 'msg_2', 'ses_a', '{"type":"text","text":"I count."}'),
        ('prt_4', 'msg_3', 'ses_b', '{"type":"text","text":"Count."}'),
        ('prt_0', 'msg_gone', 'ses_b', '{"type":"text","text":"orphan"}');"#;

/// The same sessions as opencode exports them.
const EXPORT: &str = r#"{"info":{"id":"ses_a","slug":"bold","projectID":"p","directory":"/srv","title":"t","version":"1"},"messages":[{"info":{"role":"user","time":{"created":11},"id":"msg_1","sessionID":"ses_a"},"parts":[{"type":"text","text":"Count \"it\".","id":"prt_1","sessionID":"ses_a","messageID":"msg_1"}]},{"info":{"role":"assistant","time":{"created":12,"completed":13},"id":"msg_2","sessionID":"ses_a"},"parts":[{"type":"text","text":"I count.","id":"prt_2","sessionID":"ses_a","messageID":"msg_2"},{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{ "n":1.0 },"output":"2"},"id":"prt_3","sessionID":"ses_a","messageID":"msg_2"}]}]}
{"info":{"id":"ses_b","slug":"calm","projectID":"p","directory":"/srv","parentID":"ses_a","title":"t","version":"1"},"messages":[{"info":{"role":"user","time":{"created":14},"id":"msg_3","sessionID":"ses_b"},"parts":[{"type":"text","text":"Count.","id":"prt_4","sessionID":"ses_b","messageID":"msg_3"}]}]}
"#;

async fn create(path: &Path, sql: &'static str) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let options = options.journal_mode(SqliteJournalMode::Wal);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection
}

fn read_database(path: &Path) -> Result<Transcript, agent_memory::transcripts::Error> {
    let formats = Formats::default().with(OpenCodeDatabase::new());
    formats.read_path(path, &ReadOptions::default())
}

#[tokio::test]
async fn a_database_is_read_as_its_export_while_it_is_written_and_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let mut connection = create(&path, SCHEMA).await;
    sqlx::raw_sql(ROWS).execute(&mut connection).await.unwrap();
    let exported = read(EXPORT.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(exported.sessions.len(), 2);
    // The rows are in the write-ahead log alone.
    let read = read_database(&path).unwrap();
    assert_eq!(
        (read.format.as_str(), &read.sessions),
        ("opencode", &exported.sessions)
    );
    sqlx::raw_sql("begin immediate; delete from part;")
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(read_database(&path).unwrap().sessions, exported.sessions);
    sqlx::raw_sql("rollback")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(read_database(&path).unwrap().sessions, exported.sessions);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside the database");
}

#[tokio::test]
async fn another_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    create(&path, "create table session (id text)")
        .await
        .close()
        .await
        .unwrap();
    let error = read_database(&path).unwrap_err().to_string();
    assert!(error.contains("without the tables of opencode"), "{error}");
    std::fs::write(&path, b"SQLite format 3\0 and nothing else").unwrap();
    let error = read_database(&path).unwrap_err().to_string();
    assert!(error.contains("other.db"), "{error}");
}
