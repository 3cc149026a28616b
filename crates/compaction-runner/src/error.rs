//! The error of a compaction.

use std::fmt;

use compaction_plan::BoxError;

/// Error of the store or of the planner that ended a compaction, or an invalid
/// [`CompactionResult`](compaction_plan::CompactionResult). Changes of the view (the compacted log) before the
/// error stay published.
#[derive(Debug)]
pub struct Error {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Store(memory_store::Error),
    Planner(BoxError),
    Result(String),
    NotFound(String),
}

impl Error {
    /// Returns the error of a result that cannot be published.
    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        let source = Source::Result(what.into());
        Self { source }
    }

    /// Returns the error of a summary that the view does not have.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        let source = Source::NotFound(what.into());
        Self { source }
    }

    /// Returns the kind of the store's error. `Invalid` if the planner failed or a result is invalid, and `NotFound` if
    /// the view has no such summary.
    pub fn kind(&self) -> memory_store::ErrorKind {
        match &self.source {
            Source::Store(error) => error.kind(),
            Source::Planner(_) | Source::Result(_) => memory_store::ErrorKind::Invalid,
            Source::NotFound(_) => memory_store::ErrorKind::NotFound,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, error): (&str, &dyn fmt::Display) = match &self.source {
            Source::Store(error) => ("store", error),
            Source::Planner(error) => ("planner", error),
            Source::Result(what) => return write!(f, "the compaction was not published: {what}"),
            Source::NotFound(what) => return f.write_str(what),
        };
        write!(
            f,
            "the compaction stopped because the {who} failed: {error}"
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.source {
            Source::Store(error) => error.source(),
            Source::Planner(error) => error.source(),
            Source::Result(_) | Source::NotFound(_) => None,
        }
    }
}

impl From<memory_store::Error> for Error {
    fn from(error: memory_store::Error) -> Self {
        let source = Source::Store(error);
        Self { source }
    }
}

/// Converts the error of a planner, which is usually an error of the store.
impl From<BoxError> for Error {
    fn from(error: BoxError) -> Self {
        let source = match error.downcast() {
            Ok(error) => Source::Store(*error),
            Err(error) => Source::Planner(error),
        };
        Self { source }
    }
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
