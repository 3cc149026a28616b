//! The context of a session: what the blocks of the loops in scope show.

use std::fmt;
use std::rc::Rc;

use token_estimate::{TokenEstimator, TokenEstimatorExt as _};

use crate::block::{CompactedSection, CompactionBlock};
use crate::error::{Error, Result};
use crate::layout::LoopLayout;
use crate::loops::LoopRecord;
use crate::message::LoopMessage;
use crate::omission::{Omission, OmissionReason};
use crate::orchestrate::{BlockSettings, resolve_scope};
use crate::session::{LoopRun, LoopSession};
use crate::tally::Tally;
use crate::turn_range::TurnRange;

/// What a context shows of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shown {
    /// Its messages.
    Raw,
    /// Its messages with shortened tool output.
    Trimmed,
    /// A summary that it is part of.
    Summarized,
    /// Nothing: an [`Omission`] counts it.
    Omitted,
}

impl Shown {
    /// The name in lower case: `raw`, `trimmed`, `summarized` or `omitted`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Trimmed => "trimmed",
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
        }
    }
}

/// A turn of a loop in scope, and what a context shows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnShown {
    /// Id of the loop.
    pub loop_id: String,
    /// Index of the turn, by position.
    pub turn: usize,
    /// Number of its messages.
    pub messages: usize,
    /// What is shown of it.
    pub shown: Shown,
}

impl fmt::Display for TurnShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            loop_id,
            turn,
            messages,
            shown,
        } = self;
        write!(
            f,
            "{loop_id} turn {turn:>3} {:<10} {messages} message(s)",
            shown.as_str()
        )
    }
}

/// The messages for a model, and what became of each turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopContext<M> {
    /// The messages, oldest first.
    pub messages: Vec<M>,
    /// Their cost, in tokens: never more than was allowed.
    pub tokens: u64,
    /// Every turn of the loops in scope, oldest first, once each.
    pub turns: Vec<TurnShown>,
    /// What is left out of the loops in scope, oldest first.
    pub omissions: Vec<Omission>,
    /// The loops that are out of scope, counted together. [`LoopSession::ancestors`] of the last one gives
    /// each.
    pub out_of_scope: Option<LoopRun>,
    /// Number of loops in scope, the newest one included.
    pub loops: usize,
}

/// A part of a context that is shown or left out as a whole.
struct Piece<'s, M> {
    record: &'s LoopRecord<M>,
    layout: Rc<LoopLayout>,
    turns: TurnRange,
    shown: Shown,
    messages: Vec<M>,
    tokens: u64,
    /// Those of its turns that it does not show.
    omitted: Option<Omission>,
}

/// Builds the context of a chain of loops: of each loop in scope what its block shows, or its messages where
/// it has none. Messages that came after a block was made are shown as they are.
///
/// Each turn is shown once, whatever ranges a block has. The context never costs more than
/// `max_context_tokens`: older loops are left out first, oldest first, then turns of the newest loop, but
/// never its last one. What is left out is counted, and a message names it
/// ([`mark_omissions`](crate::CompactionConfig::mark_omissions)).
///
/// # Errors
/// [`ErrorKind::UnknownLoop`](crate::ErrorKind::UnknownLoop), and
/// [`ErrorKind::BudgetTooSmall`](crate::ErrorKind::BudgetTooSmall) where the newest turn alone costs more.
pub fn build_context_from_session<M: LoopMessage>(
    session: &LoopSession<M>,
    current_loop_id: &str,
    settings: &BlockSettings<'_, M>,
) -> Result<LoopContext<M>> {
    session.require(current_loop_id)?;
    let loops = resolve_scope(session, current_loop_id, settings) + 1;
    let out_of_scope = session.older_than(current_loop_id, loops);
    let in_scope: Vec<_> = session.ancestors(current_loop_id).take(loops).collect();
    let pieces = in_scope
        .iter()
        .rev()
        .flat_map(|record| pieces(record, settings))
        .collect();
    let mut builder = Builder {
        settings,
        hidden: Tally::new(out_of_scope.as_ref()),
        out_of_scope,
        pieces,
    };
    builder.fit(current_loop_id)?;
    Ok(builder.finish(loops))
}

