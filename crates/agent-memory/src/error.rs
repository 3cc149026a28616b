//! The error of this crate.

use std::fmt;

#[cfg(feature = "import")]
use message_formats::SessionLog;

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session or the summary does not exist.
    NotFound,
    /// An argument, a setting or a provider's response is invalid, or the session does not allow the call.
    Invalid,
    /// A turn of the session is running, and the call must wait for its end.
    InTurn,
    /// A different message is already stored with the external id of the new message.
    Conflict,
    /// The last messages cost more than the budget, even if they are shortened as far as possible.
    BudgetTooSmall {
        /// Smallest sufficient budget, in tokens.
        needed: u64,
    },
    /// The last messages need more bytes than the budget allows, even if they are shortened as far as possible.
    TooFewBytes {
        /// Size of the smallest context that was tried, in bytes.
        needed: u64,
    },
    /// This build does not have the required estimator, such as the one that counted the session's tokens.
    UnknownEstimator,
    /// The table of models does not contain the model.
    UnknownModel,
    /// The store failed; the value gives the reason.
    Store(memory_store::ErrorKind),
    /// A search failed for a reason other than the store.
    Search,
    /// A transcript cannot be read; the value gives the reason.
    #[cfg(feature = "import")]
    Transcript(message_formats::ErrorKind),
    /// A model client failed or has invalid settings; the value gives the reason.
    Model(model_client::FailureKind),
}

/// Error of this crate: a kind, a sentence that names the object and the next step, and the cause.
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

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether the same call may succeed later: the database was locked or could not be reached, another process
    /// wrote first, or a model was unreachable or too busy.
    pub fn is_retryable(&self) -> bool {
        use memory_store::ErrorKind as Store;
        match self.kind {
            ErrorKind::Store(kind) => matches!(
                kind,
                Store::Busy
                    | Store::Disconnected
                    | Store::HeadMoved
                    | Store::Stale
                    | Store::NotGone
            ),
            ErrorKind::Model(kind) => kind.retryable(),
            _ => false,
        }
    }

    /// Returns the smallest sufficient budget, in tokens; `None` if the kind is not [`ErrorKind::BudgetTooSmall`].
    pub fn budget_needed(&self) -> Option<u64> {
        match self.kind {
            ErrorKind::BudgetTooSmall { needed } => Some(needed),
            _ => None,
        }
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

/// Converts an error of another crate into an [`Error`] with this kind. Keeps the text and the causes.
fn convert(kind: ErrorKind, error: &dyn std::error::Error) -> Error {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Database drivers often repeat the text of the error that they wrap.
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
        convert(kind, &error)
    }
}

impl From<compaction_runner::Error> for Error {
    fn from(error: compaction_runner::Error) -> Self {
        let kind = match error.kind() {
            memory_store::ErrorKind::NotFound => ErrorKind::NotFound,
            memory_store::ErrorKind::Invalid => ErrorKind::Invalid,
            kind => ErrorKind::Store(kind),
        };
        convert(kind, &error)
    }
}

impl From<context_assembler::Error> for Error {
    fn from(error: context_assembler::Error) -> Self {
        let kind = match error.kind() {
            context_assembler::ErrorKind::BudgetTooSmall { needed } => {
                ErrorKind::BudgetTooSmall { needed }
            }
            context_assembler::ErrorKind::TooFewBytes { needed } => {
                ErrorKind::TooFewBytes { needed }
            }
            _ => ErrorKind::Invalid,
        };
        convert(kind, &error)
    }
}

impl From<block_overlay::Error> for Error {
    fn from(error: block_overlay::Error) -> Self {
        let kind = match error {
            block_overlay::Error::BudgetTooSmall { needed, .. } => {
                ErrorKind::BudgetTooSmall { needed }
            }
            _ => ErrorKind::Invalid,
        };
        convert(kind, &error)
    }
}

impl From<retrieval_tools::Error> for Error {
    fn from(error: retrieval_tools::Error) -> Self {
        let kind = match error.kind() {
            retrieval_tools::ErrorKind::NotFound => ErrorKind::NotFound,
            retrieval_tools::ErrorKind::Corrupt => {
                ErrorKind::Store(memory_store::ErrorKind::Corrupt)
            }
            retrieval_tools::ErrorKind::Store(kind) => ErrorKind::Store(kind),
            retrieval_tools::ErrorKind::Search => ErrorKind::Search,
            _ => ErrorKind::Invalid,
        };
        convert(kind, &error)
    }
}

impl From<memory_search::Error> for Error {
    fn from(error: memory_search::Error) -> Self {
        let kind = match error.kind() {
            memory_search::ErrorKind::NotFound => ErrorKind::NotFound,
            memory_search::ErrorKind::Invalid => ErrorKind::Invalid,
            memory_search::ErrorKind::Corrupt => ErrorKind::Store(memory_store::ErrorKind::Corrupt),
            _ => ErrorKind::Search,
        };
        convert(kind, &error)
    }
}

impl From<summarize_escalation::Error> for Error {
    fn from(error: summarize_escalation::Error) -> Self {
        let failure = error.failure().map(model_client::Failure::kind);
        convert(failure.map_or(ErrorKind::Invalid, ErrorKind::Model), &error)
    }
}

#[cfg(feature = "import")]
impl From<message_formats::Error> for Error {
    fn from(error: message_formats::Error) -> Self {
        convert(ErrorKind::Transcript(error.kind()), &error)
    }
}

#[cfg(feature = "providers")]
impl From<provider_shapes::Error> for Error {
    fn from(error: provider_shapes::Error) -> Self {
        convert(ErrorKind::Invalid, &error)
    }
}

impl From<model_client::Failure> for Error {
    fn from(failure: model_client::Failure) -> Self {
        convert(ErrorKind::Model(failure.kind()), &failure)
    }
}

impl From<token_estimate::Error> for Error {
    fn from(error: token_estimate::Error) -> Self {
        let kind = match error.kind() {
            token_estimate::ErrorKind::UnknownModel => ErrorKind::UnknownModel,
            token_estimate::ErrorKind::InvalidModel => ErrorKind::Invalid,
            _ => ErrorKind::UnknownEstimator,
        };
        convert(kind, &error)
    }
}

/// Converts an error in JSON from an application, such as the schema of a tool, or from a model.
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        convert(ErrorKind::Invalid, &error)
    }
}

/// Result of this crate's operations. The error type is [`Error`] unless another type is given.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error for the messages of a large transcript that cannot be read back.
#[cfg(feature = "import")]
pub(crate) fn unreadable(log: &SessionLog, error: &std::io::Error) -> Error {
    let message = format!(
        "the temporary file with the messages of {} cannot be read ({error}): import the transcript again",
        log.key
    );
    Error::new(ErrorKind::Invalid, message)
}
