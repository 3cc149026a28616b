//! Settings of a runner.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings for carrying out plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerPolicy {
    /// Number of summaries that are made at the same time. Default 4.
    pub concurrency: usize,
    /// Duration of a lease on a job, in microseconds. Default ten minutes.
    pub lease_micros: u64,
    /// Maximum number of summaries that one [`Compaction::prefetch_summaries`](crate::Compaction::prefetch_summaries)
    /// makes. Default 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of a run of messages to be prefetched, in tokens. A shorter run is still growing, and its summary
    /// would soon be outdated. Default 2,000.
    pub prefetch_min_tokens: u64,
    /// Whether the summaries of a pass are published together, and none of them if one cannot be made; the finished
    /// ones are kept for the next run. If false, each summary is published once it and the summaries before it are
    /// ready. Default false.
    pub whole_passes: bool,
    /// Name of the owner of leases, unique among the memories that share a store. The default names this process.
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
    /// Returns the duration of a lease on a job.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_micros(self.lease_micros)
    }

    /// Returns the number of summaries that are made at the same time, at least one.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.max(1)
    }
}
