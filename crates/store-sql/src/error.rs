//! Errors between a row and the model.

use std::fmt::Display;

use memory_store::{Error, ErrorKind};
use sea_query::{InsertStatement, SimpleExpr};

pub(crate) use memory_store::Result;

/// A row that does not mean anything in the model.
pub(crate) fn corrupt(object: impl Display, problem: impl Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{object}: {problem}"))
}

/// Adds a row of values; their number always is the columns'.
pub(crate) fn add_row(
    statement: &mut InsertStatement,
    values: impl IntoIterator<Item = SimpleExpr>,
) -> Result<()> {
    match statement.values(values) {
        Ok(_) => Ok(()),
        Err(source) => Err(Error::new(
            ErrorKind::Invalid,
            "an insert has more values than columns: this is a mistake in store-sql",
        )
        .with_source(source)),
    }
}
