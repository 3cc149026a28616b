//! Connections that run SQL statements and count them.

use std::ops::ControlFlow;

use futures::TryStreamExt as _;
use memory_model::Timestamp;
use memory_store::{Error, ErrorKind};
use sea_query::QueryStatementWriter;
use sqlx::Transaction;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, Postgres};
use store_sql::{Batch, Columns as _, Executor, Family, Prepared};

use crate::error::{self, Result};
use crate::pool::Connections;
use crate::row::{PgValues, Row};
use crate::sql::{self, Ready};

/// Use of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reads, each of which may be repeated.
    Read,
    /// Writes, each of which is a transaction by itself.
    Write,
    /// Statements of one transaction.
    Transaction,
}

/// A connection to the server, which is taken from the pool when the first statement runs.
#[derive(Debug)]
pub struct Connection<'a> {
    database: &'a Connections,
    used_for: Use,
    link: Option<Link>,
}

#[derive(Debug)]
enum Link {
    Alone(PoolConnection<Postgres>),
    Within(Transaction<'static, Postgres>),
}

impl<'a> Connection<'a> {
    pub(crate) fn new(database: &'a Connections, used_for: Use) -> Self {
        Self {
            database,
            used_for,
            link: None,
        }
    }

    pub(crate) fn within(
        database: &'a Connections,
        transaction: Transaction<'static, Postgres>,
    ) -> Self {
        Self {
            database,
            used_for: Use::Transaction,
            link: Some(Link::Within(transaction)),
        }
    }

    /// Returns the connection to the pool.
    pub(crate) fn release(&mut self) {
        self.link = None;
    }

    /// Commits the transaction.
    pub(crate) async fn commit(mut self) -> Result<()> {
        match self.link.take() {
            Some(Link::Within(transaction)) => {
                let committed = transaction.commit().await;
                committed.map_err(|e| error::commit(self.database.place(), e))
            }
            _ => Err(ended(self.database)),
        }
    }

    /// Converts the error of an SQL statement that was sent.
    fn failed(&self, error: sqlx::Error) -> Error {
        match self.used_for {
            // The statement may have been committed.
            Use::Write => error::commit(self.database.place(), error),
            _ => error::failed(self.database.place(), error),
        }
    }

    /// Takes a connection from the pool if there is none.
    async fn connect(&mut self) -> Result<()> {
        if self.link.is_some() {
            return Ok(());
        }
        self.link = Some(match (self.used_for, self.database.pooled()) {
            (Use::Transaction, _) => return Err(ended(self.database)),
            (_, false) => {
                let connection = self.database.pool().acquire().await;
                Link::Alone(connection.map_err(|e| error::failed(self.database.place(), e))?)
            }
            // Between two transactions a pooler may change the connection.
            (used_for, true) => {
                let read_only = used_for == Use::Read;
                Link::Within(self.database.transaction(read_only, Family::ANY).await?)
            }
        });
        Ok(())
    }

    /// Returns the driver's connection.
    async fn link(&mut self) -> Result<&mut PgConnection> {
        self.connect().await?;
        match &mut self.link {
            Some(Link::Alone(connection)) => Ok(connection),
            Some(Link::Within(transaction)) => Ok(transaction),
            None => Err(ended(self.database)),
        }
    }

    /// Ends a statement that is a transaction by itself.
    async fn settle(&mut self) -> Result<()> {
        if self.used_for == Use::Write && matches!(self.link, Some(Link::Within(_))) {
            let link = self.link.take();
            let alone = Self {
                database: self.database,
                used_for: Use::Write,
                link,
            };
            return alone.commit().await;
        }
        Ok(())
    }

    /// Runs a statement and returns its rows. A read outside of a transaction is repeated if the connection is lost.
    async fn rows(&mut self, ready: Ready) -> Result<Vec<Row>> {
        let persistent = !self.database.pooled();
        let mut again = self.database.patience();
        loop {
            self.database.count(1);
            if let Err(error) = self.connect().await {
                let repeat = self.used_for == Use::Read && error.kind() == ErrorKind::Disconnected;
                if !(repeat && again.wait().await) {
                    return Err(error);
                }
                continue;
            }
            let link = self.link().await?;
            let query = sqlx::query_with(ready.text(), ready.values.clone());
            match query.persistent(persistent).fetch_all(link).await {
                Ok(rows) => {
                    self.settle().await?;
                    return Ok(rows.into_iter().map(Row).collect());
                }
                Err(lost) => {
                    let repeat = self.used_for == Use::Read && error::is_lost(&lost);
                    self.lose(&lost);
                    if !(repeat && again.wait().await) {
                        return Err(self.failed(lost));
                    }
                }
            }
        }
    }

