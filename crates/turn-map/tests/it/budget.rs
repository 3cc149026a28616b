//! Trimming to a hard budget.

use proptest::prelude::*;
use token_estimate::{HeuristicEstimator, TokenEstimatorExt};
use turn_map::{
    GroupingPolicy, MessageView, Role, Shortfall, TextSplitter, Trim, TrimStrategy, Trimmed, atoms,
    trim_to_budget,
};

use crate::parts::{Msg, Part, messages, script, shown};

/// One token for each character of a text, one for any other part.
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

const FIRST: TrimStrategy = TrimStrategy::First;

#[test]
fn the_newest_or_the_oldest_are_kept() {
    let list = "u:one a:two u:three a:four";
    assert_eq!(kept(list, &Trim::new(9)), "u:three a:four");
    assert_eq!(kept(list, &Trim::new(8)), "a:four");
    assert_eq!(kept(list, &Trim::new(15)), list);
    let first = Trim::new(9).with_strategy(FIRST);
    assert_eq!(kept(list, &first), "u:one a:two");
    let two = trim_to_budget(&script(list), &Trim::new(2), number);
    assert_eq!((two.positions, two.tokens), (vec![2, 3], 2));
}

#[test]
fn a_group_is_kept_or_left_out_whole() {
    let list = "u:go a:+x:+y t:-x t:-y a:done";
    assert_eq!(kept(list, &Trim::new(7)), "a:done");
    assert_eq!(kept(list, &Trim::new(8)), "a:+x:+y t:-x t:-y a:done");
    let apart = Trim::new(7).with_grouping(None);
    assert_eq!(kept(list, &apart), "t:-x t:-y a:done");
    let first = Trim::new(5).with_strategy(FIRST);
    assert_eq!(kept(list, &first), "u:go");
}

#[test]
fn the_ends_are_chosen_among_what_is_kept_whole() {
    let list = "u:a a:b u:c a:+x t:-x a:d";
    let tool = Trim::new(99).with_end_on([Role::Tool]);
    assert_eq!(kept(list, &tool), "u:a a:b u:c a:+x t:-x");
    // The assistant's call is inside of a group.
    let assistant = Trim::new(99).with_end_on([Role::Assistant]);
    assert_eq!(kept("u:a a:b a:+x t:-x", &assistant), "u:a a:b");
    let user = Trim::new(4).with_start_on([Role::User]);
    assert_eq!(kept(list, &user), "u:c a:+x t:-x a:d");
    assert_eq!(kept(list, &Trim::new(3).with_start_on([Role::User])), "");
    let first = Trim::new(3)
        .with_strategy(FIRST)
        .with_start_on([Role::Assistant]);
    assert_eq!(kept(list, &first), "a:b u:c");
    let ends = first.with_end_on([Role::Assistant, Role::Tool]);
    assert_eq!(kept(list, &ends), "a:b");
    // Results that a user's message holds are not the user's words.
    let in_user = Trim::new(99).with_start_on([Role::User]);
    assert_eq!(kept("u:-x a:b u:c", &in_user), "u:c");
}

#[test]
fn the_system_message_stays_if_that_is_asked_for() {
    let list = "s:be u:a a:b";
    let system = Trim::new(3).with_include_system(true);
    assert_eq!(kept(list, &system), "s:be a:b");
    assert_eq!(kept(list, &Trim::new(3)), "u:a a:b");
    let starts = Trim::new(4)
        .with_include_system(true)
        .with_start_on([Role::User]);
    assert_eq!(kept(list, &starts), "s:be u:a a:b");
    let first = Trim::new(3)
        .with_strategy(FIRST)
        .with_include_system(true)
        .with_start_on([Role::Assistant]);
    assert_eq!(kept(list, &first), "s:be a:b");
    assert_eq!(kept("u:a s:be a:b", &system), "s:be a:b");
    assert_eq!(kept("n:be a:bcd", &system), "a:bcd");
}

