//! Settings of a compaction, and the traits of strategies.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::{Clock, Message, SystemClock};
use serde::{Deserialize, Serialize};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _, default_estimator};
use turn_map::TrimPolicy;

use crate::block::{CompactedSection, CompactionBlock, TurnRange};
use crate::error::Result;
use crate::session::LoopRecord;
use crate::turns::TurnMap;

/// Rule for the number of loops before the last one that are compacted and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompactionScope {
    /// A fixed number of loops. Default: 3.
    FixedCount(usize),
    /// As many as fit into the maximum cost of a context once they are compacted. A loop counts the cost of its block;
    /// a loop without a block counts its messages, but at most `max_summary_tokens`. A loop may be in scope although
    /// its messages alone exceed a context.
    TokenBudget,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

impl CompactionScope {
    /// Returns the number of older loops in scope. The loops are passed newest first.
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

/// Settings of a compaction: when it is due, how it compacts, and with which strategies.
///
/// The serialized form lacks the strategies, the estimator and the clock. Absent fields have their defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionConfig {
    /// Share of the window from which headroom is measured. Default 0.90.
    pub compact_at_pct: f64,
    /// Minimum headroom, as a share of the window: a compaction is due below it. Default 0.05. For a window of 100,000
    /// tokens and a system prompt of 4,000, a compaction is due above 81,000 tokens.
    pub compact_budget_threshold_pct: f64,
    /// Loops before the last one that are compacted and shown. Default: 3.
    pub compaction_scope: CompactionScope,
    /// Number of turns at the beginning of the last loop that are shown unchanged. Default 2; 0 for none.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the last loop that are shown with shortened tool output. Default 10. More if a
    /// tool call and its results would be divided otherwise.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one loop, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Strategy that reduces message lists of callers without a session; `None` for
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy>>,
    /// Strategy that makes blocks; `None` for [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy>>,
    /// Estimator of token counts. Default: [`default_estimator`].
    #[serde(skip)]
    pub estimator: Arc<dyn TokenEstimator>,
    /// Clock for the times of blocks. Default: the system's clock.
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
            in_memory_strategy: None,
            block_strategy: None,
            estimator: default_estimator(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl CompactionConfig {
    /// Whether a compaction is due: whether the headroom `compact_at_pct − system / window − tokens / window` is below
    /// `compact_budget_threshold_pct`. A window of 0 tokens is unknown, and no compaction is due. Shares are exact to
    /// nine decimal places.
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

    /// Returns the cost of messages, in tokens.
    pub(crate) fn cost(&self, messages: &[Message]) -> u64 {
        self.estimator.messages(messages)
    }

    /// Returns the messages with each tool output cut to its first and last lines.
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

/// A model's window and the settings of the compaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextConfig {
    /// Window of the model, in tokens. Default 100,000.
    pub max_context_tokens: u64,
    /// Cost of the system prompt, in tokens. Default 4,000.
    pub system_prompt_tokens: u64,
    /// Settings of the compaction.
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
    /// Maximum cost of the messages, in tokens: the window without the system prompt.
    pub fn message_budget(&self) -> u64 {
        self.max_context_tokens
            .saturating_sub(self.system_prompt_tokens)
    }
}

/// A strategy that makes blocks. Three methods make one section each; [`compact`](Self::compact) combines them.
///
/// The trait is object-safe. Its methods never change the loop.
#[async_trait]
pub trait BlockCompactionStrategy: Send + Sync + Debug {
    /// Returns the turns at the beginning that are shown unchanged; last loop only. By default
    /// [`keep_first_turns`](CompactionConfig::keep_first_turns).
    fn keep_first(
        &self,
        _record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
    ) -> Option<TurnRange> {
        let (first, recent) = (config.keep_first_turns, config.keep_recent_turns);
        turn_map.sections(first, recent).first
    }

    /// Returns the turns at the end with shortened tool output; last loop only. By default
    /// [`keep_recent_turns`](CompactionConfig::keep_recent_turns), with each tool output cut to its first and last
    /// lines.
    fn keep_recent(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
    ) -> Option<CompactedSection> {
        let (first, recent) = (config.keep_first_turns, config.keep_recent_turns);
        let range = turn_map.sections(first, recent).recent?;
        Some(CompactedSection {
            range,
            messages: config.trim(turn_map.messages_for_range(range, &record.messages)),
            omitted: None,
        })
    }

    /// Returns the summary of the middle of the last loop, or of the whole of an older loop. May call a model.
    ///
    /// # Errors
    /// The errors of the strategy.
    async fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<Option<CompactedSection>>;

    /// Makes the block from the three sections.
    ///
    /// # Errors
    /// The errors of [`keep_compacted`](Self::keep_compacted).
    async fn compact(
        &self,
        record: &LoopRecord,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<CompactionBlock> {
        let turn_map = TurnMap::of_loop(&record.messages);
        let (mut keep_first, mut keep_recent) = (None, None);
        if is_most_recent {
            keep_first = self.keep_first(record, &turn_map, config);
            keep_recent = self.keep_recent(record, &turn_map, config);
        }
        let summary = self.keep_compacted(record, &turn_map, config, is_most_recent);
        Ok(CompactionBlock {
            keep_first,
            keep_compacted: summary.await?,
            keep_recent,
            created_at: config.clock.now(),
            covered_messages: Some(record.messages.len()),
        })
    }
}

/// A strategy that reduces lists of messages, for callers without a session. Object-safe. May call a model.
#[async_trait]
pub trait CompactionStrategy: Send + Sync + Debug {
    /// Returns the messages, reduced to [`message_budget`](ContextConfig::message_budget).
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) if that is impossible, and the errors of the strategy.
    async fn compact(&self, messages: Vec<Message>, config: &ContextConfig)
    -> Result<Vec<Message>>;
}
