//! The connections that only read.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, Semaphore, SemaphorePermit};

use crate::error::{Result, closed, crowded, failed};

/// Number of connections, and so of reads at the same time.
const CONNECTIONS: usize = 4;

/// Connections that only read. They are opened when they are needed and stay open.
///
/// The driver's pool starts a task whenever a connection comes back, which takes longer than a short read.
#[derive(Debug)]
pub(crate) struct Readers {
    options: SqliteConnectOptions,
    /// Each is opened by the first read that gets it.
    connections: [Mutex<Option<SqliteConnection>>; CONNECTIONS],
    /// The places of those that no read holds; the one that came back last is at the end.
    free: std::sync::Mutex<Vec<usize>>,
    /// One permit for each of `free`. Closed with the store.
    permits: Semaphore,
    /// How long a read waits for another to end.
    patience: Duration,
}

/// A connection that a read holds.
#[derive(Debug)]
pub(crate) struct Reader<'r> {
    // Given back in this order: who has a permit finds a place, and who has a place an unlocked connection.
    connection: MappedMutexGuard<'r, SqliteConnection>,
    _place: Place<'r>,
    _permit: SemaphorePermit<'r>,
}

/// The place of a connection that a read holds.
#[derive(Debug)]
struct Place<'r> {
    free: &'r std::sync::Mutex<Vec<usize>>,
    at: usize,
}

impl<'r> Place<'r> {
    fn take(free: &'r std::sync::Mutex<Vec<usize>>) -> Option<Self> {
        let mut places = free.lock().unwrap_or_else(PoisonError::into_inner);
        places.pop().map(|at| Self { free, at })
    }
}

impl Drop for Place<'_> {
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

    /// Waits for a connection.
    pub(crate) async fn get(&self) -> Result<Reader<'_>> {
        let permit = tokio::time::timeout(self.patience, self.permits.acquire()).await;
        let permit = permit.map_err(|_| crowded(self.patience))?;
        let permit = permit.map_err(|_| closed())?;
        let place = Place::take(&self.free).ok_or_else(closed)?;
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

    /// Waits for reads to end and closes all connections.
    pub(crate) async fn close(&self) {
        // Closed before when there is no permit.
        let Ok(_all) = self.permits.acquire_many(CONNECTIONS as u32).await else {
            return;
        };
        self.permits.close();
        for connection in &self.connections {
            if let Some(connection) = connection.lock().await.take() {
                // Nothing was written on it.
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
