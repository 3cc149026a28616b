//! How plans are carried out: the settings of a runner.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How plans are carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerPolicy {
    /// How many summaries are made at the same time. Default 4.
    pub concurrency: usize,
    /// How long a lease on a job lasts, in microseconds. Ten minutes.
    pub lease_micros: u64,
    /// How many summaries one
    /// [`Compaction::prefetch_summaries`](crate::Compaction::prefetch_summaries) makes at most. 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of a run of messages to be prefetched, in tokens: a shorter one is
    /// still growing, and what was written of it would soon be out of date. 2,000.
    pub prefetch_min_tokens: u64,
    /// Whether the summaries of a pass are published together, and none of them when one cannot be made; those that were
    /// made are kept for the next run. False: each is published as soon as it and those before it are made.
    pub whole_passes: bool,
    /// Name that owns the leases, unique among the memories that share a store. By default one that names this process.
    pub owner: Option<String>,
}

impl Default for RunnerPolicy {
    fn default() -> Self {
        Self {
            concurrency: 4,
            lease_micros: 600_000_000,
            prefetch_jobs: 8,
            prefetch_min_tokens: 2_000,
            whole_passes: false,
            owner: None,
        }
    }
}

impl RunnerPolicy {
    /// Returns how long a lease on a job lasts.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_micros(self.lease_micros)
    }

    /// Returns how many summaries are made at the same time, at least one.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.max(1)
    }
}
