#![allow(
    clippy::disallowed_types,
    reason = "the one audited place where built SQL is trusted"
)]
//! From statements to the driver and from its rows back.

use std::sync::Arc;

use memory_store::{Error, ErrorKind};
use sea_query::QueryBuilder;
use sea_query_sqlx::{SqlxBinder, SqlxValues};
use sqlx::AssertSqlSafe;
use sqlx::{
    Arguments, ColumnIndex, Database, Decode, Encode, Row, Type, TypeInfo as _, ValueRef as _,
};

use crate::error::{Result, corrupt};

/// Builds a statement for the driver.
///
/// This is the one place where a built string is called safe. It is: the text comes from sea-query alone, which
/// writes every value as a placeholder, and every name comes from [`crate::tables`].
pub fn build<B: QueryBuilder>(
    statement: &impl SqlxBinder,
    dialect: B,
) -> (AssertSqlSafe<String>, SqlxValues) {
    let (sql, values) = statement.build_sqlx(dialect);
    (AssertSqlSafe(prepared_once(sql)), values)
}

/// SQLite looks at the value that a `limit ?` is bound to while it prepares a statement, and so prepares it again
/// whenever the value is bound anew: each time it runs. An expression is not looked at. Built text has no literals,
/// so that nothing else is changed.
fn prepared_once(sql: String) -> String {
    const LIMIT: &str = "LIMIT ?";
    match sql.contains(LIMIT) {
        true => sql.replace(LIMIT, "LIMIT ? + 0"),
        false => sql,
    }
}

/// Statements that run one after the other on one request to the driver, which is what most of a short statement's
/// time goes into. Nothing comes back from them.
#[derive(Debug, Default)]
pub struct Script {
    sql: String,
    values: Vec<sea_query::Value>,
    statements: u64,
}

impl Script {
    /// Adds a statement.
    pub fn push<B: QueryBuilder>(&mut self, statement: &impl SqlxBinder, dialect: B) {
        let (sql, SqlxValues(values)) = statement.build_sqlx(dialect);
        if self.statements > 0 {
            self.sql.push_str("; ");
        }
        self.sql.push_str(&prepared_once(sql));
        self.values.extend(values.0);
        self.statements += 1;
    }

    /// How many statements there are.
    pub fn statements(&self) -> u64 {
        self.statements
    }

    /// The statements for the driver. Safe for the same reason as what [`build`] gives.
    pub fn build(self) -> (AssertSqlSafe<String>, SqlxValues) {
        let values = SqlxValues(sea_query::Values(self.values));
        (AssertSqlSafe(self.sql), values)
    }
}

/// The text of a statement, built once: its values are given anew each time it runs.
#[derive(Clone, Debug)]
pub struct Text(Arc<str>);

impl Text {
    /// The text of a statement, whose values are left out: they only say where values are.
    pub fn new<B: QueryBuilder>(statement: &impl SqlxBinder, dialect: B) -> Self {
        let (sql, _) = statement.build_sqlx(dialect);
        Self(prepared_once(sql).into())
    }

    /// The text for the driver. Safe for the same reason as what [`build`] gives.
    pub fn sql(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(Arc::clone(&self.0))
    }
}

/// Takes the values of a [`Text`], in the order of its places.
pub trait Values {
    /// An integer or null.
    ///
    /// # Errors
    /// When the driver can not take it, as the others here.
    fn put_int(&mut self, value: impl Into<Option<i64>>) -> Result<()>;
    /// A text or null.
    ///
    /// # Errors
    /// As [`Values::put_int`].
    fn put_text(&mut self, value: impl Into<Option<String>>) -> Result<()>;
    /// One of a few words.
    ///
    /// # Errors
    /// As [`Values::put_int`].
    fn put_word(&mut self, value: &Arc<str>) -> Result<()>;
    /// Bytes.
    ///
    /// # Errors
    /// As [`Values::put_int`].
    fn put_bytes(&mut self, value: Vec<u8>) -> Result<()>;
}

