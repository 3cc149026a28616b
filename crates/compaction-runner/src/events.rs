//! The events of a compaction, and the hooks that may prevent single changes of the view or supply summaries.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use auto_impl::auto_impl;
use compaction_plan::{CompactionResult, Label, StopReason};
use memory_model::{ConversationId, SeqRange, Summary, SummaryId, ViewName};

use crate::planned_job::PlannedJob;
use crate::reason::CompactionReason;
use crate::report::Cause;

/// An event of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A compaction is about to begin. [`Event::Started`] follows.
    Triggered {
        /// Reason for the compaction.
        reason: CompactionReason,
    },
    /// A compaction began.
    Started {
        /// Id of the conversation.
        conversation: ConversationId,
        /// Name of the compacted view.
        view: ViewName,
        /// Cost of the view before the compaction, in tokens.
        tokens: u64,
    },
    /// A job (a planned change of the view) was applied, and the view shows its new spans.
    Published {
        /// Kind of the change, named by the planner.
        kind: Label,
        /// Id of the new summary. `None` for a change without a new summary.
        summary: Option<SummaryId>,
        /// Range of messages that the new spans cover.
        range: SeqRange,
        /// Cost of the replaced spans, in tokens.
        source_tokens: u64,
        /// Cost of the new spans, in tokens. Messages that the view still shows unchanged do not count.
        tokens: u64,
    },
    /// The model did not write a summary. An extract or a shortened text is used instead, or the messages stay
    /// unchanged.
    ModelFailed {
        /// Range of messages to summarize.
        range: SeqRange,
        /// Reason why the model wrote no summary.
        cause: Cause,
    },
    /// A job (a planned change of the view) was skipped.
    Skipped {
        /// Range of messages that the job would have replaced.
        range: SeqRange,
        /// Reason why the job was skipped.
        reason: SkipReason,
    },
    /// A job (a planned change of the view) failed, and the view was not changed.
    Failed {
        /// Range of messages that the job would have replaced.
        range: SeqRange,
        /// Description of the error, in one sentence.
        error: String,
    },
    /// The compaction ended.
    Ended {
        /// Reason why the compaction ended.
        stop: StopReason,
        /// Cost of the view at the end, in tokens.
        tokens: u64,
        /// Whether the caller should repeat a request that a provider refused as too long. True if the reason of the
        /// compaction is [`CompactionReason::Overflow`] and the view became smaller.
        will_retry: bool,
    },
    /// A hook failed to decide about a job (a planned change of the view). The job continues as if there were no such
    /// hook.
    HookFailed {
        /// Range of messages that the job replaces.
        range: SeqRange,
        /// Description of the hook's failure.
        error: String,
    },
}

impl Event {
    /// Returns whether this event is the end of a cancelled compaction.
    pub fn is_aborted(&self) -> bool {
        matches!(
            self,
            Event::Ended {
                stop: StopReason::Cancelled,
                ..
            }
        )
    }
}

/// Reason why a job (a planned change of the view) was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A hook prevented the job.
    Vetoed,
    /// Another owner has the lease (an exclusive claim) on the job.
    Held,
    /// Another writer changed the same range of the view (the compacted log) first.
    Lost,
    /// The job could not make its sources shorter.
    CannotShrink,
    /// The view fits without the summary, which a model is to write later: the model just failed in a way that may pass,
    /// or it failed to write one of the summary's sources, or one of them was rejected.
    WaitsForModel,
    /// The run publishes only prefetched summaries, and the summary of this job was not prefetched.
    NotReady,
}

/// Decision of a hook about a job (a planned change of the view) that is about to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDecision {
    /// Carry out the job.
    #[default]
    Proceed,
    /// Skip the job.
    Cancel,
    /// Use this text as the summary, without calling a model. Has no effect on a job that writes no summary.
    Supply(String),
    /// The hook failed to decide, for the given reason. The job is carried out, and [`Event::HookFailed`] is emitted.
    Fail(String),
}

/// Decision of a hook about a whole compaction that is about to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionDecision {
    /// Carry out the compaction.
    #[default]
    Proceed,
    /// Carry out no compaction. Nothing is written, and no model is called.
    Cancel,
    /// Publish this result in place of the planned changes, without calling a model. The compaction fails if its
    /// planner does not plan handoffs, if the text is blank, or if the first kept entry does not exist.
    Supply(Box<CompactionResult>),
}

/// Callbacks that observe a compaction and may prevent its jobs: single changes of the view (the compacted log), such
/// as a summary. The default implementations allow all jobs and ignore events.
#[async_trait]
#[auto_impl(Arc)]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// Called once before a compaction changes the view (the compacted log) or calls a model. `first` is its first job
    /// (a planned change of the view), and [`PlannedJob::jobs`] has all jobs that begin together: those of a handoff
    /// are complete. Returns whether the compaction is carried out, and may supply its whole result. Not called for
    /// summaries that are only written in advance, but before they are published.
    async fn before_compaction(&self, _first: &PlannedJob<'_>) -> CompactionDecision {
        CompactionDecision::Proceed
    }

    /// Called before a job (a planned change of the view) begins. Returns whether the job is carried out, and may
    /// supply the text of its summary.
    async fn before(&self, _job: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Proceed
    }

    /// Called after a summary was published. Not called for changes of the view without a new summary: only
    /// [`Event::Published`] reports them.
    async fn after(&self, _summary: &Summary) {}

    /// Called on every event of a compaction.
    async fn event(&self, _event: &Event) {}
}

/// Hooks that allow all changes of the view (the compacted log) and ignore all events.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {}

/// Hooks that record every event, for tests and as an example.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl Recorder {
    /// Creates a recorder without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the recorded events, in order.
    pub fn events(&self) -> Vec<Event> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[async_trait]
impl Hooks for Recorder {
    async fn event(&self, event: &Event) {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event.clone());
    }
}
