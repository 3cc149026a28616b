#![allow(
    clippy::disallowed_types,
    reason = "the one audited place where built SQL is trusted"
)]
//! From statements to the driver and from its rows back.

use sea_query::QueryBuilder;
use sea_query_sqlx::{SqlxBinder, SqlxValues};
use sqlx::AssertSqlSafe;
use sqlx::{ColumnIndex, Database, Decode, Row, Type, TypeInfo as _, ValueRef as _};

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
    (AssertSqlSafe(sql), values)
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
