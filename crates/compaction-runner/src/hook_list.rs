//! Several hooks, used as one.

use std::sync::Arc;

use async_trait::async_trait;
use memory_model::Summary;

use crate::events::{Event, Hooks, JobDecision};
use crate::planned_job::PlannedJob;

/// Hooks that are called in order.
///
/// The first hook that cancels a job ends the round. If several supply a text, the last one is used. After the failure
/// of a hook, all hooks of the list receive [`Event::HookFailed`], and the remaining ones are asked.
#[derive(Debug, Clone, Default)]
pub struct HookList(Vec<Arc<dyn Hooks>>);

impl HookList {
    /// Creates a list without hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds hooks after the others.
    #[must_use]
    pub fn with(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.0.push(hooks);
        self
    }
}

#[async_trait]
impl Hooks for HookList {
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
