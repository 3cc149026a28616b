//! The error of a search.

use std::error::Error as StdError;

/// Kind of a search [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The conversation does not exist, or the query's cursor refers to a summary that does not exist.
    NotFound,
    /// The query is invalid: its pattern is empty or too long, or its cursor comes from another search.
    Invalid,
    /// The search does not support the [`SearchMode`](crate::SearchMode) of the query.
    Unsupported,
    /// The stored data is damaged or contradicts itself.
    Corrupt,
    /// Reading from the storage failed. [`Error::source`](StdError::source) returns the cause.
    Storage,
    /// The [`Embedder`](crate::Embedder), which turns texts into vectors, failed. [`Error::source`](StdError::source)
    /// returns the cause, if it is known.
    Unavailable,
}

/// Error of a search. It has a kind for matching, a message for people and, if known, a cause.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error without a cause. `message` is the text for people. It should name the affected object, such as
    /// a conversation, and say how to correct the error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Sets the cause of the error. [`Error::source`](StdError::source) returns it.
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

/// Result of a search function: a value, or an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
