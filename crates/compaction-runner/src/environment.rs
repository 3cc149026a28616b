//! The settings of a compaction, used by all modules that carry out a plan.

use compaction_plan::{Goal, Planner, Room};
use memory_model::conventions::{AgentConventions, GenericConventions};
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

/// Default of [`Compaction::extractive`].
static GENERIC_EXTRACTS: ExtractiveSummarizer = ExtractiveSummarizer::new();

/// Settings of the compaction of one conversation, and the methods that run it.
///
/// No lock and no transaction is held during a model call. If the future of a run is dropped, the store has all
/// summaries that were published before.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    /// Store with the conversation.
    pub store: &'a dyn Store,
    /// Id of the conversation to compact.
    pub conversation: ConversationId,
    /// Planner that decides which spans of the view (ranges of messages and their forms) are compacted.
    pub planner: &'a dyn Planner,
    /// Summarizer that writes the summaries.
    pub summarizer: &'a dyn Summarizer,
    /// Summarizer that writes extracts without a model. It is used for the ladder's tier `extractive`, and to make a
    /// view fit its maximum cost. The default summarizer knows the conventions of no particular agent: it interprets
    /// tool calls only by the names of their arguments.
    pub extractive: &'a dyn Summarizer,
    /// Conventions of the agent that took part in the conversation. By them a prompt tells what the user typed from what
    /// programs added. Default: the conventions of no particular agent.
    pub conventions: &'a dyn AgentConventions,
    /// Methods (tiers) of summarizing that are tried in order for each summary, and the rules for accepting a summary.
    pub ladder: &'a Ladder,
    /// Counts the tokens of messages and summaries.
    pub accounting: &'a dyn Accounting,
    /// Clock for timestamps and durations.
    pub clock: &'a dyn Clock,
    /// Settings of concurrency, leases, prefetching and publication.
    pub policy: RunnerPolicy,
    /// Callbacks that receive every event, and may prevent single changes of the view (the compacted log), such as a
    /// summary. Default: none.
    pub hooks: &'a dyn Hooks,
    /// Token that cancels the compaction.
    pub cancel: CancellationToken,
    /// Jobs (summaries to write) that compactions of the same owner are working on. Share one list among all
    /// compactions of the owner, so that no two of them pay for the same summary at the same time. Leases do not
    /// prevent this, because the store grants a lease to its owner again.
    pub in_flight: InFlight,
    /// Decides whether the owner of another lease has ended. Leases of an ended owner are taken over.
    pub liveness: &'a dyn Liveness,
    /// Additional instructions for the summarizer, such as subjects to keep. `None` for no instructions.
    pub instructions: Option<String>,
    /// Maximum cost of the view (the compacted log) so that contexts can show all of it. `None` if it is not known. If
    /// it is known, the planner keeps only as many messages unchanged as fit.
    pub room: Option<Room>,
    /// Maximum cost of the view (the compacted log), in tokens, up to which summaries of summaries wait for a model that
    /// fails at the moment. Above it they are written without the model. `None` for the maximum of `room`. Without both
    /// they always wait.
    pub fits: Option<u64>,
    /// Reason for the compaction, for events. Default: [`CompactionReason::Manual`].
    pub reason: CompactionReason,
    /// State of the view (the compacted log) at the start of a run, if the caller has just read it. Used by runs,
    /// [`Compaction::publish_ready`] and [`Compaction::extract_to_fit`]. With `None` the state is read from the store.
    /// A state of another conversation or view is ignored. With an outdated state the first publish fails, as if
    /// another writer had been first.
    pub snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
}

/// Part of a compaction that a run carries out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Prepares changes of the view (for example writes summaries), and publishes them.
    #[default]
    Whole,
    /// Only prepares changes of the view (for example writes summaries), and does not publish them.
    Prepare,
    /// Publishes changes of the view that are already prepared. Calls no summarizer.
    PublishReady,
    /// Publishes one summary of any length that the caller or a hook supplied. Calls no summarizer.
    Supplied,
    /// Publishes extracts (summaries written without a model) until the view fits its maximum cost. Calls only the
    /// extractive summarizer.
    Fit,
}

impl<'a> Compaction<'a> {
    /// Creates a compaction. All settings that are not parameters have their defaults: no hooks, no instructions, and
    /// no maximum cost of the view (the compacted log).
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
            conventions: &GenericConventions,
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
            fits: None,
            reason: CompactionReason::Manual,
            snapshot: None,
            stage: Stage::Whole,
        }
    }
}

impl Compaction<'_> {
    /// Returns the same settings for a run of another [`Stage`].
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

    /// Returns the number of tokens that a view of this cost must lose so that it fits. If no summary may wait, returns
    /// `u64::MAX`.
    pub(crate) fn excess(&self, tokens: u64) -> u64 {
        let most = self.fits.or(self.room.map(|room| room.tokens));
        match self.stage {
            Stage::Fit => u64::MAX,
            _ => most.map_or(0, |most| tokens.saturating_sub(most)),
        }
    }

    /// Returns the extent to which the planner compacts the view.
    pub(crate) fn goal(&self) -> Goal {
        match self.stage {
            Stage::Fit => Goal::Fit,
            _ => Goal::Policy,
        }
    }

    /// Returns whether the summaries of all passes (planning rounds) are published together at the end of an iteration.
    /// Later passes use these summaries before they are in the store. This is done only for provisional summaries,
    /// which can be made again without a model.
    pub(crate) fn puts_off(&self) -> bool {
        self.summarizer.provisional() && matches!(self.stage, Stage::Whole | Stage::Fit)
    }

    /// Returns whether the summaries of a pass (planning round) are published together or not at all.
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

    /// Returns the state of the view at the start of a run.
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
