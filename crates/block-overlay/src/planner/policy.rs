//! The planner's policy.

use serde::{Deserialize, Serialize};

use crate::config::{CompactionConfig, CompactionScope};
use crate::one_liner::OneLiners;

/// Rule that decides where the loops of a log begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopRule {
    /// Where a message names another loop than the one before; where messages name none, at each
    /// prompt of the user. The default.
    #[default]
    Named,
    /// At each prompt of the user: a user message without tool results that does not follow another one.
    Prompts,
}

/// What writes the summaries that are planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Digest {
    /// One line a turn. The planner knows these lines, so a summary covers the turns whose lines fit,
    /// and the others are omitted. The default.
    #[default]
    OneLiners,
    /// A summarizer that digests all turns within the tokens for a summary.
    Summarizer,
}

/// How a log becomes blocks. Defaults are those of [`CompactionConfig`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BlockPolicy {
    /// Turns at the beginning of the newest loop that are shown as they are. Default 2.
    pub keep_first_turns: usize,
    /// Turns at the end of the newest loop that are shown with shortened tool output. Default 10.
    pub keep_recent_turns: usize,
    /// Maximum length of the text of one summary, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Loops before the newest one that are shown. Default: 3. What was omitted once because it was out
    /// of scope stays so.
    pub scope: CompactionScope,
    /// Maximum cost of the loops in scope for a scope by tokens, where the room of contexts is not
    /// known. Default 100,000.
    pub max_context_tokens: u64,
    /// Where loops begin. Default: where messages name another one, else at prompts.
    pub loops: LoopRule,
    /// What writes the summaries. Default: one line a turn.
    pub digest: Digest,
    /// What a turn's line holds. Default: the words of the user and of the assistant.
    pub one_liners: OneLiners,
    /// Whether a summary of more messages is made of the summary before and the new messages, so that a
    /// model reads every message once only. Default false: of all messages. Has no effect on
    /// [`Digest::OneLiners`].
    pub rolling: bool,
}

impl Default for BlockPolicy {
    fn default() -> Self {
        Self::from(&CompactionConfig::<()>::default())
    }
}

impl<M> From<&CompactionConfig<M>> for BlockPolicy {
    fn from(config: &CompactionConfig<M>) -> Self {
        Self {
            keep_first_turns: config.keep_first_turns,
            keep_recent_turns: config.keep_recent_turns,
            max_summary_tokens: config.max_summary_tokens,
            tool_output_max_lines: config.tool_output_max_lines,
            scope: config.compaction_scope,
            max_context_tokens: 100_000,
            loops: LoopRule::default(),
            digest: Digest::default(),
            one_liners: config.one_liners,
            rolling: false,
        }
    }
}

impl BlockPolicy {
    /// Sets how many turns are kept at the beginning and at the end of the newest loop.
    #[must_use]
    pub fn with_kept_turns(mut self, first: usize, recent: usize) -> Self {
        (self.keep_first_turns, self.keep_recent_turns) = (first, recent);
        self
    }

    /// Sets the maximum length of the text of one summary, in tokens.
    #[must_use]
    pub fn with_max_summary_tokens(mut self, tokens: u64) -> Self {
        self.max_summary_tokens = tokens;
        self
    }

    /// Sets which loops are shown.
    #[must_use]
    pub fn with_scope(mut self, scope: CompactionScope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets where loops begin.
    #[must_use]
    pub fn with_loops(mut self, rule: LoopRule) -> Self {
        self.loops = rule;
        self
    }

    /// Sets what writes the summaries.
    #[must_use]
    pub fn with_digest(mut self, digest: Digest) -> Self {
        self.digest = digest;
        self
    }

    /// Sets whether a summary is made of the summary before and the new messages.
    #[must_use]
    pub fn with_rolling(mut self, rolling: bool) -> Self {
        self.rolling = rolling;
        self
    }
}
