//! The traits that a database implements so that the shared logic runs on it.

use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;

use memory_model::Timestamp;
use memory_store::{Result, Violation};
use sea_query::QueryStatementWriter;

use crate::batch::Batch;
use crate::prepared::Prepared;
use crate::row::{Columns, Values};

/// Runs statements on one connection of a database.
///
/// The executor renders statements in its database's dialect, binds their values, counts them, and turns the driver's
/// errors into errors of a store.
pub trait Executor: Send {
    /// A row of an answer.
    type Row: Columns + Send + Sync;
    /// The values of a [`Prepared`] statement.
    type Values: Values + Default + Send;

    /// Returns all rows of a statement.
    fn all(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;

    /// Returns the first row of a statement; `None` if it has no rows.
    fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<Option<Self::Row>>> + Send;

    /// Passes the rows of a statement to `row` one by one, until `row` returns a break.
    fn each(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
        row: impl FnMut(&Self::Row) -> Result<ControlFlow<()>> + Send,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Runs a statement. Returns the number of rows that it changed.
    fn run(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Runs all statements of a batch in order, in one round trip if the database supports it.
    fn run_batch(&mut self, batch: Batch) -> impl Future<Output = Result<()>> + Send;

    /// Returns the rows of each statement of a batch, in one round trip if the database supports it.
    fn all_of_batch(
        &mut self,
        batch: Batch,
    ) -> impl Future<Output = Result<Vec<Vec<Self::Row>>>> + Send;

    /// Returns the present time, by which leases end. It must be the same for all processes that use the database: the
    /// time of a server, or of the machine if all processes are on one machine.
    fn now(&mut self) -> impl Future<Output = Result<Timestamp>> + Send;

    /// Runs a prepared statement, with a text that is built only once.
    fn run_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Returns all rows of a prepared statement, with a text that is built only once.
    fn all_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;
}

/// A database with its connections, on which an [`SqlStore`](crate::SqlStore) runs.
///
/// The schema of the database must raise `conversation.head` and `conversation.tokens` when messages are inserted
/// (SQLite: the trigger `message_advance`), refuse gaps, updates and deletes of messages, and store `external_id` as a
/// text or as 16 bytes.
pub trait Database: fmt::Debug + Send + Sync + Sized + 'static {
    /// The name of a database: a path, a URL.
    type Place: ?Sized + Sync;
    /// A connection to read with.
    type Reader<'a>: Executor;
    /// A connection to write with. Each statement is a transaction by itself.
    type Writer<'a>: Executor;
    /// A transaction. It is rolled back when it is dropped before it is committed.
    type Transaction<'a>: Executor;

    /// Opens a database with the default settings of its kind. Returns it, and whether an erasure was interrupted
    /// before its words were removed from the files.
    ///
    /// # Errors
    /// `ForeignDatabase` if it is not a database of agent-memory; an error of another kind if it cannot be opened.
    fn open(place: &Self::Place) -> impl Future<Output = Result<(Self, bool)>> + Send;

    /// Returns the number of statements that have run, including `begin` and `commit`.
    fn statements(&self) -> u64;

    /// Waits for a connection to read with.
    ///
    /// # Errors
    /// `Busy` if no connection becomes free in time; `Io` if the database was closed.
    fn read(&self) -> impl Future<Output = Result<Self::Reader<'_>>> + Send;

    /// Waits for a connection to write with.
    ///
    /// # Errors
    /// The errors of [`Database::read`]; `ReadOnly` if the database is open for reading only.
    fn write(&self) -> impl Future<Output = Result<Self::Writer<'_>>> + Send;

    /// Begins a transaction. Until it ends, writes by others do not change its reads.
    ///
    /// # Errors
    /// `Busy` if other connections hold a lock for too long.
    fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
    ) -> impl Future<Output = Result<Self::Transaction<'a>>> + Send;

    /// Commits a transaction.
    ///
    /// # Errors
    /// `Io` if the transaction cannot be written; then no part of it is stored.
    fn commit(&self, transaction: Self::Transaction<'_>)
    -> impl Future<Output = Result<()>> + Send;

    /// Runs the checks that only this database can make, such as of its pages, indices and triggers. Returns the
    /// violations.
    ///
    /// # Errors
    /// If the database cannot be queried. Damage is not an error: it is returned as violations.
    fn check(&self) -> impl Future<Output = Result<Vec<Violation>>> + Send;

    /// Removes all bytes of erased words from every file of the database.
    ///
    /// # Errors
    /// `NotGone` if a reader keeps old bytes in a file.
    fn wipe(&self) -> impl Future<Output = Result<()>> + Send;

    /// Returns the human-readable location of the data: a path, or a URL without secrets.
    fn location(&self) -> String;

    /// Waits for running statements and closes all connections. Has no effect on a closed database.
    ///
    /// # Errors
    /// If written data cannot be made durable.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}
