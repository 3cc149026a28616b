//! The view that a compaction aims for: the agent's last runs (loops) as blocks, without the older runs.

use std::ops::Range;

use memory_model::Accounting;
use token_estimate::TokenEstimator;
use turn_map::{Atoms, MessageView as _, atoms};

use crate::block::TurnRange;
use crate::context::Shown;
use crate::lines::{line_cost, lines_that_fit, turn_lines};
use crate::planner::entry::LightEntry;
use crate::planner::policy::{BlockPolicy, Digest};
use crate::turns::TurnMap;

/// Neighbouring log entries, and the form in which the view should show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Indices of the entries in the list of read entries. Not empty.
    pub(crate) at: Range<usize>,
    pub(crate) shown: Shown,
    /// Cost of the segment in this form, in tokens. Does not include the overhead of rendering a summary.
    pub(crate) tokens: u64,
}

/// Returns the segments of the entries, oldest first. `room` is the maximum cost of the view, in tokens.
pub(crate) fn desired(
    entries: &[LightEntry],
    policy: &BlockPolicy,
    room: Option<u64>,
    accounting: &dyn Accounting,
) -> Vec<Segment> {
    let all = atoms(entries);
    let loops = log_loops(entries, &all);
    let Some((newest, older)) = loops.split_last() else {
        return Vec::new();
    };
    let budget = room.unwrap_or(policy.max_context_tokens);
    let cost = |at: &Range<usize>| {
        let messages = tokens_of(entries, at.clone(), |entry| entry.tokens);
        messages.min(policy.max_summary_tokens)
    };
    let in_scope = policy.scope.count(older.iter().rev(), budget, cost);
    let mut hidden = older.len() - in_scope;
    let a_loop = |at: &Range<usize>| Loop::new(entries, at, policy, accounting.estimator());
    let mut blocks: Vec<Vec<Segment>> = older
        .iter()
        .skip(hidden)
        .map(|at| {
            let one = a_loop(at);
            one.summary(0..one.turn_map.turn_count())
        })
        .collect();
    let settled = all.settled_end().position();
    blocks.push(a_loop(newest).newest_block(settled));
    if let Some(room) = room {
        let total = |block: &Vec<Segment>| block.iter().map(|one| one.tokens).sum::<u64>();
        let mut rest: u64 = blocks.iter().map(total).sum();
        while rest > room && blocks.len() > 1 {
            rest -= total(&blocks.remove(0));
            hidden += 1;
        }
    }
    let hidden = older.get(..hidden).and_then(<[_]>::last);
    let omitted = hidden.map(|last| Segment {
        at: 0..last.end,
        shown: Shown::Omitted,
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

/// Returns the index ranges of the loops (runs of the agent) in `entries`, in order. A loop begins at a message that
/// names another loop than the last message with a loop id. Before any message names a loop, a loop begins at each
/// prompt of the user that does not directly follow another prompt. No tool group is in two loops.
fn log_loops(entries: &[LightEntry], atoms: &Atoms) -> Vec<Range<usize>> {
    let settled = atoms.settled_end().position();
    let mut starts = vec![0];
    let mut named: Option<&str> = None;
    let mut after_prompt = false;
    for (position, entry) in entries.iter().enumerate() {
        if entry.is_note() {
            continue;
        }
        let is_prompt = entry.is_prompt();
        let begins = match entry.loop_id.as_deref() {
            Some(id) => named.replace(id).is_some_and(|before| before != id),
            None => is_prompt && !after_prompt && named.is_none(),
        };
        after_prompt = is_prompt;
        // After the settled atoms, a later tool result may still join the entries before and after this position.
        let is_cut = position <= settled && atoms.cut_before(position).position() == position;
        if begins && position > 0 && is_cut {
            starts.push(position);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let loops = starts.iter().copied().zip(ends);
    loops
        .map(|(start, end)| start..end)
        .filter(|range| !range.is_empty())
        .collect()
}

/// One loop (run of the agent) of the log.
struct Loop<'e> {
    entries: &'e [LightEntry],
    /// Index of the first log entry of the loop.
    start: usize,
    turn_map: TurnMap,
    policy: &'e BlockPolicy,
    estimator: &'e dyn TokenEstimator,
}

impl<'e> Loop<'e> {
    fn new(
        entries: &'e [LightEntry],
        at: &Range<usize>,
        policy: &'e BlockPolicy,
        estimator: &'e dyn TokenEstimator,
    ) -> Self {
        let entries = entries.get(at.clone()).unwrap_or_default();
        Self {
            entries,
            start: at.start,
            turn_map: TurnMap::of_loop(entries),
            policy,
            estimator,
        }
    }

    /// Returns the segment of some turns; `None` if there are no turns.
    fn segment(&self, turns: Range<usize>, shown: Shown, tokens: u64) -> Option<Segment> {
        let span = self.turn_map.span(turns);
        let at = self.start + span.start..self.start + span.end;
        (!at.is_empty()).then_some(Segment { at, shown, tokens })
    }

    fn cost(&self, turns: Range<usize>, cost: impl Fn(&LightEntry) -> u64) -> u64 {
        tokens_of(self.entries, self.turn_map.span(turns), cost)
    }

    /// Returns the segments of the agent's last run: its first turns unchanged, a summary, and its recent turns with
    /// shortened tool output. Each recent turn is a separate segment, so that a later compaction can summarize only the
    /// older ones. Entries from the index `settled` on stay unchanged.
    fn newest_block(&self, settled: usize) -> Vec<Segment> {
        let (first, recent) = (self.policy.keep_first_turns, self.policy.keep_recent_turns);
        let sections = self.turn_map.sections(first, recent);
        let turns = |range: Option<TurnRange>| range.map_or(0..0, |range| range.indices());
        let raw = |turns: Range<usize>| {
            let tokens = self.cost(turns.clone(), |entry| entry.tokens);
            self.segment(turns, Shown::Raw, tokens)
        };
        let mut segments: Vec<Segment> = raw(turns(sections.first)).into_iter().collect();
        segments.extend(self.summary(turns(sections.middle)));
        for group in self.turn_map.groups(turns(sections.recent)) {
            let shortened = self.cost(group.clone(), |entry| entry.trimmed);
            segments.extend(raw(group).map(|mut segment| {
                if segment.at.end <= settled && shortened < segment.tokens {
                    (segment.shown, segment.tokens) = (Shown::Trimmed, shortened);
                }
                segment
            }));
        }
        segments
    }

    /// Returns the segment with the summary of some turns, and a segment that omits the turns with lines that do not
    /// fit.
    fn summary(&self, turns: Range<usize>) -> Vec<Segment> {
        let most = self.policy.max_summary_tokens;
        let (end, tokens) = match self.policy.digest {
            Digest::OneLiners => {
                let lines = turn_lines(self.entries, &self.turn_map, turns.clone());
                let cost = |line: &Option<String>| line_cost(line.as_deref(), self.estimator);
                let costs: Vec<u64> = lines.iter().map(cost).collect();
                let mut fit = lines_that_fit(&costs, most, 0);
                while fit > 0 && !self.turn_map.is_cut(turns.start + fit) {
                    fit -= 1;
                }
                (turns.start + fit, costs.iter().take(fit).sum())
            }
            Digest::Summarizer | Digest::Rolling => {
                let source = self.cost(turns.clone(), |entry| entry.tokens);
                (turns.end, most.min(source / 2))
            }
        };
        let summary = self.segment(turns.start..end, Shown::Summarized, tokens);
        let omitted = self.segment(end..turns.end, Shown::Omitted, 0);
        summary.into_iter().chain(omitted).collect()
    }
}
