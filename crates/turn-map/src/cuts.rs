use std::ops::Range;

use crate::{Atom, AtomKind, Atoms, Cut, TurnMap};

/// How much of a conversation stays as it is.
///
/// Whatever the policy, an atom stays whole or goes whole; what can still change (see
/// [`Atoms::settled`]) stays; notes right before what stays, stay with it; and what stays is never
/// everything because the newest atom alone is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum CutPolicy {
    /// Keeps the last messages: at least this many, all when there are fewer.
    LastMessages {
        /// Messages, notes not counted. 20, anna's handoff; 0 keeps none.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
    },
    /// Keeps the last messages as far as a limit in tokens lets it, and the newest atom in any
    /// case.
    FreshTail {
        /// Messages, notes not counted. 20, anna's fresh tail.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
        /// The most tokens that the tail may cost, unless its newest atom alone costs more. No
        /// limit by default, as in anna.
        #[cfg_attr(feature = "serde", serde(default))]
        max_tokens: Option<u64>,
    },
    /// Keeps the newest atoms until they cost this much; the atom that reaches it stays too.
    RecentTokens {
        /// Tokens. 16384, the documented default of pi's rule.
        #[cfg_attr(feature = "serde", serde(default = "pi_recent"))]
        tokens: u64,
    },
    /// koda's rule: of fewer than 12 messages keeps 4, else half of them, rounded up.
    PreserveCount,
    /// phi-core's rule: keeps the first and the most recent turns.
    FirstAndRecentTurns {
        /// Turns at the beginning. 2, phi-core's default; 0 keeps none.
        #[cfg_attr(feature = "serde", serde(default = "phi_first"))]
        first: usize,
        /// Turns at the end. 10, phi-core's default.
        #[cfg_attr(feature = "serde", serde(default = "phi_recent"))]
        recent: usize,
    },
}

/// anna's `keep_tail` and fresh tail, in messages.
const fn twenty() -> usize {
    20
}

const fn pi_recent() -> u64 {
    16_384
}

const fn phi_first() -> usize {
    2
}

const fn phi_recent() -> usize {
    10
}

/// koda's fewest messages, and the count below which it keeps just those.
const KODA_LEAST: usize = 4;
const KODA_HALF_FROM: usize = 12;

impl Default for CutPolicy {
    /// anna's fresh tail.
    fn default() -> Self {
        Self::FreshTail {
            messages: twenty(),
            max_tokens: None,
        }
    }
}

/// Where a policy cuts: `[start, head)` and `[tail, end)` stay, what lies between may be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cuts {
    head: Cut,
    tail: Cut,
}

impl Cuts {
    /// Behind the messages that stay at the beginning, if any do.
    pub fn head(&self) -> Cut {
        self.head
    }

    /// Before the messages that stay at the end. Never before the [`head`](Self::head).
    pub fn tail(&self) -> Cut {
        self.tail
    }

    /// The positions that may be compacted; empty when everything stays.
    pub fn covered(&self) -> Range<usize> {
        self.head.position()..self.tail.position()
    }
}

impl CutPolicy {
    /// anna's fresh tail, the default: 20 messages.
    pub const ANNA: Self = Self::FreshTail {
        messages: twenty(),
        max_tokens: None,
    };
    /// anna's handoff: 20 messages.
    pub const ANNA_HANDOFF: Self = Self::LastMessages { messages: twenty() };
    /// pi's rule with its documented default: 16,384 tokens.
    pub const PI: Self = Self::RecentTokens {
        tokens: pi_recent(),
    };
    /// koda's rule: 4 messages or half of them.
    pub const KODA: Self = Self::PreserveCount;
    /// phi-core's defaults: 2 turns at the beginning, 10 at the end.
    pub const PHI_CORE: Self = Self::FirstAndRecentTurns {
        first: phi_first(),
        recent: phi_recent(),
    };

