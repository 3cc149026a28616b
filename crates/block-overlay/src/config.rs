//! How to compact, and what makes blocks: the configuration and the trait that it holds.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use memory_model::Timestamp;
use serde::{Deserialize, Serialize};
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::block::{CompactedSection, CompactionBlock};
use crate::error::Result;
use crate::layout::{LoopLayout, Sections, TurnRule};
use crate::loops::LoopRecord;
use crate::message::LoopMessage;
use crate::omission::{Omission, OmissionReason};
use crate::one_liner::OneLiners;
use crate::reduce::CompactionStrategy;
use crate::turn_range::TurnRange;

/// Rule that decides how many loops before the newest one are compacted and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CompactionScope {
    /// A fixed number of loops. Default: 3.
    FixedCount(usize),
    /// As many as fit into the maximum cost of a context once they are compacted: a loop counts what its
    /// block costs, and one without a block its messages, but at most `max_summary_tokens`. A loop whose
    /// messages alone exceed a context can be in scope.
    TokenBudget,
    /// As many as fit with all their messages; the first that does not fit ends the scope.
    TokenBudgetRaw,
}

impl Default for CompactionScope {
    fn default() -> Self {
        Self::FixedCount(3)
    }
}

/// When to compact, how to compact, and with which strategies.
///
/// Serializes without the strategies. Fields that are absent have their defaults.
#[derive(Serialize, Deserialize)]
#[serde(default, bound = "")]
#[non_exhaustive]
pub struct CompactionConfig<M> {
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
    /// where a tool call and its results would be divided otherwise.
    pub keep_recent_turns: usize,
    /// Maximum cost of the summary of one loop, in tokens. Default 2,000.
    pub max_summary_tokens: u64,
    /// Maximum number of lines of a tool's output in the recent turns. Default 50.
    pub tool_output_max_lines: usize,
    /// What summaries should pay attention to. It is the first message of each summary, and an
    /// instruction to a summarizer that asks a model. Default: none.
    pub focus_message: Option<String>,
    /// Rule that decides where turns begin. Default: by the turn index of messages.
    pub turn_rule: TurnRule,
    /// What a turn becomes without a model. Default: one line with the user's words.
    pub one_liners: OneLiners,
    /// Whether a context says in a message what is left out. Default true.
    pub mark_omissions: bool,
    /// Reduces message lists of callers without a session; `None` for
    /// [`DefaultCompaction`](crate::DefaultCompaction).
    #[serde(skip)]
    pub in_memory_strategy: Option<Arc<dyn CompactionStrategy<M>>>,
    /// Makes blocks; `None` for [`DefaultBlockCompaction`](crate::DefaultBlockCompaction).
    #[serde(skip)]
    pub block_strategy: Option<Arc<dyn BlockCompactionStrategy<M>>>,
}

impl<M> Default for CompactionConfig<M> {
    fn default() -> Self {
        Self {
            compact_at_pct: 0.90,
            compact_budget_threshold_pct: 0.05,
            compaction_scope: CompactionScope::default(),
            keep_first_turns: 2,
            keep_recent_turns: 10,
            max_summary_tokens: 2_000,
            tool_output_max_lines: 50,
            focus_message: None,
            turn_rule: TurnRule::default(),
            one_liners: OneLiners::default(),
            mark_omissions: true,
            in_memory_strategy: None,
            block_strategy: None,
        }
    }
}

impl<M> Clone for CompactionConfig<M> {
    fn clone(&self) -> Self {
        Self {
            focus_message: self.focus_message.clone(),
            in_memory_strategy: self.in_memory_strategy.clone(),
            block_strategy: self.block_strategy.clone(),
            ..*self
        }
    }
}

impl<M> fmt::Debug for CompactionConfig<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionConfig")
            .field("compact_at_pct", &self.compact_at_pct)
            .field(
                "compact_budget_threshold_pct",
                &self.compact_budget_threshold_pct,
            )
            .field("compaction_scope", &self.compaction_scope)
            .field("keep_first_turns", &self.keep_first_turns)
            .field("keep_recent_turns", &self.keep_recent_turns)
            .field("max_summary_tokens", &self.max_summary_tokens)
            .field("tool_output_max_lines", &self.tool_output_max_lines)
            .field("focus_message", &self.focus_message)
            .field("turn_rule", &self.turn_rule)
            .field("one_liners", &self.one_liners)
            .field("mark_omissions", &self.mark_omissions)
            .field("in_memory_strategy", &self.in_memory_strategy)
            .field("block_strategy", &self.block_strategy)
            .finish()
    }
}

impl<M> CompactionConfig<M> {
    /// Returns the preset phi-core: the defaults, but one-liners of the assistant's messages alone and no
    /// message that says what is left out.
    pub fn phi_core() -> Self {
        Self {
            one_liners: OneLiners::AssistantMessages,
            mark_omissions: false,
            ..Self::default()
        }
    }

    /// Sets how many turns are kept at the beginning and at the end of the newest loop.
    #[must_use]
    pub fn with_kept_turns(mut self, first: usize, recent: usize) -> Self {
        (self.keep_first_turns, self.keep_recent_turns) = (first, recent);
        self
    }

    /// Sets which loops are compacted and shown.
    #[must_use]
    pub fn with_scope(mut self, scope: CompactionScope) -> Self {
        self.compaction_scope = scope;
        self
    }

    /// Sets the maximum cost of the summary of one loop, in tokens.
    #[must_use]
    pub fn with_max_summary_tokens(mut self, tokens: u64) -> Self {
        self.max_summary_tokens = tokens;
        self
    }

