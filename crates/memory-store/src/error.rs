//! The error of every store.

use std::error::Error as StdError;
use std::fmt;

/// Kind of a store error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The conversation, summary or view that the caller named does not exist.
    NotFound,
    /// The request is invalid: an empty range, a fork beyond the head, a summary with missing children.
    Invalid,
    /// The log has another head than the caller expected.
    HeadMoved,
    /// The entries were counted with another estimator than the conversation's.
    EstimatorMismatch,
    /// The lease on a job was lost to another owner, or a revision is out of date.
    Stale,
    /// The stored data contradicts itself.
    Corrupt,
    /// The file exists and is not a database of agent-memory.
    ForeignDatabase,
    /// The database was written by a newer version of agent-memory.
    NewerSchema,
    /// The database was written by an older version of agent-memory, and is open for reading only.
    OlderSchema,
    /// The store is open for reading only, or its file or directory cannot be written.
    ReadOnly,
    /// A limit of the store was reached, such as the longest log.
    Limit,
    /// Another process kept the database locked for too long.
    Busy,
    /// The disk, file or connection failed.
    Io,
    /// Words were erased, but their bytes are still in a file, because another reader holds it.
    NotGone,
}

/// Error of a store: a kind, a message that names the object, and the cause.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error. `message` names the object and the next step.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the underlying error, which caused this one.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .field("source", &self.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// Result of a call to a store.
pub type Result<T> = std::result::Result<T, Error>;