#[test]
fn a_message_may_be_kept_in_part() {
    let part = |tokens, splitter| {
        Trim::new(tokens)
            .with_allow_partial(true)
            .with_text_splitter(splitter)
    };
    let letters = || TextSplitter::Characters;
    assert_eq!(kept("u:abcdef a:g", &part(4, letters())), "u:def a:g");
    assert_eq!(
        kept("u:abc a:def", &part(4, letters()).with_strategy(FIRST)),
        "u:abc a:d"
    );
    assert_eq!(kept("u:abc a:def", &part(4, TextSplitter::Words)), "a:def");
    // Whole parts first, then pieces of the nearest.
    assert_eq!(kept("u:ab:cd:ef a:g", &part(6, letters())), "u:cd:ef a:g");
    assert_eq!(kept("u:ab:cd:ef a:g", &part(2, letters())), "u:f a:g");
    assert_eq!(kept("u:ab:cd:# a:g", &part(1, letters())), "a:g");
    // Calls stay, and groups are whole but for the text at their end.
    assert_eq!(kept("a:abc:+x a:d", &part(3, letters())), "a:c:+x a:d");
    assert_eq!(
        kept("a:abc:+x t:-x a:d", &part(4, letters())),
        "a:c:+x t:-x a:d"
    );
    assert_eq!(kept("a:abc:+x t:-x a:d", &part(3, letters())), "a:d");
    let first = |tokens| part(tokens, letters()).with_strategy(FIRST);
    assert_eq!(kept("u:d a:+x t:-x:abc", &first(4)), "u:d a:+x t:-x:a");
    assert_eq!(kept("u:d a:+x t:-x:abc", &first(3)), "u:d");
    assert_eq!(kept("t:-x a:d", &part(1, letters())), "a:d");
    let list = [
        Msg {
            parts: vec![Part::Result("x".into(), "abc".into(), true)],
            ..script("t").remove(0)
        },
        script("a:d").remove(0),
    ];
    let result = trim_to_budget(&list, &part(3, letters()), self::letters);
    assert_eq!(
        result.messages[0].parts,
        [Part::Result("x".into(), "bc".into(), true)]
    );
    assert_eq!(
        (result.partial, result.positions, result.tokens),
        (Some(0), vec![0, 1], 3)
    );
    // Empty pieces of a function make no empty message.
    let empty = TextSplitter::new(|text| vec!["", "", text, "", ""]);
    assert_eq!(kept("u:abcdef a:g", &part(4, empty)), "a:g");
}

