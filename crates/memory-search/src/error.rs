//! The error of every search.

use std::error::Error as StdError;

/// Kind of a search error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The conversation does not exist, or the cursor names a summary that does not.
    NotFound,
    /// The query is invalid: its pattern is empty, or its cursor comes from another search.
    Invalid,
    /// The search does not support the query's mode.
    Unsupported,
    /// The stored data contradicts itself.
    Corrupt,
    /// The storage below the search failed; [`Error::source`](StdError::source) says how.
    Storage,
    /// The embedder failed; [`Error::source`](StdError::source) says how.
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
    /// Creates an error. `message` names the object and gives the next step.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of the error.
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

/// Result of a search call.
pub type Result<T, E = Error> = std::result::Result<T, E>;
