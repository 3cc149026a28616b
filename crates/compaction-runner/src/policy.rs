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
    /// Whether the summaries of a pass are published together, and none of them when one cannot be made; those that were
    /// made are kept for the next run. False: each is published as soon as it and those before it are made.
    pub whole_passes: bool,
    /// Whether nothing is compacted where the summarizer needs no model. False: extracts take the place of summaries.
    pub needs_model: bool,
}

impl Default for RunnerPolicy {
    fn default() -> Self {
        Self {
            concurrency: 4,
            lease_micros: 600_000_000,
            prefetch_jobs: 8,
            prefetch_min_tokens: 2_000,
            whole_passes: false,
            needs_model: false,
        }
    }
}

impl RunnerPolicy {
    /// Returns the preset of anna's later generation: a pass publishes all of its summaries or none, and without a model
    /// nothing is compacted.
    pub fn stella() -> Self {
        Self {
            whole_passes: true,
            needs_model: true,
            ..Self::default()
        }
    }

    /// Returns the preset of Operator-Use's observations: a run of messages is summarized ahead once it costs 10,000
    /// tokens.
    pub fn observations() -> Self {
        Self {
            prefetch_min_tokens: 10_000,
            ..Self::default()
        }
    }

    /// Sets whether a pass publishes all of its summaries or none.
    pub fn with_whole_passes(mut self, whole: bool) -> Self {
        self.whole_passes = whole;
        self
    }

    /// Sets whether nothing is compacted where the summarizer needs no model.
    pub fn with_needs_model(mut self, needs: bool) -> Self {
        self.needs_model = needs;
        self
    }

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
