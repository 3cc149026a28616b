//! Connections: one writer, many readers, and a count of every statement.

use std::ops::{ControlFlow, DerefMut as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt as _;
use memory_store::ErrorKind;
use sea_query::SqliteQueryBuilder;
use sea_query_sqlx::SqlxBinder;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, Transaction};
use store_sql::{Script, Text};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::error::{Result, closed, failed, is_busy, is_full, locked, read_only};
use crate::files::{Reading, Still, beside};
use crate::options::{Durability, SqliteOptions};

/// The write-ahead log is cut back to this many bytes when it begins anew.
const WAL_LIMIT: &str = "16777216";
/// SQLite's own checkpoints leave the write-ahead log growing while readers follow each other without a gap. When it
/// has this many bytes, the next write waits for them and cuts it to nothing.
const WAL_BOUND: u64 = 16 << 20;
/// The log's size is looked at before every so many writes.
const WAL_LOOK: u64 = 16;
/// How long a write waits for readers that stand in the way of cutting the log.
const WAL_PATIENCE: Duration = Duration::from_millis(500);
/// How many free pages are given back to the file system when the store is closed.
const VACUUM: &str = "pragma incremental_vacuum(1024)";
/// What undoes one statement of a transaction stays in memory: at most what a batch of rows touches. In files, each
/// statement of many rows would make one and delete it. For the writer, and only once no migration may sort.
pub(crate) const UNDO_IN_MEMORY: &str = "pragma temp_store = memory";
/// How many rows are read ahead of the reader: a whole page, for a reader that is asked for room after each row costs
/// two changes of threads a row. Rows of a log that are large come by themselves; see `read.rs`.
const ROWS_AHEAD: usize = 1024;
/// Connections for reading.
const READERS: u32 = 4;
/// How long a read waits for another read of this process to give a connection back.
const READER_PATIENCE: Duration = Duration::from_secs(30);

/// Settings that every connection has.
pub(crate) fn options(settings: &SqliteOptions) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .foreign_keys(true)
        .busy_timeout(settings.lock_timeout)
        .row_buffer_size(ROWS_AHEAD)
        .pragma("journal_size_limit", WAL_LIMIT)
        .disable_statement_logging();
    match settings.durability {
        Durability::Process => options.synchronous(SqliteSynchronous::Normal),
        // On macOS a plain sync leaves the data in the disk's cache.
        Durability::Power => options
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "on")
            .pragma("checkpoint_fullfsync", "on"),
    }
}

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Db {
    /// `None` once closed, and where the database is only read.
    writer: Mutex<Option<SqliteConnection>>,
    /// `None` for a database in memory, where the writer reads too.
    readers: Option<SqlitePool>,
    statements: Arc<AtomicU64>,
    /// What a connection that cuts the log is opened with, and the log's file.
    log: Option<(SqliteConnectOptions, PathBuf)>,
    writes: AtomicU64,
    place: String,
    settings: SqliteOptions,
    /// What the database looked like, where no lock keeps others from writing it.
    still: Option<Still>,
}

impl Db {
    pub(crate) fn new(
        writer: SqliteConnection,
        readers: Option<SqliteConnectOptions>,
        place: &str,
        settings: SqliteOptions,
    ) -> Self {
        let log = readers.as_ref().map(|options| {
            let log = beside(options.get_filename(), "-wal");
            (options.clone().busy_timeout(WAL_PATIENCE), log)
        });
        Self {
            writer: Mutex::new(Some(writer)),
            readers: readers.map(|options| pool(options, &settings)),
            statements: Arc::default(),
            log,
            writes: AtomicU64::new(0),
            place: place.to_owned(),
            settings,
            still: None,
        }
    }

    /// A database that is only read.
    pub(crate) fn reading(reading: Reading, place: &str, settings: SqliteOptions) -> Self {
        Self {
            writer: Mutex::new(None),
            readers: Some(pool(reading.options, &settings)),
            statements: Arc::default(),
            log: None,
            writes: AtomicU64::new(0),
            place: place.to_owned(),
            settings,
            still: reading.still,
        }
    }

