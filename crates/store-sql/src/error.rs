//! Errors for rows that do not fit the model.

use std::fmt::Display;

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// The error for a row that has no meaning in the model.
pub(crate) fn corrupt(object: impl Display, problem: impl Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{object}: {problem}"))
}
