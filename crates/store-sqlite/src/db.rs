//! Connections of one store: one writer and several readers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memory_store::{ErrorKind, Usage, Violation};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, Transaction};
use store_sql::{Columns as _, Database, Family};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::connection::{Connection, Source};
use crate::error::{Result, closed, failed, is_busy, is_full, locked, not_gone, read_only};
use crate::files::{FileStamps, Reading, beside};
use crate::options::SqliteOptions;
use crate::readers::Readers;
use crate::soon::soon;
use crate::{check, error, files, library, migrate, usage};

/// Length of the write-ahead log, in bytes, above which the next write truncates it. SQLite's own checkpoints let the
/// log grow as long as at least one reader is active at any time, so this write waits until no reader is.
const WAL_BOUND: u64 = 16 << 20;
/// Number of writes between two checks of the write-ahead log's length.
const WAL_LOOK: u64 = 16;
/// Maximum time that a write waits for readers before it truncates the write-ahead log.
const WAL_PATIENCE: Duration = Duration::from_millis(500);
/// Pragma that returns up to 1,024 free pages to the file system when the store is closed.
const VACUUM: &str = "pragma incremental_vacuum(1024)";
/// Pragma that makes a connection fail at once if another connection has a lock.
const NO_WAIT: &str = "pragma busy_timeout = 0";
/// Pragma that keeps the undo data of each statement of a transaction in memory. The data are at most the pages that a
/// batch of rows changes. Without this pragma, each statement of many rows would create and delete a file. It is set
/// for the writer after the migrations, which may need files for sorting.
const UNDO_IN_MEMORY: &str = "pragma temp_store = memory";
/// Pause between two attempts to open a locked database.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
/// Maximum time that a read waits for another read of this process to return its connection.
const READER_PATIENCE: Duration = Duration::from_secs(30);

/// Connections of one store to a SQLite database: one for writing and several for reading.
#[derive(Debug)]
pub struct SqliteDatabase {
    /// Connection for writing. `None` after closing, or if the database is open for reading only.
    writer: Mutex<Option<SqliteConnection>>,
    /// Connections for reading. `None` for a database in memory, which reads over the writer's connection.
    readers: Option<Readers>,
    statements: Arc<AtomicU64>,
    /// Options of the connection that truncates the write-ahead log, and the path of the log.
    log: Option<(SqliteConnectOptions, PathBuf)>,
    writes: AtomicU64,
    place: String,
    settings: SqliteOptions,
    /// State of the files when they were opened, if no lock keeps other processes from writing. `None` if a lock does.
    still: Option<FileStamps>,
}

impl SqliteDatabase {
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

    /// Creates a database that is open for reading only.
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

    async fn writer(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>> {
        if self.settings.read_only {
            return Err(read_only(&self.place));
        }
        MutexGuard::try_map(self.writer.lock().await, Option::as_mut).map_err(|_| closed())
    }

    fn on<C>(&self, connection: C) -> Connection<'_, C> {
        Connection::new(connection, &self.statements, &*self.settings.clock)
    }

    /// Truncates the write-ahead log if it is longer than [`WAL_BOUND`].
    async fn bound_log(&self) -> Result<()> {
        if let Some((options, log)) = &self.log
            && self.writes.fetch_add(1, Ordering::Relaxed) % WAL_LOOK == WAL_LOOK - 1
            && std::fs::metadata(log).is_ok_and(|log| log.len() > WAL_BOUND)
        {
            self.cut_log(options).await?;
        }
        Ok(())
    }

    /// Moves the write-ahead log into the database and truncates it. Gives up without an error if readers do not end
    /// soon.
    async fn cut_log(&self, options: &SqliteConnectOptions) -> Result<()> {
        let mut connection = options.connect().await.map_err(failed)?;
        let done = self
            .on(&mut connection)
            .fixed("pragma wal_checkpoint(truncate)")
            .await;
        connection.close().await.map_err(failed)?;
        // A reader that does not end is not an error. A later write tries again.
        match done {
            Err(error) if error.kind() != ErrorKind::Busy => Err(error),
            _ => Ok(()),
        }
    }
}

/// Moves the write-ahead log into the database and syncs it. Closing a connection does this too, but reports no error.
/// Does not wait for a lock, because a caller who closes after a write failed on a locked database has waited already.
async fn tidy(writer: &mut SqliteConnection) -> std::result::Result<(), sqlx::Error> {
    sqlx::raw_sql(NO_WAIT).execute(&mut *writer).await?;
    match sqlx::raw_sql(VACUUM).execute(&mut *writer).await {
        // Free pages stay if another process writes or the disk is full. Another process returns them when it closes.
        Err(error) if !is_busy(&error) && !is_full(&error) => return Err(error),
        _ => {}
    }
    // Pages that readers of other processes need stay in the log, and are synced there.
    let moved = sqlx::raw_sql("pragma wal_checkpoint(passive)");
    match moved.execute(&mut *writer).await {
        Err(error) if !is_busy(&error) => Err(error),
        _ => Ok(()),
    }
}

fn read_with(options: SqliteConnectOptions, settings: &SqliteOptions) -> Readers {
    Readers::new(options, settings.lock_timeout + READER_PATIENCE)
}

impl Database for SqliteDatabase {
    type Place = Path;
    type Reader<'a> = Connection<'a, Source<'a>>;
    type Writer<'a> = Connection<'a, MappedMutexGuard<'a, SqliteConnection>>;
    type Transaction<'a> = Connection<'a, Transaction<'a, Sqlite>>;

    async fn open(path: &Path) -> Result<(Self, bool)> {
        open_database(path, SqliteOptions::default()).await
    }

    fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

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

    /// Takes the write lock at the beginning, so that a later statement of the transaction cannot fail for lack of it.
    async fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
        _family: Family,
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

    /// Rewrites the database without free pages, truncates the write-ahead log, and removes the copy that a killed restore
    /// left. No restore runs meanwhile, because it would exclude the connection of the writer.
    async fn wipe(&self) -> Result<()> {
        let mut writer = self.write().await?;
        let gone = |error: memory_store::Error| match error.kind() {
            ErrorKind::Busy => not_gone(&self.place).with_source(error),
            _ => error,
        };
        writer.fixed("vacuum").await.map_err(gone)?;
        let Some((options, _)) = &self.log else {
            return Ok(());
        };
        let answer = writer.fixed("pragma wal_checkpoint(truncate)").await;
        let answer = answer.map_err(gone)?;
        let busy = answer.first().map_or(Ok(0), |row| row.int(0))?;
        if busy != 0 {
            return Err(not_gone(&self.place));
        }
        match std::fs::canonicalize(options.get_filename()) {
            Ok(database) => {
                let copy = files::restore_copy(&database);
                files::remove(&copy).map_err(|error| error::copy_left(&copy, error))
            }
            // The database is not in the file system.
            Err(_) => Ok(()),
        }
    }

    async fn usage(&self) -> Result<Usage> {
        usage::read(&mut self.read().await?).await
    }

    fn location(&self) -> String {
        self.place.clone()
    }

    /// Syncs all written data to the disk and closes all connections.
    async fn close(&self) -> Result<()> {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        if let Some(mut writer) = self.writer.lock().await.take() {
            let tidied = tidy(&mut writer).await;
            let closed = writer.close().await;
            tidied.and(closed).map_err(failed)?;
        }
        self.still.as_ref().map_or(Ok(()), FileStamps::check)
    }
}

/// Opens a database. Also returns whether an erasure was interrupted before its words were removed from the files.
pub(crate) async fn open_database(
    path: &Path,
    settings: SqliteOptions,
) -> Result<(SqliteDatabase, bool)> {
    let place = path.display().to_string();
    let opening = async {
        let deadline = tokio::time::Instant::now() + settings.lock_timeout;
        loop {
            let opened = match settings.read_only {
                true => open_to_read(path, &place, &settings)
                    .await
                    .map(|db| (db, false)),
                false => open_to_write(path, &place, &settings).await,
            };
            // SQLite itself waits for most locks. It does not wait if two processes create a file at the same time.
            match opened {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    if tokio::time::Instant::now() >= deadline {
                        return Err(error::locked(&place, settings.lock_timeout, error));
                    }
                }
                done => return done,
            }
            tokio::time::sleep(OPEN_PAUSE).await;
        }
    };
    let (db, wipes) = settings.observed(&place, opening).await?;
    // Checked after opening, because a file that cannot be opened may belong to another program.
    for exposed in files::open_to_others(path) {
        tracing::warn!(path = %exposed.display(), "other users can read the database: chmod 600");
    }
    Ok((db, wipes))
}

/// Opens a database for reading and writing, and creates the file if it does not exist. Also returns whether an erasure
/// was interrupted before its words were removed from the files.
async fn open_to_write(
    path: &Path,
    place: &str,
    settings: &SqliteOptions,
) -> Result<(SqliteDatabase, bool)> {
    library::check_to_write(place, rusqlite::version_number())?;
    files::create(path, settings.durability).map_err(|e| error::opening(place, e.into()))?;
    if !files::place_writable(path) {
        return Err(error::not_writable(place));
    }
    // The path is made absolute, because SQLite takes a path that begins with `file:` for a URI.
    let path = std::path::absolute(path).map_err(|e| error::opening(place, e.into()))?;
    let options = settings.connection().filename(path);
    let mut writer = connect(options.clone(), place).await?;
    let wipes = sqlx::query_scalar("select exists (select 1 from wipe)");
    let wipes = wipes.fetch_one(&mut writer).await;
    let wipes = wipes.map_err(|e| error::opening(place, e))?;
    let db = SqliteDatabase::new(writer, Some(options), place, settings.clone());
    Ok((db, wipes))
}

/// Opens an existing database for reading only.
async fn open_to_read(
    path: &Path,
    place: &str,
    settings: &SqliteOptions,
) -> Result<SqliteDatabase> {
    let reading = files::reading(path, settings.connection())?;
    let options = reading.options.clone().pragma("query_only", "on");
    let mut reader = options
        .connect()
        .await
        .map_err(|e| error::opening(place, e))?;
    let begun = migrate::check(&mut reader, place).await;
    reader.close().await.map_err(|e| error::opening(place, e))?;
    if !begun? {
        // The process that created the file was killed before it wrote the schema, so the schema is written now. An
        // empty file is refused, because it may belong to another program.
        let empty = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
        if empty || !files::place_writable(path) {
            return Err(error::not_begun(place));
        }
        let (db, _) = open_to_write(path, place, settings).await?;
        db.close().await?;
    }
    Ok(SqliteDatabase::reading(reading, place, settings.clone()))
}

pub(crate) async fn connect(
    options: SqliteConnectOptions,
    place: &str,
) -> Result<sqlx::sqlite::SqliteConnection> {
    let mut writer = options
        .connect()
        .await
        .map_err(|e| error::opening(place, e))?;
    migrate::bring_up(&mut writer, place).await?;
    let settings = sqlx::raw_sql(UNDO_IN_MEMORY);
    settings
        .execute(&mut writer)
        .await
        .map_err(|e| error::opening(place, e))?;
    Ok(writer)
}
