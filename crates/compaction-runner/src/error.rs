//! The error of a compaction.

use std::fmt;

use compaction_plan::BoxError;

/// Error of the store or of the planner that ended a compaction. Changes of the view (the compacted log) before the
/// error stay published.
#[derive(Debug)]
pub struct Error {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Store(memory_store::Error),
    Planner(BoxError),
}

impl Error {
    /// Returns the kind of the store's error. `Invalid` if the planner failed.
    pub fn kind(&self) -> memory_store::ErrorKind {
        match &self.source {
            Source::Store(error) => error.kind(),
            Source::Planner(_) => memory_store::ErrorKind::Invalid,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, error): (&str, &dyn fmt::Display) = match &self.source {
            Source::Store(error) => ("store", error),
            Source::Planner(error) => ("planner", error),
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
