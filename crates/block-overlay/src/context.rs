//! Builds the context of a session from the blocks (compacted forms) and messages of its loops (runs of the agent).

use std::rc::Rc;

use memory_model::Message;

use crate::block::{CompactedSection, CompactionBlock, Omission, TurnRange};
use crate::config::CompactionConfig;
use crate::error::{Error, Result};
use crate::orchestration::scope;
use crate::session::{LoopRecord, LoopSession};
use crate::turns::TurnMap;

/// Form in which a context shows a turn of a loop (a run of the agent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shown {
    /// The messages of the turn, unchanged.
    Raw,
    /// The messages of the turn, with shortened tool output.
    Trimmed,
    /// A summary, which covers the turn.
    Summarized,
    /// Not shown. An [`Omission`] of the context counts the turn.
    Omitted,
}

/// A turn of a loop (a run of the agent), and the form in which a context shows the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnShown {
    /// Id of the loop (run of the agent) that contains the turn.
    pub loop_id: String,
    /// Index of the turn in its run of the agent, from 0.
    pub turn: usize,
    /// Form in which the context shows the turn.
    pub shown: Shown,
}

/// Consecutive loops (runs of the agent) that a context does not show, with the numbers of loops and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopRun {
    /// Id of the oldest of these loops (runs of the agent).
    pub first_loop_id: String,
    /// Id of the latest of these loops (runs of the agent).
    pub last_loop_id: String,
    /// Number of these loops (runs of the agent).
    pub loops: usize,
    /// Number of messages in these runs of the agent, including notes (log entries that are never sent to a model).
    pub messages: usize,
}

/// Messages for a model, built from the loops (runs of the agent) of a session, and the form in which each turn is
/// shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopContext {
    /// Messages for the model, oldest first.
    pub messages: Vec<Message>,
    /// Cost of the messages, in tokens. At most the maximum that the caller gave.
    pub tokens: u64,
    /// All turns of the loops in scope (the agent's last run and the older runs to show), oldest first. Each turn is
    /// listed once.
    pub turns: Vec<TurnShown>,
    /// Turns that the context does not show, oldest first. Only turns of the loops in scope: the agent's last run and
    /// the older runs to show.
    pub omissions: Vec<Omission>,
    /// Older runs of the agent that the context does not show at all, because
    /// [`CompactionScope`](crate::CompactionScope) leaves them out. `None` if it leaves out no run.
    pub out_of_scope: Option<LoopRun>,
    /// Number of runs of the agent in scope: the last run, and the older runs that
    /// [`CompactionScope`](crate::CompactionScope) selects.
    pub loops: usize,
}

/// Builds a context from the loops (runs of the agent) up to `current_loop_id`. A loop that
/// [`CompactionConfig::compaction_scope`] selects is shown by its block (compacted form) if it has one, and otherwise
/// by its messages. Earlier loops are left out. Messages that were added after the block was made are shown unchanged.
///
/// Each turn is shown once, even if the ranges of a block overlap. The context never costs more than
/// `max_context_tokens`. To fit, it first leaves out older loops, oldest first, and then turns of the last loop, but
/// never the last turn. A message in the context counts the messages that are left out.
///
/// # Errors
/// [`Error::UnknownLoop`] if the session has no loop `current_loop_id`, and [`Error::BudgetTooSmall`] if the last turn
/// alone costs more than the maximum.
pub fn build_context_from_session(
    session: &LoopSession,
    current_loop_id: &str,
    config: &CompactionConfig,
    max_context_tokens: u64,
) -> Result<LoopContext> {
    let chain = session.chain(current_loop_id)?;
    let loops = scope(&chain, config, max_context_tokens) + 1;
    let (older, in_scope) = chain.split_at(chain.len() - loops);
    show_loops(older, in_scope, config, max_context_tokens)
}

