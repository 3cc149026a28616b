//! Values and rows of PostgreSQL's driver, as the shared statements use them.

use std::sync::Arc;

use memory_store::{Error, ErrorKind, Result};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments as _, Row as _, TypeInfo as _, ValueRef as _};
use store_sql::{Columns, TextOrBytes, Values};

use crate::escape::{escaped, unescaped};

/// First byte of a stored text in a column that contains a text or bytes.
const TEXT: u8 = 0;
/// First byte of stored bytes in such a column.
const BYTES: u8 = 1;

/// Values of a prepared SQL statement.
#[derive(Debug, Default, Clone)]
pub struct PgValues(pub(crate) PgArguments);

impl PgValues {
    fn put<'t, T>(&mut self, value: T) -> Result<()>
    where
        T: sqlx::Encode<'t, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + 't,
    {
        self.0.add(value).map_err(|source| {
            let message = "the driver refused a value: this is a defect of store-postgres";
            Error::new(ErrorKind::Invalid, message).with_source(source)
        })
    }
}

impl Values for PgValues {
    fn reserve(&mut self, count: usize) {
        sqlx::Arguments::reserve(&mut self.0, count, 0);
    }

    fn put_int(&mut self, value: impl Into<Option<i64>>) -> Result<()> {
        self.put(value.into())
    }

    fn put_text(&mut self, value: impl Into<Option<String>>) -> Result<()> {
        let value: Option<String> = value.into();
        self.put(value.map(|text| escaped(&text).into_owned()))
    }

    fn put_word(&mut self, value: &Arc<str>) -> Result<()> {
        self.put(&**value)
    }

    fn put_bytes(&mut self, value: impl Into<Option<Vec<u8>>>) -> Result<()> {
        self.put(value.into())
    }

    fn put_text_or_bytes(&mut self, value: Option<TextOrBytes>) -> Result<()> {
        let tagged = |tag: u8, bytes: &[u8]| [&[tag], bytes].concat();
        self.put(value.map(|value| match value {
            TextOrBytes::Text(text) => tagged(TEXT, text.as_bytes()),
            TextOrBytes::Bytes(bytes) => tagged(BYTES, &bytes),
        }))
    }
}

/// A row of an answer.
#[derive(Debug)]
pub struct Row(pub(crate) PgRow);

impl Row {
    fn unreadable(at: usize, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let message = format!("row: column {at} cannot be read");
        Error::new(ErrorKind::Corrupt, message).with_source(source)
    }

    fn get<'r, T>(&'r self, at: usize) -> Result<T>
    where
        T: sqlx::Decode<'r, sqlx::Postgres>,
    {
        let Self(row) = self;
        row.try_get_unchecked(at)
            .map_err(|e| Self::unreadable(at, e))
    }

    fn required<T>(at: usize, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Self::unreadable(at, "it is null"))
    }
}

impl Columns for Row {
    fn int(&self, at: usize) -> Result<i64> {
        Self::required(at, self.opt_int(at)?)
    }

    fn opt_int(&self, at: usize) -> Result<Option<i64>> {
        let Self(row) = self;
        let value = row.try_get_raw(at).map_err(|e| Self::unreadable(at, e))?;
        if value.is_null() {
            return Ok(None);
        }
        // Columns have the narrowest type that holds their numbers.
        let value = match value.type_info().name() {
            "INT2" => i64::from(self.get::<i16>(at)?),
            "INT4" => i64::from(self.get::<i32>(at)?),
            _ => self.get::<i64>(at)?,
        };
        Ok(Some(value))
    }

    fn text(&self, at: usize) -> Result<String> {
        Self::required(at, self.opt_text(at)?)
    }

    fn opt_text(&self, at: usize) -> Result<Option<String>> {
        let Some(stored) = self.get::<Option<String>>(at)? else {
            return Ok(None);
        };
        let text = unescaped(stored);
        text.map(Some)
            .ok_or_else(|| Self::unreadable(at, "a character is not escaped as the store does"))
    }

    fn bytes(&self, at: usize) -> Result<Vec<u8>> {
        self.get(at)
    }

    fn opt_bytes(&self, at: usize) -> Result<Option<Vec<u8>>> {
        self.get(at)
    }

    fn text_or_bytes(&self, at: usize) -> Result<Option<TextOrBytes>> {
        let Some(stored) = self.get::<Option<&[u8]>>(at)? else {
            return Ok(None);
        };
        match stored {
            [TEXT, text @ ..] => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(TextOrBytes::Text(text.to_owned()))),
                Err(error) => Err(Self::unreadable(at, error)),
            },
            [BYTES, bytes @ ..] => Ok(Some(TextOrBytes::Bytes(bytes.to_vec()))),
            _ => Err(Self::unreadable(at, "its first byte is unknown")),
        }
    }
}
