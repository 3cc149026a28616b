//! When and how to compact.

use std::fmt::Debug;
use std::sync::Arc;

use memory_model::{Clock, Message, SystemClock};
use serde::{Deserialize, Serialize};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _, default_estimator};
use turn_map::TrimPolicy;

use crate::strategy::{
    BlockCompactionStrategy, CompactionStrategy, DefaultBlockCompaction, DefaultCompaction,
};

/// Rule that decides how many loops before the newest one are compacted and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompactionScope {
    /// A fixed number of loops. Default: 3.
    FixedCount(usize),
    /// As many as fit into the maximum cost of a context once they are compacted: a loop counts what its
    /// block costs, and one without a block its messages, but at most `max_summary_tokens`. A loop whose
    /// messages alone exceed a context can be in scope.
    TokenBudget,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

impl CompactionScope {
    /// Returns how many of the older loops, newest first, are in scope.
    pub(crate) fn count<T>(
        self,
        mut older: impl Iterator<Item = T>,
        budget: u64,
        cost: impl Fn(T) -> u64,
    ) -> usize {
        let mut rest = budget;
        let fits = || {
            rest = rest.checked_sub(cost(older.next()?))?;
            Some(())
        };
        match self {
            Self::FixedCount(count) => older.take(count).count(),
            Self::TokenBudget => std::iter::from_fn(fits).count(),
        }
    }
}

/// When to compact, how to compact, and with which strategies.
///
/// Serializes without the strategies, the estimator and the clock. Fields that are absent have their
/// defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionConfig {
    /// Share of the window that headroom is measured from. Default 0.90.
    pub compact_at_pct: f64,
    /// Compaction begins when less than this share of the window is left below it. Default 0.05: with
    /// a window of 100,000 tokens and a system prompt of 4,000 above 81,000 tokens.
    pub compact_budget_threshold_pct: f64,
    /// Loops before the newest one that are compacted and shown. Default: 3.
    pub compaction_scope: CompactionScope,
    /// Turns at the beginning of the newest loop that are shown as they are. Default 2; 0 for none.
    pub keep_first_turns: usize,
    /// Turns at the end of the newest loop that are shown with shortened tool output. Default 10. More
    /// if a tool call and its results would be divided otherwise.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one loop, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Reduces message lists of callers without a session. Default: [`DefaultCompaction`].
    #[serde(skip)]
    pub in_memory_strategy: Arc<dyn CompactionStrategy>,
    /// Makes blocks. Default: [`DefaultBlockCompaction`].
    #[serde(skip)]
    pub block_strategy: Arc<dyn BlockCompactionStrategy>,
    /// Counts tokens. Default: [`default_estimator`].
    #[serde(skip)]
    pub estimator: Arc<dyn TokenEstimator>,
    /// Tells the time of blocks. Default: the system's clock.
    #[serde(skip)]
    pub clock: Arc<dyn Clock>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            compact_at_pct: 0.90,
            compact_budget_threshold_pct: 0.05,
            compaction_scope: CompactionScope::default(),
            keep_first_turns: 2,
            keep_recent_turns: 10,
            max_summary_tokens: 2_000,
            tool_output_max_lines: 50,
            in_memory_strategy: Arc::new(DefaultCompaction),
            block_strategy: Arc::new(DefaultBlockCompaction),
            estimator: default_estimator(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl CompactionConfig {
    /// Whether it is time to compact: whether the headroom `compact_at_pct − system / window − tokens /
    /// window` is below `compact_budget_threshold_pct`. A window of 0 tokens is unknown and never is.
    /// Shares are exact to nine decimal places.
    ///
    /// ```
    /// use block_overlay::CompactionConfig;
    ///
    /// let config = CompactionConfig::default();
    /// assert!(!config.is_due(81_000, 100_000, 4_000));
    /// assert!(config.is_due(81_001, 100_000, 4_000));
    /// ```
    pub fn is_due(&self, tokens: u64, window: u64, system_tokens: u64) -> bool {
        const BILLION: i128 = 1_000_000_000;
        let (at, least) = (self.compact_at_pct, self.compact_budget_threshold_pct);
        if window == 0 || at.is_nan() || least.is_nan() {
            return false;
        }
        let billionths = |share: f64| (share.clamp(-1e9, 1e9) * 1e9).round() as i128;
        let used = i128::from(tokens) + i128::from(system_tokens);
        used * BILLION > (billionths(at) - billionths(least)) * i128::from(window)
    }

    /// Cost of messages, in tokens.
    pub(crate) fn cost(&self, messages: &[Message]) -> u64 {
        self.estimator.messages(messages)
    }

    /// The messages with each tool output cut to its first and last lines.
    pub(crate) fn trim(&self, messages: &[Message]) -> Vec<Message> {
        let policy = TrimPolicy::ToolOutputLines {
            lines: self.tool_output_max_lines,
        };
        let trim = |message: &Message| policy.trim(message, "", &self.estimator);
        let trimmed = messages
            .iter()
            .map(|message| trim(message).unwrap_or_else(|| message.clone()));
        trimmed.collect()
    }
}

/// A model's window, and what to do when it fills up.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextConfig {
    /// Window of the model, in tokens. Default 100,000.
    pub max_context_tokens: u64,
    /// Cost of the system prompt, in tokens. Default 4,000.
    pub system_prompt_tokens: u64,
    /// When and how to compact.
    pub compaction: CompactionConfig,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self {
            max_context_tokens: 100_000,
            system_prompt_tokens: 4_000,
            compaction: CompactionConfig::default(),
        }
    }
}

impl ContextConfig {
    /// Tokens that messages may cost: the window without the system prompt.
    pub fn message_budget(&self) -> u64 {
        self.max_context_tokens
            .saturating_sub(self.system_prompt_tokens)
    }
}
