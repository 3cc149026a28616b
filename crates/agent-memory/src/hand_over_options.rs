//! Options of handoffs.

use std::sync::Arc;

use compaction_runner::{CancellationToken, CompactionReason};
use summarize_escalation::{Ladder, OnEmpty, OnError, Summarizer, Tier};

use crate::runner::Runner;

/// Reason for a failed handoff if the model's answer is empty, in the words of the agent anna.
pub(crate) const EMPTY: &str = "empty summary response";

/// Returns the ladder of handoffs for which a model writes: a summary that failed or is empty is an error, and no extract
/// replaces it.
pub(crate) fn failing() -> Ladder {
    Ladder {
        on_error: OnError::Fail,
        on_empty: OnEmpty::Fail,
        ..Ladder::default()
    }
}

/// Returns a ladder on which only the model writes summaries, and a failure is an error.
pub(crate) fn model_only() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal],
        gate: None,
        ..failing()
    }
}

/// Options for a handoff: see [`Session::hand_over`](crate::Session::hand_over). With [`Builder::handoff_options`], automatic handoffs use the
/// same options.
///
/// [`Builder::handoff_options`]: crate::Builder::handoff_options
#[derive(Debug, Clone, Default)]
pub struct HandOver {
    /// Instructions of the user for the summary; `None` for no instructions.
    pub instructions: Option<String>,
    /// Reason for the handoff, which is part of the events that hooks receive.
    pub reason: CompactionReason,
    /// Token with which the caller can cancel the handoff.
    pub cancel: CancellationToken,
    /// Minimum number of messages that contexts show, not counting summaries. A session with fewer messages is skipped.
    /// A handoff by [`Session::request_compaction`](crate::Session::request_compaction) has no minimum. Default 0.
    pub min_messages: u64,
    /// Summarizer that writes the summary; `None` for the memory's summarizer. No other summarizer and no extract
    /// replaces it: if it fails, the session stays unchanged. For a chat model, give an
    /// [`LlmSummarizer`](crate::summaries::LlmSummarizer).
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// The agent's own runner, to write the summary in place of any summarizer; `None` for no runner. No other model
    /// and no extract replaces the runner: if the runner fails, the session stays unchanged. After a handoff, a runner that is not
    /// [stateful](Runner::stateful) is reset once.
    pub runner: Option<Arc<dyn Runner>>,
    /// Model that the runner uses for the handoff; `None` for its current model. Afterwards the runner gets its
    /// previous model again.
    pub runner_model: Option<String>,
}
