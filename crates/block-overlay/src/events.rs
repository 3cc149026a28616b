//! What a compaction tells, and where a host may step in.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use compaction_plan::StopReason;

/// Something that happened in a compaction. The names and the fields are those of the events that
/// runs over a store tell, with loops in the place of ranges of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionEvent {
    /// A compaction began.
    Started {
        /// Id of the newest loop; `None` without a session.
        loop_id: Option<String>,
        /// Number of messages in the context.
        messages: usize,
        /// Their cost, in tokens.
        tokens: u64,
    },
    /// A loop got a block.
    Published {
        /// Id of the loop.
        loop_id: String,
        /// Cost of the loop's messages, in tokens.
        source_tokens: u64,
        /// Cost of what its block shows, in tokens.
        tokens: u64,
    },
    /// Nothing was compacted.
    Skipped {
        /// Why.
        reason: StopReason,
    },
    /// A compaction failed; nothing changed.
    Failed {
        /// Why, in a sentence.
        error: String,
    },
    /// A compaction ended.
    Ended {
        /// Why.
        stop: StopReason,
        /// Number of messages before.
        messages_before: usize,
        /// Number of messages in the context now.
        messages_after: usize,
        /// Their cost before, in tokens.
        tokens_before: u64,
        /// Their cost now, in tokens.
        tokens_after: u64,
        /// Number of loops that got a block; 0 without a session.
        loops_compacted: usize,
    },
}

/// A hook's decision about a compaction that is about to begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionDecision {
    /// Go on.
    #[default]
    Proceed,
    /// Do not compact this time.
    Refuse,
}

/// The context before a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeforeCompaction {
    /// Number of messages.
    pub messages: usize,
    /// Their cost, in tokens, without the system prompt.
    pub tokens: u64,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionOutcome {
    /// Why it stopped: [`StopReason::PassesDone`] when it compacted, [`StopReason::BelowThreshold`] when it
    /// was not due, [`StopReason::Cancelled`] when a hook refused, [`StopReason::NothingEligible`] when it
    /// is turned off.
    pub stop: StopReason,
    /// Number of messages before.
    pub messages_before: usize,
    /// Number of messages in the context now.
    pub messages_after: usize,
    /// Their cost before, in tokens.
    pub tokens_before: u64,
    /// Their cost now, in tokens.
    pub tokens_after: u64,
    /// Ids of the loops that got a block, newest first; none without a session.
    pub loops_compacted: Vec<String>,
    /// Whether the context with the system prompt fits into the window now.
    pub fits: bool,
}

/// Callbacks of a compaction. All methods do nothing unless implemented.
///
/// Several hooks are called at the same time; one that refuses is enough.
#[async_trait]
pub trait CompactionHooks: Send + Sync + Debug {
    /// Called before a compaction: may refuse it.
    async fn before(&self, _context: &BeforeCompaction) -> CompactionDecision {
        CompactionDecision::Proceed
    }

    /// Called after a compaction.
    async fn after(&self, _outcome: &CompactionOutcome) {}

    /// Called on every event.
    async fn event(&self, _event: &CompactionEvent) {}
}

/// Hooks that keep every event: for tests, and as an example.
#[derive(Debug, Clone, Default)]
pub struct EventRecorder {
    events: Arc<Mutex<Vec<CompactionEvent>>>,
}

impl EventRecorder {
    /// The events so far.
    pub fn events(&self) -> Vec<CompactionEvent> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[async_trait]
impl CompactionHooks for EventRecorder {
    async fn event(&self, event: &CompactionEvent) {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event.clone());
    }
}
