//! The settings of a compaction. The modules that carry out a plan use this one.

use compaction_plan::{Goal, Planner, Room};
use memory_model::{Accounting, Clock, ConversationId, ViewName};
use memory_store::{Owner, Snapshot, Store};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer};

use crate::cancel::CancellationToken;
use crate::error::Result;
use crate::events::{Event, Hooks, NoHooks};
use crate::in_flight::InFlight;
use crate::owners::{Liveness, NeverGone};
use crate::policy::RunnerPolicy;
use crate::reason::CompactionReason;

/// The default of [`Compaction::extractive`].
static GENERIC_EXTRACTS: ExtractiveSummarizer = ExtractiveSummarizer::new();

/// The settings of a compaction of one conversation, with the methods that run it.
///
/// No lock and no transaction is held during a model call. After a dropped run, the store is in the state of the last
/// published summary.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    /// The store of the conversation.
    pub store: &'a dyn Store,
    /// The conversation.
    pub conversation: ConversationId,
    /// Planner that decides which spans are compacted.
    pub planner: &'a dyn Planner,
    /// Summarizer that writes the summaries.
    pub summarizer: &'a dyn Summarizer,
    /// Summarizer of the ladder's tier `extractive`, also used to make a view fit. The default knows no agent's
    /// conventions.
    pub extractive: &'a dyn Summarizer,
    /// Tiers that are tried for each summary.
    pub ladder: &'a Ladder,
    /// Counts tokens.
    pub accounting: &'a dyn Accounting,
    /// Clock for timestamps and measured durations.
    pub clock: &'a dyn Clock,
    /// Settings of the runner.
    pub policy: RunnerPolicy,
    /// Hooks that receive every event. None by default.
    pub hooks: &'a dyn Hooks,
    /// Token that cancels the compaction.
    pub cancel: CancellationToken,
    /// Name of the owner of its leases. Two compactions that may run at the same time need different names, or one
    /// [`InFlight`].
    pub owner: Owner,
    /// Jobs in progress, which it may share with other compactions of the same owner.
    pub in_flight: InFlight,
    /// Decides whether the owner of a lease is gone.
    pub liveness: &'a dyn Liveness,
    /// Additional instructions for the summarizer.
    pub instructions: Option<String>,
    /// Room of contexts assembled from the view. The planner then keeps no more unchanged messages than fit.
    pub room: Option<Room>,
    /// Reason for the compaction. By default a manual request.
    pub reason: CompactionReason,
    /// State of the view that a run, [`Compaction::publish_ready`] and [`Compaction::extract_to_fit`] start with, for a
    /// caller that has just read it; `None` to read it. A state of another conversation or view is ignored. An outdated
    /// one costs a lost race.
    pub snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
}

/// The stage up to which a run processes its jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Prepares and publishes.
    #[default]
    Whole,
    /// Prepares only.
    Prepare,
    /// Publishes prepared jobs, and calls no summarizer.
    PublishReady,
    /// Publishes extracts until the view fits, and calls no summarizer.
    Fit,
}

impl<'a> Compaction<'a> {
    /// Creates a compaction with the default runner policy and without hooks.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        store: &'a dyn Store,
        conversation: ConversationId,
        planner: &'a dyn Planner,
        summarizer: &'a dyn Summarizer,
        ladder: &'a Ladder,
        accounting: &'a dyn Accounting,
        clock: &'a dyn Clock,
    ) -> Self {
        Self {
            store,
            conversation,
            planner,
            summarizer,
            extractive: &GENERIC_EXTRACTS,
            ladder,
            accounting,
            clock,
            policy: RunnerPolicy::default(),
            hooks: &NoHooks,
            cancel: CancellationToken::new(),
            owner: Owner("compaction".to_owned()),
            in_flight: InFlight::new(),
            liveness: &NeverGone,
            instructions: None,
            room: None,
            reason: CompactionReason::Manual,
            snapshot: None,
            stage: Stage::Whole,
        }
    }
}

impl Compaction<'_> {
    /// Returns the same settings for a run of another stage.
    pub(crate) fn at_stage(&self, stage: Stage) -> Self {
        Self {
            stage,
            ..self.clone()
        }
    }

    /// Returns the name of the compacted view.
    pub(crate) fn view(&self) -> ViewName {
        self.planner.view()
    }

    /// Returns the purpose of the passes.
    pub(crate) fn goal(&self) -> Goal {
        match self.stage {
            Stage::Fit => Goal::Fit,
            _ => Goal::Policy,
        }
    }

    /// Whether results are published together at the end of an iteration. Later passes see such results without the
    /// store. Provisional summaries can be deferred because they can be made again for free.
    pub(crate) fn puts_off(&self) -> bool {
        self.summarizer.provisional() && matches!(self.stage, Stage::Whole | Stage::Fit)
    }

    /// Whether the summaries of a pass are published together, or none of them.
    pub(crate) fn publishes_passes(&self) -> bool {
        self.policy.whole_passes && self.stage == Stage::Whole
    }

    /// Logs an event, and passes it to the hooks.
    pub(crate) async fn emit(&self, event: Event) {
        tracing::debug!(?event, "compaction");
        self.hooks.event(&event).await;
    }

    /// Reads the current state of the view.
    pub(crate) async fn read_snapshot(&self) -> Result<Snapshot> {
        Ok(self.store.snapshot(self.conversation, &self.view()).await?)
    }

    /// Returns the state of the view that a run starts with.
    pub(crate) async fn start(&self) -> Result<Snapshot> {
        let view = self.view();
        let given = self.snapshot.as_ref();
        let given = given.filter(|s| s.conversation == self.conversation && s.view == view);
        match given {
            Some(given) => Ok(given.clone()),
            None => self.read_snapshot().await,
        }
    }
}
