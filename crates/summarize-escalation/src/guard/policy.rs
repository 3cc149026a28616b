use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What stands between a compaction and a model that fails, hangs or costs too much: a policy
/// value. `None` leaves a guard out.
///
/// | guard | scope | default |
/// |---|---|---|
/// | `breaker` | session | opens after 3 failures in a row (koda's figure), one call is let through after a minute |
/// | `timeout_millis` | call | 2 minutes |
/// | `retry` | call | 3 attempts, 1 s and 2 s apart, or what the provider asks for up to a minute |
/// | `session_spend`, `total_spend` | session, all sessions | no limit |
/// | `concurrency` | all sessions | 4 calls (the figure of anna's later generation) |
/// | `cache_entries` | all sessions | 64 summaries |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardPolicy {
    /// Stops asking when calls of a session fail one after the other.
    pub breaker: Option<BreakerPolicy>,
    /// How long one attempt may take, in milliseconds. 120,000: a long answer of a slow model.
    pub timeout_millis: Option<u64>,
    /// Asks again when that may help.
    pub retry: Option<RetryPolicy>,
    /// What one session may spend in this process.
    pub session_spend: SpendPolicy,
    /// What all sessions together may spend in this process.
    pub total_spend: SpendPolicy,
    /// How many calls are under way at the same time, at most; 0 counts as 1.
    pub concurrency: Option<usize>,
    /// How many summaries are kept in memory, so that none of them is paid for twice; 0 keeps none.
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
    /// No guards at all: a base to switch single ones on.
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

    /// Sets when a session stops asking.
    pub fn with_breaker(mut self, breaker: Option<BreakerPolicy>) -> Self {
        self.breaker = breaker;
        self
    }

    /// Sets how long one attempt may take, in milliseconds.
    pub fn with_timeout_millis(mut self, millis: Option<u64>) -> Self {
        self.timeout_millis = millis;
        self
    }

    /// Sets when to ask again.
    pub fn with_retry(mut self, retry: Option<RetryPolicy>) -> Self {
        self.retry = retry;
        self
    }

    /// Sets what one session may spend.
    pub fn with_session_spend(mut self, spend: SpendPolicy) -> Self {
        self.session_spend = spend;
        self
    }

    /// Sets what all sessions together may spend.
    pub fn with_total_spend(mut self, spend: SpendPolicy) -> Self {
        self.total_spend = spend;
        self
    }

    /// Returns the longest time that a call of a silent model takes with all its attempts and the
    /// waits between them: 363 seconds by default. `None` when an attempt may take for ever.
    pub fn longest_call(&self) -> Option<Duration> {
        let timeout = Duration::from_millis(self.timeout_millis?);
        let mut longest = timeout;
        let mut made = 1;
        while let Some(wait) = self.retry.and_then(|retry| retry.wait(made, None)) {
            longest = longest.saturating_add(wait).saturating_add(timeout);
            made += 1;
        }
        Some(longest)
    }

    /// Sets how many calls are under way at the same time, at most.
    pub fn with_concurrency(mut self, calls: Option<usize>) -> Self {
        self.concurrency = calls;
        self
    }

    /// Sets how many summaries are kept in memory.
    pub fn with_cache_entries(mut self, entries: usize) -> Self {
        self.cache_entries = entries;
        self
    }
}

/// When a session stops asking a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerPolicy {
    /// It opens when so many calls failed in a row; a success starts the count anew. 3: koda's
    /// figure. 0 counts as 1.
    pub failures: u32,
    /// So long after it opened, in milliseconds, one call is let through: success closes it,
    /// failure opens it again. `None` keeps it open until it is reset, as koda does. 60,000.
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

impl BreakerPolicy {
    /// koda's: opens after three failures, and stays open until it is reset.
    pub const KODA: Self = Self {
        failures: 3,
        half_open_after_millis: None,
    };
}

/// When a failed call is made again. Only failures that may pass are tried again; see
/// [`FailureKind::retryable`](crate::FailureKind::retryable).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// How often a call is made at most, the first time included. 3.
    pub attempts: u32,
    /// The wait before the second attempt, in milliseconds; it doubles with each further one.
    /// 1,000.
    pub first_wait_millis: u64,
    /// No wait is longer than this, in milliseconds. A provider that asks for a longer one is not
    /// asked again. 60,000.
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
    /// How long to wait after so many failed attempts (from 1 on); `None` when it is not to be
    /// tried again.
    pub fn wait(&self, attempts: u32, asked_for: Option<Duration>) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let longest = Duration::from_millis(self.longest_wait_millis);
        let doubled = 2_u64.saturating_pow(attempts.saturating_sub(1));
        let own = Duration::from_millis(self.first_wait_millis.saturating_mul(doubled));
        match asked_for {
            Some(wait) if wait > longest => None,
            Some(wait) => Some(wait),
            None => Some(own.min(longest)),
        }
    }
}

/// What may be spent. A call that would go over a limit is not made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendPolicy {
    /// So many calls, attempts counted singly.
    pub calls: Option<u64>,
    /// So many tokens, read and written. The provider's own figures count where it gives them,
    /// else the estimator's. Before a call its source and its target count.
    pub tokens: Option<u64>,
}

impl SpendPolicy {
    /// At most so many calls.
    pub fn calls(calls: u64) -> Self {
        Self {
            calls: Some(calls),
            tokens: None,
        }
    }

    /// At most so many tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            calls: None,
            tokens: Some(tokens),
        }
    }
}
