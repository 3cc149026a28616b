//! The error of the retrieval tools.

use std::error::Error as StdError;

/// Kind of an [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments of the call are invalid: a required one is missing, or a value is malformed.
    Invalid,
    /// The conversation has no summary or message with the requested id or position.
    NotFound,
    /// The stored data is damaged: parts of it contradict each other.
    Corrupt,
    /// The store failed with an error of this kind.
    Store(memory_store::ErrorKind),
    /// The search failed for a reason other than its store. The error's source is the cause.
    Search,
    /// The tool is not permitted, because the tool set was narrowed to other tools.
    Denied,
    /// The time limit of a narrowed tool set has passed.
    Expired,
    /// All tokens of a narrowed tool set are used up.
    Spent,
    /// A client of the server does not speak the Model Context Protocol, or the connection failed.
    Protocol,
}

impl ErrorKind {
    /// Returns the name of the kind, such as `not_found`. The JSON of error answers contains this name.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Store(_) => "store",
            ErrorKind::Search => "search",
            ErrorKind::Denied => "denied",
            ErrorKind::Expired => "expired",
            ErrorKind::Spent => "spent",
            ErrorKind::Protocol => "protocol",
        }
    }
}

/// Error of a retrieval tool. Its text names the affected object and says how to correct the error. Its source is the
/// cause, if there is one.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Returns the kind of the error, for matching.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl From<memory_store::Error> for Error {
    fn from(error: memory_store::Error) -> Self {
        Self {
            kind: kind_of(error.kind()),
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

impl From<memory_search::Error> for Error {
    fn from(error: memory_search::Error) -> Self {
        use memory_search::ErrorKind as Kind;
        let source = error.source();
        let of_store = source.and_then(|source| source.downcast_ref::<memory_store::Error>());
        let kind = match (of_store, error.kind()) {
            // A search over a store returns the store's errors, which keep their kind.
            (Some(store), _) => kind_of(store.kind()),
            (None, Kind::NotFound) => ErrorKind::NotFound,
            (None, Kind::Invalid | Kind::Unsupported) => ErrorKind::Invalid,
            (None, Kind::Corrupt) => ErrorKind::Corrupt,
            (None, _) => ErrorKind::Search,
        };
        Self {
            kind,
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

fn kind_of(kind: memory_store::ErrorKind) -> ErrorKind {
    match kind {
        memory_store::ErrorKind::NotFound => ErrorKind::NotFound,
        memory_store::ErrorKind::Invalid => ErrorKind::Invalid,
        memory_store::ErrorKind::Corrupt => ErrorKind::Corrupt,
        other => ErrorKind::Store(other),
    }
}

/// Result of a retrieval tool: an answer, or an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
