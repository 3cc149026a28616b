//! Settings of a runner.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings of a runner, which carries out the jobs of a plan: concurrency, leases and prefetching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerPolicy {
    /// Maximum number of summaries that are written at the same time. Default 4.
    pub concurrency: usize,
    /// Duration of a lease on a job, in microseconds. Default ten minutes.
    pub lease_micros: u64,
    /// Maximum number of summaries that one call of
    /// [`Compaction::prefetch_summaries`](crate::Compaction::prefetch_summaries) writes. Default 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of a run of messages that is prefetched, in tokens. Default 2,000. A shorter run is still growing,
    /// so its summary would soon be outdated.
    pub prefetch_min_tokens: u64,
    /// Whether the summaries of a pass are published together. If one of them cannot be written, none is published, and
    /// the others are kept for the next run. If false, each summary is published as soon as it and the summaries before
    /// it are ready. Default false.
    pub whole_passes: bool,
    /// Name of the owner that holds the leases on jobs. Two compactions that may run at the same time need different
    /// names, or must share one [`InFlight`](crate::InFlight). Default `None`: the name `compaction`; a memory of the
    /// crate `agent-memory` has a name of its process.
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
