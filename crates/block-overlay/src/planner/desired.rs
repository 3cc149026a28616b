//! What the view should show: the loops in scope as blocks, older ones not at all.

use std::ops::Range;

use memory_model::Accounting;
use token_estimate::TokenEstimator;
use turn_map::atoms;

use crate::config::CompactionScope;
use crate::layout::LoopLayout;
use crate::one_liner::{OneLiners, SUMMARY_PREFIX, TurnLines, turns_that_fit};
use crate::planner::entry::LightEntry;
use crate::planner::log_loops::{log_loops, turn_rule};
use crate::planner::policy::{BlockPolicy, Digest};

/// What a segment should show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Raw,
    Trimmed,
    Summary,
    Omitted,
}

/// A run of entries and what the view should show for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Positions in the entries that were read, not empty.
    pub(crate) at: Range<usize>,
    pub(crate) want: Want,
    /// What that will cost, in tokens, without what rendering adds to a summary.
    pub(crate) tokens: u64,
}

/// The segments of the entries, oldest first. `room` is the largest cost of a view that fits.
pub(crate) fn desired(
    entries: &[LightEntry],
    policy: &BlockPolicy,
    room: Option<u64>,
    accounting: &dyn Accounting,
) -> Vec<Segment> {
    let all = atoms(entries);
    let loops = log_loops(entries, &all, policy.loops);
    let Some((newest, older)) = loops.split_last() else {
        return Vec::new();
    };
    let estimator = accounting.estimator();
    let cost = |at: &Range<usize>| tokens_of(entries, at.clone(), |entry| entry.tokens);
    let in_scope = scope(older, policy, room, cost);
    let mut blocks: Vec<Vec<Segment>> = older
        .iter()
        .skip(older.len() - in_scope)
        .map(|at| {
            let layout = layout(entries, at);
            let turns = 0..layout.turns().count();
            summary(entries, at, &layout, turns, policy, estimator)
        })
        .collect();
    let settled = all.settled_end().position();
    blocks.push(newest_block(entries, newest, settled, policy, estimator));
    let mut hidden = older.len() - in_scope;
    if let Some(room) = room {
        let total = |block: &Vec<Segment>| block.iter().map(|one| one.tokens).sum::<u64>();
        let mut rest: u64 = blocks.iter().map(total).sum();
        while rest > room && blocks.len() > 1 {
            rest -= total(&blocks.remove(0));
            hidden += 1;
        }
    }
    let end = older
        .get(..hidden)
        .and_then(<[_]>::last)
        .map_or(0, |at| at.end);
    let omitted = (end > 0).then_some(Segment {
        at: 0..end,
        want: Want::Omitted,
        tokens: 0,
    });
    omitted
        .into_iter()
        .chain(blocks.into_iter().flatten())
        .collect()
}

fn tokens_of(entries: &[LightEntry], at: Range<usize>, cost: impl Fn(&LightEntry) -> u64) -> u64 {
    let entries = entries.get(at).unwrap_or_default();
    entries.iter().map(cost).fold(0, u64::saturating_add)
}

fn layout(entries: &[LightEntry], at: &Range<usize>) -> LoopLayout {
    let of_loop = entries.get(at.clone()).unwrap_or_default();
    LoopLayout::new(of_loop, turn_rule(of_loop))
}

/// Number of older loops in scope.
fn scope(
    older: &[Range<usize>],
    policy: &BlockPolicy,
    room: Option<u64>,
    cost: impl Fn(&Range<usize>) -> u64,
) -> usize {
    let most = match policy.scope {
        CompactionScope::FixedCount(count) => return count.min(older.len()),
        CompactionScope::TokenBudget => policy.max_summary_tokens,
        CompactionScope::TokenBudgetRaw => u64::MAX,
    };
    let mut rest = room.unwrap_or(policy.max_context_tokens);
    let fits = |at: &&Range<usize>| match rest.checked_sub(cost(at).min(most)) {
        Some(left) => {
            rest = left;
            true
        }
        None => false,
    };
    older.iter().rev().take_while(fits).count()
}

