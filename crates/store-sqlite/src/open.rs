//! Opening of a store in a SQLite database.

use std::path::Path;

use memory_store::Result;
use store_sql::SqlStore;

use crate::db::{SqliteDatabase, connect, open_database};
use crate::options::SqliteOptions;

/// A store in a SQLite database: one file, one writer at a time, and readers that never wait.
///
/// Several stores and processes may have the same file open. [`SqliteOptions`] opens a store with other settings, or in
/// memory.
pub type SqliteStore = SqlStore<SqliteDatabase>;

impl SqliteOptions {
    /// Opens a new database in memory. The data are lost when the store is dropped. Reads and writes share one
    /// connection.
    ///
    /// # Errors
    /// `Io` if SQLite cannot start.
    pub async fn in_memory(self) -> Result<SqliteStore> {
        let place = "sqlite::memory:".to_owned();
        let writer = connect(self.connection().in_memory(true), &place).await?;
        let db = SqliteDatabase::new(writer, None, &place, self);
        Ok(SqlStore::new(db))
    }

    /// Opens the database at `path`, and creates it if it does not exist. The time to open does not depend on the size
    /// of the database.
    ///
    /// A new file can be read and written only by its owner, for any umask.
    ///
    /// # Errors
    /// - `ForeignDatabase` if the file is not a database of agent-memory, or has another form of a migration that is not released.
    /// - `NewerSchema` if a newer version of agent-memory wrote it.
    /// - `Busy` if another process holds a lock on it for longer than the lock time-out.
    /// - `Io` if the file or its write-ahead log cannot be read, or if the file cannot be created.
    ///
    /// After an error the file is unchanged.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore> {
        let opened = open_database(path.as_ref(), self).await?;
        SqlStore::opened(opened).await
    }
}
