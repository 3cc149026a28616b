//! Groups whose results are cleared in a view.

use memory_model::{Seq, SeqRange, Span, SpanBody};
use turn_map::TrimPolicy;

/// A group of messages whose results are cleared in the view.
#[derive(Debug, Clone)]
pub(crate) struct Cleared {
    pub(crate) range: SeqRange,
    /// The span that the view holds.
    pub(crate) span: Span,
    /// Cost of the messages as they are, in tokens, up to `next`.
    pub(crate) raw_tokens: u64,
    /// The first message that was not counted yet.
    pub(crate) next: Seq,
}

/// Whether a span shows cleared results, by whatever policy that this planner may have.
pub(crate) fn is_cleared(span: &Span) -> bool {
    let SpanBody::Trimmed(policy) = &span.body else {
        return false;
    };
    let trim = policy.as_str().parse();
    !matches!(trim, Ok(TrimPolicy::ToolOutputLines { .. }) | Err(_))
}
