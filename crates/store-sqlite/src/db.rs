//! Connections: one writer, many readers, and a count of every statement.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sea_query::SqliteQueryBuilder;
use sea_query_sqlx::SqlxBinder;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Connection as _, Sqlite, Transaction};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::error::{Error, Result};

/// How long a statement waits for another process before it gives up.
const BUSY: Duration = Duration::from_secs(10);
/// The write-ahead log is cut back to this many bytes at a checkpoint.
const WAL_LIMIT: &str = "67108864";
/// Connections for reading.
const READERS: u32 = 4;

/// Settings that every connection has.
pub(crate) fn options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .synchronous(SqliteSynchronous::Normal)
        .pragma("journal_size_limit", WAL_LIMIT)
}

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Db {
    /// `None` once closed.
    writer: Mutex<Option<SqliteConnection>>,
    /// `None` for a database in memory, where the writer reads too.
    readers: Option<SqlitePool>,
    statements: Arc<AtomicU64>,
}

impl Db {
    pub(crate) fn new(writer: SqliteConnection, readers: Option<SqliteConnectOptions>) -> Self {
        let readers = readers.map(|options| {
            SqlitePoolOptions::new()
                .max_connections(READERS)
                .test_before_acquire(false)
                .connect_lazy_with(options.pragma("query_only", "on"))
        });
        Self { writer: Mutex::new(Some(writer)), readers, statements: Arc::default() }
    }

    /// How many statements ran so far, `begin` and `commit` among them.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    async fn writer(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>> {
        MutexGuard::try_map(self.writer.lock().await, Option::as_mut).map_err(|_| Error::closed())
    }

    /// A connection to write with. Everything that is written through [`Writer::begin`] is undone when the future is
    /// dropped before it commits.
    pub(crate) async fn write(&self) -> Result<Writer<'_>> {
        Ok(Writer { connection: self.writer().await?, statements: &self.statements })
    }

    /// A connection to read with.
    pub(crate) async fn read(&self) -> Result<Reader<'_>> {
        let connection = match &self.readers {
            Some(pool) => Source::Pool(Box::new(pool.acquire().await?)),
            None => Source::Writer(self.writer().await?),
        };
        Ok(Reader { connection, statements: &self.statements })
    }

    /// Waits for running statements and closes all connections; closing again does nothing.
    pub(crate) async fn close(&self) -> Result<()> {
        if let Some(pool) = &self.readers {
            pool.close().await;
        }
        if let Some(writer) = self.writer.lock().await.take() {
            writer.close().await?;
        }
        Ok(())
    }
}

/// The writing connection, held.
pub(crate) struct Writer<'a> {
    connection: MappedMutexGuard<'a, SqliteConnection>,
    statements: &'a AtomicU64,
}

impl Writer<'_> {
    /// Begins a transaction that holds the write lock from the start, so that it can not fail later on.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let transaction = self.connection.begin_with("begin immediate").await?;
        Ok(Tx { transaction, statements: self.statements })
    }

    /// The bare connection, for maintenance that can not run in a transaction.
    pub(crate) fn bare(&mut self) -> &mut SqliteConnection {
        self.statements.fetch_add(1, Ordering::Relaxed);
        &mut self.connection
    }
}

/// A transaction: rolled back when dropped.
pub(crate) struct Tx<'a> {
    transaction: Transaction<'a, Sqlite>,
    statements: &'a AtomicU64,
}

impl Tx<'_> {
    pub(crate) async fn commit(self) -> Result<()> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        Ok(self.transaction.commit().await?)
    }
}

enum Source<'a> {
    Pool(Box<PoolConnection<Sqlite>>),
    Writer(MappedMutexGuard<'a, SqliteConnection>),
}

/// A reading connection, held.
pub(crate) struct Reader<'a> {
    connection: Source<'a>,
    statements: &'a AtomicU64,
}

/// What statements run on: a connection and the count of statements.
pub(crate) struct On<'a> {
    connection: &'a mut SqliteConnection,
    statements: &'a AtomicU64,
}

impl On<'_> {
    /// All rows of a statement.
    pub(crate) async fn all(&mut self, statement: &(impl SqlxBinder + Sync)) -> Result<Vec<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        Ok(sqlx::query_with(sql, values).fetch_all(&mut *self.connection).await?)
    }

    /// The first row of a statement.
    pub(crate) async fn first(
        &mut self,
        statement: &(impl SqlxBinder + Sync),
    ) -> Result<Option<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        Ok(sqlx::query_with(sql, values).fetch_optional(&mut *self.connection).await?)
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) async fn run(&mut self, statement: &(impl SqlxBinder + Sync)) -> Result<u64> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        Ok(sqlx::query_with(sql, values).execute(&mut *self.connection).await?.rows_affected())
    }
}

impl Tx<'_> {
    pub(crate) fn on(&mut self) -> On<'_> {
        On { connection: &mut self.transaction, statements: self.statements }
    }
}

impl Reader<'_> {
    pub(crate) fn on(&mut self) -> On<'_> {
        let connection = match &mut self.connection {
            Source::Pool(connection) => connection.deref_mut().deref_mut(),
            Source::Writer(connection) => connection.deref_mut(),
        };
        On { connection, statements: self.statements }
    }
}