/// What one loop shows, each turn once.
fn pieces<'s, M: LoopMessage>(
    record: &'s LoopRecord<M>,
    settings: &BlockSettings<'_, M>,
) -> Vec<Piece<'s, M>> {
    let layout = Rc::new(LoopLayout::new(&record.messages, settings.config.turn_rule));
    let count = layout.turns().count();
    let block = record.compaction_block.as_ref();
    let section_at = |turn: usize| block.and_then(|block| section_at(block, turn, count));
    let mut pieces = Vec::new();
    let mut turn = 0;
    while turn < count {
        let found = section_at(turn);
        let covered = found.map_or(turn + 1, |(section, _)| {
            section.range.indices().end.min(count)
        });
        // A tool group that goes on behind stays with its beginning.
        let mut end = covered;
        while !layout.is_cut(end) && section_at(end).is_none() {
            end += 1;
        }
        let Some(turns) = TurnRange::from_indices(turn..end) else {
            break;
        };
        let (messages, shown, omitted) = match found {
            None => (
                layout.slice(&record.messages, turns).to_vec(),
                Shown::Raw,
                None,
            ),
            Some((section, shown)) => {
                let mut messages = section.messages.clone();
                messages.extend(grown(record, &layout, turn..covered, end));
                (messages, shown, section.omitted.clone())
            }
        };
        pieces.push(Piece {
            tokens: settings.estimator.messages(&messages),
            record,
            layout: Rc::clone(&layout),
            turns,
            shown,
            messages,
            omitted,
        });
        turn = end;
    }
    pieces
}

/// The section that begins at a turn and stands for it. The recent turns come before the summary, so
/// that turns in both, as in blocks of other programs, are shown in full.
fn section_at<M>(
    block: &CompactionBlock<M>,
    turn: usize,
    count: usize,
) -> Option<(&CompactedSection<M>, Shown)> {
    let recent = block
        .keep_recent
        .as_ref()
        .map(|section| (section, Shown::Trimmed));
    let summary = block
        .keep_compacted
        .as_ref()
        .map(|section| (section, Shown::Summarized));
    let starts = |(section, _): &(&CompactedSection<M>, Shown)| {
        section.range.indices().start == turn && section.range.indices().start < count
    };
    recent.filter(starts).or(summary.filter(starts))
}

/// The messages up to turn `end` that came after a section's turns were made.
fn grown<'m, M: LoopMessage>(
    record: &'m LoopRecord<M>,
    layout: &LoopLayout,
    turns: std::ops::Range<usize>,
    end: usize,
) -> impl Iterator<Item = M> + 'm {
    let covered = record
        .compaction_block
        .as_ref()
        .and_then(|block| block.covered_messages);
    let span = layout.turns().span(turns.clone());
    let from = covered.map_or(span.end, |covered| covered.clamp(span.start, span.end));
    let end = layout.turns().span(turns.start..end).end;
    record
        .messages
        .get(from..end)
        .unwrap_or_default()
        .iter()
        .cloned()
}

/// Fits pieces into a budget.
struct Builder<'b, 's, M> {
    settings: &'b BlockSettings<'b, M>,
    out_of_scope: Option<LoopRun>,
    pieces: Vec<Piece<'s, M>>,
    /// What is left out before the first piece that is shown.
    hidden: Tally,
}

impl<M: LoopMessage> Builder<'_, '_, M> {
    /// Leaves pieces out, oldest first, until the rest fits.
    fn fit(&mut self, current_loop_id: &str) -> Result<()> {
        let budget = self.settings.max_context_tokens;
        let mut tokens: u64 = self.pieces.iter().map(|piece| piece.tokens).sum();
        if tokens.saturating_add(self.mark_tokens()) > budget {
            self.divide_recent(current_loop_id);
        }
        let last = self.pieces.len().saturating_sub(1);
        for index in 0..=last {
            let needed = tokens.saturating_add(self.mark_tokens());
            if needed <= budget {
                return Ok(());
            }
            if index == last {
                let what = format!("the newest turn of loop `{current_loop_id}`");
                return Err(Error::budget_too_small(&what, needed, budget));
            }
            tokens -= self.leave_out(index);
        }
        Ok(())
    }

