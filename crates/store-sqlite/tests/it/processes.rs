//! Other processes: writing the same file, and killed while they write.

use std::process::{Child, Command, Stdio};

use memory_model::{Hash, Message};
use memory_store::{ConversationRef, LogRead, Maintain as _, Store as _};
use store_sqlite::SqliteStore;

use crate::common::{append, root, store, texts};

/// Tells the child where to write.
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

/// Not a test by itself: what the other process runs. Without a path it does nothing.
#[tokio::test]
async fn child_that_writes() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let store = SqliteStore::open(path).await.unwrap();
    let id = root(&store, "shared").await;
    for _ in 0..300 {
        append(
            &store,
            id,
            vec![
                Message::user("a"),
                Message::assistant("b"),
                Message::user("c"),
            ],
        )
        .await;
    }
}

/// The log is whole, in threes, and its chain right; how many entries it has.
async fn whole(store: &SqliteStore) -> u32 {
    let id = root(store, "shared").await;
    let found = store
        .conversation(&ConversationRef::Id(id))
        .await
        .unwrap()
        .unwrap();
    let mut chain = Hash::ZERO;
    let mut rest = found.range();
    let mut count = 0;
    while let Some(range) = rest {
        let page = store.read(id, &LogRead::new(range)).await.unwrap();
        for entry in &page.items {
            count += 1;
            assert_eq!((entry.seq.0, entry.running), (count, u64::from(count) * 3));
            chain = chain.chain(entry.hash);
        }
        rest = page.next;
    }
    assert_eq!((count, chain), (found.head.0, found.chain));
    assert_eq!(count % 3, 0);
    assert_eq!(store.check().await.unwrap(), []);
    count
}

#[tokio::test]
async fn two_processes_write_one_file() {
    let (folder, store) = store().await;
    let path = folder.path().join("memory.db");
    let mut children = [child(&path), child(&path)];
    let id = root(&store, "shared").await;
    for _ in 0..300 {
        append(
            &store,
            id,
            vec![Message::user("x"), Message::user("y"), Message::user("z")],
        )
        .await;
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
        let id = root(&store, "shared").await;
        append(&store, id, texts(1, 3)).await;
        assert_eq!(whole(&store).await, before + 3);
    }
}
