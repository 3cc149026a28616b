//! The policies in the document about DAGs of summaries.

use agent_memory::summaries::{OnError, Tier};
use agent_memory::{DagPolicy, compaction::FreshTail, summaries::Ladder};

/// Keeps 20 messages. Each run of 10 or more messages becomes one leaf, and each run of 2 or more summaries of equal
/// depth one condensed summary. Runs at most 10 iterations.
pub(crate) fn dag() -> DagPolicy {
    DagPolicy {
        fresh_tail: FreshTail::messages(20),
        keep_request: false,
        max_source_tokens: None,
        condensed_max: None,
        bridge: false,
        require_gain: false,
        max_iterations: Some(10),
        ..DagPolicy::default()
    }
}

/// Tries normal, aggressive, then cut, and checks only the length. If the model fails, no summary is made.
pub(crate) fn ladder() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Cut],
        on_error: OnError::Fail,
        gate: None,
        ..Ladder::default()
    }
}
