//! Several hooks, used as one.

use std::sync::Arc;

use async_trait::async_trait;
use memory_model::Summary;

use crate::events::{CompactionDecision, Event, Hooks, JobDecision};
use crate::planned_job::PlannedJob;

/// Several hooks, called one after the other.
///
/// If a hook cancels a compaction or a job (a planned change of the view), the later hooks are not asked about it. If
/// several hooks supply a result or a text, the last one is used. If a hook fails, all hooks receive [`Event::HookFailed`], and the later
/// hooks are still asked.
#[derive(Debug, Clone, Default)]
pub struct HookList(Vec<Arc<dyn Hooks>>);

impl HookList {
    /// Creates a list without hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds hooks after the existing ones. Hooks are called in the order in which they were added.
    #[must_use]
    pub fn with(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.0.push(hooks);
        self
    }
}

#[async_trait]
impl Hooks for HookList {
    async fn before_compaction(&self, first: &PlannedJob<'_>) -> CompactionDecision {
        let mut decision = CompactionDecision::Proceed;
        for hooks in &self.0 {
            match hooks.before_compaction(first).await {
                CompactionDecision::Proceed => {}
                CompactionDecision::Cancel => return CompactionDecision::Cancel,
                supplied => decision = supplied,
            }
        }
        decision
    }

    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        let mut decision = JobDecision::Proceed;
        for hooks in &self.0 {
            match hooks.before(planned).await {
                JobDecision::Proceed => {}
                JobDecision::Fail(error) => {
                    let range = planned.job.range;
                    self.event(&Event::HookFailed { range, error }).await;
                }
                JobDecision::Cancel => return JobDecision::Cancel,
                supplied => decision = supplied,
            }
        }
        decision
    }

    async fn after(&self, summary: &Summary) {
        for hooks in &self.0 {
            hooks.after(summary).await;
        }
    }

    async fn event(&self, event: &Event) {
        for hooks in &self.0 {
            hooks.event(event).await;
        }
    }
}
