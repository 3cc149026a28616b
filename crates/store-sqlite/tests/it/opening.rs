//! Tests of opening: permissions of new files, opening for reading only, locks and durability.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use memory_model::RawJson;
use memory_store::{ErrorKind, Maintain as _, Origin, Store as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use store_conformance::{Chat, new_conversation};
use store_sqlite::{Durability, LockObserver, LockWait, SqliteOptions, SqliteStore};

use crate::common::{batch, store, texts};

/// Opens another connection and runs these statements on it.
async fn stranger(path: &Path, statements: &'static str) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    let done = sqlx::raw_sql(statements).execute(&mut connection).await;
    done.unwrap();
    connection
}

#[cfg(unix)]
#[tokio::test]
async fn all_files_of_a_new_database_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    // The same for a path that is a link.
    std::os::unix::fs::symlink("behind.db", folder.path().join("link.db")).unwrap();
    for (name, file) in [("memory.db", "memory.db"), ("link.db", "behind.db")] {
        let store = SqliteStore::open(folder.path().join(name)).await.unwrap();
        let chat = Chat::root(&store, "a").await;
        chat.append(texts(1, 3)).await;
        let modes = ["", "-wal", "-shm"].map(|suffix| {
            let path = folder.path().join(format!("{file}{suffix}"));
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            format!("{:o}", mode & 0o777)
        });
        assert_eq!(modes, ["600", "600", "600"], "{name}");
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_is_open_for_reading_reads_and_refuses_to_write() {
    let (folder, writing) = store().await;
    let path = folder.path().join("memory.db");
    let chat = Chat::root(&writing, "a").await;
    chat.append(texts(1, 3)).await;

    // Opens for reading while a writer is open.
    let reading = SqliteOptions::new().read_only().open(&path).await.unwrap();
    chat.append(texts(4, 2)).await;
    let read = Chat::new(&reading, chat.id);
    assert_eq!(read.info().await.head.0, 5);
    assert_eq!(read.entries().await.len(), 5);
    assert_eq!(reading.check().await.unwrap(), []);
    let value = RawJson::parse("1").unwrap();
    let new = new_conversation("b", Origin::Root);
    let append = reading.append(chat.id, &batch(texts(6, 1))).await;
    let put = reading.put_state(chat.id, "k", 0, Some(&value)).await;
    let refused = [
        append.unwrap_err(),
        reading.open(&new).await.unwrap_err(),
        put.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        let place = path.display().to_string();
        assert!(error.to_string().contains(&place), "{error}");
    }
    reading.close().await.unwrap();
    assert_eq!(chat.info().await.head.0, 5);
}

#[tokio::test]
async fn reading_creates_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let reading = SqliteOptions::new().read_only();
    let missing = reading.clone().open(folder.path().join("none.db")).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    let error = reading.open(&empty).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ForeignDatabase);
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
}

#[tokio::test]
async fn an_older_schema_is_not_brought_up_by_a_reader() {
    let (folder, writing) = store().await;
    Chat::root(&writing, "a").await;
    writing.close().await.unwrap();
    let path = folder.path().join("memory.db");
    let older = stranger(&path, "pragma user_version = -1").await;
    older.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = SqliteOptions::new().read_only().open(&path).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OlderSchema);
    assert!(error.to_string().contains("open it for writing"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_half_created_database_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    std::fs::write(&path, "").unwrap();
    let begun = stranger(&path, "pragma page_size = 8192; pragma journal_mode = wal").await;
    begun.close().await.unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > 0);
    let store = SqliteOptions::new().read_only().open(&path).await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_stays_ends_opening_and_writing_with_one_time_out() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let id = Chat::root(&store, "a").await.id;
    store.close().await.unwrap();
    for (timeout, told) in [
        (Duration::ZERO, "0 s"),
        (Duration::from_millis(50), "0.05 s"),
    ] {
        let options = SqliteOptions::new().with_lock_timeout(timeout);
        let held = stranger(
            &path,
            "pragma locking_mode = exclusive; begin exclusive; update conversation set title = 'x'",
        )
        .await;
        for options in [options.clone(), options.clone().read_only()] {
            let error = options.open(&path).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            let text = error.to_string();
            assert!(
                text.contains(&path.display().to_string()) && text.contains(told),
                "{text}"
            );
        }
        held.close().await.unwrap();
        let store = options.open(&path).await.unwrap();
        let held = stranger(&path, "begin immediate").await;
        let error = store.append(id, &batch(texts(1, 1))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains(told), "{error}");
        // A read does not wait for a writer.
        Chat::new(&store, id).texts().await;
        held.close().await.unwrap();
        store.close().await.unwrap();
    }
}

/// Checks that a statement waits for a lock, and that closing does not. With a time-out of a day, closing would not end
/// if it waited.
#[tokio::test]
async fn closing_waits_for_no_lock() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let id = Chat::root(&store, "a").await.id;
    store.close().await.unwrap();
    let day = Duration::from_secs(86_400);
    let options = SqliteOptions::new().with_lock_timeout(day);
    let store = options.clone().open(&path).await.unwrap();
    Chat::new(&store, id).append(texts(1, 3)).await;
    let held = stranger(&path, "begin immediate").await;
    let closed = tokio::time::timeout(Duration::from_secs(60), store.close()).await;
    closed.expect("closed beside a lock").unwrap();
    held.close().await.unwrap();
    let store = options.open(&path).await.unwrap();
    assert_eq!(store.check().await.unwrap(), []);
    assert_eq!(Chat::new(&store, id).texts().await.len(), 3);
    store.close().await.unwrap();
}

#[derive(Debug, Default)]
struct Waits(Mutex<Vec<LockWait>>);

impl LockObserver for Waits {
    fn waiting(&self, wait: &LockWait) {
        self.0.lock().unwrap().push(wait.clone());
    }
}

#[tokio::test]
async fn a_wait_for_a_lock_is_reported_once() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let id = Chat::root(&store, "a").await.id;
    store.close().await.unwrap();
    let waits = std::sync::Arc::new(Waits::default());
    let timeout = Duration::from_millis(1_500);
    let options = SqliteOptions::new()
        .with_lock_timeout(timeout)
        .with_lock_observer(waits.clone());
    let store = options.open(&path).await.unwrap();
    Chat::new(&store, id).append(texts(1, 1)).await;
    assert_eq!(*waits.0.lock().unwrap(), []);
    let held = stranger(&path, "begin immediate").await;
    let error = store.append(id, &batch(texts(2, 1))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let place = path.display().to_string();
    assert_eq!(*waits.0.lock().unwrap(), [LockWait { place, timeout }]);
    held.close().await.unwrap();
}

#[tokio::test]
async fn closing_empties_the_log_at_any_durability() {
    for durability in [Durability::Process, Durability::Power] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let options = SqliteOptions::new().with_durability(durability);
        let store = options.open(&path).await.unwrap();
        let chat = Chat::root(&store, "a").await;
        chat.append(texts(1, 20)).await;
        // Another connection stays open, so that SQLite does not truncate the log by itself.
        let other = stranger(&path, "select count(*) from message").await;
        store.close().await.unwrap();
        let copy = folder.path().join("copy.db");
        std::fs::copy(&path, &copy).unwrap();
        let copy = SqliteStore::open(&copy).await.unwrap();
        let copied = Chat::new(&copy, chat.id).texts().await;
        assert_eq!(copied.len(), 20, "{durability:?}");
        other.close().await.unwrap();
    }
}
