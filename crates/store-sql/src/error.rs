//! Errors between a row and the model.

use std::fmt::Display;

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// A row that does not mean anything in the model.
pub(crate) fn corrupt(object: impl Display, problem: impl Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{object}: {problem}"))
}
