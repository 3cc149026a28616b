//! Strategies for compaction without a model.

use async_trait::async_trait;
use memory_model::Message;

use crate::block::{CompactedSection, TurnRange};
use crate::config::{BlockCompactionStrategy, CompactionConfig, CompactionStrategy, ContextConfig};
use crate::context::{left_out, show_loops};
use crate::error::Result;
use crate::lines::{SUMMARY_PREFIX, lines_that_fit, turn_lines};
use crate::session::LoopRecord;
use crate::turns::TurnMap;

/// Makes blocks (compacted forms of an agent's runs) without a model. Each tool output in the recent turns is cut to
/// its first and last lines. Each middle turn becomes one line. If the lines exceed
/// [`max_summary_tokens`](CompactionConfig::max_summary_tokens), the turns without a line are counted as omitted.
///
/// The settings are in the [`CompactionConfig`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultBlockCompaction;

#[async_trait]
impl BlockCompactionStrategy for DefaultBlockCompaction {
    async fn keep_compacted(
        &self,
        record: &LoopRecord,
        turn_map: &TurnMap,
        config: &CompactionConfig,
        is_most_recent: bool,
    ) -> Result<Option<CompactedSection>> {
        let range = compacted_range(turn_map, config, is_most_recent);
        Ok(range.map(|range| one_line_each(record, turn_map, config, range)))
    }
}

/// Returns the turns of a run of the agent to summarize: in the last run the turns between the first and the recent
/// ones, in an older run all turns.
pub(crate) fn compacted_range(
    turn_map: &TurnMap,
    config: &CompactionConfig,
    is_most_recent: bool,
) -> Option<TurnRange> {
    let (first, recent) = (config.keep_first_turns, config.keep_recent_turns);
    match is_most_recent {
        true => turn_map.sections(first, recent).middle,
        false => TurnRange::from_indices(0..turn_map.turn_count()),
    }
}

/// Returns a section with one line for each turn, at most as long as a summary may be.
pub(crate) fn one_line_each(
    record: &LoopRecord,
    turn_map: &TurnMap,
    config: &CompactionConfig,
    range: TurnRange,
) -> CompactedSection {
    let turns = range.indices();
    let message = |line: Option<String>| Some(Message::user(format!("{SUMMARY_PREFIX}{}", line?)));
    let lines = turn_lines(&record.messages, turn_map, turns.clone());
    let lines: Vec<Option<Message>> = lines.into_iter().map(message).collect();
    let cost = |line: &Option<Message>| config.cost(line.as_slice());
    let costs: Vec<u64> = lines.iter().map(cost).collect();
    let budget = config.max_summary_tokens;
    let omission = |fit: usize| {
        let rest = TurnRange::from_indices(turns.start + fit..turns.end)?;
        let omission = record.omission(turn_map, rest, &config.estimator);
        let mark = Message::user(format!("[… left out: {omission} …]"));
        Some((omission, mark))
    };
    // Cost of the longest marker of omitted turns, plus one token for another digit.
    let reserve = omission(0).map_or(0, |(_, mark)| config.cost(&[mark]).saturating_add(1));
    let fit = lines_that_fit(&costs, budget, reserve);
    let (omitted, mark) = omission(fit).unzip();
    let mark = mark.filter(|_| reserve <= budget);
    CompactedSection {
        range,
        messages: lines.into_iter().take(fit).flatten().chain(mark).collect(),
        omitted,
    }
}

/// Shortens a list of messages without a model, by [`compact_messages`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefaultCompaction;

#[async_trait]
impl CompactionStrategy for DefaultCompaction {
    async fn compact(
        &self,
        messages: Vec<Message>,
        config: &ContextConfig,
    ) -> Result<Vec<Message>> {
        compact_messages(messages, config)
    }
}

/// Shortens a list of messages until it costs at most [`message_budget`](ContextConfig::message_budget) tokens. Takes
/// these steps in order, until the list fits:
///
/// 1. Cut each tool output to its first and last lines.
/// 2. Replace each turn between the first and the recent turns by one line. These lines cost at most
///    [`max_summary_tokens`](CompactionConfig::max_summary_tokens).
/// 3. Replace these lines by one message with the number of messages that are left out.
/// 4. Keep only the last turns that fit.
///
/// Tool calls are never separated from their results.
///
/// # Errors
/// [`Error::BudgetTooSmall`](crate::Error::BudgetTooSmall) if the last turn alone costs more than the maximum.
pub fn compact_messages(messages: Vec<Message>, config: &ContextConfig) -> Result<Vec<Message>> {
    let (compaction, budget) = (&config.compaction, config.message_budget());
    if compaction.cost(&messages) <= budget {
        return Ok(messages);
    }
    let record = LoopRecord {
        messages: compaction.trim(&messages),
        ..LoopRecord::default()
    };
    if compaction.cost(&record.messages) <= budget {
        return Ok(record.messages);
    }
    let turn_map = TurnMap::of_loop(&record.messages);
    if let Some(range) = compacted_range(&turn_map, compaction, true) {
        let middle = turn_map.span(range.indices());
        let (before, rest) = record.messages.split_at(middle.start);
        let (middle, after) = rest.split_at(middle.len());
        let lines = one_line_each(&record, &turn_map, compaction, range).messages;
        for middle in [lines, vec![left_out("", "", middle.len())]] {
            let reduced = [before, &middle, after].concat();
            if compaction.cost(&reduced) <= budget {
                return Ok(reduced);
            }
        }
    }
    Ok(show_loops(&[], &[&record], compaction, budget)?.messages)
}
