//! Options for opening a database.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use memory_model::{Clock, SystemClock};
use serde::{Deserialize, Serialize};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

/// Time that an operation waits for a lock before the observer is called.
const NOTICE: Duration = Duration::from_secs(1);

/// Length in bytes to which the write-ahead log is truncated when SQLite starts it anew.
const WAL_LIMIT: &str = "16777216";
/// Number of rows that the driver reads ahead: a whole page of an answer. Without reading ahead, each row would cost
/// two thread switches. Large rows of a log are read one by one.
const ROWS_AHEAD: usize = 1024;

/// Kind of failure that a completed write survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// A completed write survives the death of the process. A power cut can undo the last writes that no checkpoint and
    /// no [`close`](memory_store::Maintain::close) has synced yet. The database itself stays intact.
    #[default]
    Process,
    /// A completed write survives a power cut, because it is synced to the disk before the call returns.
    Power,
}

/// Notice that an operation is waiting for a lock that another process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    /// Location of the locked database.
    pub place: String,
    /// Maximum time that the operation waits. After this time it fails with `Busy`.
    pub timeout: Duration,
}

/// Observer that is told when operations wait for locks, for example to show a message to the user.
pub trait LockObserver: Send + Sync + fmt::Debug {
    /// Called once for each wait, when an operation has waited for one second.
    fn waiting(&self, wait: &LockWait);
}

/// Options for opening a database.
///
/// By default the database is open for reading and writing, and is created if it does not exist. Completed writes
/// survive the death of the process. Operations wait at most ten seconds for locks.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    pub(crate) durability: Durability,
    pub(crate) lock_timeout: Duration,
    pub(crate) read_only: bool,
    pub(crate) observer: Option<Arc<dyn LockObserver>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            lock_timeout: Self::LOCK_TIMEOUT,
            read_only: false,
            observer: None,
            clock: Arc::new(SystemClock),
        }
    }
}

impl SqliteOptions {
    /// Default lock time-out: ten seconds.
    pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the kind of failure that a completed write survives.
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the maximum time that opening and each write wait for a lock of another process. After this time they fail
    /// with `Busy`. The maximum is one day.
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout.min(Duration::from_secs(86_400));
        self
    }

    /// Opens an existing database for reading only. The store does not create or migrate the database, and every write
    /// fails with `ReadOnly`.
    ///
    /// This works on read-only media and without write permission, and changes no file there. If the folder is
    /// writable, SQLite may move the write-ahead log of a killed process into the database.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets the observer that is called when an operation waits for a lock.
    pub fn with_lock_observer(mut self, observer: Arc<dyn LockObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the clock that decides when leases end. The default is the system's clock, because all processes that use a
    /// database run on one machine.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the settings that every connection has.
    pub(crate) fn connection(&self) -> SqliteConnectOptions {
        let options = SqliteConnectOptions::new()
            .foreign_keys(true)
            .busy_timeout(self.lock_timeout)
            .row_buffer_size(ROWS_AHEAD)
            .pragma("journal_size_limit", WAL_LIMIT)
            .disable_statement_logging();
        match self.durability {
            Durability::Process => options.synchronous(SqliteSynchronous::Normal),
            // On macOS a plain sync leaves the data in the disk's cache.
            Durability::Power => options
                .synchronous(SqliteSynchronous::Full)
                .pragma("fullfsync", "on")
                .pragma("checkpoint_fullfsync", "on"),
        }
    }

    /// Runs an operation that may wait for a lock, and calls the observer if the operation takes longer than
    /// [`NOTICE`].
    pub(crate) async fn observed<F: Future>(&self, place: &str, work: F) -> F::Output {
        let Some(observer) = &self.observer else {
            return work.await;
        };
        let mut work = pin!(work);
        match tokio::time::timeout(NOTICE, work.as_mut()).await {
            Ok(output) => output,
            Err(_) => {
                observer.waiting(&LockWait {
                    place: place.to_owned(),
                    timeout: self.lock_timeout,
                });
                work.await
            }
        }
    }
}
