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

/// Number of loops before the last one that are in scope: compacted and shown in contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompactionScope {
    /// The given number of loops before the last one. Default: 3.
    FixedCount(usize),
    /// As many loops as fit into the maximum cost of a context after their compaction. A loop with a block counts the
    /// cost of the block; a loop without a block counts its messages, but at most `max_summary_tokens`. A loop may be
    /// in scope although its messages alone exceed a context.
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

/// Settings of a compaction: when it is due, which turns it keeps, and which strategies it uses.
///
/// The serialized form does not contain the strategies, the estimator and the clock. Absent fields have their defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionConfig {
    /// Share of the window that the request should not exceed, from 0 to 1. Headroom is the unused part of this share.
    /// Default 0.90.
    pub compact_at_pct: f64,
    /// Minimum headroom, as a share of the window. A compaction is due when less is left. Default 0.05. For a window of
    /// 100,000 tokens and a system prompt of 4,000, a compaction is due above 81,000 tokens.
    pub compact_budget_threshold_pct: f64,
    /// Rule for the number of loops before the last one that are compacted and shown. Default: 3 loops.
    pub compaction_scope: CompactionScope,
    /// Number of turns at the beginning of the last loop that are shown unchanged. Default 2; 0 for none.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the last loop that are shown with shortened tool output. Default 10. More turns
    /// are shown if a tool call would otherwise be separated from its results.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one loop, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines that are shown of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Strategy that shortens the message lists of agents without a session; `None` for
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy>>,
    /// Strategy that makes the blocks of loops; `None` for [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy>>,
    /// Estimator that counts the tokens of messages. Default: [`default_estimator`].
    #[serde(skip)]
    pub estimator: Arc<dyn TokenEstimator>,
    /// Clock that gives the time at which a block is made. Default: the system's clock.
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
    /// Returns whether a compaction is due: whether the headroom, `compact_at_pct − system_tokens / window − tokens /
    /// window`, is below `compact_budget_threshold_pct`. A `window` of 0 means that its size is unknown; then no
    /// compaction is due. Shares are exact to nine decimal places.
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

/// Size of a model's window, and the settings of the compaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextConfig {
    /// Size of the model's window, in tokens. Default 100,000.
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
    /// Returns the maximum cost of the messages, in tokens: the window without the system prompt.
    pub fn message_budget(&self) -> u64 {
        self.max_context_tokens
            .saturating_sub(self.system_prompt_tokens)
    }
}

/// A strategy that makes blocks. Three methods make one section of the block each, and [`compact`](Self::compact)
/// combines the sections.
///
/// The trait is object-safe. Its methods never change the loop.
#[async_trait]
pub trait BlockCompactionStrategy: Send + Sync + Debug {
    /// Returns the range of turns at the beginning of the last loop that are shown unchanged; `None` for no such turns.
    /// By default these are the first [`keep_first_turns`](CompactionConfig::keep_first_turns) turns.
    fn keep_first(
        &self,
        _record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
    ) -> Option<TurnRange> {
        let (first, recent) = (config.keep_first_turns, config.keep_recent_turns);
        turn_map.sections(first, recent).first
    }

    /// Returns the section of turns at the end of the last loop that are shown with shortened tool output; `None` for
    /// no such turns. By default these are the last [`keep_recent_turns`](CompactionConfig::keep_recent_turns) turns,
    /// with each tool output cut to its first and last lines.
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

    /// Returns a section with a summary: of the middle turns if `is_most_recent` is true, otherwise of all turns of an
    /// older loop. `None` if no turns are summarized. May call a model.
    ///
    /// # Errors
    /// The errors of the strategy, such as [`Error::Summarizer`](crate::Error::Summarizer) if the summarizer fails.
    async fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<Option<CompactedSection>>;

    /// Makes the block of a loop from the three sections.
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

/// A strategy that shortens lists of messages, for agents without a session. It may call a model. The trait is
/// object-safe.
#[async_trait]
pub trait CompactionStrategy: Send + Sync + Debug {
    /// Returns the messages, shortened to at most [`message_budget`](ContextConfig::message_budget) tokens.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) if the messages cannot be shortened that far, and other
    /// errors of the strategy.
    async fn compact(&self, messages: Vec<Message>, config: &ContextConfig)
    -> Result<Vec<Message>>;
}
