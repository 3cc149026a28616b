//! Opening of a store in PostgreSQL.

use memory_store::Result;
use store_sql::SqlStore;

use crate::db::{self, PostgresDatabase};
use crate::options::PostgresOptions;

/// A store in a PostgreSQL database, which many processes and machines can use at the same time.
///
/// [`SqlStore::open`] takes a URL and the default options. [`PostgresOptions`] opens a store with other settings.
pub type PostgresStore = SqlStore<PostgresDatabase>;

impl PostgresOptions {
    /// Opens the database at a URL, and creates the tables if they do not exist.
    ///
    /// The URL is one of PostgreSQL's: `postgres://user:password@host:5432/database`. Three more parameters are read:
    /// - `schema=NAME`: schema with the tables, made of a–z, 0–9 and `_`. The default is `agent_memory`.
    /// - `statement-cache-capacity=0`: the URL leads to a pooler that gives out connections for one transaction, such as
    ///   pgbouncer. No prepared statement and no setting then outlives a transaction.
    /// - `partitions=N`: as [`with_partitions`](Self::with_partitions).
    ///
    /// # Errors
    /// - `Invalid` if the URL or the schema's name is not valid.
    /// - `Disconnected` if the server cannot be reached.
    /// - `ForeignDatabase` if the schema has tables of another program.
    /// - `NewerSchema` if a newer version of agent-memory wrote it.
    /// - `ReadOnly` if the tables do not exist and the role cannot create them.
    ///
    /// After an error the database is unchanged.
    pub async fn open(self, url: &str) -> Result<PostgresStore> {
        SqlStore::opened(db::open(url, self).await?).await
    }
}
