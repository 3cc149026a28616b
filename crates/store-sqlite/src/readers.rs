//! Connections for reading.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};

use crate::error::{Result, closed, crowded, failed};

/// Number of connections, which is the maximum number of concurrent reads.
const CONNECTIONS: usize = 4;

/// Connections for reading. A connection is opened when it is first needed, and stays open as long as the store.
///
/// The driver's own pool is not used, because it starts a task for each returned connection, which takes longer than a
/// short read.
#[derive(Debug)]
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    /// The connections. `None` for a connection that no read has used yet.
    connections: [Mutex<Option<SqliteConnection>>; CONNECTIONS],
    /// Indices of the free connections. The connection that was returned last is at the end.
    free: std::sync::Mutex<Vec<usize>>,
    /// Semaphore with one permit for each free connection. It is closed with the store.
    permits: Semaphore,
    /// Maximum time that a read waits for another read to end.
    patience: Duration,
}

/// A connection from the pool while one read uses it.
#[derive(Debug)]
pub struct Reader<'r> {
    // The fields are dropped in this order: a read that gets a permit finds an index, and the connection of that index
    // is unlocked.
    connection: MappedMutexGuard<'r, SqliteConnection>,
    _place: ConnectionIndex<'r>,
    _permit: SemaphorePermit<'r>,
}

/// Index of a connection while a read uses the connection. Returned to the free indices on drop.
#[derive(Debug)]
struct ConnectionIndex<'r> {
    free: &'r std::sync::Mutex<Vec<usize>>,
    at: usize,
}

impl<'r> ConnectionIndex<'r> {
    fn take(free: &'r std::sync::Mutex<Vec<usize>>) -> Option<Self> {
        let mut places = free.lock().unwrap_or_else(PoisonError::into_inner);
        places.pop().map(|at| Self { free, at })
    }
}

impl Drop for ConnectionIndex<'_> {
    fn drop(&mut self) {
        let mut places = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        places.push(self.at);
    }
}

impl Readers {
    pub(crate) fn new(options: SqliteConnectOptions, patience: Duration) -> Self {
        Self {
            options: options.pragma("query_only", "on"),
            connections: Default::default(),
            free: std::sync::Mutex::new((0..CONNECTIONS).rev().collect()),
            permits: Semaphore::new(CONNECTIONS),
            patience,
        }
    }

    /// Waits for a free connection, and opens it if necessary.
    pub(crate) async fn get(&self) -> Result<Reader<'_>> {
        let permit = tokio::time::timeout(self.patience, self.permits.acquire()).await;
        let permit = permit.map_err(|_| crowded(self.patience))?;
        let permit = permit.map_err(|_| closed())?;
        let place = ConnectionIndex::take(&self.free).ok_or_else(closed)?;
        let connection = self.connections.get(place.at).ok_or_else(closed)?;
        let mut connection = connection.lock().await;
        if connection.is_none() {
            *connection = Some(self.options.connect().await.map_err(failed)?);
        }
        let connection = MutexGuard::try_map(connection, Option::as_mut).map_err(|_| closed())?;
        Ok(Reader {
            connection,
            _place: place,
            _permit: permit,
        })
    }

    /// Waits for running reads to end, and closes all connections. May be called several times.
    pub(crate) async fn close(&self) {
        // Reads that wait for a permit end with an error now. Reads that have a permit are waited for below.
        self.permits.close();
        for connection in &self.connections {
            if let Some(connection) = connection.lock().await.take() {
                // No data were written on this connection, so an error loses no data.
                let _ = connection.close().await;
            }
        }
    }
}

impl Deref for Reader<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use memory_store::ErrorKind;

    use super::*;

    #[tokio::test]
    async fn reads_wait_for_each_other_and_end_with_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("memory.db"))
            .create_if_missing(true);
        let readers = Readers::new(options, Duration::from_millis(1));
        for _ in 0..2 {
            let mut held = Vec::new();
            for _ in 0..CONNECTIONS {
                held.push(readers.get().await.unwrap());
            }
            assert_eq!(readers.get().await.unwrap_err().kind(), ErrorKind::Busy);
        }
        // A `get` that is dropped before it ends returns its connection.
        drop(readers.get());
        let held = readers.get().await.unwrap();
        tokio::join!(readers.close(), async {
            assert_eq!(readers.get().await.unwrap_err().kind(), ErrorKind::Io);
            drop(held);
        });
        for connection in &readers.connections {
            assert!(connection.lock().await.is_none());
        }
        readers.close().await;
        assert_eq!(readers.get().await.unwrap_err().kind(), ErrorKind::Io);
    }
}
