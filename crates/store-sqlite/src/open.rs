//! Opening a store.

use std::path::Path;

use memory_store::Result;
use store_sql::SqlStore;

use crate::db::{SqliteDatabase, connect, open_database};
use crate::options::SqliteOptions;

/// A store in a SQLite database: one file, one writer at a time, readers that never wait.
///
/// Several stores and processes may have the same file open. [`SqliteOptions`] opens one with other settings, or in memory.
pub type SqliteStore = SqlStore<SqliteDatabase>;

impl SqliteOptions {
    /// Opens a database in memory, which is gone when the store is. It reads and writes over one connection.
    ///
    /// # Errors
    /// `Io` when SQLite can not start.
    pub async fn in_memory(self) -> Result<SqliteStore> {
        let place = "sqlite::memory:".to_owned();
        let writer = connect(self.connection().in_memory(true), &place).await?;
        let db = SqliteDatabase::new(writer, None, &place, self);
        Ok(SqlStore::new(db))
    }

    /// Opens the database at `path`, and creates it if there is none. Takes the same time however much is in it.
    ///
    /// A database that is created can be read and written by its owner alone, whatever the umask.
    ///
    /// # Errors
    /// `ForeignDatabase` when the file is something else, `NewerSchema` when a newer version wrote
    /// it, `Busy` when another process holds a lock on it for longer than the lock time-out, `Io`
    /// when it can not be read or made, or when its write-ahead log can not be read. Nothing is
    /// changed then.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore> {
        let opened = open_database(path.as_ref(), self).await?;
        SqlStore::opened(opened).await
    }
}
