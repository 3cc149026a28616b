//! The error type of all stores.

use std::error::Error as StdError;
use std::fmt;

/// Kind of a store error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The conversation, summary or view that the caller named does not exist.
    NotFound,
    /// The request is invalid: for example an empty range, a fork beyond the end of the log, or a summary with missing
    /// children.
    Invalid,
    /// The log ends at another position than the caller expected.
    HeadMoved,
    /// Another estimator than the conversation's counted the entries' tokens.
    EstimatorMismatch,
    /// The lease (exclusive claim) on a job was lost to another owner, or a value's revision is out of date.
    Stale,
    /// The stored data is damaged: it contradicts itself, or a part of it is missing or cannot be read.
    Corrupt,
    /// The file exists and is not an agent-memory database.
    ForeignDatabase,
    /// A newer version of agent-memory wrote the database.
    NewerSchema,
    /// An older version of agent-memory wrote the database, and the database is open for reading only.
    OlderSchema,
    /// The store is open for reading only, or its file or directory is not writable.
    ReadOnly,
    /// A limit of the store was reached, for example the maximum length of a log.
    Limit,
    /// Another process kept the database locked for too long.
    Busy,
    /// The disk, file or connection failed.
    Io,
    /// The server cannot be reached, or the connection was lost before a change was stored.
    Disconnected,
    /// The connection was lost while a change was being stored. It may be stored.
    Uncertain,
    /// Words were erased, but their bytes are still in a file because another process is reading the file.
    NotGone,
}

/// Error of a store: a kind, a message that names the affected object, and the underlying cause.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error. `message` names the affected object and says how to continue.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Sets the underlying error, which is returned by `source`.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the same call may succeed later, and changed nothing: another process was in the way, or the
    /// server could not be reached.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Busy | ErrorKind::Disconnected)
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

/// Result of a store's method.
pub type Result<T> = std::result::Result<T, Error>;
