//! The policies of the guards.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use serde::{Deserialize, Serialize};

/// The guards around calls and their limits. `None` leaves a guard out.
///
/// | guard | scope | default |
/// |---|---|---|
/// | `breaker` | session | opens after 3 failures in a row; one call is let through after a minute |
/// | `timeout_millis` | attempt | 2 minutes |
/// | `retry` | call | 3 attempts, 1 s and 2 s apart, or what the provider asks for up to a minute |
/// | `session_spend`, `total_spend` | session, all sessions | no limit |
/// | `concurrency` | all sessions | 4 calls |
/// | `cache_entries` | all sessions | 64 answers |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[must_use]
pub struct GuardPolicy {
    /// Opens a circuit breaker when calls of a session fail in a row.
    pub breaker: Option<BreakerPolicy>,
    /// Maximum duration of one attempt, in milliseconds. Default 120,000, which a long answer of a
    /// slow model needs.
    pub timeout_millis: Option<u64>,
    /// Retries calls with failures that may pass.
    pub retry: Option<RetryPolicy>,
    /// Spending limit of one session in this process.
    pub session_spend: SpendPolicy,
    /// Spending limit of all sessions together in this process.
    pub total_spend: SpendPolicy,
    /// Maximum number of concurrent calls; 0 counts as 1.
    pub concurrency: Option<usize>,
    /// Maximum number of answers that the cache keeps in memory; 0 keeps none.
    pub cache_entries: usize,
}

impl Default for GuardPolicy {
    fn default() -> Self {
        Self {
            breaker: Some(BreakerPolicy::default()),
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
    /// Returns a policy without guards: a base to switch single ones on.
    pub fn none() -> Self {
        Self {
            breaker: None,
            timeout_millis: None,
            retry: None,
            session_spend: SpendPolicy::default(),
            total_spend: SpendPolicy::default(),
            concurrency: None,
            cache_entries: 0,
        }
    }
}

/// Policy of the circuit breaker of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerPolicy {
    /// Number of failures in a row that opens the breaker; a success resets the count. Default 3;
    /// 0 counts as 1.
    pub failures: u32,
    /// Time after which an open breaker lets one call through, in milliseconds: success closes the
    /// breaker, failure opens it again. `None` keeps it open until it is reset. Default 60,000.
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

/// Policy for repeating failed calls. Only failures that may pass are retried; see
/// [`FailureKind::retryable`](crate::FailureKind::retryable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Maximum number of attempts, the first one included. Default 3.
    pub attempts: u32,
    /// Wait before the second attempt, in milliseconds; it doubles with each further attempt. Default 1,000.
    pub first_wait_millis: u64,
    /// Longest wait, in milliseconds. There is no retry if the provider asks for a longer one. Default 60,000.
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
    /// Returns the waits between attempts, first to last.
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

    /// Returns a wait unless it is longer than the longest one.
    pub(super) fn within_limit(&self, wait: Duration) -> Option<Duration> {
        (wait <= Duration::from_millis(self.longest_wait_millis)).then_some(wait)
    }
}

/// A spending limit. A call that would exceed it is not made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendPolicy {
    /// Maximum number of calls; each retry counts.
    pub calls: Option<u64>,
    /// Maximum number of tokens of prompts and answers. The provider's figures count if there are any, otherwise the
    /// estimator's. Before a call its prompt and its target count.
    pub tokens: Option<u64>,
}

impl SpendPolicy {
    /// Returns a limit of this many calls.
    pub fn calls(calls: u64) -> Self {
        Self {
            calls: Some(calls),
            tokens: None,
        }
    }

    /// Returns a limit of this many tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            calls: None,
            tokens: Some(tokens),
        }
    }
}
