use std::ops::Range;

use crate::{Atom, AtomKind, Atoms, Cut, TurnMap};

/// Rule that decides which messages of a conversation are kept and which may be compacted.
///
/// Under every policy an atom is kept or compacted whole, atoms that are not [settled](Atoms::settled)
/// are kept, and notes directly before kept messages are kept. An atom that alone exceeds a limit is
/// kept as the newest one and does not keep older atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)
)]
#[non_exhaustive]
pub enum CutPolicy {
    /// Keeps at least the last `messages` messages, or all when there are fewer.
    LastMessages {
        /// Number of messages without notes. Default 20; 0 keeps none.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
    },
    /// Keeps the last messages within a limit in tokens, and always the newest atom.
    FreshTail {
        /// Number of messages without notes. Default 20.
        #[cfg_attr(feature = "serde", serde(default = "twenty"))]
        messages: usize,
        /// Maximum cost of the tail in tokens, unless its newest atom alone costs more. Default:
        /// no limit.
        #[cfg_attr(feature = "serde", serde(default))]
        max_tokens: Option<u64>,
    },
    /// Keeps the last turns. Messages beyond `max_messages` are not kept, oldest first, even within
    /// a single turn. Then whole turns are not kept, oldest first, while the tail costs more than
    /// `max_tokens`, but the newest turn always is.
    FreshTurns {
        /// Number of turns. Default 6; 0 keeps only the newest atom.
        #[cfg_attr(feature = "serde", serde(default = "six"))]
        turns: usize,
        /// Maximum number of messages without notes, unless the newest atom alone has more.
        /// Default 120.
        #[cfg_attr(feature = "serde", serde(default = "hundred_twenty"))]
        max_messages: usize,
        /// Maximum share of a budget that the tail takes, in percent: see
        /// [`within`](Self::within). Default 40.
        #[cfg_attr(feature = "serde", serde(default = "forty"))]
        budget_percent: u8,
        /// Maximum cost of the tail in tokens, unless its newest turn alone costs more. Default:
        /// no limit.
        #[cfg_attr(feature = "serde", serde(default))]
        max_tokens: Option<u64>,
    },
    /// Keeps the newest messages until they cost `tokens`. An atom whose first message reaches the
    /// figure is kept; one in which a later message does, such as a large result, is not, unless it
    /// is the newest.
    RecentTokens {
        /// Cost in tokens. Default 16,384.
        #[cfg_attr(feature = "serde", serde(default = "pi_recent"))]
        tokens: u64,
    },
    /// Keeps 4 of fewer than 12 messages, else half of them, rounded up. The preset koda.
    PreserveCount,
    /// Keeps the first and the most recent turns. The preset phi-core.
    FirstAndRecentTurns {
        /// Number of turns at the beginning. Default 2; 0 keeps none.
        #[cfg_attr(feature = "serde", serde(default = "phi_first"))]
        first: usize,
        /// Number of turns at the end. Default 10.
        #[cfg_attr(feature = "serde", serde(default = "phi_recent"))]
        recent: usize,
    },
}

const fn twenty() -> usize {
    20
}

#[cfg(feature = "serde")]
const fn six() -> usize {
    6
}

#[cfg(feature = "serde")]
const fn hundred_twenty() -> usize {
    120
}

#[cfg(feature = "serde")]
const fn forty() -> u8 {
    40
}

#[cfg(feature = "serde")]
const fn pi_recent() -> u64 {
    16_384
}

#[cfg(feature = "serde")]
const fn phi_first() -> usize {
    2
}

#[cfg(feature = "serde")]
const fn phi_recent() -> usize {
    10
}

/// Minimum number of messages of [`CutPolicy::PreserveCount`], and the number of messages from which it
/// keeps half.
const KODA_LEAST: usize = 4;
const KODA_HALF_FROM: usize = 12;

impl Default for CutPolicy {
    /// The last 20 messages, without a limit in tokens.
    fn default() -> Self {
        Self::FreshTail {
            messages: twenty(),
            max_tokens: None,
        }
    }
}

/// The two cuts of a policy: messages before `head` and from `tail` on are kept, those between may be
/// compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub struct Cuts {
    head: Cut,
    tail: Cut,
    turn_start: Option<Cut>,
}

