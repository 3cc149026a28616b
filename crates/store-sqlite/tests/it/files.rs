//! Tests of files: opened again, opened twice, of another program, of a newer version, and with unusual content.

use std::sync::Arc;

use memory_model::{Message, Seq, ViewName};
use memory_store::{ErrorKind, Maintain as _, Store as _};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};
use store_conformance::{Chat, range, shown, sound};
use store_sqlite::{SqliteOptions, SqliteStore};

use crate::common::{leaf, store, texts};

async fn raw(path: &std::path::Path, sql: &'static str) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut db = options.connect().await.unwrap();
    sqlx::raw_sql(sql).execute(&mut db).await.unwrap();
    sqlx::Connection::close(db).await.unwrap();
}

#[tokio::test]
async fn a_file_opened_again_is_the_same() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 20)).await;
    let made = leaf(chat, range(1, 8)).await;
    let (id, before) = (chat.id, chat.info().await);
    store.close().await.unwrap();
    store.close().await.unwrap();
    let closed = store.snapshot(id, &ViewName::new("dag")).await;
    assert_eq!(closed.unwrap_err().kind(), ErrorKind::Io);

    let path = folder.path().join("memory.db");
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.statements(), 0);
    let chat = Chat::new(&store, id);
    assert_eq!(chat.info().await, before);
    let shot = chat.snapshot("dag").await;
    let expected = (1, 8 * 3 - 5, Seq(20));
    assert_eq!((shot.version.0, shot.saved, shot.head), expected);
    assert_eq!(chat.spans("dag").await[0], shown(&made));
    assert_eq!(chat.summary_by_id(&made.id).await, Some(made));
    assert_eq!(store.check().await.unwrap(), []);
    assert_eq!(store.location(), path.display().to_string());
}

#[tokio::test]
async fn a_new_file_has_its_settings() {
    let (folder, _store) = store().await;
    let options = SqliteConnectOptions::new().filename(folder.path().join("memory.db"));
    let mut db = options.connect().await.unwrap();
    let row = sqlx::query(
        "select application_id, user_version, journal_mode, auto_vacuum, \
                (select group_concat(version || ' ' || name) from schema_migrations) \
           from pragma_application_id, pragma_user_version, pragma_journal_mode, pragma_auto_vacuum",
    )
    .fetch_one(&mut db)
    .await
    .unwrap();
    assert_eq!(
        row.get::<i64, _>(0),
        i64::from(u32::from_be_bytes(*b"amem"))
    );
    assert_eq!(
        (row.get::<String, _>(2).as_str(), row.get::<i64, _>(3)),
        ("wal", 2)
    );
    let migrations: String = row.get(4);
    assert!(migrations.starts_with("1 initial"), "{migrations}");
    assert_eq!(
        migrations.split(',').count(),
        usize::try_from(row.get::<i64, _>(1)).unwrap()
    );
}

#[tokio::test]
async fn foreign_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "This is no database, only a text that is long enough to have a page header. ".repeat(20),
    )
    .unwrap();
    let other = folder.path().join("other.db");
    raw(&other, "create table mine (x); insert into mine values (1)").await;
    let marked = folder.path().join("marked.db");
    raw(&marked, "pragma application_id = 7").await;
    for (path, kind) in [
        (&text, ErrorKind::ForeignDatabase),
        (&other, ErrorKind::ForeignDatabase),
        (&marked, ErrorKind::ForeignDatabase),
        (
            &folder.path().join("no/such/folder/memory.db"),
            ErrorKind::Io,
        ),
        (&folder.path().to_path_buf(), ErrorKind::Io),
    ] {
        let before = std::fs::read(path).ok();
        let error = SqliteStore::open(path).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
        assert_eq!(std::fs::read(path).ok(), before);
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let (folder, store) = store().await;
    Chat::root(&store, "a").await;
    store.close().await.unwrap();
    let path = folder.path().join("memory.db");
    raw(&path, "pragma user_version = 9999").await;
    let before = std::fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerSchema);
    assert!(
        error.to_string().contains("9999") && error.to_string().contains("update"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn another_form_of_a_migration_is_refused_and_left_alone() {
    let (folder, store) = store().await;
    Chat::root(&store, "a").await;
    store.close().await.unwrap();
    let path = folder.path().join("memory.db");
    raw(&path, "update schema_migrations set checksum = 'x'").await;
    let before = std::fs::read(&path).unwrap();
    for opened in [
        SqliteStore::open(&path).await,
        SqliteOptions::new().read_only().open(&path).await,
    ] {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ForeignDatabase);
        assert!(error.to_string().contains("migration 1"), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_handles_create_and_write_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = Arc::new(folder.path().join("memory.db"));
    let mut tasks = Vec::new();
    for handle in 0..4 {
        let path = path.clone();
        tasks.push(tokio::spawn(async move {
            let store = SqliteStore::open(path.as_path()).await.unwrap();
            let chat = Chat::root(&store, "shared").await;
            for n in 0..25 {
                let own = Message::user("own").with_external_id(format!("{handle}-{n}"));
                let same = Message::user("same").with_external_id(format!("same-{n}"));
                chat.append([own, same]).await;
            }
            store.close().await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let store = SqliteStore::open(path.as_path()).await.unwrap();
    let chat = Chat::root(&store, "shared").await;
    assert_eq!(chat.info().await.head, Seq(4 * 25 + 25));
    sound(&store).await;
}
