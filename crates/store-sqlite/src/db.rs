//! The connections of one store: one writer, many readers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memory_store::{ErrorKind, Violation};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, Transaction};
use store_sql::{Columns as _, Database};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::check;
use crate::connection::{Connection, Source};
use crate::error::{Result, closed, failed, is_busy, is_full, locked, not_gone, read_only};
use crate::files::{Reading, Still, beside};
use crate::options::SqliteOptions;
use crate::readers::Readers;
use crate::soon::soon;

/// SQLite's own checkpoints leave the write-ahead log growing while readers follow each other without a gap. When it
/// has this many bytes, the next write waits for them and cuts it to nothing.
const WAL_BOUND: u64 = 16 << 20;
/// Number of writes between two checks of the log's size.
const WAL_LOOK: u64 = 16;
/// How long a write waits for readers that stand in the way of cutting the log.
const WAL_PATIENCE: Duration = Duration::from_millis(500);
/// How many free pages are given back to the file system when the store is closed.
const VACUUM: &str = "pragma incremental_vacuum(1024)";
/// A connection with this setting gives a lock up at once that another holds.
const NO_WAIT: &str = "pragma busy_timeout = 0";
/// What undoes one statement of a transaction stays in memory: at most what a batch of rows touches. In files, each
/// statement of many rows would make one and delete it. For the writer, and only once no migration may sort.
pub(crate) const UNDO_IN_MEMORY: &str = "pragma temp_store = memory";
/// How long a read waits for another read of this process to give a connection back.
const READER_PATIENCE: Duration = Duration::from_secs(30);

/// The connections of one store.
#[derive(Debug)]
pub(crate) struct Db {
    /// `None` once closed, and where the database is only read.
    writer: Mutex<Option<SqliteConnection>>,
    /// `None` for a database in memory, where the writer reads too.
    readers: Option<Readers>,
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
            readers: readers.map(|options| read_with(options, &settings)),
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
            readers: Some(read_with(reading.options, &settings)),
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

    fn on<C>(&self, connection: C) -> Connection<'_, C> {
        Connection::new(connection, &self.statements, &*self.settings.clock)
    }

    /// Empties the write-ahead log when it has grown too long.
    async fn bound_log(&self) -> Result<()> {
        if let Some((options, log)) = &self.log
            && self.writes.fetch_add(1, Ordering::Relaxed) % WAL_LOOK == WAL_LOOK - 1
            && std::fs::metadata(log).is_ok_and(|log| log.len() > WAL_BOUND)
        {
            self.cut_log(options).await?;
        }
        Ok(())
    }

    /// Brings what is in the write-ahead log into the database and empties it, when readers let it happen soon.
    async fn cut_log(&self, options: &SqliteConnectOptions) -> Result<()> {
        let mut connection = options.connect().await.map_err(failed)?;
        let done = self
            .on(&mut connection)
            .fixed("pragma wal_checkpoint(truncate)")
            .await;
        connection.close().await.map_err(failed)?;
        // A reader that stays on is no fault: it is tried again.
        match done {
            Err(error) if error.kind() != ErrorKind::Busy => Err(error),
            _ => Ok(()),
        }
    }
}

/// Moves the write-ahead log into the database and syncs it: closing a connection does so too, but reports no error.
/// Waits for no lock: a caller that closes after a write found the database locked has waited once already.
async fn tidy(writer: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    sqlx::raw_sql(NO_WAIT).execute(&mut *writer).await?;
    match sqlx::raw_sql(VACUUM).execute(&mut *writer).await {
        // Not when another process writes, which will do it, or when there is no room.
        Err(error) if !is_busy(&error) && !is_full(&error) => return Err(error),
        _ => {}
    }
    // Pages that readers of other processes keep in the log stay there, synced.
    let moved = sqlx::raw_sql("pragma wal_checkpoint(passive)");
    match moved.execute(&mut *writer).await {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

fn read_with(options: SqliteConnectOptions, settings: &SqliteOptions) -> Readers {
    Readers::new(options, settings.lock_timeout + READER_PATIENCE)
}

impl Database for Db {
    type Reader<'a> = Connection<'a, Source<'a>>;
    type Writer<'a> = Connection<'a, MappedMutexGuard<'a, SqliteConnection>>;
    type Transaction<'a> = Connection<'a, Transaction<'a, Sqlite>>;

    async fn read(&self) -> Result<Self::Reader<'_>> {
        let connection = match &self.readers {
            Some(readers) => Source::Reader(readers.get().await?),
            None => Source::Writer(self.writer().await?),
        };
        Ok(self.on(connection))
    }

    async fn write(&self) -> Result<Self::Writer<'_>> {
        let connection = self.writer().await?;
        self.bound_log().await?;
        Ok(self.on(connection))
    }

    /// Holds the write lock from the start, so that the transaction can not fail later on.
    async fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
    ) -> Result<Self::Transaction<'a>> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let begun = soon(writer.as_mut().begin_with("begin immediate"));
        let begun = self.settings.observed(&self.place, begun).await;
        let transaction = begun.map_err(|error| {
            let error = failed(error);
            match error.kind() {
                ErrorKind::Busy => locked(&self.place, self.settings.lock_timeout, error),
                _ => error,
            }
        })?;
        Ok(self.on(transaction))
    }

    async fn commit(&self, transaction: Self::Transaction<'_>) -> Result<()> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let committed = soon(transaction.into_inner().commit());
        committed.await.map_err(failed)
    }

    async fn check(&self) -> Result<Vec<Violation>> {
        let mut reader = self.read().await?;
        check::check(&mut reader, &self.place).await
    }

    /// Writes the database anew, so that no free page is left, and empties the write-ahead log.
    async fn wipe(&self) -> Result<()> {
        let mut writer = self.write().await?;
        let gone = |error: memory_store::Error| match error.kind() {
            ErrorKind::Busy => not_gone(&self.place).with_source(error),
            _ => error,
        };
        writer.fixed("vacuum").await.map_err(gone)?;
        if self.log.is_none() {
            return Ok(());
        }
        let answer = writer.fixed("pragma wal_checkpoint(truncate)").await;
        let answer = answer.map_err(gone)?;
        let busy = answer.first().map_or(Ok(0), |row| row.int(0))?;
        match busy {
            0 => Ok(()),
            _ => Err(not_gone(&self.place)),
        }
    }

    fn location(&self) -> String {
        self.place.clone()
    }

    /// Syncs what was written.
    async fn close(&self) -> Result<()> {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        if let Some(mut writer) = self.writer.lock().await.take() {
            let tidied = tidy(&mut writer).await;
            let closed = writer.close().await;
            tidied.and(closed).map_err(failed)?;
        }
        self.still.as_ref().map_or(Ok(()), Still::check)
    }
}
