//! Tests with other processes that write to the same file or are killed while they write.

use std::process::{Child, Command, Stdio};

use memory_model::Message;
use store_conformance::{Chat, sound};
use store_sqlite::SqliteStore;

use crate::common::{store, texts};

/// Environment variable that gives the child process the path of the database.
const PATH: &str = "STORE_SQLITE_TEST_PATH";

fn child(path: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_that_writes", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs in the child process. It is not a test by itself, and ends at once if the variable is not set.
#[tokio::test]
async fn child_that_writes() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let store = SqliteStore::open(path).await.unwrap();
    let chat = Chat::root(&store, "shared").await;
    for _ in 0..300 {
        chat.append(["x", "y", "z"].map(Message::user)).await;
    }
}

/// Asserts that the log has no gap and consists of whole batches of three. Returns its number of entries.
async fn whole(store: &SqliteStore) -> u32 {
    sound(store).await;
    let head = Chat::root(store, "shared").await.info().await.head.0;
    assert_eq!(head % 3, 0);
    head
}

#[tokio::test]
async fn two_processes_write_one_file() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let mut children = [child(&path), child(&path)];
    let chat = Chat::root(&store, "shared").await;
    for _ in 0..300 {
        chat.append(["x", "y", "z"].map(Message::user)).await;
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(whole(&store).await, 2700);
}

#[tokio::test]
async fn a_killed_writer_leaves_the_file_whole() {
    for pause in [30, 60, 90] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.db");
        let mut child = child(&path);
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let store = SqliteStore::open(&path).await.unwrap();
        let before = whole(&store).await;
        let chat = Chat::root(&store, "shared").await;
        chat.append(texts(1, 3)).await;
        assert_eq!(whole(&store).await, before + 3);
    }
}
