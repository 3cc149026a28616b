use std::ops::Range;

use crate::{Atom, AtomKind, Atoms, Cut, TurnMap};

/// Rule that decides which messages of a conversation are kept and which may be compacted.
///
/// Under every policy an atom is kept or compacted whole, atoms that are not [settled](Atoms::settled) are kept, and
/// notes directly before kept messages are kept. An atom that alone exceeds a limit is kept if it is the latest one,
/// and no older atom is kept then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum CutPolicy {
    /// Keeps at least the last `messages` messages, or all if there are fewer.
    LastMessages {
        /// Number of messages to keep, not counting notes. Default 20; 0 keeps none.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
    },
    /// Keeps the last messages up to a number of messages and a limit in tokens, and always the latest atom.
    FreshTail {
        /// Number of messages to keep, not counting notes. Default 20.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
        /// Maximum cost of the kept messages in tokens, unless the latest atom alone costs more. `None`, the default,
        /// sets no limit.
        #[cfg_attr(feature = "serde", serde(default))]
        max_tokens: Option<u64>,
    },
    /// Keeps the latest messages until they cost `tokens`. The atom with which this cost is reached is kept if the
    /// atom's first message reaches it. If a later message of the atom does, such as a large result, the atom is kept
    /// only if it is the latest one.
    RecentTokens {
        /// Cost of the messages to keep, in tokens. Default 16,384.
        #[cfg_attr(feature = "serde", serde(default = "recent_tokens"))]
        tokens: u64,
    },
}

const fn twenty() -> usize {
    20
}

#[cfg(feature = "serde")]
const fn recent_tokens() -> u64 {
    16_384
}

impl Default for CutPolicy {
    /// The last 20 messages, without a limit in tokens.
    fn default() -> Self {
        Self::FreshTail {
            messages: twenty(),
            max_tokens: None,
        }
    }
}

/// Position at which a policy divides a list: messages before it may be compacted, messages after it are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Cuts {
    start: Cut,
    tail: Cut,
    turn_start: Option<Cut>,
}

impl Cuts {
    /// Returns the cut before the messages that are kept.
    pub fn tail(&self) -> Cut {
        self.tail
    }

    /// Returns the positions of the messages that may be compacted; empty if all messages are kept.
    pub fn covered(&self) -> Range<usize> {
        self.start.position()..self.tail.position()
    }

    /// If [`tail`](Self::tail) is inside a turn, returns the cut before this turn, so that the turn's messages before
    /// the tail can be summarized separately. An atom in which the turn begins belongs to the turn. `None` if the tail
    /// splits no turn.
    pub fn turn_start(&self) -> Option<Cut> {
        self.turn_start
    }
}

impl CutPolicy {
    /// Divides `atoms` into messages that may be compacted and messages that are kept.
    ///
    /// `turns` are the turns of the same list, at the same positions; they determine [`Cuts::turn_start`]. `cost`
    /// returns the tokens of the message at a position, 0 for a note. It is called for the messages from the latest one
    /// back to the first one that is not kept.
    pub fn cuts(&self, atoms: &Atoms, turns: &TurnMap, cost: impl Fn(usize) -> u64) -> Cuts {
        let atom_cost = |atom: &Atom| atom.range().map(&cost).fold(0, u64::saturating_add);
        let tail = match *self {
            Self::LastMessages { messages } => {
                keep(atoms, |_, kept, _| (kept < messages).then_some(0))
            }
            Self::FreshTail {
                messages,
                max_tokens,
            } => {
                let most = max_tokens.unwrap_or(u64::MAX);
                keep(atoms, |atom, kept, tokens| {
                    let with = tokens.saturating_add(atom_cost(atom));
                    (kept == 0 || (kept < messages && with <= most)).then_some(with)
                })
            }
            Self::RecentTokens { tokens } => keep(atoms, |atom, kept, without| {
                if kept == 0 {
                    return Some(without.saturating_add(atom_cost(atom)));
                }
                // Without its first message, which adds no cost before the limit.
                let rest = atom.range().skip(1).map(&cost);
                let rest = rest.fold(without, u64::saturating_add);
                (rest < tokens).then(|| rest.saturating_add(cost(atom.range().start)))
            }),
        };
        let tail = tail.min(atoms.settled_end());
        Cuts {
            start: atoms.start(),
            tail,
            turn_start: split_turn(atoms, turns, tail),
        }
    }
}

/// The cut before the turn that a tail splits.
fn split_turn(atoms: &Atoms, turns: &TurnMap, tail: Cut) -> Option<Cut> {
    let kept = atoms.between(tail, atoms.end());
    let first = kept.iter().find(|atom| atom.kind() != AtomKind::Note)?;
    let start = turns.start_of(first.range().start)?;
    let cut = atoms.cut_before(start);
    (cut < tail).then_some(cut)
}

/// The cut before the latest atoms that are kept. `stays` gets an atom, the number of messages kept after it and their
/// cost, and returns the cost with the atom, or `None` if it is not kept.
fn keep(atoms: &Atoms, stays: impl Fn(&Atom, usize, u64) -> Option<u64>) -> Cut {
    let (mut kept, mut tokens) = (0, 0);
    let mut cut = atoms.end();
    for atom in atoms.iter().rev() {
        let Some(with) = stays(atom, kept, tokens) else {
            break;
        };
        (kept, tokens) = (kept + atom.messages(), with);
        cut = atoms.cut_before(atom.range().start);
    }
    // Notes directly before it stay with it.
    let before = atoms.between(atoms.start(), cut).iter().rev();
    let notes = before.take_while(|atom| atom.kind() == AtomKind::Note);
    notes
        .last()
        .map_or(cut, |first| atoms.cut_before(first.range().start))
}
