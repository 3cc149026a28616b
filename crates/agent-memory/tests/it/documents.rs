//! The policies of the document about a DAG of summaries, as values.

use agent_memory::summaries::{OnError, Tier};
use agent_memory::{DagPolicy, compaction::FreshTail, summaries::Ladder};

/// 20 messages stay, each run of 10 or more becomes one leaf, each run of 2 or more summaries of equal depth one
/// condensed summary, at most 10 iterations.
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

/// Normal, aggressive, cut, by length alone. A model that fails makes no summary.
pub(crate) fn ladder() -> Ladder {
    Ladder {
        tiers: vec![Tier::Normal, Tier::Aggressive, Tier::Cut],
        on_error: OnError::Fail,
        gate: None,
        ..Ladder::default()
    }
}
