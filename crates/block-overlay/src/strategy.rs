//! What makes blocks: the trait and the strategy that needs no model.

use std::fmt::Debug;

use async_trait::async_trait;
use memory_model::Timestamp;
use token_estimate::{TokenEstimator, TokenEstimatorExt as _};
use turn_map::{TrimPolicy, apply};

use crate::block::{CompactedSection, CompactionBlock, TurnRange};
use crate::config::CompactionConfig;
use crate::error::Result;
use crate::layout::{LoopLayout, Sections};
use crate::loops::LoopRecord;
use crate::message::LoopMessage;
use crate::omission::{Omission, OmissionReason, marker};
use crate::one_liner::{TurnLines, turns_that_fit};

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
            turns: Some(turns),
            messages: messages.len(),
            tokens: Some(self.estimator.messages(messages)),
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

/// Makes blocks without a model: tool output is cut to its first and last lines, and each turn between
/// becomes one line. Turns whose lines do not fit into
/// [`max_summary_tokens`](CompactionConfig::max_summary_tokens) are counted as left out.
///
/// It has no settings: everything comes from the [`CompactionConfig`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultBlockCompaction;

#[async_trait]
impl<M: LoopMessage> BlockCompactionStrategy<M> for DefaultBlockCompaction {
    async fn keep_first(&self, input: &BlockInput<'_, M>) -> Result<Option<TurnRange>> {
        Ok(input.sections().first.filter(|_| input.is_most_recent))
    }

    async fn keep_recent(&self, input: &BlockInput<'_, M>) -> Result<Option<CompactedSection<M>>> {
        let recent = input.sections().recent.filter(|_| input.is_most_recent);
        Ok(recent.map(|range| trimmed_section(input, range)))
    }

    async fn keep_compacted(
        &self,
        input: &BlockInput<'_, M>,
    ) -> Result<Option<CompactedSection<M>>> {
        Ok(input
            .sections()
            .middle
            .map(|range| one_liner_section(input, range)))
    }
}

/// The turns with each tool output cut to its first and last lines.
pub(crate) fn trimmed_section<M: LoopMessage>(
    input: &BlockInput<'_, M>,
    range: TurnRange,
) -> CompactedSection<M> {
    let lines = input.config.tool_output_max_lines;
    CompactedSection {
        range,
        messages: trim_outputs(input.messages(range), lines, input.estimator),
        omitted: None,
    }
}

/// The messages with each tool output cut to its first and last lines.
pub(crate) fn trim_outputs<M: LoopMessage>(
    messages: &[M],
    lines: usize,
    estimator: &dyn TokenEstimator,
) -> Vec<M> {
    let policy = TrimPolicy::ToolOutputLines { lines };
    let edits = messages
        .iter()
        .enumerate()
        .flat_map(|(position, message)| policy.edits(position, message, "", estimator));
    let edits: Vec<_> = edits.collect();
    apply(messages.to_vec(), &edits)
}

/// The turns as one-liners within the tokens for a summary.
pub(crate) fn one_liner_section<M: LoopMessage>(
    input: &BlockInput<'_, M>,
    range: TurnRange,
) -> CompactedSection<M> {
    let lines: Vec<Vec<String>> = range
        .indices()
        .map(|turn| {
            let mut lines = TurnLines::default();
            let messages = input
                .layout
                .turns()
                .slice(&input.record.messages, turn..turn + 1);
            messages.iter().for_each(|message| lines.push(message));
            lines.lines(input.config.one_liners)
        })
        .collect();
    let focus = input.focus();
    let of_focus = focus.as_deref().map_or(0, |text| input.cost(text));
    let budget = input.config.max_summary_tokens.saturating_sub(of_focus);
    let cost = |lines: &Vec<String>| lines.iter().map(|line| input.cost(line)).sum();
    let costs: Vec<u64> = lines.iter().map(cost).collect();
    let mark_of = |omission: &Omission| {
        let shown = input.config.mark_omissions;
        shown.then(|| marker(omission))
    };
    let total = |turns: &[u64]| {
        turns
            .iter()
            .fold(0, |sum: u64, cost| sum.saturating_add(*cost))
    };
    let (mut omitted, mut mark, mut fit) = (None, None, costs.len());
    if total(&costs) > budget {
        // As long as the marker of fewer turns gets, but for a digit.
        let all = input.omission(range, OmissionReason::SummaryBudget);
        let reserve = mark_of(&all).map_or(0, |text| input.cost(&text).saturating_add(1));
        fit = turns_that_fit(&costs, budget, reserve);
        let turns = TurnRange::from_indices(range.indices().start + fit..range.indices().end);
        omitted = turns.map(|turns| input.omission(turns, OmissionReason::SummaryBudget));
        mark = omitted
            .as_ref()
            .and_then(mark_of)
            .filter(|_| reserve <= budget);
    }
    let focus = focus.filter(|_| of_focus <= input.config.max_summary_tokens);
    let texts = focus
        .into_iter()
        .chain(lines.into_iter().take(fit).flatten())
        .chain(mark);
    CompactedSection {
        range,
        messages: texts.map(M::user).collect(),
        omitted,
    }
}