/// Builds a context of the runs of the agent in `in_scope` that costs at most the budget. A message at its beginning
/// counts the messages of the runs in `older`, which are left out.
pub(crate) fn show_loops(
    older: &[&LoopRecord],
    in_scope: &[&LoopRecord],
    config: &CompactionConfig,
    budget: u64,
) -> Result<LoopContext> {
    let ends = older.first().zip(older.last());
    let out_of_scope = ends.map(|(first, last)| LoopRun {
        first_loop_id: first.loop_id.clone(),
        last_loop_id: last.loop_id.clone(),
        loops: older.len(),
        messages: older.iter().map(|record| record.messages.len()).sum(),
    });
    let pieces = in_scope.iter().flat_map(|record| pieces(record, config));
    let mut pieces: Vec<ContextPart<'_>> = pieces.collect();
    let mut shown: u64 = pieces.iter().map(|piece| piece.tokens).sum();
    // Leaves out parts, oldest first, until the rest fits.
    let mut hidden = 0;
    let (mark, tokens) = loop {
        let mark = mark(
            out_of_scope.as_ref(),
            pieces.get(..hidden).unwrap_or_default(),
        );
        let tokens = shown.saturating_add(config.cost(mark.as_slice()));
        if tokens <= budget {
            break (mark, tokens);
        }
        if hidden + 1 >= pieces.len() {
            return Err(Error::BudgetTooSmall {
                loop_id: in_scope
                    .last()
                    .map_or_else(String::new, |newest| newest.loop_id.clone()),
                needed: tokens,
                budget,
            });
        }
        shown -= pieces
            .get_mut(hidden)
            .map_or(0, |piece| piece.leave_out(config));
        hidden += 1;
    };
    let mut context = LoopContext {
        messages: mark.into_iter().collect(),
        tokens,
        turns: Vec::new(),
        omissions: Vec::new(),
        out_of_scope,
        loops: in_scope.len(),
    };
    for piece in pieces {
        let hidden = piece
            .omitted
            .as_ref()
            .map(|omitted| omitted.turns.indices());
        let shown = |turn: usize| match hidden.as_ref().is_some_and(|hidden| hidden.contains(&turn))
        {
            true => Shown::Omitted,
            false => piece.shown,
        };
        context
            .turns
            .extend(piece.turns.indices().map(|turn| TurnShown {
                loop_id: piece.record.loop_id.clone(),
                turn,
                shown: shown(turn),
            }));
        context.messages.extend(piece.messages);
        context.omissions.extend(piece.omitted);
    }
    Ok(context)
}

/// Returns the message that counts all omitted messages before the first shown part. `None` if no loop and no part is
/// left out.
fn mark(out_of_scope: Option<&LoopRun>, hidden: &[ContextPart<'_>]) -> Option<Message> {
    let (older, hidden_ids) = (out_of_scope, [hidden.first(), hidden.last()]);
    let [first, last] = hidden_ids.map(|piece| piece.map(|piece| piece.record.loop_id.as_str()));
    let first = older.map(|older| older.first_loop_id.as_str()).or(first)?;
    let last = last.or(older.map(|older| older.last_loop_id.as_str()))?;
    let omitted = hidden.iter().filter_map(|piece| piece.omitted.as_ref());
    let messages: usize = omitted.map(|omitted| omitted.messages).sum();
    Some(left_out(
        first,
        last,
        messages + older.map_or(0, |older| older.messages),
    ))
}

/// Returns the message that replaces `messages` messages from the loop (run of the agent) `first_loop` to the loop
/// `last_loop`. Both ids are empty for a list of messages without loops.
pub(crate) fn left_out(first_loop: &str, last_loop: &str, messages: usize) -> Message {
    let place = match (first_loop, last_loop) {
        ("", _) => String::new(),
        (first, last) if first == last => format!(" of loop {first}"),
        (first, last) => format!(" from loop {first} to loop {last}"),
    };
    Message::user(format!("[… left out: {messages} messages{place} …]"))
}

/// A part of a context that is shown or left out as a whole.
struct ContextPart<'s> {
    record: &'s LoopRecord,
    turn_map: Rc<TurnMap>,
    turns: TurnRange,
    shown: Shown,
    messages: Vec<Message>,
    tokens: u64,
    /// Turns of the part that are not shown; `None` if all turns are shown.
    omitted: Option<Omission>,
}