    /// How many statements ran so far, `begin` and `commit` among them.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    async fn writer(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>> {
        if self.settings.read_only {
            return Err(read_only(&self.place));
        }
        MutexGuard::try_map(self.writer.lock().await, Option::as_mut).map_err(|_| closed())
    }

    /// A connection to write with. Everything that is written through [`Writer::begin`] is undone when the future is
    /// dropped before it commits.
    pub(crate) async fn write(&self) -> Result<Writer<'_>> {
        let connection = self.writer().await?;
        if let Some((options, log)) = &self.log
            && self.writes.fetch_add(1, Ordering::Relaxed) % WAL_LOOK == WAL_LOOK - 1
            && std::fs::metadata(log).is_ok_and(|log| log.len() > WAL_BOUND)
        {
            self.cut_log(options).await?;
        }
        Ok(Writer {
            connection,
            db: self,
        })
    }

    /// Brings what is in the write-ahead log into the database and empties it, when readers let it happen soon.
    async fn cut_log(&self, options: &SqliteConnectOptions) -> Result<()> {
        let mut connection = options.connect().await.map_err(failed)?;
        let mut on = On {
            connection: &mut connection,
            statements: &self.statements,
        };
        let done = on.fixed("pragma wal_checkpoint(truncate)").await;
        connection.close().await.map_err(failed)?;
        // A reader that stays on is no fault: it is tried again.
        match done {
            Err(error) if error.kind() != ErrorKind::Busy => Err(error),
            _ => Ok(()),
        }
    }

    /// A connection to read with.
    pub(crate) async fn read(&self) -> Result<Reader<'_>> {
        let connection = match &self.readers {
            Some(pool) => Source::Pool(Box::new(pool.acquire().await.map_err(failed)?)),
            None => Source::Writer(self.writer().await?),
        };
        Ok(Reader {
            connection,
            statements: &self.statements,
        })
    }

    /// Waits for running statements, syncs what was written and closes all connections; closing again does nothing.
    pub(crate) async fn close(&self) -> Result<()> {
        if let Some(pool) = &self.readers {
            pool.close().await;
        }
        if let Some(mut writer) = self.writer.lock().await.take() {
            let tidied = tidy(&mut writer).await;
            let closed = writer.close().await;
            tidied.and(closed).map_err(failed)?;
        }
        self.still.as_ref().map_or(Ok(()), Still::check)
    }
}

