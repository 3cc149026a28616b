//! The error of this crate.

use std::fmt;

use model_client::{Failure, FailureKind};

use crate::prompt::InvalidTemplate;
use crate::refusal::Refusal;

/// Error returned if no summary could be written. Its text names the messages of the source and suggests a next step.
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

/// Kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The summarizer failed, and the ladder has the rule [`OnError::Fail`](crate::OnError::Fail).
    Provider,
    /// The summarizer returned no text, and the ladder has the rule [`OnEmpty::Fail`](crate::OnEmpty::Fail).
    Empty,
    /// The source is so short that no summary can be shorter.
    CannotShrink,
    /// The summaries of all tiers (methods) of the ladder were refused, and the ladder has no
    /// [`Tier::Cut`](crate::Tier::Cut).
    Exhausted,
    /// The template of a prompt cannot be parsed.
    InvalidPrompt,
    /// The source is too long for the summarizer's model, and [`Overflow::Fail`](crate::Overflow::Fail) forbids
    /// summarizing it in parts.
    TooLong,
    /// The request has no source to summarize.
    NoSource,
    /// The ladder has no tiers, contains a tier twice, or has a rule that divides by zero.
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

    /// Creates the error of a [`Summarizer`](crate::Summarizer) after one model call that failed at the provider.
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

    /// Sets the number of model calls that were made before the error.
    pub fn with_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Returns the number of model calls that were made before the error; each retry counts.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn with_refused(mut self, refused: Vec<Refusal>) -> Self {
        self.refused = refused;
        self
    }

    /// Returns the tiers (methods of the ladder) whose summaries were refused, each with the reason of the refusal.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Returns the provider's failure, with whether and when a retry may help. `None` if the cause of the error is not
    /// a [`Failure`].
    pub fn failure(&self) -> Option<&Failure> {
        self.source.as_deref()?.downcast_ref()
    }

    /// Returns the error's kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the provider's failure for a guard. An error with another cause becomes a failure that is not retried.
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
