//! The failure of a call.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Error returned when a call of a model gives no answer.
///
/// Its text names the server or the model and the next step, and never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: FailureKind,
    message: String,
    retry_after: Option<Duration>,
    calls: u32,
}

/// Kind of a [`Failure`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The key is missing, wrong, or not allowed to use the model.
    Auth,
    /// The account has no credit or allowance left.
    Quota,
    /// Too many requests at the moment.
    RateLimited,
    /// The server failed or is overloaded.
    Overloaded,
    /// No answer came in time.
    TimedOut,
    /// There is no connection, or it broke before the answer was complete.
    Unreachable,
    /// The prompt is longer than the model can read.
    TooLong,
    /// The server does not know the model or the address.
    NotFound,
    /// The server rejected the request.
    BadRequest,
    /// The answer is not of the documented form.
    BadAnswer,
    /// The model, or a filter before it, refused to write.
    Refused,
    /// The model was stopped before it finished.
    CutShort,
    /// The model wrote no text.
    Empty,
    /// The model was not asked: too many calls failed in a row.
    BreakerOpen,
    /// The model was not asked: the spending limit is reached.
    SpendLimit,
    /// The model was not asked: the caller withdrew the call, for example because its source was erased.
    Withdrawn,
    /// The client cannot be made: its address or its provider's name is wrong.
    InvalidClient,
    /// Any other failure.
    Other,
}

impl FailureKind {
    /// Returns the kind's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Auth => "auth",
            FailureKind::Quota => "quota",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Overloaded => "overloaded",
            FailureKind::TimedOut => "timed_out",
            FailureKind::Unreachable => "unreachable",
            FailureKind::TooLong => "too_long",
            FailureKind::NotFound => "not_found",
            FailureKind::BadRequest => "bad_request",
            FailureKind::BadAnswer => "bad_answer",
            FailureKind::Refused => "refused",
            FailureKind::CutShort => "cut_short",
            FailureKind::Empty => "empty",
            FailureKind::BreakerOpen => "breaker_open",
            FailureKind::SpendLimit => "spend_limit",
            FailureKind::Withdrawn => "withdrawn",
            FailureKind::InvalidClient => "invalid_client",
            FailureKind::Other => "other",
        }
    }

    /// Returns whether the same request may succeed later.
    pub fn retryable(self) -> bool {
        matches!(
            self,
            FailureKind::RateLimited
                | FailureKind::Overloaded
                | FailureKind::TimedOut
                | FailureKind::Unreachable
                | FailureKind::BadAnswer
        )
    }

    /// Returns whether a model was called.
    pub fn asked(self) -> bool {
        !matches!(
            self,
            FailureKind::BreakerOpen
                | FailureKind::SpendLimit
                | FailureKind::Withdrawn
                | FailureKind::InvalidClient
        )
    }

    /// Returns the kind for an HTTP status, for a body without a more exact error.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => FailureKind::Auth,
            402 => FailureKind::Quota,
            404 => FailureKind::NotFound,
            408 => FailureKind::TimedOut,
            413 => FailureKind::TooLong,
            429 => FailureKind::RateLimited,
            400..=499 => FailureKind::BadRequest,
            500..=599 => FailureKind::Overloaded,
            _ => FailureKind::BadAnswer,
        }
    }

    /// Returns the next step for the user, as an imperative clause.
    pub fn advice(self) -> &'static str {
        match self {
            FailureKind::Auth => "check the key",
            FailureKind::Quota => "check the account's credit",
            FailureKind::RateLimited => "wait, or make fewer calls at the same time",
            FailureKind::Overloaded => "try again later",
            FailureKind::TimedOut => "try again later, or allow more time",
            FailureKind::Unreachable => "check the address and the network",
            FailureKind::TooLong => "send a shorter prompt, or use a model with a larger window",
            FailureKind::NotFound => "check the model's name and the address",
            FailureKind::BadRequest => "check the model's name and its options",
            FailureKind::BadAnswer => "check that the address belongs to the provider",
            FailureKind::Refused => "use another model for this text",
            FailureKind::CutShort => "allow the model more tokens",
            FailureKind::Empty => "try again, or use another model",
            FailureKind::BreakerOpen => "wait for the next attempt, or reset the breaker",
            FailureKind::SpendLimit => "raise the limit, or continue without a model",
            FailureKind::Withdrawn => "compact what is left",
            FailureKind::InvalidClient => {
                "name a known provider, or a base URL that begins with http"
            }
            FailureKind::Other => "check the provider",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Failure {
    /// Returns a failure of one call. `what` describes the failure and names the server or the model; the kind's advice
    /// is appended.
    pub fn new(kind: FailureKind, what: impl fmt::Display) -> Self {
        Self::with_text(kind, format!("{what}: {}", kind.advice()))
    }

    /// Returns a failure of one call with the text `text` alone.
    pub fn with_text(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            message: text.into(),
            retry_after: None,
            calls: u32::from(kind.asked()),
        }
    }

    /// Sets the number of calls that were made before the failure.
    pub fn with_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Returns the number of calls that were made before the failure; each retry counts.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Sets the wait that the provider asked for.
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Returns the failure's kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        self.kind.retryable()
    }

    /// Returns the wait that the provider asked for before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