/// Brings what was written into the database, synced: closing a connection does it too, but tells of no error.
async fn tidy(writer: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    match sqlx::raw_sql(VACUUM).execute(&mut *writer).await {
        // Not when another process writes, which will do it, or when there is no room.
        Err(error) if !is_busy(&error) && !is_full(&error) => return Err(error),
        _ => {}
    }
    // Waits for nobody: what readers of other processes keep in the log stays there, synced.
    let moved = sqlx::raw_sql("pragma wal_checkpoint(passive)");
    match moved.execute(&mut *writer).await {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

fn pool(options: SqliteConnectOptions, settings: &SqliteOptions) -> SqlitePool {
    SqlitePoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(settings.lock_timeout + READER_PATIENCE)
        .test_before_acquire(false)
        .connect_lazy_with(options.pragma("query_only", "on"))
}

/// The writing connection, held.
pub(crate) struct Writer<'a> {
    connection: MappedMutexGuard<'a, SqliteConnection>,
    db: &'a Db,
}

impl Writer<'_> {
    /// Begins a transaction that holds the write lock from the start, so that it can not fail later on.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>> {
        let Db {
            statements,
            settings,
            place,
            ..
        } = self.db;
        statements.fetch_add(1, Ordering::Relaxed);
        let begun = self.connection.begin_with("begin immediate");
        let begun = settings.observed(place, begun).await;
        let transaction = begun.map_err(|error| {
            let error = failed(error);
            match error.kind() {
                ErrorKind::Busy => locked(place, settings.lock_timeout, error),
                _ => error,
            }
        })?;
        Ok(Tx {
            transaction,
            statements,
        })
    }

    /// For one statement, which is a transaction by itself.
    pub(crate) fn on(&mut self) -> On<'_> {
        On {
            connection: &mut self.connection,
            statements: &self.db.statements,
        }
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
        self.transaction.commit().await.map_err(failed)
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
    pub(crate) async fn all(
        &mut self,
        statement: &(impl SqlxBinder + Sync),
    ) -> Result<Vec<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        sqlx::query_with(sql, values)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// The first row of a statement.
    pub(crate) async fn first(
        &mut self,
        statement: &(impl SqlxBinder + Sync),
    ) -> Result<Option<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        sqlx::query_with(sql, values)
            .fetch_optional(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// The rows of a statement one by one, until `row` says that it has enough.
    pub(crate) async fn each(
        &mut self,
        statement: &(impl SqlxBinder + Sync),
        mut row: impl FnMut(&SqliteRow) -> Result<ControlFlow<()>> + Send,
    ) -> Result<ControlFlow<()>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        let mut rows = sqlx::query_with(sql, values).fetch(&mut *self.connection);
        while let Some(found) = rows.try_next().await.map_err(failed)? {
            if row(&found)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The rows of a statement that is fixed text: a pragma.
    pub(crate) async fn fixed(&mut self, sql: &'static str) -> Result<Vec<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        sqlx::query(sql)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// Runs a statement; how many rows it changed.
    pub(crate) async fn run(&mut self, statement: &(impl SqlxBinder + Sync)) -> Result<u64> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let (sql, values) = store_sql::build(statement, SqliteQueryBuilder);
        let done = sqlx::query_with(sql, values)
            .execute(&mut *self.connection)
            .await;
        done.map(|done| done.rows_affected()).map_err(failed)
    }
}

/// For statements whose text is built once, and for several at once.
impl On<'_> {
    /// Runs all statements of a script.
    pub(crate) async fn run_script(&mut self, script: Script) -> Result<()> {
        self.statements
            .fetch_add(script.statements(), Ordering::Relaxed);
        let (sql, values) = script.build();
        let done = sqlx::query_with(sql, values)
            .execute(&mut *self.connection)
            .await;
        done.map(|_| ()).map_err(failed)
    }

    /// The rows of all statements of a script, in the statements' order.
    pub(crate) async fn all_of_script(&mut self, script: Script) -> Result<Vec<SqliteRow>> {
        self.statements
            .fetch_add(script.statements(), Ordering::Relaxed);
        let (sql, values) = script.build();
        sqlx::query_with(sql, values)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// All rows.
    pub(crate) async fn all_of(
        &mut self,
        text: &Text,
        values: SqliteArguments,
    ) -> Result<Vec<SqliteRow>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        sqlx::query_with(text.sql(), values)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// Runs it.
    pub(crate) async fn run_of(&mut self, text: &Text, values: SqliteArguments) -> Result<()> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let done = sqlx::query_with(text.sql(), values)
            .execute(&mut *self.connection)
            .await;
        done.map(|_| ()).map_err(failed)
    }
}

impl Tx<'_> {
    pub(crate) fn on(&mut self) -> On<'_> {
        On {
            connection: &mut self.transaction,
            statements: self.statements,
        }
    }
}

impl Reader<'_> {
    pub(crate) fn on(&mut self) -> On<'_> {
        let connection = match &mut self.connection {
            Source::Pool(connection) => connection.deref_mut().deref_mut(),
            Source::Writer(connection) => connection.deref_mut(),
        };
        On {
            connection,
            statements: self.statements,
        }
    }
}
