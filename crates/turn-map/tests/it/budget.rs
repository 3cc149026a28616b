//! Trimming to a hard budget.

use proptest::prelude::*;
use token_estimate::{HeuristicEstimator, TokenEstimatorExt};
use turn_map::{MessageView, Role, Shortfall, Trim, Trimmed, atoms, trim_to_budget};

use crate::parts::{Msg, Part, messages, script, shown};

/// Returns one token for each character of a text, and one for any other part.
fn letters(list: &[&Msg]) -> u64 {
    let cost = |part: &Part| match part {
        Part::Text(text) | Part::Result(_, text, _) => text.chars().count() as u64,
        _ => 1,
    };
    list.iter().flat_map(|m| &m.parts).map(cost).sum()
}

fn number(list: &[&Msg]) -> u64 {
    list.len() as u64
}

fn trimmed(words: &str, trim: &Trim) -> Trimmed<Msg> {
    trim_to_budget(&script(words), trim, letters)
}

fn kept(words: &str, trim: &Trim) -> String {
    shown(&trimmed(words, trim).messages)
}

fn within(max_tokens: u64) -> Trim {
    Trim {
        max_tokens,
        ..Trim::default()
    }
}

fn starting(max_tokens: u64, role: Role) -> Trim {
    Trim {
        start_on: vec![role],
        ..within(max_tokens)
    }
}

fn ending(max_tokens: u64, role: Role) -> Trim {
    Trim {
        end_on: vec![role],
        ..within(max_tokens)
    }
}

fn with_system(max_tokens: u64) -> Trim {
    Trim {
        include_system: true,
        ..within(max_tokens)
    }
}

#[test]
fn the_newest_are_kept() {
    let list = "u:one a:two u:three a:four";
    assert_eq!(kept(list, &within(9)), "u:three a:four");
    assert_eq!(kept(list, &within(8)), "a:four");
    assert_eq!(kept(list, &within(15)), list);
    let two = trim_to_budget(&script(list), &within(2), number);
    assert_eq!((two.positions, two.tokens), (vec![2, 3], 2));
}

#[test]
fn a_group_is_kept_or_left_out_whole() {
    let list = "u:go a:+x:+y t:-x t:-y a:done";
    assert_eq!(kept(list, &within(7)), "a:done");
    assert_eq!(kept(list, &within(8)), "a:+x:+y t:-x t:-y a:done");
}

#[test]
fn the_ends_are_chosen_among_whole_groups() {
    let list = "u:a a:b u:c a:+x t:-x a:d";
    let tool = ending(99, Role::Tool);
    assert_eq!(kept(list, &tool), "u:a a:b u:c a:+x t:-x");
    // The assistant's message with the call is inside of a group.
    let assistant = ending(99, Role::Assistant);
    assert_eq!(kept("u:a a:b a:+x t:-x", &assistant), "u:a a:b");
    let user = starting(4, Role::User);
    assert_eq!(kept(list, &user), "u:c a:+x t:-x a:d");
    assert_eq!(kept(list, &starting(3, Role::User)), "");
    // Tool results in a user's message do not count as a message of the user.
    let in_user = starting(99, Role::User);
    assert_eq!(kept("u:-x a:b u:c", &in_user), "u:c");
}

#[test]
fn the_system_message_stays_if_that_is_asked_for() {
    let list = "s:be u:a a:b";
    let system = with_system(3);
    assert_eq!(kept(list, &system), "s:be a:b");
    assert_eq!(kept(list, &within(3)), "u:a a:b");
    let starts = Trim {
        start_on: vec![Role::User],
        ..with_system(4)
    };
    assert_eq!(kept(list, &starts), "s:be u:a a:b");
    assert_eq!(kept("u:a s:be a:b", &system), "s:be a:b");
    assert_eq!(kept("n:be a:bcd", &system), "a:bcd");
}

#[test]
fn a_shortfall_is_told() {
    let shortfall = |words: &str, trim: &Trim| {
        let trimmed = trimmed(words, trim);
        (shown(&trimmed.messages), trimmed.shortfall)
    };
    let nothing = |messages, tokens| Some(Shortfall::NothingFits { messages, tokens });
    let none = String::new;
    assert_eq!(shortfall("", &within(0)), (none(), None));
    assert_eq!(
        shortfall("u:a a:+x t:-x", &within(1)),
        (none(), nothing(1..3, 2))
    );
    let system = with_system(3);
    assert_eq!(
        shortfall("s:four u:a", &system),
        (none(), Some(Shortfall::SystemTooLarge { tokens: 4 }))
    );
    assert_eq!(
        shortfall("s:be u:ab", &system),
        ("s:be".into(), nothing(1..2, 4))
    );
    assert_eq!(shortfall("s:be", &system), ("s:be".into(), None));
    let user = starting(3, Role::User);
    assert_eq!(
        shortfall("u:abc a:b", &user),
        (none(), Some(Shortfall::NoStart))
    );
    let tool = ending(3, Role::Tool);
    assert_eq!(
        shortfall("u:a a:b", &tool),
        (none(), Some(Shortfall::NoEnd))
    );
}