    /// Where to cut `atoms`.
    ///
    /// `turns` are the turns of the same list, at the same positions; only [`FirstAndRecentTurns`] looks at them. `cost`
    /// gives the tokens of the message at a position, 0 for a note; [`FreshTail`] and
    /// [`RecentTokens`] ask it, newest atom first, up to the first atom that goes.
    ///
    /// [`FirstAndRecentTurns`]: Self::FirstAndRecentTurns
    /// [`FreshTail`]: Self::FreshTail
    /// [`RecentTokens`]: Self::RecentTokens
    pub fn cuts(&self, atoms: &Atoms, turns: &TurnMap, cost: impl Fn(usize) -> u64) -> Cuts {
        let cost = |atom: &Atom| atom.range().map(&cost).fold(0, u64::saturating_add);
        let mut head = atoms.start();
        let tail = match *self {
            Self::LastMessages { messages } => last_messages(atoms, messages),
            Self::PreserveCount => last_messages(
                atoms,
                preserve_count(atoms.iter().map(Atom::messages).sum()),
            ),
            Self::FreshTail {
                messages,
                max_tokens,
            } => {
                let most = max_tokens.unwrap_or(u64::MAX);
                keep(atoms, cost, |kept, _, with| {
                    kept == 0 || (kept < messages && with <= most)
                })
            }
            Self::RecentTokens { tokens } => keep(atoms, cost, |kept, without, _| {
                kept == 0 || without < tokens
            }),
            Self::FirstAndRecentTurns { first, recent } => {
                let count = turns.count();
                if first > 0 {
                    head = atoms.cut_after(turns.span(0..first).end);
                }
                let oldest = count.saturating_sub(recent);
                before_notes(atoms, atoms.cut_before(turns.span(oldest..count).start))
            }
        };
        let tail = tail.min(atoms.settled_end());
        Cuts {
            head: head.min(tail),
            tail,
        }
    }
}

/// koda's rule.
fn preserve_count(messages: usize) -> usize {
    if messages < KODA_HALF_FROM {
        KODA_LEAST
    } else {
        messages.div_ceil(2).max(KODA_LEAST)
    }
}

fn last_messages(atoms: &Atoms, messages: usize) -> Cut {
    keep(atoms, |_| 0, |kept, _, _| kept < messages)
}

/// The cut before the newest atoms that `stays` lets stay. It is told how many messages stay
/// already, and what the tail costs without and with the atom.
fn keep(
    atoms: &Atoms,
    cost: impl Fn(&Atom) -> u64,
    stays: impl Fn(usize, u64, u64) -> bool,
) -> Cut {
    let (mut kept, mut tokens) = (0, 0_u64);
    let mut cut = atoms.end();
    for atom in atoms.iter().rev() {
        let with = tokens.saturating_add(cost(atom));
        if !stays(kept, tokens, with) {
            break;
        }
        (kept, tokens) = (kept + atom.messages(), with);
        cut = atoms.cut_before(atom.range().start);
    }
    before_notes(atoms, cut)
}

