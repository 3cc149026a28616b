//! The failure of a model call.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Failure of a model call: no answer was returned.
///
/// The text of the failure names the server or the model, and the next step. It never contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: FailureKind,
    message: String,
    retry_after: Option<Duration>,
    calls: u32,
    window: Option<u64>,
    prompt_tokens: Option<u64>,
    is_lasting: bool,
}

/// Kind of a [`Failure`], for matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The key is missing, wrong, or not allowed to use the model.
    Auth,
    /// The account has no credit left, or its allowance is used up.
    Quota,
    /// The provider accepts no more requests at the moment, because too many were sent.
    RateLimited,
    /// The server failed or is overloaded.
    Overloaded,
    /// The server is still loading the model. It answers as soon as the model is loaded.
    Loading,
    /// The answer did not come within the time limit.
    TimedOut,
    /// The server cannot be reached, or the connection broke before the answer was complete.
    Unreachable,
    /// The prompt is longer than the model's window.
    TooLong,
    /// The server does not know the model or the address.
    NotFound,
    /// The server rejected the request as invalid.
    BadRequest,
    /// The answer does not have the form that the provider documents.
    BadAnswer,
    /// The model, or the provider's content filter, refused to write an answer.
    Refused,
    /// The model stopped before it finished the answer, for example at the output limit.
    CutShort,
    /// The model wrote no text.
    Empty,
    /// The model was not called, because an open circuit breaker stops calls after too many failures in a row.
    BreakerOpen,
    /// The model was not called, because the spending limit is reached.
    SpendLimit,
    /// The model was not called, because the caller withdrew the call, for example after the text to send was erased.
    Withdrawn,
    /// The client cannot be created: its address or the name of its provider is wrong.
    InvalidClient,
    /// A failure of any other kind.
    Other,
}

impl FailureKind {
    /// Returns the kind's name in JSON, such as `rate_limited`.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Auth => "auth",
            FailureKind::Quota => "quota",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Overloaded => "overloaded",
            FailureKind::Loading => "loading",
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

    /// Returns whether the same request may succeed later, so that a retry may help.
    pub fn retryable(self) -> bool {
        matches!(
            self,
            FailureKind::RateLimited
                | FailureKind::Overloaded
                | FailureKind::Loading
                | FailureKind::TimedOut
                | FailureKind::Unreachable
                | FailureKind::BadAnswer
        )
    }

    /// Returns whether the failure may pass by itself, so that a later call may succeed: a retry may help, or an open
    /// circuit breaker stopped the call.
    pub fn may_pass(self) -> bool {
        self.retryable() || self == FailureKind::BreakerOpen
    }

    /// Returns whether neither time nor another prompt changes the failure: the key, the account or the address is wrong.
    pub fn is_lasting(self) -> bool {
        matches!(
            self,
            FailureKind::Auth
                | FailureKind::Quota
                | FailureKind::NotFound
                | FailureKind::InvalidClient
        )
    }

    /// Returns whether the model was called: false for failures before the call, such as a spending limit.
    pub fn asked(self) -> bool {
        !matches!(
            self,
            FailureKind::BreakerOpen
                | FailureKind::SpendLimit
                | FailureKind::Withdrawn
                | FailureKind::InvalidClient
        )
    }

    /// Returns the kind for an HTTP status. Use it if the response's body has no more exact error.
    pub fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => FailureKind::Auth,
            402 => FailureKind::Quota,
            404 => FailureKind::NotFound,
            408 => FailureKind::TimedOut,
            413 => FailureKind::TooLong,
            429 => FailureKind::RateLimited,
            // The server lacks the function or the version of the protocol, so a retry cannot help.
            400..=499 | 501 | 505 => FailureKind::BadRequest,
            500..=599 => FailureKind::Overloaded,
            _ => FailureKind::BadAnswer,
        }
    }

    /// Returns the next step for the user, as an imperative clause in English.
    pub fn advice(self) -> &'static str {
        match self {
            FailureKind::Auth => "check the key",
            FailureKind::Quota => "check the account's credit",
            FailureKind::RateLimited => "wait, or make fewer calls at the same time",
            FailureKind::Overloaded => "try again later",
            FailureKind::Loading => "try again when the model is loaded, or allow more time",
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
    /// Creates a failure of one call. `what` describes the failure and names the server or the model. The advice of
    /// `kind` is appended.
    pub fn new(kind: FailureKind, what: impl fmt::Display) -> Self {
        Self::with_text(kind, format!("{what}: {}", kind.advice()))
    }

    /// Creates a failure of one call with exactly this text. No advice is appended.
    pub fn with_text(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            message: text.into(),
            retry_after: None,
            calls: u32::from(kind.asked()),
            window: None,
            prompt_tokens: None,
            is_lasting: false,
        }
    }

    /// Sets whether the failure does not pass by itself, although others of its kind may: a circuit breaker that a wrong
    /// key opened.
    pub fn with_lasting(mut self, is_lasting: bool) -> Self {
        self.is_lasting = is_lasting;
        self
    }

    /// Returns the value of [`with_lasting`](Self::with_lasting).
    pub fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// Returns whether the failure may pass by itself, so that a later call may succeed.
    pub fn may_pass(&self) -> bool {
        self.kind.may_pass() && !self.is_lasting
    }

    /// Sets the number of calls that were made, including the failed call.
    pub fn with_calls(mut self, calls: u32) -> Self {
        self.calls = calls;
        self
    }

    /// Returns the number of calls that were made, including the failed call. Each retry counts as one. 0 if the model
    /// was not called.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Sets the duration that the client must wait before the next request, as the provider asks; `None` if it does
    /// not ask.
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Sets the size of the model's window and the number of tokens in the prompt, which the server named in a failure
    /// of the kind [`FailureKind::TooLong`].
    pub fn with_window(mut self, window: Option<u64>, prompt_tokens: Option<u64>) -> Self {
        (self.window, self.prompt_tokens) = (window, prompt_tokens);
        self
    }

    /// Returns the size of the model's window, in tokens, if the server named it: prompt and answer together must fit in
    /// it. Only failures of the kind [`FailureKind::TooLong`] have it.
    pub fn window(&self) -> Option<u64> {
        self.window
    }

    /// Returns the number of tokens in the prompt that was too long, as the server counted them, if it named the number.
    pub fn prompt_tokens(&self) -> Option<u64> {
        self.prompt_tokens
    }

    /// Returns the kind of the failure, for matching.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns whether the same request may succeed later, so that a retry may help.
    pub fn retryable(&self) -> bool {
        self.kind.retryable()
    }

    /// Returns the duration that the provider asks the client to wait before the next request; `None` if it does not
    /// ask.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
