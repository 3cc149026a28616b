//! The cut of a handoff: the border between the messages to summarize and the messages to keep. A cut inside a turn
//! splits the turn.

use memory_model::{LogEntry, Seq, SeqRange};
use turn_map::{AtomBuilder, AtomKind, Atoms, CutPolicy, TurnBoundary, TurnMap};

use crate::policy::HandoffPolicy;

/// Messages since the previous handoff, among which the cut is chosen.
#[derive(Debug)]
pub(crate) struct Recent {
    atoms: AtomBuilder,
    turns: TurnMap,
    costs: Costs,
}

/// Costs of consecutive log entries, in tokens.
#[derive(Debug)]
pub(crate) struct Costs {
    origin: Seq,
    /// Cost of each entry from position `origin` on.
    costs: Vec<u64>,
}

impl Costs {
    /// Returns the cost of the entries in a range, in tokens.
    pub(crate) fn of(&self, range: SeqRange) -> u64 {
        let at = |seq: Seq| seq.0.saturating_sub(self.origin.0) as usize;
        let costs = self.costs.get(at(range.first)..=at(range.last));
        let costs = costs.unwrap_or_default().iter();
        costs.fold(0, |sum, cost| sum.saturating_add(*cost))
    }

    fn at(&self, position: usize) -> u64 {
        let index = position.checked_sub(self.origin.0 as usize);
        index
            .and_then(|index| self.costs.get(index))
            .copied()
            .unwrap_or(0)
    }
}

/// A cut of the messages since the previous handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// Range of messages that is summarized together with the previous summary; `None` if only the beginning of a turn
    /// is summarized.
    pub(crate) history: Option<SeqRange>,
    /// Beginning of a turn that gets a separate summary, because the end of the turn is kept; `None` if no turn is
    /// split.
    pub(crate) prefix: Option<SeqRange>,
    /// Position of the first message that is kept verbatim.
    pub(crate) kept: Seq,
}

impl Recent {
    pub(crate) fn new(origin: Seq) -> Self {
        let at = origin.0 as usize;
        Self {
            atoms: AtomBuilder::starting_at(at),
            turns: TurnMap::starting_at(at, TurnBoundary::Role),
            costs: Costs {
                origin,
                costs: Vec::new(),
            },
        }
    }

    pub(crate) fn push(&mut self, entry: &LogEntry) {
        self.atoms.push(entry);
        self.turns.push(entry);
        self.costs.costs.push(entry.tokens);
    }

    /// Returns the cut before the message at `first`. If this message is inside a group or a range of `solid`, the cut
    /// is before the group or range. `None` if there are no messages before the cut.
    pub(crate) fn cut_at(self, first: Seq, solid: &[SeqRange]) -> Option<(Boundary, Costs)> {
        let Self { atoms, costs, .. } = self;
        let cut = atoms.finish().cut_before(first.0 as usize);
        let kept = Seq(u32::try_from(cut.position()).unwrap_or(u32::MAX));
        let kept = before_solid(kept, solid);
        let history = Some(SeqRange::new(costs.origin, kept.prev())?);
        Some((
            Boundary {
                history,
                prefix: None,
                kept,
            },
            costs,
        ))
    }

    /// Returns the cut that the policy selects; `None` if there are no messages to summarize. The cut never divides a
    /// range of `solid`. `most` is the maximum cost of the kept messages, in tokens, unless `max_source_tokens` moves
    /// the cut to an earlier position.
    pub(crate) fn cut(
        self,
        policy: &HandoffPolicy,
        most: Option<u64>,
        solid: &[SeqRange],
    ) -> Option<(Boundary, Costs)> {
        let Self {
            atoms,
            turns,
            costs,
        } = self;
        let atoms = atoms.finish();
        let (origin, cost) = (costs.origin, |position: usize| costs.at(position));
        let mut cuts = policy.keep.cuts(&atoms, &turns, cost);
        if let Some(max_tokens) = most {
            let limit = CutPolicy::FreshTail {
                messages: usize::MAX,
                max_tokens: Some(max_tokens),
            };
            let limited = limit.cuts(&atoms, &turns, cost);
            if limited.tail() > cuts.tail() {
                cuts = limited;
            }
        }
        let seq = |position: usize| Seq(u32::try_from(position).unwrap_or(u32::MAX));
        let kept = before_solid(seq(cuts.tail().position()), solid);
        let all = SeqRange::new(origin, kept.prev())?;
        if let Some(chunk) = first_chunk(&atoms, all, policy.max_source_tokens, cost) {
            let kept = before_solid(chunk.last.next(), solid);
            let history = SeqRange::new(origin, kept.prev());
            let cut = history.map(|_| Boundary {
                history,
                prefix: None,
                kept,
            });
            return cut.map(|cut| (cut, costs));
        }
        let turn = cuts
            .turn_start()
            .map(|cut| before_solid(seq(cut.position()), solid));
        let turn = turn.filter(|turn| policy.split_turns && *turn < kept);
        let (history, prefix) = match turn {
            Some(turn) => (
                SeqRange::new(origin, turn.prev()),
                SeqRange::new(turn, kept.prev()),
            ),
            None => (Some(all), None),
        };
        Some((
            Boundary {
                history,
                prefix,
                kept,
            },
            costs,
        ))
    }
}

/// Returns the first position of the range of `solid` that contains `seq`, or `seq` itself if no range contains it.
fn before_solid(seq: Seq, solid: &[SeqRange]) -> Seq {
    let inside = |range: &&SeqRange| range.first < seq && seq <= range.last;
    solid.iter().find(inside).map_or(seq, |range| range.first)
}

/// Returns the first atoms of a range that together cost at most `most` tokens, but at least one atom. An atom is a
/// group of messages that must not be separated. `None` if these atoms are the whole range.
fn first_chunk(
    atoms: &Atoms,
    range: SeqRange,
    most: Option<u64>,
    cost: impl Fn(usize) -> u64,
) -> Option<SeqRange> {
    let most = most?;
    let (mut tokens, mut last) = (0_u64, None);
    for atom in atoms.iter() {
        let end = Seq(u32::try_from(atom.range().end).unwrap_or(u32::MAX)).prev();
        if end > range.last {
            return None;
        }
        let with = atom.range().map(&cost).fold(tokens, u64::saturating_add);
        let is_first = last.is_none() || atom.kind() == AtomKind::Note;
        if with > most && !is_first {
            return SeqRange::new(range.first, last?);
        }
        (tokens, last) = (with, Some(end));
    }
    None
}
