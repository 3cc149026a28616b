//! The strategy that makes blocks without a model.

use async_trait::async_trait;

use crate::block::CompactedSection;
use crate::config::{BlockCompactionStrategy, BlockInput};
use crate::error::Result;
use crate::message::LoopMessage;
use crate::omission::{Omission, OmissionReason, marker};
use crate::one_liner::{TurnLines, turns_that_fit};
use crate::trim::trim_outputs;
use crate::turn_range::TurnRange;

/// Makes blocks without a model: tool output is cut to its first and last lines, and each turn between
/// becomes one line. Turns whose lines do not fit into
/// [`max_summary_tokens`](crate::CompactionConfig::max_summary_tokens) are counted as left out.
///
/// It has no settings: everything comes from the [`CompactionConfig`](crate::CompactionConfig).
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