    /// Drops the driver's connection if it is lost.
    fn lose(&mut self, error: &sqlx::Error) {
        if error::is_lost(error) {
            self.link = None;
        }
    }

    /// Runs an SQL statement with a fixed text and returns its rows.
    pub(crate) async fn fixed(&mut self, sql: &'static str) -> Result<Vec<Row>> {
        self.rows(Ready::fixed(sql)).await
    }

    async fn execute(&mut self, ready: Ready) -> Result<u64> {
        self.database.count(1);
        let persistent = !self.database.pooled();
        let link = self.link().await?;
        let query = sqlx::query_with(ready.text(), ready.values);
        match query.persistent(persistent).execute(link).await {
            Ok(done) => {
                self.settle().await?;
                Ok(done.rows_affected())
            }
            Err(error) => {
                self.lose(&error);
                Err(self.failed(error))
            }
        }
    }
}

/// Returns the error for a statement of a transaction that has lost its connection.
fn ended(database: &Connections) -> Error {
    let place = database.place();
    let text = format!("{place}: the transaction has lost its connection: try again");
    Error::new(ErrorKind::Disconnected, text)
}

impl Executor for Connection<'_> {
    type Row = Row;
    type Values = PgValues;

    async fn all(&mut self, statement: &(impl QueryStatementWriter + Sync)) -> Result<Vec<Row>> {
        self.rows(sql::build(statement)).await
    }

    async fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> Result<Option<Row>> {
        Ok(self.all(statement).await?.into_iter().next())
    }

    async fn each(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
        mut row: impl FnMut(&Row) -> Result<ControlFlow<()>> + Send,
    ) -> Result<()> {
        let ready = sql::build(statement);
        let persistent = !self.database.pooled();
        let mut again = self.database.patience();
        loop {
            self.database.count(1);
            let mut is_begun = false;
            let link = self.link().await?;
            let query = sqlx::query_with(ready.text(), ready.values.clone());
            let mut rows = query.persistent(persistent).fetch(link);
            let lost = loop {
                match rows.try_next().await {
                    Ok(None) => return Ok(()),
                    Ok(Some(found)) => {
                        is_begun = true;
                        if row(&Row(found))?.is_break() {
                            return Ok(());
                        }
                    }
                    Err(error) => break error,
                }
            };
            drop(rows);
            let repeat = self.used_for == Use::Read && !is_begun && error::is_lost(&lost);
            self.lose(&lost);
            if !(repeat && again.wait().await) {
                return Err(self.failed(lost));
            }
        }
    }

    async fn run(&mut self, statement: &(impl QueryStatementWriter + Sync)) -> Result<u64> {
        self.execute(sql::build(statement)).await
    }

    async fn run_batch(&mut self, batch: Batch) -> Result<()> {
        for statement in batch.statements() {
            self.execute(sql::build_one(statement)).await?;
        }
        Ok(())
    }

    async fn all_of_batch(&mut self, batch: Batch) -> Result<Vec<Vec<Row>>> {
        let mut all = Vec::with_capacity(batch.statements().len());
        for statement in batch.statements() {
            all.push(self.rows(sql::build_one(statement)).await?);
        }
        Ok(all)
    }

    /// Returns the time of the server, because machines have different clocks.
    async fn now(&mut self) -> Result<Timestamp> {
        let now = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        let rows = self.fixed(now).await?;
        let row = rows.first().ok_or_else(|| ended(self.database))?;
        Ok(Timestamp(row.int(0)?))
    }

    async fn run_prepared(&mut self, statement: Prepared, values: PgValues) -> Result<()> {
        self.database.count(1);
        let persistent = !self.database.pooled();
        let sql = sql::prepared(statement)?;
        let link = self.link().await?;
        let query = sqlx::query_with(sql, values.0).persistent(persistent);
        let done = query.execute(link).await;
        done.map_err(|error| {
            self.lose(&error);
            self.failed(error)
        })?;
        self.settle().await
    }

    async fn all_prepared(&mut self, statement: Prepared, values: PgValues) -> Result<Vec<Row>> {
        self.database.count(1);
        let persistent = !self.database.pooled();
        let sql = sql::prepared(statement)?;
        let link = self.link().await?;
        let query = sqlx::query_with(sql, values.0).persistent(persistent);
        let rows = query.fetch_all(link).await.map_err(|error| {
            self.lose(&error);
            self.failed(error)
        })?;
        Ok(rows.into_iter().map(Row).collect())
    }
}
