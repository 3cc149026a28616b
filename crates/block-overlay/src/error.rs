//! The error of this crate.

use std::error::Error as StdError;

/// Kind of an [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session has no loop of that id.
    UnknownLoop,
    /// No configuration has that name.
    UnknownConfig,
    /// What a context must show costs more than it may.
    BudgetTooSmall,
    /// A summarizer failed.
    Summarizer,
}

/// Error of a compaction or of building a context.
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

    pub(crate) fn unknown_loop(session: &str, loop_id: &str) -> Self {
        let message = format!(
            "the session `{session}` has no loop `{loop_id}`: add it with `LoopSession::push`"
        );
        Self::new(ErrorKind::UnknownLoop, message)
    }

    pub(crate) fn budget_too_small(what: &str, needed: u64, budget: u64) -> Self {
        let message = format!(
            "{what} costs {needed} tokens, but only {budget} are allowed: raise the budget, or keep \
             fewer turns"
        );
        Self::new(ErrorKind::BudgetTooSmall, message)
    }

    /// Returns the error of a strategy whose summarizer failed. `what` names what it was to summarize.
    pub fn summarizer(what: &str, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        Self {
            kind: ErrorKind::Summarizer,
            message: format!(
                "{what} could not be summarized ({source}): try again, or use one-liners"
            ),
            source: Some(source),
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Result with this crate's [`struct@Error`].
pub type Result<T> = std::result::Result<T, Error>;
