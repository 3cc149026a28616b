//! Why a provider gave no summary, for code that has to decide whether to ask again.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Why a call of a model gave nothing that may be taken as a summary.
///
/// It is the cause inside an [`Error`](crate::Error); see
/// [`Error::failure`](crate::Error::failure). Its text names the server and what to do, and never
/// holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: FailureKind,
    message: String,
    retry_after: Option<Duration>,
}

/// The meaning of a [`Failure`].
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
    /// No connection, or one that broke before the answer was whole.
    Unreachable,
    /// The prompt is longer than the model can read.
    TooLong,
    /// The server does not know the model or the address.
    NotFound,
    /// The server would not take the request.
    BadRequest,
    /// The answer is not of the documented form.
    BadAnswer,
    /// The model, or a filter before it, refused to write.
    Refused,
    /// The model was stopped before it was done.
    CutShort,
    /// The model wrote nothing.
    Empty,
    /// Not asked: too many calls failed in a row.
    BreakerOpen,
    /// Not asked: what may be spent is spent.
    SpendLimit,
}

impl FailureKind {
    /// The name, as JSON has it.
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
        }
    }

    /// Whether the same request may succeed a little later.
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

    /// Whether a model was asked at all.
    pub fn asked(self) -> bool {
        !matches!(self, FailureKind::BreakerOpen | FailureKind::SpendLimit)
    }

    /// What an HTTP status means when the body says nothing more exact.
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

    /// What to do about it, as an imperative clause.
    pub fn advice(self) -> &'static str {
        match self {
            FailureKind::Auth => "check the key",
            FailureKind::Quota => "check the account's credit",
            FailureKind::RateLimited => "wait, or make fewer calls at the same time",
            FailureKind::Overloaded => "try again later",
            FailureKind::TimedOut => "try again later, or allow more time",
            FailureKind::Unreachable => "check the address and the network",
            FailureKind::TooLong => "give the model less at once, or take one with a larger window",
            FailureKind::NotFound => "check the model's name and the address",
            FailureKind::BadRequest => "check the model's name and its options",
            FailureKind::BadAnswer => "check that the address is that of the provider",
            FailureKind::Refused => "take another model for this text",
            FailureKind::CutShort => "allow the model more tokens",
            FailureKind::Empty => "try again, or take another model",
            FailureKind::BreakerOpen => "wait until it is asked again, or reset the breaker",
            FailureKind::SpendLimit => "raise the limit, or go on without a model",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Failure {
    /// A failure: what happened, naming the server or the model. What to do is added by kind.
    pub fn new(kind: FailureKind, what: impl fmt::Display) -> Self {
        Self {
            kind,
            message: format!("{what}: {}", kind.advice()),
            retry_after: None,
        }
    }

    /// Sets how long the provider asked to wait.
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// What it means.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether the same request may succeed a little later.
    pub fn retryable(&self) -> bool {
        self.kind.retryable()
    }

    /// How long the provider asked to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
