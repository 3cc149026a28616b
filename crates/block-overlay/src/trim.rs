//! Shortening tool output.

use token_estimate::TokenEstimator;
use turn_map::{TrimPolicy, apply};

use crate::message::LoopMessage;

/// The messages with each tool output cut to its first and last lines.
pub(crate) fn trim_outputs<M: LoopMessage>(
    messages: &[M],
    lines: usize,
    estimator: &dyn TokenEstimator,
) -> Vec<M> {
    let policy = TrimPolicy::ToolOutputLines { lines };
    let edits = messages
        .iter()
        .enumerate()
        .flat_map(|(position, message)| policy.edits(position, message, "", estimator));
    let edits: Vec<_> = edits.collect();
    apply(messages.to_vec(), &edits)
}