impl<A> Values for A
where
    A: Arguments,
    Option<i64>: Given<A::Database>,
    Option<String>: Given<A::Database>,
    Arc<str>: Given<A::Database>,
    Vec<u8>: Given<A::Database>,
{
    fn put_int(&mut self, value: impl Into<Option<i64>>) -> Result<()> {
        self.add(value.into()).map_err(refused)
    }

    fn put_text(&mut self, value: impl Into<Option<String>>) -> Result<()> {
        self.add(value.into()).map_err(refused)
    }

    fn put_word(&mut self, value: &Arc<str>) -> Result<()> {
        self.add(Arc::clone(value)).map_err(refused)
    }

    fn put_bytes(&mut self, value: Vec<u8>) -> Result<()> {
        self.add(value).map_err(refused)
    }
}

/// A type that a database takes values of.
pub trait Given<DB: Database>: Type<DB> + for<'t> Encode<'t, DB> {}

impl<DB: Database, T: Type<DB> + for<'t> Encode<'t, DB>> Given<DB> for T {}

fn refused(source: sqlx::error::BoxDynError) -> Error {
    let message = "the driver refused a value: this is a mistake in store-sql";
    Error::new(ErrorKind::Invalid, message).with_source(source)
}

/// The columns of a row by position, in the few types that the schema has.
///
/// Types are not checked again: the tables are `STRICT`, and the builders beside each mapping fix the order.
pub trait Columns {
    /// An integer.
    ///
    /// # Errors
    /// When there is no such column or it is null.
    fn int(&self, at: usize) -> Result<i64>;
    /// An integer or null.
    ///
    /// # Errors
    /// When there is no such column.
    fn opt_int(&self, at: usize) -> Result<Option<i64>>;
    /// A text.
    ///
    /// # Errors
    /// When there is no such column or it is null.
    fn text(&self, at: usize) -> Result<String>;
    /// A text or null.
    ///
    /// # Errors
    /// When there is no such column.
    fn opt_text(&self, at: usize) -> Result<Option<String>>;
    /// Bytes.
    ///
    /// # Errors
    /// When there is no such column or it is null.
    fn bytes(&self, at: usize) -> Result<Vec<u8>>;
    /// Bytes or null.
    ///
    /// # Errors
    /// When there is no such column.
    fn opt_bytes(&self, at: usize) -> Result<Option<Vec<u8>>>;
    /// Whether a column that may hold text or bytes holds bytes.
    ///
    /// # Errors
    /// When there is no such column.
    fn holds_bytes(&self, at: usize) -> Result<bool>;
}

impl<R> Columns for R
where
    R: Row,
    usize: ColumnIndex<R>,
    i64: OneOf<R::Database>,
    String: OneOf<R::Database>,
    Vec<u8>: OneOf<R::Database>,
{
    fn int(&self, at: usize) -> Result<i64> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn opt_int(&self, at: usize) -> Result<Option<i64>> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn text(&self, at: usize) -> Result<String> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn opt_text(&self, at: usize) -> Result<Option<String>> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn bytes(&self, at: usize) -> Result<Vec<u8>> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn opt_bytes(&self, at: usize) -> Result<Option<Vec<u8>>> {
        self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
    }

    fn holds_bytes(&self, at: usize) -> Result<bool> {
        let value = self.try_get_raw(at).map_err(|e| unreadable(at, e))?;
        Ok(value.type_info().name() == "BLOB")
    }
}

/// A type that a database can be read into.
pub trait OneOf<DB: Database>: Type<DB> + for<'r> Decode<'r, DB> {}

impl<DB: Database, T: Type<DB> + for<'r> Decode<'r, DB>> OneOf<DB> for T {}

fn unreadable(at: usize, source: sqlx::Error) -> memory_store::Error {
    corrupt("row", format_args!("column {at} can not be read")).with_source(source)
}
