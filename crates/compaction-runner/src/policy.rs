//! How plans are carried out: the settings of a runner.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How plans are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunnerPolicy {
    /// How many summaries are made at the same time. 4, as in anna's later generation.
    pub concurrency: usize,
    /// How long a lease on a job lasts, in microseconds. Ten minutes.
    pub lease_micros: u64,
    /// How many summaries one
    /// [`Compaction::prefetch_summaries`](crate::Compaction::prefetch_summaries) makes at most. 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of a run of messages to be prefetched, in tokens: a shorter one is
    /// still growing, and what was written of it would soon be out of date. 2,000.
    pub prefetch_min_tokens: u64,
}

impl Default for RunnerPolicy {
    fn default() -> Self {
        Self {
            concurrency: 4,
            lease_micros: 600_000_000,
            prefetch_jobs: 8,
            prefetch_min_tokens: 2_000,
        }
    }
}

impl RunnerPolicy {
    /// Sets how many summaries are made at the same time.
    pub fn with_concurrency(mut self, summaries: usize) -> Self {
        self.concurrency = summaries;
        self
    }

    /// Sets how many summaries one preparation makes at most.
    pub fn with_prefetch_jobs(mut self, jobs: usize) -> Self {
        self.prefetch_jobs = jobs;
        self
    }

    /// Sets the minimum cost of a run of messages to be prefetched, in tokens.
    pub fn with_prefetch_min_tokens(mut self, tokens: u64) -> Self {
        self.prefetch_min_tokens = tokens;
        self
    }

    /// Returns how long a lease on a job lasts.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_micros(self.lease_micros)
    }

    /// Returns how many summaries are made at the same time, at least one.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.max(1)
    }
}
