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

/// Store, planner, summarizer and settings of a compaction of one conversation, with the methods that run it.
///
/// No lock and no transaction is held during a model call. If the future of a run is dropped, the store is in the state
/// of the last published summary.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    /// Store that holds the conversation.
    pub store: &'a dyn Store,
    /// Id of the conversation to compact.
    pub conversation: ConversationId,
    /// Planner that decides which spans of the view are compacted.
    pub planner: &'a dyn Planner,
    /// Summarizer that writes the summaries.
    pub summarizer: &'a dyn Summarizer,
    /// Summarizer that writes extracts without a model: for the ladder's tier `extractive`, and to make a view fit. The
    /// default summarizer knows no agent's conventions: it interprets tool calls by the names of their arguments alone.
    pub extractive: &'a dyn Summarizer,
    /// Tiers of summarizing that are tried for each summary, and the rules by which a summary is accepted.
    pub ladder: &'a Ladder,
    /// Counts the tokens of messages and summaries.
    pub accounting: &'a dyn Accounting,
    /// Clock that gives timestamps and measures durations.
    pub clock: &'a dyn Clock,
    /// Settings for carrying out the planned jobs.
    pub policy: RunnerPolicy,
    /// Hooks that receive every event and may prevent jobs. Default: no hooks.
    pub hooks: &'a dyn Hooks,
    /// Token with which the caller can cancel the compaction.
    pub cancel: CancellationToken,
    /// Jobs that the compactions of this owner work on. If compactions with the same owner share the list, no two of
    /// them pay for the same summary at the same time. Leases alone do not prevent this, because the store grants a
    /// lease again to the same owner.
    pub in_flight: InFlight,
    /// Decides whether the owner of another lease has ended, so that its lease can be taken over.
    pub liveness: &'a dyn Liveness,
    /// Additional instructions for the summarizer; `None` for no instructions.
    pub instructions: Option<String>,
    /// Maximum cost of the view of which contexts can show everything; `None` if it is not known. If it is known, the
    /// planner leaves only as many messages unchanged as fit.
    pub room: Option<Room>,
    /// Reason for the compaction, which events report. Default: [`CompactionReason::Manual`].
    pub reason: CompactionReason,
    /// State of the view with which a run, [`Compaction::publish_ready`] and [`Compaction::extract_to_fit`] start, for
    /// a caller that has just read it. `None` reads the state from the store. A state of another conversation or view
    /// is ignored. If the state is outdated, the first publish fails as if another writer had been faster.
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
    /// Creates a compaction with default settings for everything that is not a parameter. It has no hooks, no
    /// instructions and no maximum cost of the view.
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

    /// Returns the owner of the compaction's leases.
    pub(crate) fn owner(&self) -> Owner {
        let name = self.policy.owner.clone();
        Owner(name.unwrap_or_else(|| "compaction".to_owned()))
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
