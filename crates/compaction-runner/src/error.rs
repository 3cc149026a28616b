//! Why a compaction could not go on.

use std::fmt;

/// The store's error that ended a compaction. Earlier publishes stay.
#[derive(Debug)]
pub struct Error {
    source: memory_store::Error,
}

impl Error {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> memory_store::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the compaction stopped because the store failed: {}",
            self.source
        )
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.source)
    }
}

impl From<memory_store::Error> for Error {
    fn from(source: memory_store::Error) -> Self {
        Self { source }
    }
}

/// The result of a compaction's call.
pub type Result<T> = std::result::Result<T, Error>;
