//! The error of every search.

use std::error::Error as StdError;

/// Kind of a search [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The conversation does not exist, or the query's cursor refers to a summary that does not exist.
    NotFound,
    /// The query is invalid: its pattern is empty or too long, or its cursor comes from another search.
    Invalid,
    /// The search does not support the query's mode.
    Unsupported,
    /// The stored data contradicts itself.
    Corrupt,
    /// The storage that the search reads failed; [`Error::source`](StdError::source) has the reason.
    Storage,
    /// The embedder failed; [`Error::source`](StdError::source) has the reason.
    Unavailable,
}

/// Error of a search: a kind, a message that names the object, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error. `message` is its text, which should name the object and give the next step.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Sets the cause of the error, which [`Error::source`](StdError::source) returns.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error, for matching.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<memory_store::Error> for Error {
    fn from(error: memory_store::Error) -> Self {
        let kind = match error.kind() {
            memory_store::ErrorKind::NotFound => ErrorKind::NotFound,
            memory_store::ErrorKind::Invalid => ErrorKind::Invalid,
            memory_store::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Storage,
        };
        Error::new(kind, error.to_string()).with_source(error)
    }
}

/// Result of a search.
pub type Result<T, E = Error> = std::result::Result<T, E>;
