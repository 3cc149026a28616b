use std::ops::Range;

use crate::{Atom, AtomKind, Atoms, Cut, TurnMap};

/// Rule that decides which messages of a conversation are kept and which may be compacted (replaced by a summary).
///
/// Under every policy, an [`Atom`] (a run of messages that must stay together) is kept or compacted as a whole. Atoms
/// that appended messages can still change are kept. Notes directly before kept messages are kept. If the latest atom
/// alone exceeds a limit, only this atom is kept.
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
        /// Number of messages to keep. Notes do not count, because they are never sent to a model. Default 20; 0 keeps
        /// none.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
    },
    /// Keeps the last messages, up to a number of messages and a cost in tokens. The latest atom is always kept.
    FreshTail {
        /// Number of messages to keep. Notes do not count, because they are never sent to a model. Default 20.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
        /// Maximum cost of the kept messages, in tokens. The latest atom, and atoms that appended messages can still
        /// change, are kept even if they cost more. `None`, the default, sets no limit.
        #[cfg_attr(feature = "serde", serde(default))]
        max_tokens: Option<u64>,
    },
    /// Keeps messages from the end of the list backwards until they cost `tokens`.
    ///
    /// The latest atom (a run of messages that must stay together) is always kept. An earlier atom is kept if the
    /// messages after the atom's first message cost less than `tokens`. So an atom with a large tool result that
    /// reaches the limit is not kept.
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
    /// Returns [`FreshTail`](Self::FreshTail) with 20 messages and without a limit in tokens.
    fn default() -> Self {
        Self::FreshTail {
            messages: twenty(),
            max_tokens: None,
        }
    }
}

/// Result of [`CutPolicy::cuts`]: the positions at which a list is divided. Messages before the [`tail`](Self::tail)
/// may be compacted, messages after it are kept.
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

    /// Returns the cut before the turn that [`tail`](Self::tail) splits. The messages between both cuts can be
    /// summarized separately from older turns. If a turn begins inside an atom, the whole atom belongs to the turn.
    /// `None` if the tail splits no turn.
    pub fn turn_start(&self) -> Option<Cut> {
        self.turn_start
    }
}

impl CutPolicy {
    /// Divides `atoms` into messages that may be compacted and messages that are kept.
    ///
    /// `turns` are the turns of the same list, with the same positions. They determine [`Cuts::turn_start`]. `cost`
    /// returns the tokens of the message at a position, and 0 for a note. It is called for messages from the end of the
    /// list back to the latest atom that is not kept, inclusive.
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
                // The atom without its first message: this message may exceed the limit.
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

/// Returns the cut before the turn that `tail` splits; `None` if it splits none.
fn split_turn(atoms: &Atoms, turns: &TurnMap, tail: Cut) -> Option<Cut> {
    let kept = atoms.between(tail, atoms.end());
    let first = kept.iter().find(|atom| atom.kind() != AtomKind::Note)?;
    let start = turns.start_of(first.range().start)?;
    let cut = atoms.cut_before(start);
    (cut < tail).then_some(cut)
}

/// Returns the cut before the latest atoms that are kept. `stays` is called with an atom, the number of messages kept
/// after the atom, and their cost. It returns the cost including the atom, or `None` if the atom is not kept.
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
    // Notes directly before the cut are kept too.
    let before = atoms.between(atoms.start(), cut).iter().rev();
    let notes = before.take_while(|atom| atom.kind() == AtomKind::Note);
    notes
        .last()
        .map_or(cut, |first| atoms.cut_before(first.range().start))
}
