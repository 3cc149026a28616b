//! The crate's error.

use std::fmt;

/// Category of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value does not have the provider's shape.
    Invalid,
}

/// Error of reading messages in a provider's shape. Its text names the place of the value and the problem.
#[derive(Debug)]
pub struct Error {
    place: String,
    message: String,
}

impl Error {
    pub(crate) fn invalid(place: &str, message: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            message: message.into(),
        }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be read: {}", self.place, self.message)
    }
}

impl std::error::Error for Error {}