    /// Makes each of the newest loop's recent turns a piece, so that only as many are left out as must
    /// be. Turns that a tool group joins stay together.
    fn divide_recent(&mut self, current_loop_id: &str) {
        let is_recent = |piece: &Piece<'_, M>| {
            piece.shown == Shown::Trimmed && piece.record.loop_id == current_loop_id
        };
        let Some(at) = self.pieces.iter().position(is_recent) else {
            return;
        };
        let piece = self.pieces.remove(at);
        let divided = divide(piece, self.settings.estimator);
        self.pieces.splice(at..at, divided);
    }

    /// Leaves a piece out, and returns what it cost.
    fn leave_out(&mut self, index: usize) -> u64 {
        let Some(piece) = self.pieces.get_mut(index) else {
            return 0;
        };
        let originals = piece.layout.slice(&piece.record.messages, piece.turns);
        let omission = Omission {
            loop_id: piece.record.loop_id.clone(),
            turns: piece.turns,
            messages: originals.len(),
            tokens: self.settings.estimator.messages(originals),
            reason: OmissionReason::ContextBudget,
        };
        self.hidden.push(&omission);
        piece.shown = Shown::Omitted;
        piece.messages = Vec::new();
        piece.omitted = Some(omission);
        std::mem::take(&mut piece.tokens)
    }

    /// The message that names what is left out before the first piece that is shown.
    fn mark(&self) -> Option<M> {
        let text = self
            .hidden
            .text()
            .filter(|_| self.settings.config.mark_omissions);
        text.map(M::user)
    }

    fn mark_tokens(&self) -> u64 {
        self.mark()
            .map_or(0, |mark| self.settings.estimator.message(&mark))
    }

    fn finish(self, loops: usize) -> LoopContext<M> {
        let shown: u64 = self.pieces.iter().map(|piece| piece.tokens).sum();
        let tokens = shown.saturating_add(self.mark_tokens());
        let mut messages: Vec<M> = self.mark().into_iter().collect();
        let (mut turns, mut omissions) = (Vec::new(), Vec::new());
        for piece in self.pieces {
            messages.extend(piece.messages);
            let hidden = piece.omitted.as_ref().map(|omitted| omitted.turns);
            for turn in piece.turns.indices() {
                let is_hidden = hidden.is_some_and(|hidden| hidden.contains(turn));
                turns.push(TurnShown {
                    loop_id: piece.record.loop_id.clone(),
                    turn,
                    messages: piece.layout.turns().range(turn).len(),
                    shown: if is_hidden {
                        Shown::Omitted
                    } else {
                        piece.shown
                    },
                });
            }
            omissions.extend(piece.omitted);
        }
        LoopContext {
            messages,
            tokens,
            turns,
            omissions,
            out_of_scope: self.out_of_scope,
            loops,
        }
    }
}

/// The turns of a trimmed section as pieces of their own, where its messages are those of the turns.
fn divide<'s, M: LoopMessage>(
    piece: Piece<'s, M>,
    estimator: &dyn TokenEstimator,
) -> Vec<Piece<'s, M>> {
    let layout = Rc::clone(&piece.layout);
    let all = layout.turns().span(piece.turns.indices());
    if all.len() != piece.messages.len() {
        return vec![piece];
    }
    let turns = piece.turns.indices();
    let starts = turns.clone().skip(1).filter(|turn| layout.is_cut(*turn));
    let ends = starts.clone().chain([turns.end]);
    let of_turns = std::iter::once(turns.start).chain(starts).zip(ends);
    let pieces = of_turns.filter_map(|(first, end)| {
        let turns = TurnRange::from_indices(first..end)?;
        let span = layout.turns().span(first..end);
        let messages = piece
            .messages
            .get(span.start - all.start..span.end - all.start)?;
        Some(Piece {
            record: piece.record,
            layout: Rc::clone(&layout),
            turns,
            shown: piece.shown,
            tokens: estimator.messages(messages),
            messages: messages.to_vec(),
            omitted: None,
        })
    });
    pieces.collect()
}
