//! The events of a compaction, and the hooks that may change its jobs.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use auto_impl::auto_impl;
use compaction_plan::{Label, StopReason};
use memory_model::{ConversationId, SeqRange, Summary, SummaryId, ViewName};

use crate::planned_job::PlannedJob;
use crate::reason::CompactionReason;
use crate::report::Cause;

/// An event of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A compaction is about to begin; [`Event::Started`] follows.
    Triggered {
        /// Reason for the compaction.
        reason: CompactionReason,
    },
    /// A compaction began.
    Started {
        /// Id of the conversation that is compacted.
        conversation: ConversationId,
        /// Name of the view that is compacted.
        view: ViewName,
        /// Cost of the view before the compaction, in tokens.
        tokens: u64,
    },
    /// A job was carried out, and its spans are in the view.
    Published {
        /// Name that the planner gives to this kind of job.
        kind: Label,
        /// Id of the new summary; `None` for a job that replaces spans without a summary.
        summary: Option<SummaryId>,
        /// Range of messages that the new spans cover.
        range: SeqRange,
        /// Cost of the replaced spans, in tokens.
        source_tokens: u64,
        /// Cost of the new spans, in tokens, without messages that the view still shows unchanged.
        tokens: u64,
    },
    /// The model did not write a summary. An extract or a cut replaces the messages instead, or they stay unchanged.
    ModelFailed {
        /// Range of messages that the summary was for.
        range: SeqRange,
        /// Cause for which the model wrote no summary.
        cause: Cause,
    },
    /// A job was skipped.
    Skipped {
        /// Range of messages that the skipped job was for.
        range: SeqRange,
        /// Reason for skipping the job.
        reason: SkipReason,
    },
    /// A job failed and was not published.
    Failed {
        /// Range of messages that the failed job was for.
        range: SeqRange,
        /// Description of the error, in one sentence.
        error: String,
    },
    /// The compaction ended.
    Ended {
        /// Reason for which the compaction ended.
        stop: StopReason,
        /// Cost of the view at the end, in tokens.
        tokens: u64,
        /// Whether the caller should repeat the request that a provider refused as too long. True for a compaction with
        /// the reason [`CompactionReason::Overflow`] that made the view smaller.
        will_retry: bool,
    },
    /// A hook could not decide about a job. The job proceeds as without the hook.
    HookFailed {
        /// Range of messages that the job is for.
        range: SeqRange,
        /// Reason that the hook gave for its failure.
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

/// Reason for which a job was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A hook prevented the job.
    Vetoed,
    /// Another owner holds the lease on the job.
    Held,
    /// Another writer changed the job's range first.
    Lost,
    /// The source of the job could not be made shorter.
    CannotShrink,
    /// Only prefetched summaries were published, and the summary of this job was not prefetched.
    NotReady,
}

/// Decision of a hook about a job that is about to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDecision {
    /// Carries the job out.
    #[default]
    Proceed,
    /// Skips the job.
    Cancel,
    /// Carries the job out with this text as the summary, without calling a model. Has no effect on a job that writes
    /// no summary.
    Supply(String),
    /// Reports that the hook could not decide, with the reason. The job is carried out, and [`Event::HookFailed`] is
    /// emitted.
    Fail(String),
}

/// Callbacks that observe a compaction and may prevent its jobs. The default implementations allow all jobs and ignore
/// events.
#[async_trait]
#[auto_impl(Arc)]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// Called before a job begins. Returns whether to carry the job out, and may supply the text of its summary.
    async fn before(&self, _job: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Proceed
    }

    /// Called after a summary was published. For jobs that write no summary, only [`Event::Published`] is emitted.
    async fn after(&self, _summary: &Summary) {}

    /// Called on every event of a compaction.
    async fn event(&self, _event: &Event) {}
}

/// Hooks that allow all jobs and ignore all events.
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
    /// Creates a recorder that holds no events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the events that were recorded so far, in order.
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
