//! The planner's policy.

use serde::{Deserialize, Serialize};

use crate::config::{CompactionConfig, CompactionScope, ContextConfig};

/// Method of writing the summaries of loops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    /// A summary consists of one line for each turn. The planner knows these lines in advance, so a summary covers only
    /// the turns of which the lines fit, and the other turns are omitted. The default.
    #[default]
    OneLiners,
    /// A summarizer writes one summary of all turns, limited to
    /// [`max_summary_tokens`](BlockPolicy::max_summary_tokens).
    Summarizer,
    /// A summarizer extends the previous summary by the new messages, so that a model reads every message only once.
    Rolling,
}

/// Policy of a [`BlockPlanner`](super::BlockPlanner). Its defaults are the same as in [`CompactionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockPolicy {
    /// Number of turns at the beginning of the last loop that are shown unchanged. Default 2.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the last loop that stay in the view as messages, with the tool output of each
    /// shortened to [`tool_output_max_lines`](Self::tool_output_max_lines). Default 10.
    pub keep_recent_turns: usize,
    /// Maximum length of the text of one summary, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines that are shown of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Rule for the number of loops before the last one that the view shows. Default: 3 loops. A loop that was once out
    /// of scope and omitted stays omitted.
    pub scope: CompactionScope,
    /// Maximum cost of the loops in scope, in tokens. Used only for [`CompactionScope::TokenBudget`], and only if the
    /// size of contexts is not known. Default 100,000.
    pub max_context_tokens: u64,
    /// Method of writing the summaries. Default: [`Digest::OneLiners`].
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
