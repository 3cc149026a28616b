//! The planner's policy.

use serde::{Deserialize, Serialize};

use crate::config::{CompactionConfig, CompactionScope, ContextConfig};

/// The method of writing the planned summaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    /// One line a turn. The planner knows these lines, so a summary covers the turns with lines that fit, and the
    /// others are omitted. The default.
    #[default]
    OneLiners,
    /// A summarizer that digests all turns within the tokens for a summary.
    Summarizer,
    /// A summarizer that extends a summary from the summary before and the new messages, so that a model reads every
    /// message only once.
    Rolling,
}

/// Rules that turn a log into blocks. Defaults are the same as in [`CompactionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockPolicy {
    /// Number of turns at the beginning of the last loop that are shown unchanged. Default 2.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the last loop that are shown with shortened tool output. Default 10.
    pub keep_recent_turns: usize,
    /// Maximum length of the text of one summary, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Loops before the last one that are shown. Default: 3. A loop that was omitted because it was out of scope stays
    /// so.
    pub scope: CompactionScope,
    /// Maximum cost of the loops in scope, for a scope by tokens if the room of contexts is not known. Default 100,000.
    pub max_context_tokens: u64,
    /// Method of writing the summaries. Default: one line a turn.
    pub digest: Digest,
}

impl Default for BlockPolicy {
    fn default() -> Self {
        let config = CompactionConfig::default();
        Self {
            keep_first_turns: config.keep_first_turns,
            keep_recent_turns: config.keep_recent_turns,
            max_summary_tokens: config.max_summary_tokens,
            tool_output_max_lines: config.tool_output_max_lines,
            scope: config.compaction_scope,
            max_context_tokens: ContextConfig::default().max_context_tokens,
            digest: Digest::default(),
        }
    }
}