/// Notes right before a kept message stay with it, as in pi's rule.
fn before_notes(atoms: &Atoms, cut: Cut) -> Cut {
    let before = atoms.between(atoms.start(), cut);
    let notes = before
        .iter()
        .rev()
        .take_while(|atom| atom.kind() == AtomKind::Note)
        .count();
    atoms.cut_at_atom(before.len() - notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::lines;
    use crate::{HullPolicy, atoms};

    /// The covered positions, every message costing `cost`.
    fn covered(policy: CutPolicy, script: &str, cost: u64) -> Range<usize> {
        let messages = lines(script);
        let atoms = atoms(&messages, HullPolicy::default());
        policy
            .cuts(&atoms, &TurnMap::by_role(&messages), |_| cost)
            .covered()
    }

    #[test]
    fn the_last_messages_stay_and_fewer_are_all_kept() {
        let last = |messages| covered(CutPolicy::LastMessages { messages }, "u a u a u", 1);
        assert_eq!(
            [last(0), last(1), last(2), last(5), last(6)],
            [0..5, 0..4, 0..3, 0..0, 0..0]
        );
        assert_eq!(covered(CutPolicy::default(), &"u a ".repeat(9), 1), 0..0);
        assert_eq!(covered(CutPolicy::default(), &"u a ".repeat(11), 1), 0..2);
    }

    #[test]
    fn a_tail_that_would_begin_at_a_result_begins_at_its_call() {
        // The tail of one message would be u-y: the group comes with it.
        let last = |messages| CutPolicy::LastMessages { messages };
        for messages in 1..=4 {
            assert_eq!(
                covered(last(messages), "u a a+x+y u-x u u-y", 1),
                0..2,
                "{messages}"
            );
        }
        assert_eq!(covered(last(5), "u a a+x+y u-x u u-y", 1), 0..1);
    }

    #[test]
    fn what_can_still_change_stays() {
        for policy in [
            CutPolicy::LastMessages { messages: 0 },
            CutPolicy::RecentTokens { tokens: 0 },
            CutPolicy::FreshTail {
                messages: 1,
                max_tokens: Some(0),
            },
            CutPolicy::FirstAndRecentTurns {
                first: 0,
                recent: 0,
            },
        ] {
            assert_eq!(covered(policy, "u a u a+x u u", 1), 0..3, "{policy:?}");
            assert_eq!(covered(policy, "u a u a/r", 1), 0..3, "{policy:?}");
        }
    }

    #[test]
    fn a_fresh_tail_gives_up_its_oldest_atoms_for_the_limit() {
        let tail = |messages, max_tokens| {
            covered(
                CutPolicy::FreshTail {
                    messages,
                    max_tokens,
                },
                "u a+x t-x u a u",
                10,
            )
        };
        assert_eq!(tail(2, None), 0..4);
        assert_eq!(tail(4, None), 0..1);
        assert_eq!(tail(4, Some(30)), 0..3);
        assert_eq!(tail(4, Some(49)), 0..3);
        assert_eq!(tail(4, Some(50)), 0..1);
        // The newest atom stays however large it is.
        assert_eq!(tail(4, Some(0)), 0..5);
        assert_eq!(tail(0, None), 0..5);
    }

    #[test]
    fn recent_tokens_keep_the_atom_that_reaches_them() {
        let recent = |tokens| covered(CutPolicy::RecentTokens { tokens }, "u a+x t-x u a u", 10);
        assert_eq!(
            [recent(0), recent(10), recent(11), recent(30)],
            [0..5, 0..5, 0..4, 0..3]
        );
        assert_eq!([recent(31), recent(50), recent(51)], [0..1, 0..1, 0..0]);
        assert_eq!(recent(u64::MAX), 0..0);
        // The newest group alone is far too large: what is before it can still go.
        let large = "u a u a+x+y t-x t-y";
        assert_eq!(
            covered(CutPolicy::RecentTokens { tokens: 1 }, large, u64::MAX),
            0..3
        );
    }

    #[test]
    fn kodas_count_is_four_or_half() {
        let counts = [4, 8, 11, 12, 20, 50, 100].map(preserve_count);
        assert_eq!(counts, [4, 4, 4, 6, 10, 25, 50]);
        assert!((0..=200).all(|n| preserve_count(n) >= 4));
        assert_eq!(preserve_count(13), 7);
        assert_eq!(
            covered(CutPolicy::PreserveCount, &"u a ".repeat(10), 1),
            0..10
        );
        assert_eq!(covered(CutPolicy::PreserveCount, "u a u", 1), 0..0);
    }

    #[test]
    fn first_and_recent_turns_stay() {
        // Twenty turns of a question and an answer: 0 and 1, 2 to 14, 15 to 19.
        let turns = |first, recent| CutPolicy::FirstAndRecentTurns { first, recent };
        assert_eq!(covered(turns(2, 5), &"u a ".repeat(20), 1), 4..30);
        assert_eq!(covered(turns(0, 5), &"u a ".repeat(20), 1), 0..30);
        // First and recent meet or overlap: nothing goes, and nothing is kept twice.
        assert_eq!(covered(turns(2, 10), &"u a ".repeat(10), 1).len(), 16 - 16);
        assert_eq!(covered(turns(5, 6), &"u a ".repeat(10), 1).len(), 0);
        assert_eq!(covered(turns(1, 1), "", 1), 0..0);
        // A turn that begins inside of a group begins with the group.
        assert_eq!(covered(turns(0, 1), "u a u a+x u t-x a", 1), 0..3);
        assert_eq!(covered(turns(2, 1), "u a u+x u t-x a u", 1), 5..6);
    }

    #[test]
    fn notes_stay_with_the_message_behind_them_and_do_not_count() {
        let last = CutPolicy::LastMessages { messages: 2 };
        assert_eq!(covered(last, "u a n n u n a", 1), 0..2);
        assert_eq!(covered(last, "n u n u n", 1), 0..0);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn policies_read_with_their_defaults() {
        let read = |json| serde_json::from_str::<CutPolicy>(json).unwrap();
        assert_eq!(read(r#"{"kind":"fresh_tail"}"#), CutPolicy::default());
        assert_eq!(
            read(r#"{"kind":"recent_tokens"}"#),
            CutPolicy::RecentTokens { tokens: 16_384 }
        );
        assert_eq!(
            read(r#"{"kind":"first_and_recent_turns","first":0}"#),
            CutPolicy::FirstAndRecentTurns {
                first: 0,
                recent: 10
            }
        );
        assert_eq!(
            read(r#"{"kind":"preserve_count"}"#),
            CutPolicy::PreserveCount
        );
        assert!(
            serde_json::from_str::<CutPolicy>(r#"{"kind":"last_messages","mesages":3}"#).is_err()
        );
        assert_eq!(
            serde_json::from_str::<HullPolicy>("{}").unwrap(),
            HullPolicy::default()
        );
    }
}
