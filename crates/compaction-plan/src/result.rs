//! A whole compaction by one summary.

use memory_model::{EntryRef, RawJson};

/// A whole compaction: one summary, and the first entry that stays unchanged after it. A program that writes summaries
/// itself appends it, and a hook supplies it in place of the planned compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionResult {
    /// Text of the summary. It may have any length.
    pub summary: String,
    /// First entry that is kept unchanged. The summary replaces everything before it.
    pub kept_from: EntryRef,
    /// Cost of the context before the compaction, in tokens; `None` to measure the view (the compacted log).
    pub tokens_before: Option<u64>,
    /// Data to store with the summary, such as lists of files.
    pub details: Option<RawJson>,
}

impl CompactionResult {
    /// Creates a result from a summary and the first kept entry: its position, or its external id.
    pub fn new(summary: impl Into<String>, kept_from: impl Into<EntryRef>) -> Self {
        Self {
            summary: summary.into(),
            kept_from: kept_from.into(),
            tokens_before: None,
            details: None,
        }
    }

    /// Sets the cost of the context before the compaction, in tokens.
    pub fn with_tokens_before(mut self, tokens: u64) -> Self {
        self.tokens_before = Some(tokens);
        self
    }

    /// Sets the data to store with the summary.
    pub fn with_details(mut self, details: RawJson) -> Self {
        self.details = Some(details);
        self
    }
}
