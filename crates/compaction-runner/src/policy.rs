//! Settings of a runner.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Settings for carrying out a planned compaction: concurrency, leases (exclusive claims on summaries to write) and
/// prefetching.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerPolicy {
    /// Maximum number of summaries that are written at the same time. Default 4.
    pub concurrency: usize,
    /// Duration of a lease (an exclusive claim on a summary to write), in microseconds. Default ten minutes.
    pub lease_micros: u64,
    /// Maximum number of summaries that one call of
    /// [`Compaction::prefetch_summaries`](crate::Compaction::prefetch_summaries) writes. Default 8.
    pub prefetch_jobs: usize,
    /// Minimum cost of consecutive messages to be summarized in advance, in tokens. Default 2,000. With fewer messages,
    /// more would soon be appended, and the summary would be outdated. With a maximum cost of the view (the compacted
    /// log), a quarter of that cost is used if it is lower.
    pub prefetch_min_tokens: u64,
    /// Whether the summaries of a pass (planning round) are published together. If true and one summary cannot be
    /// written, none is published, and the others are kept for the next run. Of the two summaries of a split turn, none
    /// is published either if one is skipped. If false, each summary is published as
    /// soon as it and the summaries before it are ready. Default false.
    pub whole_passes: bool,
    /// Name under which leases (exclusive claims on summaries to write) are taken. Two compactions that may run at the
    /// same time need different names, or must share one [`InFlight`](crate::InFlight). With `None`, the default, the
    /// name is `compaction`. A memory of the crate `agent-memory` uses a name of its process.
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
    /// Returns the duration of a lease.
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_micros(self.lease_micros)
    }

    /// Returns the number of summaries that are written at the same time, at least one.
    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency.max(1)
    }
}
