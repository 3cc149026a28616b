//! The entry point.

use token_estimate::TokenEstimator;

use crate::source::Source;
use crate::{compose, gather};

/// Makes extracts of conversations: deterministic, without a model.
///
/// Of messages it takes what the user asked for, what the assistant concluded and decided, errors
/// and what was said right after them, what the tools did and how that ended, what edits changed,
/// the files read and changed, and names, numbers and addresses; of summaries their most valuable
/// lines. Newer material ranks higher, and lines are printed in the order of the conversation,
/// behind what was asked last and how it stands. Each line carries the `[seq]` of its message.
///
/// Time is linear in the source; a huge message is read at its head and its tail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtractiveSummarizer(());

impl ExtractiveSummarizer {
    /// Returns a summarizer.
    pub const fn new() -> Self {
        Self(())
    }

    /// Returns the name and version of what is written, such as `extractive@3`. Two summarizers
    /// that may write different texts have different ids.
    pub fn id(&self) -> &str {
        "extractive@3"
    }

    /// Returns an extract of `source` that costs at most `max_tokens`, as `estimator` counts. A
    /// budget too small for one whole line gives the beginning of the most important one; a budget
    /// of 0 gives an empty text.
    pub fn extract(
        &self,
        source: &[Source<'_>],
        max_tokens: u64,
        estimator: &dyn TokenEstimator,
    ) -> String {
        let mut gathered = gather::gather(source);
        compose::compose(&mut gathered, source, max_tokens, estimator)
    }
}
