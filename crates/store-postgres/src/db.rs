//! Connections of one store, and their transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memory_store::{Usage, Violation};
use sqlx::postgres::{PgPool, PgPoolOptions, Postgres};
use sqlx::{ConnectOptions as _, Connection as _, Row as _, Transaction};
use store_sql::{Database, Family};

use crate::connection::{Connection, Use};
use crate::error::{self, Result};
use crate::options::{PostgresOptions, Target};
use crate::{check, migrate, sql, usage};

/// Maximum time that an erasure waits for transactions that still see the erased words.
const WIPE_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at such transactions.
const WIPE_PAUSE: Duration = Duration::from_millis(50);
/// Pause before a lost connection is made again.
const AGAIN: Duration = Duration::from_millis(100);
/// Time for which a connection was idle after which it is tested before use.
const IDLE: Duration = Duration::from_secs(30);

/// Connections of one store to a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresDatabase {
    pool: PgPool,
    target: Target,
    options: PostgresOptions,
    statements: AtomicU64,
}

impl PostgresDatabase {
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

    /// Begins a transaction. Repeats this while the server cannot be reached, up to the time-out, because nothing
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

    /// Waits until no other transaction of the database can see rows that are dead now.
    async fn outlive_readers(&self) -> Result<()> {
        let failed = |e| error::failed(self.place(), e);
        let number = async |sql: String| -> Result<i64> {
            self.count(1);
            // As simple queries, which a pooler never divides.
            let row = sqlx::raw_sql(sql::trusted(sql)).fetch_one(&self.pool);
            row.await.and_then(|row| row.try_get(0)).map_err(failed)
        };
        let ours = number("select pg_current_xact_id()::text::bigint".to_owned()).await?;
        let older = format!(
            "select count(*) from pg_stat_activity where backend_xmin is not null \
             and datname = current_database() and pid <> pg_backend_pid() \
             and age(backend_xmin) >= age('{ours}'::xid8::xid)"
        );
        let deadline = tokio::time::Instant::now() + WIPE_PATIENCE;
        loop {
            let older = number(older.clone()).await?;
            if older == 0 {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(error::not_gone(self.place(), WIPE_PATIENCE));
            }
            tokio::time::sleep(WIPE_PAUSE).await;
        }
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

impl Database for PostgresDatabase {
    const BY_FAMILY: bool = true;
    const ERASURE_NOTE: Option<&'static str> = Some(
        "the words are in no row; they may stay in the server's write-ahead log, in replicas until they replay it, in \
         backups, and in free space of the tables until it is written again",
    );

    type Place = str;
    type Reader<'a> = Connection<'a>;
    type Writer<'a> = Connection<'a>;
    type Transaction<'a> = Connection<'a>;

    async fn open(url: &str) -> Result<(Self, bool)> {
        open(url, PostgresOptions::default()).await
    }

    fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    async fn read(&self) -> Result<Self::Reader<'_>> {
        Ok(Connection::new(self, Use::Read))
    }

    async fn write(&self) -> Result<Self::Writer<'_>> {
        match self.options.read_only {
            true => Err(error::read_only(self.place())),
            false => Ok(Connection::new(self, Use::Write)),
        }
    }

    async fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
        family: Family,
    ) -> Result<Self::Transaction<'a>> {
        writer.release();
        let transaction = self.transaction(false, family).await?;
        Ok(Connection::within(self, transaction))
    }

    async fn lock_directory(&self, on: &mut Self::Transaction<'_>) -> Result<()> {
        on.fixed("select pg_advisory_xact_lock(1634559341, hashtext(current_schema()))")
            .await?;
        Ok(())
    }

    async fn commit(&self, transaction: Self::Transaction<'_>) -> Result<()> {
        self.count(1);
        transaction.commit().await
    }

    async fn check(&self) -> Result<Vec<Violation>> {
        let mut reader = self.read().await?;
        check::check(&mut reader).await
    }

    /// Removes dead rows from the tables that had words, if the role owns them.
    async fn wipe(&self) -> Result<()> {
        self.outlive_readers().await?;
        let failed = |e| error::failed(self.place(), e);
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        let schema = self.schema();
        let tables = [
            "message",
            "payload",
            "facts",
            "summary",
            "conversation",
            "job",
            "state",
            "search_segment",
            "search_chunk",
            "message_vector",
        ];
        let tables = tables.map(|table| format!("{schema}.{table}")).join(", ");
        // A vacuum may take longer than other statements, and waits for another one. The settings end with the connection.
        if !self.pooled() {
            connection.close_on_drop();
            sqlx::raw_sql("set statement_timeout = 0; set lock_timeout = 0")
                .execute(&mut *connection)
                .await
                .map_err(failed)?;
        }
        self.count(1);
        let vacuum = sql::trusted(format!("vacuum {tables}"));
        let vacuumed = sqlx::raw_sql(vacuum).execute(&mut *connection).await;
        vacuumed.map_err(failed)?;
        Ok(())
    }

    async fn usage(&self) -> Result<Usage> {
        usage::read(self).await
    }

    fn location(&self) -> String {
        self.place().to_owned()
    }

    async fn close(&self) -> Result<()> {
        self.pool.close().await;
        Ok(())
    }
}

/// Opens a database. Also returns whether an erasure was interrupted before dead rows were removed.
pub(crate) async fn open(url: &str, options: PostgresOptions) -> Result<(PostgresDatabase, bool)> {
    let target = Target::parse(url, &options)?;
    let opening = |e| error::opening(&target.place, e);
    let connecting = tokio::time::timeout(options.timeout, target.connect.connect());
    let connected = connecting.await.map_err(|e| {
        let timed_out = std::io::Error::new(std::io::ErrorKind::TimedOut, e);
        opening(sqlx::Error::Io(timed_out))
    })?;
    let mut connection = connected.map_err(opening)?;
    let opened = match options.read_only {
        true => migrate::check(&mut connection, &target).await,
        false => migrate::bring_up(&mut connection, &target, &options).await,
    };
    let wipes = match opened {
        Ok(()) => migrate::has_wipes(&mut connection, &target).await,
        Err(error) => Err(error),
    };
    connection.close().await.map_err(opening)?;
    let wipes = wipes? && !options.read_only;
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
    let database = PostgresDatabase {
        pool,
        target,
        options,
        statements: AtomicU64::new(0),
    };
    Ok((database, wipes))
}
