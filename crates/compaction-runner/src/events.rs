//! What a compaction tells, and where others may step in.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use auto_impl::auto_impl;
use compaction_plan::{Label, StopReason};
use memory_model::{ConversationId, SeqRange, Summary, SummaryId, ViewName};

use crate::planned_job::PlannedJob;
use crate::reason::CompactionReason;
use crate::report::Cause;

/// Something that happened in a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A compaction is about to begin; [`Event::Started`] follows.
    Triggered {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction began.
    Started {
        /// The conversation.
        conversation: ConversationId,
        /// The view.
        view: ViewName,
        /// What the view costs, in tokens.
        tokens: u64,
    },
    /// A job was published.
    Published {
        /// The planner's name for the kind of job.
        kind: Label,
        /// The summary; `None` for a job that replaces spans without one.
        summary: Option<SummaryId>,
        /// The messages that the new spans cover.
        range: SeqRange,
        /// Cost of the replaced spans, in tokens.
        source_tokens: u64,
        /// Cost of the new spans, in tokens; messages that are shown as they are do not count.
        tokens: u64,
    },
    /// The model did not write a summary; an extract or a cut stands in its place, or nothing
    /// does.
    ModelFailed {
        /// What the summary covers, or was to cover.
        range: SeqRange,
        /// Why.
        cause: Cause,
    },
    /// A job was passed over.
    Skipped {
        /// What it was to cover.
        range: SeqRange,
        /// Why.
        reason: SkipReason,
    },
    /// A job failed; nothing was published for it.
    Failed {
        /// What it was to cover.
        range: SeqRange,
        /// Why, in a sentence.
        error: String,
    },
    /// The compaction ended.
    Ended {
        /// Why.
        stop: StopReason,
        /// What the view costs now, in tokens.
        tokens: u64,
        /// Whether the refused call is to be made again: a compaction after an overflow that made the view smaller.
        will_retry: bool,
    },
    /// A hook could not decide about a job, which goes on as without it.
    HookFailed {
        /// What the job covers.
        range: SeqRange,
        /// Why, in the hook's words.
        error: String,
    },
}

impl Event {
    /// Whether it is the end of a compaction that was cancelled.
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

/// Why a job was passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A hook said no.
    Vetoed,
    /// Somebody else is at work on it.
    Held,
    /// Somebody else published over its range first.
    Lost,
    /// Nothing shorter could be made of it.
    CannotShrink,
    /// Only prefetched summaries were published, and this one was not prefetched.
    NotReady,
}

/// A hook's decision about a job that is about to begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobDecision {
    /// Go on.
    #[default]
    Proceed,
    /// Leave this job out.
    Cancel,
    /// Take this text for the summary; no model is called. A job that makes no summary proceeds.
    Supply(String),
    /// The hook could not decide, for this reason: go on. [`Event::HookFailed`] tells it.
    Fail(String),
}

/// Callbacks of a compaction. All methods do nothing unless implemented.
#[async_trait]
#[auto_impl(Arc)]
pub trait Hooks: Send + Sync + std::fmt::Debug {
    /// Called before a job is begun: may cancel it, or supply the text of its summary.
    async fn before(&self, _job: &PlannedJob<'_>) -> JobDecision {
        JobDecision::Proceed
    }

    /// Called after a summary was published. Jobs without a summary are told by
    /// [`Event::Published`] alone.
    async fn after(&self, _summary: &Summary) {}

    /// On every event.
    async fn event(&self, _event: &Event) {}
}

/// Hooks that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl Hooks for NoHooks {}

/// Hooks that write down every event: for tests, and as an example.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    events: Arc<Mutex<Vec<Event>>>,
}

impl Recorder {
    /// A recorder that heard nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it heard so far.
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
