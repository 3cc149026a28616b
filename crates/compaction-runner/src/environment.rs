//! What the parts of a compaction work with: the conversation and its store, the summarizers, the
//! settings. Everything that carries a plan out stands above this module.

use compaction_plan::{Goal, Planner, Room};
use memory_model::{Accounting, Clock, ConversationId, ViewName};
use memory_store::{Owner, Snapshot, Store};
use summarize_escalation::{Ladder, Summarizer};

use crate::cancel::CancellationToken;
use crate::error::Result;
use crate::events::{Event, Hooks};
use crate::in_flight::InFlight;
use crate::owners::Liveness;
use crate::policy::RunnerPolicy;
use crate::reason::CompactionReason;

/// The conversation of a compaction, and the resources and settings that its parts share.
#[derive(Debug, Clone)]
pub(crate) struct Environment<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) conversation: ConversationId,
    pub(crate) planner: &'a dyn Planner,
    pub(crate) summarizer: &'a dyn Summarizer,
    /// The summarizer that the ladder's tier `extractive` asks.
    pub(crate) extractive: &'a dyn Summarizer,
    pub(crate) ladder: &'a Ladder,
    pub(crate) accounting: &'a dyn Accounting,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) policy: RunnerPolicy,
    pub(crate) hooks: &'a dyn Hooks,
    pub(crate) cancel: CancellationToken,
    /// The name under which leases are taken.
    pub(crate) owner: Owner,
    pub(crate) in_flight: InFlight,
    pub(crate) liveness: &'a dyn Liveness,
    /// Additional instructions for the summarizer.
    pub(crate) instructions: Option<String>,
    pub(crate) room: Option<Room>,
    pub(crate) stage: Stage,
    /// Why it is run.
    pub(crate) reason: CompactionReason,
    /// The state that runs begin with; `None` to read it.
    pub(crate) start: Option<Snapshot>,
}

/// How far a run goes with its jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Prepares and publishes.
    #[default]
    Whole,
    /// Prepares only.
    Prepare,
    /// Publishes what is prepared, and calls no summarizer.
    PublishReady,
    /// Publishes extracts until the view fits, and calls no summarizer.
    Fit,
}

impl Environment<'_> {
    /// Returns the same environment for a run that goes as far as `stage`.
    pub(crate) fn at_stage(&self, stage: Stage) -> Self {
        Self {
            stage,
            ..self.clone()
        }
    }

    /// Returns the name of the view that is compacted.
    pub(crate) fn view(&self) -> ViewName {
        self.planner.view()
    }

    /// Returns what a pass is planned for.
    pub(crate) fn goal(&self) -> Goal {
        match self.stage {
            Stage::Fit => Goal::Fit,
            _ => Goal::Policy,
        }
    }

    /// Whether results are published together at the end of an iteration: what costs nothing can be
    /// made again, and the passes to come see it without the store.
    pub(crate) fn puts_off(&self) -> bool {
        self.summarizer.provisional() && matches!(self.stage, Stage::Whole | Stage::Fit)
    }

    /// Whether the summaries of a pass are published together, or none of them.
    pub(crate) fn publishes_passes(&self) -> bool {
        self.policy.whole_passes && self.stage == Stage::Whole
    }

    /// Logs an event, and tells it to the hooks.
    pub(crate) async fn emit(&self, event: Event) {
        tracing::debug!(?event, "compaction");
        self.hooks.event(&event).await;
    }

    /// Reads the current state of the view.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.store.snapshot(self.conversation, &self.view()).await?)
    }

    /// Returns the state of the view that a run begins with.
    pub(crate) async fn start(&self) -> Result<Snapshot> {
        let view = self.view();
        let given = self.start.as_ref();
        let given = given.filter(|s| s.conversation == self.conversation && s.view == view);
        match given {
            Some(given) => Ok(given.clone()),
            None => self.snapshot().await,
        }
    }
}