/// The newest loop: its first turns as they are, a summary, and its recent turns shortened, each by
/// itself, so that those that become older can be summarized without the others.
fn newest_block(
    entries: &[LightEntry],
    at: &Range<usize>,
    settled: usize,
    policy: &BlockPolicy,
    estimator: &dyn TokenEstimator,
) -> Vec<Segment> {
    let layout = layout(entries, at);
    let sections = layout.sections(policy.keep_first_turns, policy.keep_recent_turns);
    let positions = |turns: Range<usize>| {
        let span = layout.turns().span(turns);
        at.start + span.start..at.start + span.end
    };
    let raw = |at: Range<usize>| Segment {
        tokens: tokens_of(entries, at.clone(), |entry| entry.tokens),
        at,
        want: Want::Raw,
    };
    let mut segments = Vec::new();
    segments.extend(sections.first.map(|first| raw(positions(first.indices()))));
    if let Some(middle) = sections.middle {
        let middle = middle.indices();
        segments.extend(summary(entries, at, &layout, middle, policy, estimator));
    }
    let recent = sections.recent.map_or(0..0, |recent| recent.indices());
    let mut start = recent.start;
    for turn in recent.clone() {
        if !layout.is_cut(turn + 1) && turn + 1 < recent.end {
            continue;
        }
        let at = positions(start..turn + 1);
        let shortened = tokens_of(entries, at.clone(), |entry| entry.trimmed);
        let mut segment = raw(at);
        if segment.at.end <= settled && shortened < segment.tokens {
            (segment.want, segment.tokens) = (Want::Trimmed, shortened);
        }
        segments.push(segment);
        start = turn + 1;
    }
    segments
}

/// The summary of some turns of a loop; of those whose lines do not fit, an omission.
fn summary(
    entries: &[LightEntry],
    at: &Range<usize>,
    layout: &LoopLayout,
    turns: Range<usize>,
    policy: &BlockPolicy,
    estimator: &dyn TokenEstimator,
) -> Vec<Segment> {
    let of_loop = entries.get(at.clone()).unwrap_or_default();
    let (end, tokens) = match policy.digest {
        Digest::OneLiners => {
            let lines = turns.clone().map(|turn| {
                turn_text(
                    layout.turns().slice(of_loop, turn..turn + 1),
                    policy.one_liners,
                )
            });
            let costs: Vec<u64> = lines.map(|line| line_cost(&line, estimator)).collect();
            let mut fit = turns_that_fit(&costs, policy.max_summary_tokens, 0);
            while fit > 0 && !layout.is_cut(turns.start + fit) {
                fit -= 1;
            }
            (turns.start + fit, costs.iter().take(fit).sum())
        }
        Digest::Summarizer => {
            let span = layout.turns().span(turns.clone());
            let source = tokens_of(
                entries,
                at.start + span.start..at.start + span.end,
                |entry| entry.tokens,
            );
            (turns.end, policy.max_summary_tokens.min(source / 2))
        }
    };
    let segment = |turns: Range<usize>, want: Want, tokens: u64| {
        let span = layout.turns().span(turns);
        let at = at.start + span.start..at.start + span.end;
        (!at.is_empty()).then_some(Segment { at, want, tokens })
    };
    let summary = segment(turns.start..end, Want::Summary, tokens);
    let omitted = segment(end..turns.end, Want::Omitted, 0);
    summary.into_iter().chain(omitted).collect()
}

/// The line of a turn in a summary of lines; empty for a turn of notes.
pub(crate) fn turn_text<M: turn_map::MessageView>(messages: &[M], rule: OneLiners) -> String {
    let mut turn = TurnLines::default();
    messages.iter().for_each(|message| turn.push(message));
    let lines = turn.lines(rule);
    let texts = lines
        .iter()
        .map(|line| line.strip_prefix(SUMMARY_PREFIX).unwrap_or(line));
    texts.collect::<Vec<_>>().join("\n")
}

/// Cost of a line with its line break, in tokens.
pub(crate) fn line_cost(line: &str, estimator: &dyn TokenEstimator) -> u64 {
    match line.is_empty() {
        true => 0,
        false => estimator.text(line).saturating_add(1),
    }
}
