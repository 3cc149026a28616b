//! The facade's error.

use std::fmt;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session or summary does not exist.
    NotFound,
    /// The request cannot be right.
    Invalid,
    /// Another message is stored under the external id of the ingested one.
    Conflict,
    /// The budget is below what the newest messages need when shortened as far as possible.
    BudgetTooSmall {
        /// The smallest budget that would do, in tokens.
        needed: u64,
    },
    /// The session is counted with an estimator that this build does not know.
    UnknownEstimator,
    /// The store failed.
    Store(memory_store::ErrorKind),
}

/// An error: its kind, a sentence that names the object and says what to do, and the cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}

/// An error of a layer below: its text and its cause stay, its kind becomes ours.
fn below(kind: ErrorKind, error: &dyn std::error::Error) -> Error {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Drivers often repeat the text of what they wrap.
        let text = error.to_string();
        if causes.last().is_none_or(|last| !last.contains(&text)) {
            causes.push(text);
        }
        cause = error.source();
    }
    let source = (!causes.is_empty()).then(|| causes.join(": ").into());
    Error {
        kind,
        message: error.to_string(),
        source,
    }
}

impl From<memory_store::Error> for Error {
    fn from(error: memory_store::Error) -> Self {
        let kind = match error.kind() {
            memory_store::ErrorKind::NotFound => ErrorKind::NotFound,
            memory_store::ErrorKind::Invalid => ErrorKind::Invalid,
            kind => ErrorKind::Store(kind),
        };
        below(kind, &error)
    }
}

impl From<compaction_runner::Error> for Error {
    fn from(error: compaction_runner::Error) -> Self {
        let kind = match error.kind() {
            compaction_runner::ErrorKind::Store(kind) => ErrorKind::Store(kind),
            _ => ErrorKind::Invalid,
        };
        below(kind, &error)
    }
}

impl From<context_assembler::Error> for Error {
    fn from(error: context_assembler::Error) -> Self {
        let kind = match error.kind() {
            context_assembler::ErrorKind::BudgetTooSmall { needed } => {
                ErrorKind::BudgetTooSmall { needed }
            }
            _ => ErrorKind::Invalid,
        };
        below(kind, &error)
    }
}

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;
