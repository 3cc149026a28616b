//! Opening a store.

use std::path::Path;
use std::time::Duration;

use memory_store::{ErrorKind, Result};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use store_sql::{Database as _, SqlStore};

use crate::db::Db;
use crate::options::SqliteOptions;
use crate::{db, error, files, migrate};

/// How long to wait between two attempts to open a database that is locked.
const OPEN_PAUSE: Duration = Duration::from_millis(20);

/// A store in a SQLite database: one file, one writer at a time, readers that never wait.
///
/// Several stores and processes may have the same file open.
#[derive(Debug)]
pub struct SqliteStore {
    pub(crate) sql: SqlStore<Db>,
}

impl SqliteStore {
    /// Opens the database at `path` with the default [`SqliteOptions`], and creates it if there is none.
    ///
    /// # Errors
    /// As [`SqliteOptions::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), SqliteOptions::default()).await
    }

    async fn open_with(path: &Path, settings: SqliteOptions) -> Result<Self> {
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
                // SQLite waits for most locks by itself, but not for all: two that create a file at once collide.
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
        // Only after opening: a file that cannot be opened may belong to another program.
        for exposed in files::open_to_others(path) {
            tracing::warn!(path = %exposed.display(), "other users can read the database: chmod 600");
        }
        let store = Self::on(db);
        if wipes {
            store.sql.finish_wipe().await?;
        }
        Ok(store)
    }

    fn on(db: Db) -> Self {
        Self {
            sql: SqlStore::new(db),
        }
    }

    /// Opens a database in memory with the default [`SqliteOptions`].
    ///
    /// # Errors
    /// As [`SqliteOptions::in_memory`].
    pub async fn in_memory() -> Result<Self> {
        Self::in_memory_with(SqliteOptions::default()).await
    }

    async fn in_memory_with(settings: SqliteOptions) -> Result<Self> {
        let place = "sqlite::memory:".to_owned();
        let writer = connect(settings.connection().in_memory(true), &place).await?;
        Ok(Self::on(Db::new(writer, None, &place, settings)))
    }

    /// How many statements the store ran so far, `begin` and `commit` among them: for tests and measurements.
    pub fn statements(&self) -> u64 {
        self.sql.database().statements()
    }
}

impl SqliteOptions {
    /// Opens a database in memory, which is gone when the store is. It reads and writes over one connection.
    ///
    /// # Errors
    /// `Io` when SQLite can not start.
    pub async fn in_memory(self) -> Result<SqliteStore> {
        SqliteStore::in_memory_with(self).await
    }

    /// Opens the database at `path`. Takes the same time however much is in it.
    ///
    /// A database that is created can be read and written by its owner alone, whatever the umask.
    ///
    /// # Errors
    /// `ForeignDatabase` when the file is something else, `NewerSchema` when a newer version wrote
    /// it, `Busy` when another process holds a lock on it for longer than the lock time-out, `Io`
    /// when it can not be read or made, or when its write-ahead log can not be read. Nothing is
    /// changed then.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore> {
        SqliteStore::open_with(path.as_ref(), self).await
    }
}

/// Opens a database to read and write it, and creates it if there is none. Returns whether an erasure was cut short
/// before its words were gone from the files.
async fn open_to_write(path: &Path, place: &str, settings: &SqliteOptions) -> Result<(Db, bool)> {
    files::create(path, settings.durability).map_err(|e| error::opening(place, e.into()))?;
    if !files::place_writable(path) {
        return Err(error::not_writable(place));
    }
    // Absolute, for SQLite takes a path that begins with `file:` for a URI.
    let path = std::path::absolute(path).map_err(|e| error::opening(place, e.into()))?;
    let options = settings.connection().filename(path);
    let mut writer = connect(options.clone(), place).await?;
    let wipes = sqlx::query_scalar("select exists (select 1 from wipe)");
    let wipes = wipes.fetch_one(&mut writer).await;
    let wipes = wipes.map_err(|e| error::opening(place, e))?;
    let db = Db::new(writer, Some(options), place, settings.clone());
    Ok((db, wipes))
}

/// Opens a database that exists to read it.
async fn open_to_read(path: &Path, place: &str, settings: &SqliteOptions) -> Result<Db> {
    let reading = files::reading(path, settings.connection())?;
    let options = reading.options.clone().pragma("query_only", "on");
    let mut reader = options
        .connect()
        .await
        .map_err(|e| error::opening(place, e))?;
    let begun = migrate::check(&mut reader, place).await;
    reader.close().await.map_err(|e| error::opening(place, e))?;
    if !begun? {
        // Whoever created it was killed meanwhile. An empty file may be anybody's.
        let empty = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
        if empty || !files::place_writable(path) {
            return Err(error::not_begun(place));
        }
        let (db, _) = open_to_write(path, place, settings).await?;
        db.close().await?;
    }
    Ok(Db::reading(reading, place, settings.clone()))
}

async fn connect(
    options: SqliteConnectOptions,
    place: &str,
) -> Result<sqlx::sqlite::SqliteConnection> {
    let mut writer = options
        .connect()
        .await
        .map_err(|e| error::opening(place, e))?;
    migrate::bring_up(&mut writer, place).await?;
    let settings = sqlx::raw_sql(db::UNDO_IN_MEMORY);
    settings
        .execute(&mut writer)
        .await
        .map_err(|e| error::opening(place, e))?;
    Ok(writer)
}
