//! Traits for binding values to SQL statements and for reading columns of rows.

use std::sync::Arc;

use memory_store::{Error, ErrorKind};
use sqlx::{
    Arguments, ColumnIndex, Database, Decode, Encode, Row, Type, TypeInfo as _, ValueRef as _,
};

use crate::error::{Result, corrupt};

/// Collects the values of a [`Prepared`](crate::Prepared) statement, in the order of its placeholders.
pub trait Values {
    /// Reserves capacity for `count` more values.
    fn reserve(&mut self, count: usize);
    /// Adds an integer, or null for `None`.
    ///
    /// # Errors
    /// `Invalid` if the driver refuses the value. The other methods have the same error.
    fn put_int(&mut self, value: impl Into<Option<i64>>) -> Result<()>;
    /// Adds a text, or null for `None`.
    ///
    /// # Errors
    /// The errors of [`Values::put_int`].
    fn put_text(&mut self, value: impl Into<Option<String>>) -> Result<()>;
    /// Adds a shared text, without copying it. Meant for the few fixed words that many rows contain.
    ///
    /// # Errors
    /// The errors of [`Values::put_int`].
    fn put_word(&mut self, value: &Arc<str>) -> Result<()>;
    /// Adds bytes, or null for `None`.
    ///
    /// # Errors
    /// The errors of [`Values::put_int`].
    fn put_bytes(&mut self, value: impl Into<Option<Vec<u8>>>) -> Result<()>;
    /// Adds a text, bytes, or null for `None` to a column that may contain either.
    ///
    /// # Errors
    /// The errors of [`Values::put_int`].
    fn put_text_or_bytes(&mut self, value: Option<TextOrBytes>) -> Result<()>;
}

/// Value of a column that may contain a text or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextOrBytes {
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl<A> Values for A
where
    A: Arguments,
    Option<i64>: BindValue<A::Database>,
    Option<String>: BindValue<A::Database>,
    Arc<str>: BindValue<A::Database>,
    Option<Vec<u8>>: BindValue<A::Database>,
{
    fn reserve(&mut self, count: usize) {
        Arguments::reserve(self, count, 0);
    }

    fn put_int(&mut self, value: impl Into<Option<i64>>) -> Result<()> {
        self.add(value.into()).map_err(refused)
    }

    fn put_text(&mut self, value: impl Into<Option<String>>) -> Result<()> {
        self.add(value.into()).map_err(refused)
    }

    fn put_word(&mut self, value: &Arc<str>) -> Result<()> {
        self.add(Arc::clone(value)).map_err(refused)
    }

    fn put_bytes(&mut self, value: impl Into<Option<Vec<u8>>>) -> Result<()> {
        self.add(value.into()).map_err(refused)
    }

    fn put_text_or_bytes(&mut self, value: Option<TextOrBytes>) -> Result<()> {
        match value {
            None => self.put_text(None),
            Some(TextOrBytes::Text(text)) => self.put_text(text),
            Some(TextOrBytes::Bytes(bytes)) => self.put_bytes(bytes),
        }
    }
}

/// A type of value that can be bound to an SQL statement of the database `DB`.
pub trait BindValue<DB: Database>: Type<DB> + for<'t> Encode<'t, DB> {}

impl<DB: Database, T: Type<DB> + for<'t> Encode<'t, DB>> BindValue<DB> for T {}

fn refused(source: sqlx::error::BoxDynError) -> Error {
    let message = "the driver refused a value: this is a defect of store-sql";
    Error::new(ErrorKind::Invalid, message).with_source(source)
}

/// Access to the columns of a row by index, in the few types that the schema uses.
///
/// The types of values are not checked again, because the tables are `STRICT`. The order of the columns is fixed by the
/// function that builds the statement, in the same module as the function that reads the row.
pub trait Columns {
    /// Returns the integer in column `at`, counted from 0.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column, or the column is null.
    fn int(&self, at: usize) -> Result<i64>;
    /// Returns the integer in column `at`, or `None` if it is null.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column.
    fn opt_int(&self, at: usize) -> Result<Option<i64>>;
    /// Returns the text in column `at`.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column, or the column is null.
    fn text(&self, at: usize) -> Result<String>;
    /// Returns the text in column `at`, or `None` if it is null.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column.
    fn opt_text(&self, at: usize) -> Result<Option<String>>;
    /// Returns the bytes in column `at`.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column, or the column is null.
    fn bytes(&self, at: usize) -> Result<Vec<u8>>;
    /// Returns the bytes in column `at`, or `None` if it is null.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column.
    fn opt_bytes(&self, at: usize) -> Result<Option<Vec<u8>>>;
    /// Returns the value in column `at`, which may contain a text or bytes, or `None` if it is null.
    ///
    /// # Errors
    /// `Corrupt` if the row has no such column.
    fn text_or_bytes(&self, at: usize) -> Result<Option<TextOrBytes>>;
}

macro_rules! columns {
    ($($name:ident -> $ty:ty),*) => {
        $(fn $name(&self, at: usize) -> Result<$ty> {
            self.try_get_unchecked(at).map_err(|e| unreadable(at, e))
        })*
    };
}

impl<R> Columns for R
where
    R: Row,
    usize: ColumnIndex<R>,
    i64: ColumnType<R::Database>,
    String: ColumnType<R::Database>,
    Vec<u8>: ColumnType<R::Database>,
{
    columns!(int -> i64, opt_int -> Option<i64>, text -> String, opt_text -> Option<String>);
    columns!(bytes -> Vec<u8>, opt_bytes -> Option<Vec<u8>>);

    fn text_or_bytes(&self, at: usize) -> Result<Option<TextOrBytes>> {
        let value = self.try_get_raw(at).map_err(|e| unreadable(at, e))?;
        Ok(match value.type_info().name() {
            "BLOB" => self.opt_bytes(at)?.map(TextOrBytes::Bytes),
            _ => self.opt_text(at)?.map(TextOrBytes::Text),
        })
    }
}

/// A type that can be read from a column of the database `DB`.
pub trait ColumnType<DB: Database>: Type<DB> + for<'r> Decode<'r, DB> {}

impl<DB: Database, T: Type<DB> + for<'r> Decode<'r, DB>> ColumnType<DB> for T {}

fn unreadable(at: usize, source: sqlx::Error) -> memory_store::Error {
    corrupt("row", format_args!("column {at} cannot be read")).with_source(source)
}

/// Kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Int,
    Text,
    Bytes,
    TextOrBytes,
}

/// Names of a table and its columns.
pub(crate) trait Table: Copy + 'static {
    /// Columns with the kinds of their values, in order. The column that only some databases have for the family is left
    /// out.
    const COLUMNS: &'static [(Self, ValueKind)];
}

/// Defines an enum with the names of a table and its columns, for sea-query.
macro_rules! table {
    (
        $(#[$doc:meta])* $name:ident
        $($(#[$about:meta])* $column:ident = $sql:literal $($kind:ident)?,)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $column,)*
        }

        impl crate::row::Table for $name {
            const COLUMNS: &'static [(Self, crate::row::ValueKind)] =
                &[$($((Self::$column, crate::row::ValueKind::$kind),)?)*];
        }

        impl $name {
            const fn sql(self) -> &'static str {
                match self {
                    $(Self::$column => $sql,)*
                }
            }
        }

        impl sea_query::Iden for $name {
            fn quoted(&self) -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(self.sql())
            }

            fn unquoted(&self) -> &str {
                self.sql()
            }
        }
    };
}

pub(crate) use table;
