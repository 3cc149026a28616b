//! Cuts of conversations that are written as words.

use std::ops::Range;

use turn_map::{Cut, CutPolicy, TurnMap, atoms};

use crate::script::lines;

/// Returns the positions that may be compacted, if every message costs `cost`.
fn covered(policy: CutPolicy, script: &str, cost: u64) -> Range<usize> {
    let messages = lines(script);
    let atoms = atoms(&messages);
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
    // A tail of one message is u-y, so its whole group is kept.
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
fn unsettled_atoms_stay() {
    for policy in [
        CutPolicy::LastMessages { messages: 0 },
        CutPolicy::RecentTokens { tokens: 0 },
        CutPolicy::FreshTail {
            messages: 1,
            max_tokens: Some(0),
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
    // The latest atom is kept at any size.
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
    // The result reaches the limit before its call, so the group is not kept.
    assert_eq!([recent(31), recent(40)], [0..3, 0..3]);
    assert_eq!([recent(41), recent(50), recent(51)], [0..1, 0..1, 0..0]);
    assert_eq!(recent(u64::MAX), 0..0);
    // The latest group alone exceeds the limit. The messages before it may be compacted.
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
    let atoms = atoms(&messages);
    let cost = |n| [5, 5, 5, 5, 50_000, 50_000][n];
    let cuts =
        CutPolicy::RecentTokens { tokens: 16_384 }.cuts(&atoms, &TurnMap::by_role(&messages), cost);
    assert_eq!(cuts.covered(), 0..3);
    // A cut after them is possible, so they may be compacted.
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
fn a_tail_inside_of_a_turn_has_the_turns_beginning() {
    let split = |policy: CutPolicy, script: &str| {
        let messages = lines(script);
        let atoms = atoms(&messages);
        let cuts = policy.cuts(&atoms, &TurnMap::by_role(&messages), |_| 10);
        (cuts.tail().position(), cuts.turn_start().map(Cut::position))
    };
    let recent = |tokens| CutPolicy::RecentTokens { tokens };
    assert_eq!(split(recent(15), "u a u a a a"), (4, Some(2)));
    assert_eq!(split(recent(35), "u a u a a a"), (2, None));
    assert_eq!(split(recent(999), "u a u a a a"), (0, None));
    assert_eq!(split(recent(0), ""), (0, None));
    // Notes before a user message belong to its turn, and do not split a turn.
    assert_eq!(split(recent(15), "u a n u a"), (2, None));
    // No user message begins the turn.
    assert_eq!(split(recent(15), "s a a a"), (2, None));
    // The turn begins inside a group.
    assert_eq!(split(recent(15), "u a+x u t-x a a"), (4, Some(1)));
    assert_eq!(
        split(CutPolicy::LastMessages { messages: 1 }, "u a a"),
        (2, Some(0))
    );
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
    assert!(serde_json::from_str::<CutPolicy>(r#"{"kind":"last_messages","mesages":3}"#).is_err());
}
