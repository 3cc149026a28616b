//! Functions that the tests share.

use memory_model::{Message, SeqRange, Summary};
use memory_store::{Append, AppendAt};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store_conformance::{Chat, entry};
use store_sqlite::SqliteStore;
use tempfile::TempDir;

/// Creates a store in a new file.
pub(crate) async fn store() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("memory.db")).await;
    (folder, store.unwrap())
}

/// Opens another connection to the file of a store.
pub(crate) async fn stranger(folder: &TempDir) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(folder.path().join("memory.db"))
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// Returns messages with the numbers from `from` on. Each costs three tokens, up to number 9,999.
pub(crate) fn texts(from: u32, count: u32) -> impl Iterator<Item = Message> {
    let text = |n| Message::user(format!("message {n}")).with_external_id(format!("e{n}"));
    (from..from + count).map(text)
}

/// Creates an append of messages to the end of the log.
pub(crate) fn batch(messages: impl Iterator<Item = Message>) -> Append {
    store_conformance::batch(AppendAt::Any, messages.map(entry))
}

/// Publishes a summary of a range of messages in the view `dag`.
pub(crate) async fn leaf(chat: Chat<'_, SqliteStore>, at: SeqRange) -> Summary {
    chat.show_leaf("dag", at, &format!("what happened in {at}"))
        .await
}
