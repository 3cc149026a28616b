//! The pool of connections of one store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use sqlx::{Connection as _, Transaction};
use store_sql::Family;

use crate::error::{self, Result};
use crate::options::{PostgresOptions, Target};
use crate::sql;

/// Pause before a lost connection is made again.
const AGAIN: Duration = Duration::from_millis(100);
/// Time for which a connection was idle after which it is tested before use.
const IDLE: Duration = Duration::from_secs(30);

/// Connections to a PostgreSQL database, and the settings with which they are used.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: PgPool,
    target: Target,
    options: PostgresOptions,
    statements: AtomicU64,
}

impl Connections {
    /// Creates the pool. Connections are made when they are needed.
    pub(crate) fn new(target: Target, options: PostgresOptions) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.timeout)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    // An idle connection may have been cut without notice.
                    if meta.idle_for < IDLE {
                        return Ok(true);
                    }
                    Ok(connection.ping().await.is_ok())
                })
            })
            .connect_lazy_with(target.connect.clone());
        Self {
            pool,
            target,
            options,
            statements: AtomicU64::new(0),
        }
    }

    /// Returns the number of SQL statements run so far.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    pub(crate) fn place(&self) -> &str {
        &self.target.place
    }

    pub(crate) fn schema(&self) -> &str {
        &self.target.schema
    }

    /// Returns whether connections are given out for one transaction.
    pub(crate) fn pooled(&self) -> bool {
        self.target.pooled
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    pub(crate) fn count(&self, statements: u64) {
        self.statements.fetch_add(statements, Ordering::Relaxed);
    }

    /// Begins a transaction. Repeats this while the server cannot be reached, up to the time-out, because no statement
    /// depends on the transaction yet.
    pub(crate) async fn transaction(
        &self,
        read_only: bool,
        family: Family,
    ) -> Result<Transaction<'static, Postgres>> {
        let settings = match self.target.pooled {
            true => self.target.settings(&self.options),
            false => Vec::new(),
        };
        let mut again = self.patience();
        loop {
            self.count(1);
            let begin = sql::begin(&settings, read_only, family);
            let pool = self.pool.clone();
            // As a task of its own: if it were dropped half-way, the pool would get back a connection with an open
            // transaction.
            let begun = tokio::spawn(async move { pool.begin_with(begin).await });
            match begun.await.unwrap_or(Err(sqlx::Error::WorkerCrashed)) {
                Ok(transaction) => return Ok(transaction),
                Err(lost) if error::is_lost(&lost) && again.wait().await => {}
                Err(other) => return Err(error::failed(self.place(), other)),
            }
        }
    }

    /// Returns the time left to repeat a call while the server cannot be reached.
    pub(crate) fn patience(&self) -> Patience {
        Patience(tokio::time::Instant::now() + self.options.timeout)
    }
}

/// Time left to repeat a call.
#[derive(Debug)]
pub(crate) struct Patience(tokio::time::Instant);

impl Patience {
    /// Waits before the next attempt. Returns `false` if no time is left.
    pub(crate) async fn wait(&mut self) -> bool {
        let next = tokio::time::Instant::now() + AGAIN;
        let is_left = next < self.0;
        if is_left {
            tokio::time::sleep_until(next).await;
        }
        is_left
    }
}