fn trims() -> impl Strategy<Value = Trim> {
    let roles = || {
        prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec(
                prop::sample::select(vec![Role::User, Role::Assistant, Role::Tool, Role::System]),
                1..3
            ),
        ]
    };
    (
        prop_oneof![0..40_u64, 0..1_500_u64],
        any::<bool>(),
        roles(),
        roles(),
    )
        .prop_map(|(max_tokens, include_system, start_on, end_on)| Trim {
            max_tokens,
            include_system,
            start_on,
            end_on,
        })
}

fn is_system(list: &[Msg]) -> bool {
    list.first()
        .is_some_and(|first| first.role == Role::System && !first.note)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_budget_is_exceeded_and_no_group_is_split(list in messages(), trim in trims()) {
        let done = trim_to_budget(&list, &trim, letters);
        let refs: Vec<&Msg> = done.messages.iter().collect();
        prop_assert_eq!(done.tokens, letters(&refs));
        prop_assert!(done.tokens <= trim.max_tokens);
        prop_assert_eq!(done.positions.len(), done.messages.len());
        for (at, message) in done.positions.iter().zip(&done.messages) {
            prop_assert_eq!(message, &list[*at]);
        }
        // The kept messages are consecutive, apart from the system message.
        let first = usize::from(trim.include_system && done.positions.first() == Some(&0) && is_system(&list));
        let run = &done.positions[first..];
        prop_assert!(run.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        for atom in &atoms(&list) {
            let count = atom.range().filter(|at| done.positions.contains(at)).count();
            prop_assert!(count == 0 || count == atom.range().len(), "{:?}", atom);
        }
        if let Some(shortfall) = &done.shortfall {
            prop_assert!(run.is_empty());
            if matches!(shortfall, Shortfall::SystemTooLarge { .. }) {
                prop_assert!(done.messages.is_empty());
            }
        } else {
            prop_assert!(!run.is_empty() || list.is_empty() || (first == 1));
        }
    }

    /// Without required roles at the ends, one more message or group would exceed the budget.
    #[test]
    fn no_room_is_wasted(list in messages(), trim in trims()) {
        let trim = Trim { start_on: Vec::new(), end_on: Vec::new(), ..trim };
        let done = trim_to_budget(&list, &trim, letters);
        if done.shortfall.as_ref().is_some_and(|s| matches!(s, Shortfall::SystemTooLarge { .. })) {
            return Ok(());
        }
        let units: Vec<_> = atoms(&list).iter().map(|atom| atom.range()).collect();
        let whole: Vec<usize> = units
            .iter()
            .filter(|unit| done.positions.contains(&unit.start))
            .flat_map(Clone::clone)
            .collect();
        let next = units.iter().rfind(|unit| !whole.contains(&unit.start));
        if let Some(next) = next {
            let mut with: Vec<&Msg> = whole.iter().map(|at| &list[*at]).collect();
            with.extend(&list[next.clone()]);
            prop_assert!(letters(&with) > trim.max_tokens, "{:?} would fit", next);
        }
    }

    /// The counter allows every result, whatever numbers it returns.
    #[test]
    fn any_counter_keeps_the_budget(list in messages(), trim in trims(), seed in any::<u64>()) {
        let odd = |list: &[&Msg]| {
            let sum = list.iter().map(|m| m.parts.len() as u64 * 7 + 3).sum::<u64>();
            (seed ^ sum).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58
        };
        let done = trim_to_budget(&list, &trim, odd);
        prop_assert!(done.tokens <= trim.max_tokens);
        let refs: Vec<&Msg> = done.messages.iter().collect();
        prop_assert!(refs.is_empty() || odd(&refs) <= trim.max_tokens);
    }

    #[test]
    fn an_estimator_is_a_counter(list in messages(), trim in trims()) {
        let estimator = HeuristicEstimator::default();
        let done = trim_to_budget(&list, &trim, |list| estimator.messages(list));
        prop_assert!(estimator.messages(&done.messages) <= trim.max_tokens);
        if let Some(message) = done.messages.last()
            && !trim.end_on.is_empty()
            && done.shortfall.is_none()
            && !(trim.include_system && done.messages.len() == 1)
        {
            prop_assert!(!message.is_note());
        }
    }
}
