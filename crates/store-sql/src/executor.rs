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
/// errors into those of a store.
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

    /// Returns the first row of a statement.
    fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<Option<Self::Row>>> + Send;

    /// Hands the rows of a statement to `row` one by one until it breaks.
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

    /// Returns the time by which leases end. It must be the same for all processes that use the database: a server's
    /// time, or the machine's if all of them are on one machine.
    fn now(&mut self) -> impl Future<Output = Result<Timestamp>> + Send;

    /// Runs a statement with a text that is built once.
    fn run_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Returns all rows of a statement with a text that is built once.
    fn all_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;
}

/// The connections of a database.
///
/// The schema of the database must raise `conversation.head` and `conversation.tokens` when messages are inserted (SQLite: the
/// trigger `message_advance`), refuse gaps, updates and deletes of messages, and store `external_id` as a text or as 16 bytes.
pub trait Database: fmt::Debug + Send + Sync + Sized + 'static {
    /// The name of a database: a path, a URL.
    type Place: ?Sized + Sync;
    /// A connection to read with.
    type Reader<'a>: Executor;
    /// A connection to write with. Each statement is a transaction by itself.
    type Writer<'a>: Executor;
    /// A transaction. It is rolled back when it is dropped before it is committed.
    type Transaction<'a>: Executor;

    /// Opens a database with the default settings of its kind. Also returns whether an erasure was interrupted before
    /// its words were removed from the files.
    ///
    /// # Errors
    /// If it is not a database of agent-memory, or cannot be opened.
    fn open(place: &Self::Place) -> impl Future<Output = Result<(Self, bool)>> + Send;

    /// Returns the number of statements that ran so far, including `begin` and `commit`.
    fn statements(&self) -> u64;

    /// Waits for a connection to read with.
    ///
    /// # Errors
    /// `Busy` if none becomes free in time, `Io` if the database was closed.
    fn read(&self) -> impl Future<Output = Result<Self::Reader<'_>>> + Send;

    /// Waits for a connection to write with.
    ///
    /// # Errors
    /// As [`Database::read`]; `ReadOnly` if the database is open for reading only.
    fn write(&self) -> impl Future<Output = Result<Self::Writer<'_>>> + Send;

    /// Begins a transaction. Other writers do not change its reads until it ends.
    ///
    /// # Errors
    /// `Busy` if others hold a lock for too long.
    fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
    ) -> impl Future<Output = Result<Self::Transaction<'a>>> + Send;

    /// Commits a transaction.
    ///
    /// # Errors
    /// `Io` if it cannot be written; then no part of it is stored.
    fn commit(&self, transaction: Self::Transaction<'_>)
    -> impl Future<Output = Result<()>> + Send;

    /// Runs the checks that only this database can make, such as of its pages, indices and triggers.
    ///
    /// # Errors
    /// If the database cannot be queried. Damage is not an error: it is returned.
    fn check(&self) -> impl Future<Output = Result<Vec<Violation>>> + Send;

    /// Removes all bytes of erased words from every file of the database.
    ///
    /// # Errors
    /// `NotGone` if a reader keeps old bytes in a file.
    fn wipe(&self) -> impl Future<Output = Result<()>> + Send;

    /// Human-readable location of the data: a path, a URL without secrets.
    fn location(&self) -> String;

    /// Waits for running statements and closes all connections. Has no effect on a closed database.
    ///
    /// # Errors
    /// If written data cannot be made durable.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}
