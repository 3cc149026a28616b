//! Connections that run SQL statements and count them.

use std::ops::{ControlFlow, Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt as _;
use memory_model::{Clock, Timestamp};
use sea_query::QueryStatementWriter;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Either, Executor as _};
use store_sql::{Batch, Executor, Prepared};
use tokio::sync::MappedMutexGuard;

use crate::error::{Result, failed};
use crate::readers::Reader;
use crate::soon::soon;
use crate::sql;

/// A connection that is in use for a read: from the readers' pool, or the writer's connection.
#[derive(Debug)]
pub enum Source<'a> {
    Reader(Reader<'a>),
    Writer(MappedMutexGuard<'a, SqliteConnection>),
}

impl Deref for Source<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Source::Reader(connection) => connection,
            Source::Writer(connection) => connection,
        }
    }
}

impl DerefMut for Source<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Source::Reader(connection) => connection,
            Source::Writer(connection) => connection,
        }
    }
}

/// A connection in use, which counts the SQL statements that it runs.
#[derive(Debug)]
pub struct Connection<'a, C> {
    connection: C,
    statements: &'a AtomicU64,
    clock: &'a dyn Clock,
}

impl<'a, C> Connection<'a, C> {
    pub(crate) fn new(connection: C, statements: &'a AtomicU64, clock: &'a dyn Clock) -> Self {
        Self {
            connection,
            statements,
            clock,
        }
    }

    /// Returns the driver's connection.
    pub(crate) fn as_mut(&mut self) -> &mut C {
        &mut self.connection
    }

    pub(crate) fn into_inner(self) -> C {
        self.connection
    }
}

impl<C> Connection<'_, C>
where
    C: DerefMut<Target = SqliteConnection> + Send,
{
    /// Adds a number to the count of run SQL statements, and returns the connection that runs them.
    fn counted(&mut self, statements: usize) -> &mut SqliteConnection {
        let statements = u64::try_from(statements).unwrap_or(u64::MAX);
        self.statements.fetch_add(statements, Ordering::Relaxed);
        &mut self.connection
    }

    /// Runs an SQL statement with a fixed text, such as a pragma, and returns its rows.
    pub(crate) async fn fixed(&mut self, sql: &'static str) -> Result<Vec<SqliteRow>> {
        let rows = sqlx::query(sql).fetch_all(self.counted(1));
        soon(rows).await.map_err(failed)
    }
}

impl<C> Executor for Connection<'_, C>
where
    C: DerefMut<Target = SqliteConnection> + Send,
{
    type Row = SqliteRow;
    type Values = SqliteArguments;

    async fn all(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> Result<Vec<SqliteRow>> {
        let (sql, values) = sql::build(statement);
        let rows = sqlx::query_with(sql, values).fetch_all(self.counted(1));
        soon(rows).await.map_err(failed)
    }

    async fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> Result<Option<SqliteRow>> {
        let (sql, values) = sql::build(statement);
        let row = sqlx::query_with(sql, values).fetch_optional(self.counted(1));
        soon(row).await.map_err(failed)
    }

    async fn each(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
        mut row: impl FnMut(&SqliteRow) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        let (sql, values) = sql::build(statement);
        let mut rows = sqlx::query_with(sql, values).fetch(self.counted(1));
        while let Some(found) = soon(rows.try_next()).await.map_err(failed)? {
            if row(&found)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn run(&mut self, statement: &(impl QueryStatementWriter + Sync)) -> Result<u64> {
        let (sql, values) = sql::build(statement);
        let done = sqlx::query_with(sql, values).execute(self.counted(1));
        let done = soon(done).await;
        done.map(|done| done.rows_affected()).map_err(failed)
    }

    async fn run_batch(&mut self, batch: Batch) -> Result<()> {
        let (sql, values) = sql::script(&batch);
        let connection = self.counted(batch.statements().len());
        let done = soon(sqlx::query_with(sql, values).execute(connection)).await;
        done.map(|_| ()).map_err(failed)
    }

    async fn all_of_batch(&mut self, batch: Batch) -> Result<Vec<Vec<SqliteRow>>> {
        let (sql, values) = sql::script(&batch);
        let connection = self.counted(batch.statements().len());
        let mut steps = connection.fetch_many(sqlx::query_with(sql, values));
        let mut all = Vec::with_capacity(batch.statements().len());
        let mut rows = Vec::new();
        while let Some(step) = soon(steps.try_next()).await.map_err(failed)? {
            match step {
                // A statement has ended.
                Either::Left(_) => all.push(std::mem::take(&mut rows)),
                Either::Right(row) => rows.push(row),
            }
        }
        Ok(all)
    }

    async fn now(&mut self) -> Result<Timestamp> {
        Ok(self.clock.now())
    }

    async fn run_prepared(&mut self, statement: Prepared, values: SqliteArguments) -> Result<()> {
        let sql = sql::prepared(statement)?;
        let done = sqlx::query_with(sql, values).execute(self.counted(1));
        let done = soon(done).await;
        done.map(|_| ()).map_err(failed)
    }

    async fn all_prepared(
        &mut self,
        statement: Prepared,
        values: SqliteArguments,
    ) -> Result<Vec<SqliteRow>> {
        let sql = sql::prepared(statement)?;
        let rows = sqlx::query_with(sql, values).fetch_all(self.counted(1));
        soon(rows).await.map_err(failed)
    }
}
