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
        /// The conversation.
        conversation: ConversationId,
        /// The view.
        view: ViewName,
        /// Cost of the view, in tokens.
        tokens: u64,
    },
    /// A job was published.
    Published {
        /// The planner's name for the kind of job.
        kind: Label,
        /// The summary; `None` for a job that replaces spans without one.
        summary: Option<SummaryId>,
        /// Range of the new spans.
        range: SeqRange,
        /// Cost of the replaced spans, in tokens.
        source_tokens: u64,
        /// Cost of the new spans, in tokens, without messages that are shown unchanged.
        tokens: u64,
    },
    /// The model did not write a summary. An extract or a cut replaces the messages instead, or they stay.
    ModelFailed {
        /// Range of the summary.
        range: SeqRange,
        /// Cause of the failure.
        cause: Cause,
    },
    /// A job was skipped.
    Skipped {
        /// Range of the job.
        range: SeqRange,
        /// Reason for the skip.
        reason: SkipReason,
    },
    /// A job failed and was not published.
    Failed {
        /// Range of the job.
        range: SeqRange,
        /// Description of the error, in a sentence.
        error: String,
    },
    /// The compaction ended.
    Ended {
        /// Reason for the end.
        stop: StopReason,
        /// Cost of the view at the end, in tokens.
        tokens: u64,
        /// Whether the caller should repeat the refused call: true for a compaction after an overflow that made the
        /// view smaller.
        will_retry: bool,
    },
    /// A hook could not decide about a job. The job proceeds as without the hook.
    HookFailed {
        /// Range of the job.
        range: SeqRange,
        /// Reason, in the hook's words.
        error: String,
    },
}

impl Event {
    /// Whether it is the end of a cancelled compaction.
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

/// Reason for skipping a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A hook cancelled it.
    Vetoed,
    /// Another owner works on it.
    Held,
    /// Another writer published over its range first.
    Lost,
    /// Its source could not be made shorter.
    CannotShrink,
    /// Only prefetched summaries were published, and this one was not prefetched.
    NotReady,
}

/// A hook's decision about a job before it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDecision {
    /// Proceed.
    #[default]
    Proceed,
    /// Skip this job.
    Cancel,
    /// Use this text as the summary, without a model call. A job without a summary proceeds.
    Supply(String),
    /// The hook could not decide, for this reason: proceed, and emit [`Event::HookFailed`].
    Fail(String),
}

/// Callbacks of a compaction. The default implementations are empty.
#[async_trait]
#[auto_impl(Arc)]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// Called before a job begins. May cancel it, or supply the text of its summary.
    async fn before(&self, _job: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Proceed
    }

    /// Called after a summary was published. Jobs without a summary only emit [`Event::Published`].
    async fn after(&self, _summary: &Summary) {}

    /// Called on every event.
    async fn event(&self, _event: &Event) {}
}

/// Hooks without any callback.
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

    /// Returns the events so far.
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