impl Cuts {
    /// The cut behind the messages that are kept at the beginning.
    pub fn head(&self) -> Cut {
        self.head
    }

    /// The cut before the messages that are kept at the end. Never before the [`head`](Self::head).
    pub fn tail(&self) -> Cut {
        self.tail
    }

    /// Positions of the messages that may be compacted; empty when everything is kept.
    pub fn covered(&self) -> Range<usize> {
        self.head.position()..self.tail.position()
    }

    /// Whether the tail begins inside of a turn whose beginning may be compacted. pi then makes two
    /// summaries: of the turns before it, and of the beginning of this one.
    pub fn is_split_turn(&self) -> bool {
        self.turn_start.is_some()
    }

    /// Before the turn that the [`tail`](Self::tail) splits, if it does: the history is what lies
    /// between [`head`](Self::head) and here, the turn's beginning what lies between here and the
    /// tail. An atom that the turn begins in belongs to the turn.
    pub fn turn_start(&self) -> Option<Cut> {
        self.turn_start
    }
}

impl CutPolicy {
    /// Returns the policy for a budget of `budget` tokens: a share of the budget becomes a limit in
    /// tokens, unless the policy has a lower one. Policies without a share stay as they are.
    #[must_use]
    pub fn within(mut self, budget: u64) -> Self {
        if let Self::FreshTurns {
            budget_percent,
            max_tokens,
            ..
        } = &mut self
        {
            let share = u128::from(budget) * u128::from(*budget_percent) / 100;
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            *max_tokens = Some(max_tokens.map_or(share, |most| most.min(share)));
        }
        self
    }

    /// Returns the cuts of `atoms`.
    ///
    /// `turns` are the turns of the same list, at the same positions; [`FreshTurns`] and
    /// [`FirstAndRecentTurns`] cut by them, and [`Cuts::turn_start`] is found in them. `cost` gives
    /// the tokens of the message at a position, 0 for a note; [`FreshTail`], [`FreshTurns`] and
    /// [`RecentTokens`] ask it, newest first, up to the first message that is not kept.
    ///
    /// [`FirstAndRecentTurns`]: Self::FirstAndRecentTurns
    /// [`FreshTail`]: Self::FreshTail
    /// [`FreshTurns`]: Self::FreshTurns
    /// [`RecentTokens`]: Self::RecentTokens
    pub fn cuts(&self, atoms: &Atoms, turns: &TurnMap, cost: impl Fn(usize) -> u64) -> Cuts {
        let atom_cost = |atom: &Atom| atom.range().map(&cost).fold(0, u64::saturating_add);
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
                keep(atoms, |atom, kept, tokens| {
                    let with = tokens.saturating_add(atom_cost(atom));
                    (kept == 0 || (kept < messages && with <= most)).then_some(with)
                })
            }
            Self::FreshTurns {
                turns: newest,
                max_messages,
                max_tokens,
                ..
            } => {
                let tail = fresh_turns(atoms, turns, newest, max_messages);
                demote(atoms, turns, tail, max_tokens.unwrap_or(u64::MAX), &cost)
            }
            Self::RecentTokens { tokens } => keep(atoms, |atom, kept, without| {
                if kept == 0 {
                    return Some(without.saturating_add(atom_cost(atom)));
                }
                // Without its first message, which costs nothing to reach the limit with.
                let rest = atom.range().skip(1).map(&cost);
                let rest = rest.fold(without, u64::saturating_add);
                (rest < tokens).then(|| rest.saturating_add(cost(atom.range().start)))
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
        let head = head.min(tail);
        Cuts {
            head,
            tail,
            turn_start: split_turn(atoms, turns, head, tail),
        }
    }
}

/// The cut before the last turns, within a number of messages.
fn fresh_turns(atoms: &Atoms, turns: &TurnMap, newest: usize, max_messages: usize) -> Cut {
    let oldest = turns.count().saturating_sub(newest);
    let start = atoms.cut_before(turns.span(oldest..turns.count()).start);
    keep(atoms, |atom, kept, _| {
        let fits = kept.saturating_add(atom.messages()) <= max_messages;
        (kept == 0 || (fits && atom.range().start >= start.position())).then_some(0)
    })
}

/// Moves the tail's cut behind whole turns, oldest first, while the tail costs more than `most` tokens
/// and has two turns or more.
fn demote(
    atoms: &Atoms,
    turns: &TurnMap,
    tail: Cut,
    most: u64,
    cost: &impl Fn(usize) -> u64,
) -> Cut {
    if most == u64::MAX {
        return tail;
    }
    // Newest turn first: where would the tail begin with it, and what would it cost?
    let (mut end, mut tokens) = (atoms.end(), 0_u64);
    let mut turn = turns.count();
    while end > tail {
        let Some(before) = turn.checked_sub(1) else {
            return tail;
        };
        turn = before;
        let start = atoms.cut_before(turns.range(turn).start).max(tail);
        for position in start.position()..end.position() {
            tokens = tokens.saturating_add(cost(position));
        }
        if tokens > most && end < atoms.end() {
            return before_notes(atoms, end).max(tail);
        }
        end = end.min(start);
    }
    tail
}

/// The cut before the turn that a tail splits.
fn split_turn(atoms: &Atoms, turns: &TurnMap, head: Cut, tail: Cut) -> Option<Cut> {
    let kept = atoms.between(tail, atoms.end());
    let first = kept.iter().find(|atom| atom.kind() != AtomKind::Note)?;
    let start = turns.start_of(first.range().start)?;
    let cut = atoms.cut_before(start);
    (head <= cut && cut < tail).then_some(cut)
}

/// Number of messages that [`CutPolicy::PreserveCount`] keeps of `messages`.
fn preserve_count(messages: usize) -> usize {
    if messages < KODA_HALF_FROM {
        KODA_LEAST
    } else {
        messages.div_ceil(2).max(KODA_LEAST)
    }
}

fn last_messages(atoms: &Atoms, messages: usize) -> Cut {
    keep(atoms, |_, kept, _| (kept < messages).then_some(0))
}

/// The cut before the newest atoms that are kept. `stays` gets an atom, the number of messages kept
/// after it and their cost, and returns the cost with the atom, or `None` if it is not kept.
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
    before_notes(atoms, cut)
}