    /// Sets what summaries should pay attention to.
    #[must_use]
    pub fn with_focus(mut self, message: impl Into<String>) -> Self {
        self.focus_message = Some(message.into());
        self
    }

    /// Sets where turns begin.
    #[must_use]
    pub fn with_turn_rule(mut self, rule: TurnRule) -> Self {
        self.turn_rule = rule;
        self
    }

    /// Sets the strategy that makes blocks.
    #[must_use]
    pub fn with_block_strategy(mut self, strategy: Arc<dyn BlockCompactionStrategy<M>>) -> Self {
        self.block_strategy = Some(strategy);
        self
    }

    /// Sets the strategy for callers without a session.
    #[must_use]
    pub fn with_in_memory_strategy(mut self, strategy: Arc<dyn CompactionStrategy<M>>) -> Self {
        self.in_memory_strategy = Some(strategy);
        self
    }

    /// Whether it is time to compact: whether the headroom `compact_at_pct − system / window − tokens /
    /// window` is below `compact_budget_threshold_pct`. A window of 0 tokens is unknown and never is.
    /// Shares are exact to nine decimal places.
    ///
    /// ```
    /// use block_overlay::CompactionConfig;
    /// use memory_model::Message;
    ///
    /// let config = CompactionConfig::<Message>::default();
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
}

/// Beginning of the message that says what summaries should pay attention to.
pub const FOCUS_PREFIX: &str = "[Focus] ";

/// A loop that is to get a block.
#[derive(Debug)]
#[non_exhaustive]
pub struct BlockInput<'a, M> {
    /// The loop.
    pub record: &'a LoopRecord<M>,
    /// Its turns and tool groups.
    pub layout: &'a LoopLayout,
    /// How to compact.
    pub config: &'a CompactionConfig<M>,
    /// Whether it is the newest loop of its chain.
    pub is_most_recent: bool,
    /// Counts tokens.
    pub estimator: &'a dyn TokenEstimator,
    /// The time that the block gets.
    pub now: Timestamp,
}

impl<'a, M: LoopMessage> BlockInput<'a, M> {
    /// Creates the input for one loop.
    pub fn new(
        record: &'a LoopRecord<M>,
        layout: &'a LoopLayout,
        config: &'a CompactionConfig<M>,
        is_most_recent: bool,
        estimator: &'a dyn TokenEstimator,
        now: Timestamp,
    ) -> Self {
        Self {
            record,
            layout,
            config,
            is_most_recent,
            estimator,
            now,
        }
    }

    /// The sections that the configuration asks for: of the newest loop up to three, of an older one a
    /// middle over all turns.
    pub fn sections(&self) -> Sections {
        if self.is_most_recent {
            let config = self.config;
            return self
                .layout
                .sections(config.keep_first_turns, config.keep_recent_turns);
        }
        Sections {
            middle: TurnRange::from_indices(0..self.layout.turns().count()),
            ..Sections::default()
        }
    }

    /// The messages of a range of turns.
    pub fn messages(&self, range: TurnRange) -> &'a [M] {
        self.layout.slice(&self.record.messages, range)
    }

    /// Cost of a user's message of this text, in tokens.
    pub fn cost(&self, text: &str) -> u64 {
        self.estimator.message(&M::user(text.to_owned()))
    }

    /// The message that says what to pay attention to, where the configuration has one.
    pub fn focus(&self) -> Option<String> {
        let focus = self.config.focus_message.as_deref().map(str::trim);
        let focus = focus.filter(|text| !text.is_empty());
        focus.map(|text| format!("{FOCUS_PREFIX}{text}"))
    }

    /// Counts turns as left out.
    pub fn omission(&self, turns: TurnRange, reason: OmissionReason) -> Omission {
        let messages = self.messages(turns);
        Omission {
            loop_id: self.record.loop_id.clone(),
            turns,
            messages: messages.len(),
            tokens: self.estimator.messages(messages),
            reason,
        }
    }
}

/// Makes blocks. Three methods make one section each; [`compact`](Self::compact) puts them together.
///
/// The trait is object-safe, and its methods may ask a model. They never change the loop.
#[async_trait]
pub trait BlockCompactionStrategy<M: LoopMessage>: Send + Sync + Debug {
    /// Returns the turns at the beginning that are shown as they are; newest loop only.
    ///
    /// # Errors
    /// Those of the strategy.
    async fn keep_first(&self, input: &BlockInput<'_, M>) -> Result<Option<TurnRange>>;

    /// Returns the turns at the end with shortened tool output; newest loop only.
    ///
    /// # Errors
    /// Those of the strategy.
    async fn keep_recent(&self, input: &BlockInput<'_, M>) -> Result<Option<CompactedSection<M>>>;

    /// Returns the summary of the middle of the newest loop, or of an older loop as a whole.
    ///
    /// # Errors
    /// Those of the strategy.
    async fn keep_compacted(
        &self,
        input: &BlockInput<'_, M>,
    ) -> Result<Option<CompactedSection<M>>>;

    /// Makes the block of the three sections.
    ///
    /// # Errors
    /// Those of the three methods.
    async fn compact(&self, input: &BlockInput<'_, M>) -> Result<CompactionBlock<M>> {
        let (mut keep_first, mut keep_recent) = (None, None);
        if input.is_most_recent {
            keep_first = self.keep_first(input).await?;
            keep_recent = self.keep_recent(input).await?;
        }
        Ok(CompactionBlock {
            keep_first,
            keep_recent,
            keep_compacted: self.keep_compacted(input).await?,
            covered_messages: Some(input.record.messages.len()),
            ..CompactionBlock::new(input.now)
        })
    }
}
