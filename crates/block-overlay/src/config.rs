//! When and how to compact, and the traits of strategies.

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
    /// Reduces message lists of callers without a session; `None` for
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy>>,
    /// Makes blocks; `None` for [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy>>,
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
            in_memory_strategy: None,
            block_strategy: None,
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

/// Makes blocks. Three methods make one section each; [`compact`](Self::compact) puts them together.
///
/// The trait is object-safe, and its methods never change the loop.
#[async_trait]
pub trait BlockCompactionStrategy: Send + Sync + Debug {
    /// Returns the turns at the beginning that are shown as they are; newest loop only. By default
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

    /// Returns the turns at the end with shortened tool output; newest loop only. By default
    /// [`keep_recent_turns`](CompactionConfig::keep_recent_turns), with each tool output cut to its first
    /// and last lines.
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

    /// Returns the summary of the middle of the newest loop, or of an older loop as a whole. May ask a
    /// model.
    ///
    /// # Errors
    /// Those of the strategy.
    async fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<Option<CompactedSection>>;

    /// Makes the block of the three sections.
    ///
    /// # Errors
    /// Those of [`keep_compacted`](Self::keep_compacted).
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

/// Reduces lists of messages, for callers without a session. Object-safe, and may ask a model.
#[async_trait]
pub trait CompactionStrategy: Send + Sync + Debug {
    /// Returns the messages, reduced to [`message_budget`](ContextConfig::message_budget).
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) if that is impossible, and those of the
    /// strategy.
    async fn compact(&self, messages: Vec<Message>, config: &ContextConfig)
    -> Result<Vec<Message>>;
}
