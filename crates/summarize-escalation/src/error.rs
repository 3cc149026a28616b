//! The error of this crate.

use std::fmt;

use model_client::{Failure, FailureKind};

use crate::prompt::InvalidTemplate;
use crate::refusal::Refusal;

/// Error returned if there is no summary. Its text names the messages and the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    refused: Vec<Refusal>,
    calls: u32,
}

/// Kind of an [`Error`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The summarizer failed, and the ladder stops on failures.
    Provider,
    /// The summarizer returned no text, and the ladder stops on empty answers.
    Empty,
    /// The source is too short for a shorter summary.
    CannotShrink,
    /// Every tier of the ladder was refused, and none of them is a cut.
    Exhausted,
    /// A prompt's template cannot be read.
    InvalidPrompt,
    /// The source is too long for the summarizer, and its policy does not allow parts.
    TooLong,
    /// The source is empty.
    NoSource,
    /// The ladder has no tiers, has a duplicate tier, or has a rule that divides by zero.
    InvalidLadder,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            message: message.to_string(),
            source: None,
            refused: Vec::new(),
            calls: 0,
        }
    }

    /// Returns the error of a [`Summarizer`](crate::Summarizer) after its provider failed in one call.
    pub fn provider(
        summarizer: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            kind: ErrorKind::Provider,
            message: format!(
                "summarizer {summarizer} failed: check the provider, or use a ladder that falls \
                 back to an extract"
            ),
            source: Some(cause.into()),
            refused: Vec::new(),
            calls: 1,
        }
    }

    /// Sets the number of calls that were made before the error.
    pub fn with_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Returns the number of calls that were made before the error; each retry counts.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn with_refused(mut self, refused: Vec<Refusal>) -> Self {
        self.refused = refused;
        self
    }

    /// Returns the refused tiers of the ladder, with the reasons.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Returns the provider's failure, which tells whether and when a retry may help.
    pub fn failure(&self) -> Option<&Failure> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Returns the error's kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the provider's failure as a guard sees it; an error of another cause becomes one that is not retried.
    pub(crate) fn as_failure(&self) -> Failure {
        let failure = self.failure().cloned();
        let failure =
            failure.unwrap_or_else(|| Failure::with_text(FailureKind::Other, self.chain()));
        failure.with_calls(self.calls)
    }

    /// Returns the message and its causes on one line.
    pub(crate) fn chain(&self) -> String {
        let mut line = self.message.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        line
    }
}

impl From<InvalidTemplate> for Error {
    fn from(error: InvalidTemplate) -> Self {
        Self::new(ErrorKind::InvalidPrompt, error)
    }
}