/// The cut before the notes that directly precede another cut.
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
    use crate::{GroupingPolicy, atoms};

    /// The covered positions, every message costing `cost`.
    fn covered(policy: CutPolicy, script: &str, cost: u64) -> Range<usize> {
        let messages = lines(script);
        let atoms = atoms(&messages, GroupingPolicy::default());
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
        // The result reaches the limit before its call does: the group goes.
        assert_eq!([recent(31), recent(40)], [0..3, 0..3]);
        assert_eq!([recent(41), recent(50), recent(51)], [0..1, 0..1, 0..0]);
        assert_eq!(recent(u64::MAX), 0..0);
        // The newest group alone is far too large: what is before it can still go.
        let large = "u a u a+x+y t-x t-y";
        assert_eq!(
            covered(CutPolicy::RecentTokens { tokens: 1 }, large, u64::MAX),
            0..3
        );
    }

    #[test]
    fn trailing_results_larger_than_the_limit_leave_something_to_compact() {
        let script = "u a u a+x+y t-x t-y";
        let messages = lines(script);
        let atoms = atoms(&messages, GroupingPolicy::default());
        let cost = |n| [5, 5, 5, 5, 50_000, 50_000][n];
        let cuts = CutPolicy::RecentTokens { tokens: 16_384 }.cuts(
            &atoms,
            &TurnMap::by_role(&messages),
            cost,
        );
        assert_eq!(cuts.covered(), 0..3);
        // Behind them there is a place to cut: they go.
        assert_eq!(
            covered(
                CutPolicy::RecentTokens { tokens: 16_384 },
                "u a+x t-x a",
                20_000
            ),
            0..3
        );
    }

    #[test]
    fn a_tail_inside_of_a_turn_tells_where_the_turn_begins() {
        let split = |policy: CutPolicy, script: &str| {
            let messages = lines(script);
            let atoms = atoms(&messages, GroupingPolicy::default());
            let cuts = policy.cuts(&atoms, &TurnMap::by_role(&messages), |_| 10);
            assert_eq!(cuts.is_split_turn(), cuts.turn_start().is_some());
            (cuts.tail().position(), cuts.turn_start().map(Cut::position))
        };
        let recent = |tokens| CutPolicy::RecentTokens { tokens };
        assert_eq!(split(recent(15), "u a u a a a"), (4, Some(2)));
        assert_eq!(split(recent(35), "u a u a a a"), (2, None));
        assert_eq!(split(recent(999), "u a u a a a"), (0, None));
        assert_eq!(split(recent(0), ""), (0, None));
        // Notes before the user stay with the user, and split nothing.
        assert_eq!(split(recent(15), "u a n u a"), (2, None));
        // Nobody began the turn.
        assert_eq!(split(recent(15), "s a a a"), (2, None));
        // The turn begins in a group, or in what stays at the beginning.
        assert_eq!(split(recent(15), "u a+x u t-x a a"), (4, Some(1)));
        let turns = CutPolicy::FirstAndRecentTurns {
            first: 1,
            recent: 0,
        };
        assert_eq!(split(turns, "u a a/r"), (2, None));
        assert_eq!(
            split(CutPolicy::LastMessages { messages: 1 }, "u a a"),
            (2, Some(0))
        );
    }

    fn fresh(turns: usize, max_messages: usize, max_tokens: Option<u64>) -> CutPolicy {
        CutPolicy::FreshTurns {
            turns,
            max_messages,
            budget_percent: 40,
            max_tokens,
        }
    }

    #[test]
    fn fresh_turns_keep_whole_turns_however_many_tools_they_use() {
        // Sixteen results in the newest turn.
        let busy = format!("{}u {}a", "u a ".repeat(9), "a+x t-x ".repeat(16));
        assert_eq!(covered(fresh(6, 120, None), &busy, 1), 0..8);
        assert_eq!(covered(fresh(1, 120, None), &busy, 1), 0..18);
        // Fewer turns than that: all stay.
        assert_eq!(covered(fresh(6, 120, None), &"u a ".repeat(5), 1), 0..0);
        assert_eq!(covered(fresh(6, 120, None), "", 1), 0..0);
        assert_eq!(covered(fresh(0, 120, None), "u a u", 1), 0..2);
    }

    #[test]
    fn a_giant_turn_keeps_its_newest_messages() {
        let giant = format!("u {}a", "a+x t-x ".repeat(100));
        // 120 messages would begin with a result.
        assert_eq!(covered(fresh(6, 120, None), &giant, 1), 0..83);
        assert_eq!(covered(fresh(6, 119, None), &giant, 1), 0..83);
        assert_eq!(covered(fresh(6, 0, None), &giant, 1), 0..201);
        assert_eq!(covered(fresh(6, 1, None), "u a+x+y t-x t-y", 1), 0..1);
    }

    #[test]
    fn a_tail_that_takes_too_much_gives_up_its_oldest_turns_but_not_the_newest() {
        let script = "u a u a+x t-x u a+y t-y";
        let cut = |most| covered(fresh(6, 120, Some(most)), script, 10);
        assert_eq!(
            [cut(80), cut(79), cut(60), cut(59)],
            [0..0, 0..2, 0..2, 0..5]
        );
        assert_eq!([cut(30), cut(29), cut(0)], [0..5, 0..5, 0..5]);
        // Forty per cent of a budget; a lower limit stays.
        let within = |budget| covered(fresh(6, 120, None).within(budget), script, 10);
        assert_eq!([within(200), within(199), within(75)], [0..0, 0..2, 0..5]);
        assert_eq!(
            fresh(6, 120, Some(30)).within(1_000),
            fresh(6, 120, Some(30))
        );
        let count = CutPolicy::PreserveCount;
        assert_eq!(count.within(1), count);
        // A turn that begins inside of a group goes with the group.
        assert_eq!(covered(fresh(6, 120, Some(10)), "u a+x u t-x u", 10), 0..4);
        assert_eq!(covered(fresh(6, 120, Some(10)), "u a+x u t-x a", 10), 0..1);
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
        assert_eq!(read(r#"{"kind":"fresh_turns"}"#), fresh(6, 120, None));
        assert_eq!(
            read(r#"{"kind":"preserve_count"}"#),
            CutPolicy::PreserveCount
        );
        assert!(
            serde_json::from_str::<CutPolicy>(r#"{"kind":"last_messages","mesages":3}"#).is_err()
        );
        assert_eq!(
            serde_json::from_str::<GroupingPolicy>("{}").unwrap(),
            GroupingPolicy::default()
        );
    }
}
