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

/// Rule for the number of older loops (runs of the agent before the last one) that are compacted and shown in contexts.
/// These loops are in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompactionScope {
    /// A fixed number of loops (runs of the agent) before the last one. Default: 3.
    FixedCount(usize),
    /// As many loops (runs of the agent) as fit into the maximum cost of a context after compaction. A loop with a
    /// block counts with the cost of its block. A loop without a block counts with the cost of its messages, but at
    /// most `max_summary_tokens`. So a loop may be in scope although its messages alone exceed the maximum.
    TokenBudget,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

impl CompactionScope {
    /// Returns the number of older loops that are compacted and shown. `older` are the loops before the last one, the
    /// latest first. `cost` returns the cost of a loop, and `budget` is the maximum cost of all loops together, both in
    /// tokens. The budget is only used by [`TokenBudget`](Self::TokenBudget).
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

/// Settings of a compaction: when it is due, which turns are kept, and which strategies are used.
///
/// The serialized form does not contain the strategies, the estimator and the clock. Missing fields get their defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionConfig {
    /// Maximum share of the window that a request should use, from 0 to 1. Default 0.90.
    pub compact_at_pct: f64,
    /// Minimum headroom, as a share of the window. The headroom is the unused part of
    /// [`compact_at_pct`](Self::compact_at_pct). A compaction is due when the headroom is less. Default 0.05. Example:
    /// with a window of 100,000 tokens and a system prompt of 4,000, a compaction is due above 81,000 tokens.
    pub compact_budget_threshold_pct: f64,
    /// Rule for the number of older runs of the agent that are compacted and shown. Default: 3 runs.
    pub compaction_scope: CompactionScope,
    /// Number of turns at the beginning of the agent's last run that are shown unchanged. Default 2. With 0 there are
    /// none.
    pub keep_first_turns: usize,
    /// Number of turns at the end of the agent's last run that are shown with shortened tool output. Default 10. More
    /// turns are shown if a tool call would otherwise be separated from its result.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one run of the agent, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines shown of each tool output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// Strategy that shortens the messages of agents without a session. `None` uses
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy>>,
    /// Strategy that makes the blocks (compacted forms of runs of the agent). `None` uses
    /// [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy>>,
    /// Estimator of the tokens of messages. Default: [`default_estimator`].
    #[serde(skip)]
    pub estimator: Arc<dyn TokenEstimator>,
    /// Clock for the creation times of blocks. Default: the system's clock.
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
    /// Returns whether a compaction is due. This is the case if the headroom, `compact_at_pct − system_tokens / window
    /// − tokens / window`, is below `compact_budget_threshold_pct`. All sizes are in tokens. A `window` of 0 means that
    /// the size of the window is unknown: then no compaction is due. Shares are exact to nine decimal places.
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

/// Size of a model's window, and the settings for compacting contexts of this size.
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
    /// Returns the maximum cost of the messages, in tokens: the window minus the system prompt.
    pub fn message_budget(&self) -> u64 {
        self.max_context_tokens
            .saturating_sub(self.system_prompt_tokens)
    }
}

/// A strategy that makes the block (compacted form) of a loop: a run of the agent, from a prompt to its answer. Three
/// methods each make one section of the block, and [`compact`](Self::compact) combines the sections.
///
/// The trait is object-safe. Its methods never change the loop.
#[async_trait]
pub trait BlockCompactionStrategy: Send + Sync + Debug {
    /// Returns the turns at the beginning of the agent's last run that are shown unchanged. `None` if there are none.
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

    /// Returns the section for the turns at the end of the agent's last run, with shortened tool output. `None` if
    /// there are none. By default these are the last [`keep_recent_turns`](CompactionConfig::keep_recent_turns) turns,
    /// and only the first and the last lines of each tool output are kept.
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

    /// Returns the section with a summary. If `is_most_recent` is true, the loop is the agent's last run, and its
    /// middle turns are summarized. Otherwise all turns of the loop are summarized. `None` if there are no turns to
    /// summarize. May call a model.
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

    /// Makes the block (compacted form) of a run of the agent from the three sections. `is_most_recent` is true for the
    /// last run of a session.
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

/// A strategy that shortens a list of messages, for agents without a session. The strategy may call a model. The trait
/// is object-safe.
#[async_trait]
pub trait CompactionStrategy: Send + Sync + Debug {
    /// Returns the messages, shortened to at most [`message_budget`](ContextConfig::message_budget) tokens.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) if the messages cannot be shortened enough, and other
    /// errors of the strategy.
    async fn compact(&self, messages: Vec<Message>, config: &ContextConfig)
    -> Result<Vec<Message>>;
}
