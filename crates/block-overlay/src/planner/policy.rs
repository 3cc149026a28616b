//! Settings of the planner.

use serde::{Deserialize, Serialize};

use crate::config::{CompactionConfig, CompactionScope, ContextConfig};

/// Method of writing the summaries of loops (runs of the agent).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Digest {
    /// A summary has one line for each turn, and needs no model. Turns with lines that do not fit into the maximum
    /// length are omitted from the view (the compacted log). The default.
    #[default]
    OneLiners,
    /// A summarizer writes one summary of all turns, of at most
    /// [`max_summary_tokens`](BlockPolicy::max_summary_tokens).
    Summarizer,
    /// A summarizer extends the previous summary by the new messages, so that a model reads every message only once.
    Rolling,
}

/// Settings of a [`BlockPlanner`](super::BlockPlanner). The defaults are the same as in [`CompactionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockPolicy {
    /// Number of turns at the beginning of the agent's last run that are shown unchanged. Default 2.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the agent's last run that are shown as messages. Their tool outputs are shortened
    /// to [`tool_output_max_lines`](Self::tool_output_max_lines). Default 10.
    pub keep_recent_turns: usize,
    /// Maximum length of the text of a summary, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines shown of each tool output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Rule for the number of older runs of the agent that the view (the messages and summaries that contexts show)
    /// contains. Default: 3 runs. A run that was once left out is not shown again.
    pub scope: CompactionScope,
    /// Maximum cost of the runs of the agent that are shown, in tokens. Used only for [`CompactionScope::TokenBudget`],
    /// and only if the planner does not know the maximum cost of a context. Default 100,000.
    pub max_context_tokens: u64,
    /// Method of writing the summaries of loops (runs of the agent). Default: [`Digest::OneLiners`].
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