impl ContextPart<'_> {
    /// Leaves the part out. Returns the tokens that it cost before.
    fn leave_out(&mut self, config: &CompactionConfig) -> u64 {
        let (turn_map, estimator) = (&self.turn_map, &config.estimator);
        self.omitted = Some(self.record.omission(turn_map, self.turns, estimator));
        self.shown = Shown::Omitted;
        self.messages = Vec::new();
        std::mem::take(&mut self.tokens)
    }

    /// Divides a section of recent turns into groups of turns, so that each group can be left out separately. Leaves
    /// other parts whole, and also a section with other messages than its turns have. Counts what each part costs.
    fn divide(mut self, config: &CompactionConfig) -> Vec<Self> {
        let all = self.turn_map.span(self.turns.indices());
        if self.shown != Shown::Trimmed || all.len() != self.messages.len() {
            self.tokens = config.cost(&self.messages);
            return vec![self];
        }
        let groups = self.turn_map.groups(self.turns.indices()).into_iter();
        let pieces = groups.filter_map(|turns| {
            let span = self.turn_map.span(turns.clone());
            let place = span.start - all.start..span.end - all.start;
            let messages = self.messages.get(place)?.to_vec();
            Some(Self {
                turn_map: Rc::clone(&self.turn_map),
                turns: TurnRange::from_indices(turns)?,
                tokens: config.cost(&messages),
                messages,
                omitted: None,
                ..self
            })
        });
        pieces.collect()
    }
}

/// Returns the parts of one run of the agent that a context shows, in order. Each turn is in one part.
fn pieces<'s>(record: &'s LoopRecord, config: &CompactionConfig) -> Vec<ContextPart<'s>> {
    let turn_map = Rc::new(TurnMap::of_loop(&record.messages));
    let count = turn_map.turn_count();
    let block = record.compaction_block.as_ref();
    let section_at = |turn: usize| block.and_then(|block| section_at(block, turn));
    let mut pieces = Vec::new();
    let mut turn = 0;
    while turn < count {
        let found = section_at(turn);
        let covered = found.map_or(turn + 1, |(end, ..)| end.min(count));
        // A tool group that extends beyond the section is shown with its first turn.
        let mut end = covered;
        while !turn_map.is_cut(end) && section_at(end).is_none() {
            end += 1;
        }
        let Some(turns) = TurnRange::from_indices(turn..end) else {
            break;
        };
        let span = turn_map.span(turn..end);
        let mut piece = ContextPart {
            record,
            turn_map: Rc::clone(&turn_map),
            turns,
            shown: Shown::Raw,
            messages: Vec::new(),
            tokens: 0,
            omitted: None,
        };
        let mut from = span.start;
        if let Some((_, section, shown)) = found {
            piece.shown = shown;
            piece.messages.clone_from(&section.messages);
            piece.omitted.clone_from(&section.omitted);
            // Messages that were added after the section was made.
            let of_section = turn_map.span(turn..covered);
            let known = block.and_then(|block| block.covered_messages);
            from = known.map_or(of_section.end, |known| {
                known.clamp(of_section.start, of_section.end)
            });
        }
        let rest = record.messages.get(from..span.end).unwrap_or_default();
        piece.messages.extend_from_slice(rest);
        pieces.extend(piece.divide(config));
        turn = end;
    }
    pieces
}

/// Returns the section that begins at `turn`, after the index where it ends. Turns that the other sections contain are
/// not of the summary, so that they are shown in full.
fn section_at(block: &CompactionBlock, turn: usize) -> Option<(usize, &CompactedSection, Shown)> {
    let recent = block.keep_recent.as_ref();
    let recent_turns = recent.map(|section| section.range.indices());
    if let Some((section, turns)) = recent.zip(recent_turns.clone())
        && turns.start == turn
    {
        return Some((turns.end, section, Shown::Trimmed));
    }
    let summary = block.keep_compacted.as_ref()?;
    let mut turns = summary.range.indices();
    let first_turns = block.keep_first.map(|first| first.indices());
    for other in [first_turns, recent_turns].into_iter().flatten() {
        match other.contains(&turns.start) {
            true => turns.start = other.end,
            false if turns.contains(&other.start) => turns.end = other.start,
            false => {}
        }
    }
    let begins = !turns.is_empty() && turns.start == turn;
    begins.then_some((turns.end, summary, Shown::Summarized))
}
