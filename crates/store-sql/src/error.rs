//! Errors for rows that cannot be converted to Rust types.

use std::fmt::Display;

use memory_store::{Error, ErrorKind};

pub(crate) use memory_store::Result;

/// Returns the `Corrupt` error for a stored object that cannot be converted. `problem` says why.
pub(crate) fn corrupt(object: impl Display, problem: impl Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("{object}: {problem}"))
}
