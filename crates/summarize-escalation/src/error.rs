use std::fmt;

use crate::{Failure, Refusal};

/// Why no summary could be made.
///
/// The text names the messages concerned and what to do; [`kind`](Error::kind) is for code.
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

/// The meaning of an [`Error`], for code that has to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The summarizer failed, and the ladder says to stop there.
    Provider,
    /// The summarizer returned nothing, and the ladder says to stop there.
    Empty,
    /// The summarizer declined, and the ladder says to stop there.
    Refused,
    /// Nothing shorter than the source could be made of it.
    CannotShrink,
    /// Every tier of the ladder was refused, and none of them is a cut.
    Exhausted,
    /// A prompt's template cannot be read.
    InvalidPrompt,
    /// The source is too long for the summarizer, and its policy says to stop there.
    TooLong,
    /// There is nothing to summarise.
    NoSource,
    /// The ladder has no tiers, has one twice, or has a rule that divides by zero.
    InvalidLadder,
    /// A model's client cannot be made: its address or its name is wrong.
    InvalidProvider,
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

    #[cfg(feature = "openai-compatible")]
    pub(crate) fn caused(
        kind: ErrorKind,
        message: impl fmt::Display,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            source: Some(cause.into()),
            ..Self::new(kind, message)
        }
    }

    /// What a [`Summarizer`](crate::Summarizer) returns when its provider failed: who failed, and
    /// the cause.
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

    /// Sets how often a model was called before it came to this.
    pub fn with_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Calls of a model that were made before it came to this; each retry counts.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn with_refused(mut self, refused: Vec<Refusal>) -> Self {
        self.refused = refused;
        self
    }

    /// The tiers that a ladder tried before it failed, and why each was refused.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Why the provider gave nothing, where it is known: whether to ask again, and when.
    pub fn failure(&self) -> Option<&Failure> {
        self.source.as_deref()?.downcast_ref()
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message and its causes on one line, for a report.
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