#[test]
fn a_shortfall_is_told() {
    let shortfall = |words: &str, trim: &Trim| {
        let trimmed = trimmed(words, trim);
        (shown(&trimmed.messages), trimmed.shortfall)
    };
    let nothing = |messages, tokens| Some(Shortfall::NothingFits { messages, tokens });
    let none = String::new;
    assert_eq!(shortfall("", &Trim::new(0)), (none(), None));
    assert_eq!(
        shortfall("u:a a:+x t:-x", &Trim::new(1)),
        (none(), nothing(1..3, 2))
    );
    let system = Trim::new(3).with_include_system(true);
    assert_eq!(
        shortfall("s:four u:a", &system),
        (none(), Some(Shortfall::SystemTooLarge { tokens: 4 }))
    );
    assert_eq!(
        shortfall("s:be u:ab", &system),
        ("s:be".into(), nothing(1..2, 4))
    );
    assert_eq!(shortfall("s:be", &system), ("s:be".into(), None));
    let user = Trim::new(3).with_start_on([Role::User]);
    assert_eq!(
        shortfall("u:abc a:b", &user),
        (none(), Some(Shortfall::NoStart))
    );
    let tool = Trim::new(3).with_end_on([Role::Tool]);
    assert_eq!(
        shortfall("u:a a:b", &tool),
        (none(), Some(Shortfall::NoEnd))
    );
    assert_eq!(
        shortfall("u:a a:b", &tool.with_strategy(FIRST)),
        (none(), Some(Shortfall::NoEnd))
    );
    assert_eq!(
        shortfall("a:b", &user.with_strategy(FIRST)),
        (none(), Some(Shortfall::NoStart))
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
        prop::sample::select(vec![TrimStrategy::Last, TrimStrategy::First]),
        any::<[bool; 3]>(),
        roles(),
        roles(),
        prop::sample::select(vec![
            TextSplitter::Lines,
            TextSplitter::Words,
            TextSplitter::Characters,
        ]),
    )
        .prop_map(
            |(tokens, strategy, [partial, system, grouped], start, end, splitter)| {
                Trim::new(tokens)
                    .with_strategy(strategy)
                    .with_allow_partial(partial)
                    .with_include_system(system)
                    .with_start_on(start)
                    .with_end_on(end)
                    .with_text_splitter(splitter)
                    .with_grouping(grouped.then(GroupingPolicy::default))
            },
        )
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
            if done.partial == Some(*at) {
                prop_assert!(trim.allow_partial && !message.parts.is_empty());
                prop_assert!(letters(&[message]) < letters(&[&list[*at]]));
            } else {
                prop_assert_eq!(message, &list[*at]);
            }
        }
        // A run, behind the system message.
        let first = usize::from(trim.include_system && done.positions.first() == Some(&0) && is_system(&list));
        let run = &done.positions[first..];
        prop_assert!(run.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        if let Some(policy) = trim.grouping {
            for atom in &atoms(&list, policy) {
                let count = atom.range().filter(|at| done.positions.contains(at)).count();
                prop_assert!(count == 0 || count == atom.range().len(), "{:?}", atom);
            }
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

    /// Without choices of ends, the next message or group would exceed the budget.
    #[test]
    fn no_room_is_wasted(list in messages(), trim in trims()) {
        let trim = trim.with_start_on([]).with_end_on([]);
        let done = trim_to_budget(&list, &trim, letters);
        if done.shortfall.as_ref().is_some_and(|s| matches!(s, Shortfall::SystemTooLarge { .. })) {
            return Ok(());
        }
        let units: Vec<std::ops::Range<usize>> = match trim.grouping {
            Some(policy) => atoms(&list, policy).iter().map(|atom| atom.range()).collect(),
            None => (0..list.len()).map(|at| at..at + 1).collect(),
        };
        let whole: Vec<usize> = units
            .iter()
            .filter(|unit| done.positions.contains(&unit.start))
            .filter(|unit| done.partial.is_none_or(|at| !unit.contains(&at)))
            .flat_map(Clone::clone)
            .collect();
        let mut left = units.iter().filter(|unit| !whole.contains(&unit.start));
        let next = match trim.strategy {
            TrimStrategy::First => left.next(),
            _ => left.next_back(),
        };
        if let Some(next) = next {
            let mut with: Vec<&Msg> = whole.iter().map(|at| &list[*at]).collect();
            with.extend(&list[next.clone()]);
            prop_assert!(letters(&with) > trim.max_tokens, "{:?} would fit", next);
        }
    }

    /// Whatever a counter says, the result is one that it allows.
    #[test]
    fn a_counter_that_keeps_to_nothing_is_obeyed(list in messages(), trim in trims(), seed in any::<u64>()) {
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

#[cfg(feature = "serde")]
#[test]
fn choices_read_with_their_defaults() {
    let trim: Trim = serde_json::from_str(r#"{"max_tokens":9}"#).unwrap();
    assert_eq!(format!("{trim:?}"), format!("{:?}", Trim::new(9)));
    let trim: Trim = serde_json::from_str(
        r#"{"max_tokens":9,"strategy":"first","end_on":["user"],"text_splitter":"words","grouping":null}"#,
    )
    .unwrap();
    let same = Trim::new(9)
        .with_strategy(FIRST)
        .with_end_on([Role::User])
        .with_text_splitter(TextSplitter::Words)
        .with_grouping(None);
    assert_eq!(format!("{trim:?}"), format!("{same:?}"));
    let written = serde_json::to_string(&same).unwrap();
    let again: Trim = serde_json::from_str(&written).unwrap();
    assert_eq!(format!("{again:?}"), format!("{same:?}"));
    assert!(serde_json::from_str::<Trim>(r#"{"max_tokens":9,"start":[]}"#).is_err());
}
