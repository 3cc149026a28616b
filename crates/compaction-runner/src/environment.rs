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

/// The settings of a compaction of one conversation, and its runs.
///
/// No lock and no transaction is held while a model is called. Dropping a run leaves the store as
/// it was after the last summary that was published.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    /// The store of the conversation.
    pub store: &'a dyn Store,
    /// The conversation.
    pub conversation: ConversationId,
    /// Decides which spans are compacted.
    pub planner: &'a dyn Planner,
    /// Writes the summaries.
    pub summarizer: &'a dyn Summarizer,
    /// The summarizer that the ladder's tier `extractive` asks, and that makes a view fit. By
    /// default it knows no agent's conventions.
    pub extractive: &'a dyn Summarizer,
    /// The tiers that a summary is tried on.
    pub ladder: &'a Ladder,
    /// Counts tokens.
    pub accounting: &'a dyn Accounting,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// How the plan is carried out.
    pub policy: RunnerPolicy,
    /// Told of every event. None by default.
    pub hooks: &'a dyn Hooks,
    /// Cancels it.
    pub cancel: CancellationToken,
    /// The name under which it takes leases. Two compactions that may run at the same time need
    /// different names, or one [`InFlight`].
    pub owner: Owner,
    /// The jobs in progress, which it may share with other compactions of the same owner.
    pub in_flight: InFlight,
    /// Decides whether the owner of a lease is gone.
    pub liveness: &'a dyn Liveness,
    /// Additional instructions for the summarizer.
    pub instructions: Option<String>,
    /// The room of contexts assembled from the view: the planner then leaves no more of
    /// the view as it is than fits.
    pub room: Option<Room>,
    /// Why it is run. By default because somebody asked for it.
    pub reason: CompactionReason,
    /// The state of the view that a run, [`Compaction::publish_ready`] and
    /// [`Compaction::extract_to_fit`] begin with, for a caller that has just read it; `None` to
    /// read it. A state of another conversation or view is ignored, and an outdated one costs a
    /// lost race.
    pub snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
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

impl<'a> Compaction<'a> {
    /// A compaction with the default runner policy, without hooks.
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
    pub(crate) async fn read_snapshot(&self) -> Result<Snapshot> {
        Ok(self.store.snapshot(self.conversation, &self.view()).await?)
    }

    /// Returns the state of the view that a run begins with.
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
