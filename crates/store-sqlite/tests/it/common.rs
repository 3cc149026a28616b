//! What the tests share.

use memory_model::{Message, SeqRange, Summary};
use memory_store::{Append, AppendAt};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store_conformance::{Chat, entry};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// A store in a file of its own.
pub(crate) async fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db")).await;
    (folder, store.unwrap())
}

/// Another connection to the file of a store.
pub(crate) async fn stranger(folder: &TempDir) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(folder.path().join("memory.db"))
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// Messages of three tokens each, up to the 9,999th.
pub(crate) fn texts(from: u32, count: u32) -> impl Iterator<Item = Message> {
    let text = |n| Message::user(format!("message {n}")).with_external_id(format!("e{n}"));
    (from..from + count).map(text)
}

/// An append of messages at the head.
pub(crate) fn batch(messages: impl Iterator<Item = Message>) -> Append {
    store_conformance::batch(AppendAt::Any, messages.map(entry))
}

/// Publishes a leaf in the view `dag`.
pub(crate) async fn leaf(chat: Chat<'_, SqliteStore>, at: SeqRange) -> Summary {
    chat.show_leaf("dag", at, &format!("what happened in {at}"))
        .await
}
