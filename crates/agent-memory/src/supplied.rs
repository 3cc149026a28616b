//! A handoff with a summary that the caller supplies.

use std::sync::Arc;

use async_trait::async_trait;
use compaction_plan::Mode;
use compaction_runner::{CancellationToken, Event, Hooks, JobDecision, Outcome, PlannedJob};
use handoff_compactor::HandoffPlanner;
use memory_model::{RawJson, Seq, Summary};

use crate::error::Result;
use crate::session::Session;

/// Publishes a handoff with `text` as the summary. The messages from position `kept_from` on are kept.
pub(crate) async fn publish(
    session: &Session,
    planner: HandoffPlanner,
    kept_from: Seq,
    text: &str,
    details: Option<RawJson>,
) -> Result<Outcome> {
    let mut planner = planner.with_kept_from(kept_from);
    if let Some(details) = details {
        planner = planner.with_fact("supplied", details);
    }
    let session = session.clone().with_planner(Arc::new(planner));
    let hooks = SuppliedText {
        text,
        hooks: &*session.memory().inner.hooks,
    };
    let mut compaction = session.compaction(CancellationToken::new());
    compaction.hooks = &hooks;
    Ok(compaction.run(Mode::Incremental).await?)
}

/// Hooks that supply the same text for every summary, and forward all events to other hooks.
#[derive(Debug)]
struct SuppliedText<'a> {
    text: &'a str,
    hooks: &'a dyn Hooks,
}

#[async_trait]
impl Hooks for SuppliedText<'_> {
    async fn before(&self, planned: &PlannedJob<'_>) -> JobDecision {
        match self.hooks.before(planned).await {
            JobDecision::Cancel => return JobDecision::Cancel,
            JobDecision::Fail(error) => {
                let range = planned.job.range;
                self.event(&Event::HookFailed { range, error }).await;
            }
            _ => {}
        }
        JobDecision::Supply(self.text.to_owned())
    }

    async fn after(&self, summary: &Summary) {
        self.hooks.after(summary).await;
    }

    async fn event(&self, event: &Event) {
        self.hooks.event(event).await;
    }
}
