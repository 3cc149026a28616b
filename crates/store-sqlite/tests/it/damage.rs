//! Damage by another program that removes the triggers.

use memory_store::{Maintain as _, ViolationKind};
use sqlx::{Connection as _, Row as _};
use store_conformance::Chat;
use store_sqlite::SqliteStore;
use tempfile::TempDir;

use crate::common::{store, stranger};

/// Runs SQL on a store's file without its triggers, as another program could.
pub(crate) async fn damage(folder: &TempDir, sql: &str) {
    let mut db = stranger(folder).await;
    let triggers = sqlx::query("select name, sql from sqlite_schema where type = 'trigger'")
        .fetch_all(&mut db)
        .await
        .unwrap();
    let run = async |db: &mut sqlx::SqliteConnection, sql: String| {
        let run = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(db);
        run.await.unwrap();
    };
    for trigger in &triggers {
        let name: String = trigger.get(0);
        run(&mut db, format!("drop trigger {name}")).await;
    }
    let sql = format!("pragma ignore_check_constraints = on; {sql}");
    run(&mut db, sql).await;
    for trigger in &triggers {
        run(&mut db, trigger.get(1)).await;
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_not_a_panic() {
    let (folder, store) = store().await;
    Chat::root(&store, "more").await.fill(2000).await;
    store.close().await.unwrap();
    let path = folder.path().join("memory.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    for page in (end - 20 * 4096..end).step_by(4096) {
        bytes[page..page + 64].fill(0xff);
    }
    std::fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let found = store.check().await.unwrap();
    assert!(
        found.iter().any(|v| v.kind == ViolationKind::Database),
        "{found:?}"
    );
}
