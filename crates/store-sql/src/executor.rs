//! Traits that a database implements so that [`SqlStore`](crate::SqlStore) runs on it.

use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;

use memory_model::Timestamp;
use memory_store::{Result, Usage, Violation};
use sea_query::QueryStatementWriter;

use crate::batch::Batch;
use crate::family::Family;
use crate::prepared::Prepared;
use crate::row::{Columns, Values};

/// Runs SQL statements on one connection of a database.
///
/// The executor renders SQL statements in its database's dialect, binds their values, counts them, and turns the
/// driver's errors into errors of a store.
pub trait Executor: Send {
    /// Row of an answer.
    type Row: Columns + Send + Sync;
    /// Type that collects the values of a [`Prepared`] statement.
    type Values: Values + Default + Send;

    /// Runs an SQL statement and returns all rows of its answer.
    fn all(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;

    /// Runs an SQL statement and returns the first row of its answer. Returns `None` if the answer has no rows.
    fn first(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<Option<Self::Row>>> + Send;

    /// Runs an SQL statement and passes the rows of its answer to `row` one by one, until `row` returns `Break`.
    fn each(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
        row: impl FnMut(&Self::Row) -> Result<ControlFlow<()>> + Send,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Runs an SQL statement and returns the number of rows that it changed.
    fn run(
        &mut self,
        statement: &(impl QueryStatementWriter + Sync),
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Runs all SQL statements of a batch in order. Takes one round trip if the database supports it.
    fn run_batch(&mut self, batch: Batch) -> impl Future<Output = Result<()>> + Send;

    /// Runs all SQL statements of a batch in order and returns the rows of each. Takes one round trip if the database
    /// supports it.
    fn all_of_batch(
        &mut self,
        batch: Batch,
    ) -> impl Future<Output = Result<Vec<Vec<Self::Row>>>> + Send;

    /// Returns the current time, which decides when leases end. All processes that use the database must get the same
    /// time: the time of the server, or of the machine if all processes run on one machine.
    fn now(&mut self) -> impl Future<Output = Result<Timestamp>> + Send;

    /// Runs a prepared SQL statement. Its SQL text is built only once.
    fn run_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Runs a prepared SQL statement and returns all rows of its answer. The SQL text is built only once.
    fn all_prepared(
        &mut self,
        statement: Prepared,
        values: Self::Values,
    ) -> impl Future<Output = Result<Vec<Self::Row>>> + Send;
}

/// A database with its connections, on which an [`SqlStore`](crate::SqlStore) runs.
///
/// The schema of the database has three duties:
/// - It raises `conversation.head` and `conversation.tokens` when messages are inserted (in SQLite by the trigger
///   `message_advance`).
/// - It refuses gaps, updates and deletes of messages.
/// - It stores `external_id` as a text or as 16 bytes.
pub trait Database: fmt::Debug + Send + Sync + Sized + 'static {
    /// Whether the first column of every key is the [`Family`], and the database has the table `directory`.
    const BY_FAMILY: bool = false;

    /// Places that may have erased words after [`Database::wipe`], for people.
    const ERASURE_NOTE: Option<&'static str> = None;

    /// Location of a database, for example a path or a URL.
    type Place: ?Sized + Sync;
    /// Connection for reading.
    type Reader<'a>: Executor;
    /// Connection for writing. Each SQL statement is a separate transaction.
    type Writer<'a>: Executor;
    /// Open transaction. It is rolled back if it is dropped before it is committed.
    type Transaction<'a>: Executor;

    /// Opens a database with the default settings of its kind. Also returns whether an earlier erasure was interrupted
    /// before its words were removed from the files.
    ///
    /// # Errors
    /// `ForeignDatabase` if it is not a database of agent-memory. An error of another kind if it cannot be opened.
    fn open(place: &Self::Place) -> impl Future<Output = Result<(Self, bool)>> + Send;

    /// Returns the number of SQL statements run so far, including `begin` and `commit`.
    fn statements(&self) -> u64;

    /// Waits for a connection for reading.
    ///
    /// # Errors
    /// - `Busy` if no connection becomes free in time.
    /// - `Io` if the database was closed.
    fn read(&self) -> impl Future<Output = Result<Self::Reader<'_>>> + Send;

    /// Waits for a connection for writing.
    ///
    /// # Errors
    /// The errors of [`Database::read`], and `ReadOnly` if the database is open for reading only.
    fn write(&self) -> impl Future<Output = Result<Self::Writer<'_>>> + Send;

    /// Begins a transaction. Until it ends, no other connection writes to the family. [`Family::ANY`] in a database
    /// [by family](Database::BY_FAMILY) locks no family.
    ///
    /// # Errors
    /// `Busy` if other connections hold a lock for too long.
    fn begin<'a>(
        &'a self,
        writer: &'a mut Self::Writer<'_>,
        family: Family,
    ) -> impl Future<Output = Result<Self::Transaction<'a>>> + Send;

    /// Waits until no other connection opens a conversation. Then none can until the transaction ends. Has no effect
    /// in a database with one writer.
    ///
    /// # Errors
    /// `Busy` if other connections hold the lock for too long.
    fn lock_directory(
        &self,
        _on: &mut Self::Transaction<'_>,
    ) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Commits a transaction.
    ///
    /// # Errors
    /// `Io` if the transaction cannot be written. No part of it is then stored.
    fn commit(&self, transaction: Self::Transaction<'_>)
    -> impl Future<Output = Result<()>> + Send;

    /// Runs the checks that only this kind of database can make, for example of its pages, indices and triggers.
    /// Returns the violations.
    ///
    /// # Errors
    /// If the database cannot be queried. Damage is not an error and is returned as violations.
    fn check(&self) -> impl Future<Output = Result<Vec<Violation>>> + Send;

    /// Removes all bytes of erased words from every file of the database.
    ///
    /// # Errors
    /// `NotGone` if another reader keeps old bytes in a file.
    fn wipe(&self) -> impl Future<Output = Result<()>> + Send;

    /// Reads the sizes of the parts of the database. [`usage_of`](crate::usage_of) composes them from numbers by name.
    ///
    /// # Errors
    /// If the database cannot be queried.
    fn usage(&self) -> impl Future<Output = Result<Usage>> + Send;

    /// Returns the human-readable location of the data: a path, or a URL without secrets.
    fn location(&self) -> String;

    /// Waits for running SQL statements and closes all connections. Has no effect on a database that is already closed.
    ///
    /// # Errors
    /// If written data cannot be made durable.
    fn close(&self) -> impl Future<Output = Result<()>> + Send;
}
