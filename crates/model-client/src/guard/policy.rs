//! Settings of the guards.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use serde::{Deserialize, Serialize};

/// Settings of the guards around model calls. `None` turns a guard off.
///
/// | guard | scope | default |
/// |---|---|---|
/// | `breaker` | session | opens after 3 failures in a row; one call is let through after a minute |
/// | `wait_millis` | session | no wait: while the breaker is open, calls fail at once |
/// | `timeout_millis` | attempt | 2 minutes |
/// | `retry` | call | 3 attempts, 1 s and 2 s apart, or what the provider asks for up to a minute |
/// | `session_spend`, `total_spend` | session, all sessions | no limit |
/// | `concurrency` | all sessions | 4 calls |
/// | `cache_entries` | all sessions | 64 answers |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct GuardPolicy {
    /// Circuit breaker that stops the calls of a session after several failures in a row; `None` for no breaker.
    pub breaker: Option<BreakerPolicy>,
    /// Maximum time since the first of the failures in a row, in milliseconds, for which calls wait for the model: after a
    /// temporary failure, a call is repeated as soon as the breaker permits it. `None` for no wait, the default: the call
    /// fails. Without a breaker there is no wait.
    pub wait_millis: Option<u64>,
    /// Maximum duration of one attempt, in milliseconds; `None` for no limit. Default 120,000, because long answers of
    /// slow models take this long.
    pub timeout_millis: Option<u64>,
    /// Retries of calls after temporary failures; `None` for no retries.
    pub retry: Option<RetryPolicy>,
    /// Spending limit of each session, counted in this process only.
    pub session_spend: SpendPolicy,
    /// Spending limit of all sessions together, counted in this process only.
    pub total_spend: SpendPolicy,
    /// Maximum number of concurrent calls of all sessions; `None` for no limit. 0 counts as 1.
    pub concurrency: Option<usize>,
    /// Maximum number of answers that the cache keeps in memory; 0 keeps none.
    pub cache_entries: usize,
}

impl Default for GuardPolicy {
    fn default() -> Self {
        Self {
            breaker: Some(BreakerPolicy::default()),
            wait_millis: None,
            timeout_millis: Some(120_000),
            retry: Some(RetryPolicy::default()),
            session_spend: SpendPolicy::default(),
            total_spend: SpendPolicy::default(),
            concurrency: Some(4),
            cache_entries: 64,
        }
    }
}

impl GuardPolicy {
    /// Returns a policy in which all guards are off. Set single fields to turn guards on.
    pub fn none() -> Self {
        Self {
            breaker: None,
            wait_millis: None,
            timeout_millis: None,
            retry: None,
            session_spend: SpendPolicy::default(),
            total_spend: SpendPolicy::default(),
            concurrency: None,
            cache_entries: 0,
        }
    }
}

/// Settings of a session's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerPolicy {
    /// Number of failures in a row after which the breaker opens. A success resets the count. Default 3; 0 counts as 1.
    pub failures: u32,
    /// Time after which an open breaker permits one call, in milliseconds. If this call succeeds, the breaker closes.
    /// If the call fails, the breaker opens again. With `None` the breaker stays open until it is reset. Default
    /// 60,000.
    pub half_open_after_millis: Option<u64>,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            failures: 3,
            half_open_after_millis: Some(60_000),
        }
    }
}

/// Settings for repeating failed calls. Only calls with a temporary failure are repeated: see
/// [`FailureKind::retryable`](crate::FailureKind::retryable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first one. Default 3.
    pub attempts: u32,
    /// Wait before the second attempt, in milliseconds. The wait doubles with each further attempt. Default 1,000.
    pub first_wait_millis: u64,
    /// Maximum wait before an attempt, in milliseconds. There is no retry if the provider asks for a longer wait.
    /// Default 60,000.
    pub longest_wait_millis: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            first_wait_millis: 1_000,
            longest_wait_millis: 60_000,
        }
    }
}

impl RetryPolicy {
    /// Returns the waits before the second and all later attempts, in order.
    pub fn waits(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        let retries = usize::try_from(self.attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(Duration::from_millis(
                self.first_wait_millis.min(self.longest_wait_millis),
            ))
            .with_max_delay(Duration::from_millis(self.longest_wait_millis))
            .with_max_times(retries)
            .build()
    }

    /// Returns the wait if it is at most `longest_wait_millis`; otherwise `None`.
    pub(super) fn within_limit(&self, wait: Duration) -> Option<Duration> {
        (wait <= Duration::from_millis(self.longest_wait_millis)).then_some(wait)
    }
}

/// A spending limit in calls and tokens. A call that would exceed the limit is not made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendPolicy {
    /// Maximum number of calls; `None` for no limit. Each retry counts as one.
    pub calls: Option<u64>,
    /// Maximum number of tokens in prompts and answers; `None` for no limit. A finished call counts with the token
    /// counts that the provider reports, or with estimates if it reports none. A call that is about to be made counts
    /// with its prompt and its maximum output.
    pub tokens: Option<u64>,
}

impl SpendPolicy {
    /// Creates a limit of this many calls, without a limit on tokens.
    pub fn calls(calls: u64) -> Self {
        Self {
            calls: Some(calls),
            tokens: None,
        }
    }

    /// Creates a limit of this many tokens, without a limit on calls.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            calls: None,
            tokens: Some(tokens),
        }
    }
}
