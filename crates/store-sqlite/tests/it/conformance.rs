//! The suite that every store must pass, on stores in files and in memory.

use std::sync::atomic::{AtomicU32, Ordering};

use memory_store::Maintain as _;
use store_conformance::Fixture;
use store_sqlite::{SqliteOptions, SqliteStore};

/// Creates stores in files. All files are in one folder, which is removed with the fixture.
struct Files {
    folder: tempfile::TempDir,
    made: AtomicU32,
}

impl Files {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            made: AtomicU32::new(0),
        }
    }
}

impl Fixture for Files {
    type Store = SqliteStore;

    async fn fresh(&self) -> SqliteStore {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.db"));
        SqliteStore::open(path).await.unwrap()
    }

    async fn reopen(&self, store: SqliteStore) -> SqliteStore {
        store.close().await.unwrap();
        SqliteStore::open(store.location()).await.unwrap()
    }

    async fn second_store(&self, store: &SqliteStore) -> Option<SqliteStore> {
        Some(SqliteStore::open(store.location()).await.unwrap())
    }
}

struct InMemory;

impl Fixture for InMemory {
    type Store = SqliteStore;

    async fn fresh(&self) -> SqliteStore {
        SqliteOptions::new().in_memory().await.unwrap()
    }
}

mod files {
    use super::Files;

    store_conformance::conformance_tests!(Files::new());
}

mod in_memory {
    use super::InMemory;

    store_conformance::conformance_tests!(InMemory);
}

#[tokio::test]
async fn random_operations_agree_with_the_reference() {
    store_conformance::random_ops(&Files::new(), 16).await;
    store_conformance::random_ops(&InMemory, 48).await;
}
