//! The context that was sent with the last model call.

use context_assembler::{Context, DegradationStep};

/// Figures of a context that was sent to a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentContext {
    /// Cost of the context's messages and of the tools, in estimated tokens.
    pub(crate) tokens: u64,
    /// Cost of the content that the context left out to fit its budget, in estimated tokens.
    pub(crate) left_out: u64,
}

impl SentContext {
    pub(crate) fn of(context: &Context) -> Self {
        let receipt = &context.receipt;
        let dropped = receipt.dropped.iter().map(|dropped| dropped.tokens);
        let shortened = receipt.shortened.iter();
        let shortened = shortened.map(|form| form.from_tokens.saturating_sub(form.to_tokens));
        let digests = receipt.degraded.iter();
        let digests = digests.filter(|degraded| degraded.step == DegradationStep::Digest);
        let digests = digests.map(|digest| digest.from_tokens.saturating_sub(digest.to_tokens));
        Self {
            tokens: context.tokens.saturating_add(receipt.tools_tokens),
            left_out: dropped
                .chain(shortened)
                .chain(digests)
                .fold(0, u64::saturating_add),
        }
    }
}
