//! What went wrong elsewhere, and must not here.

use std::sync::Arc;

use block_overlay::{
    AgentContext, CompactionScope, Compactor, ContextConfig, LoopSession, PruneOrder, Pruning,
    ReductionPolicy, TurnRange, compact_messages, resolve_scope,
};
use proptest::prelude::*;
use token_estimate::TokenEstimatorExt as _;
use turn_map::check_openai;

use crate::world::{
    COUNTER, Msg, assistant, block_on, call, chain, compact, config, context, fixed, letters,
    output, result, settings, texts, turns, user,
};

const PLENTY: u64 = 1_000_000;

/// Each original message's text, and how often it is in the context.
fn occurrences(session: &LoopSession<Msg>, shown: &[Msg], id: &str) -> Vec<usize> {
    let shown = texts(shown);
    let originals = texts(&session.get(id).unwrap().messages);
    let count = |text: &String| shown.iter().filter(|other| *other == text).count();
    originals.iter().map(count).collect()
}

#[test]
fn turns_that_two_sections_want_are_shown_once() {
    for count in 1..=12 {
        let mut session = chain(vec![turns("a", count, 3)]);
        compact(&mut session, "a", &config(), PLENTY);
        let shown = context(&session, "a", &config(), PLENTY);
        let once = occurrences(&session, &shown.messages, "a");
        assert!(
            once.iter().all(|count| *count == 1),
            "{count} turns: {once:?}"
        );
    }
    // A block that another program made with an overlap is shown once too.
    let mut session = chain(vec![turns("a", 10, 3)]);
    compact(&mut session, "a", &config().with_kept_turns(0, 10), PLENTY);
    session.update("a", |record| {
        let block = record.compaction_block.as_mut().unwrap();
        block.keep_first = TurnRange::new(0, 1);
        block.covered_messages = None;
    });
    let shown = context(&session, "a", &config(), PLENTY);
    assert!(
        occurrences(&session, &shown.messages, "a")
            .iter()
            .all(|count| *count == 1)
    );
}

#[test]
fn a_former_newest_loop_keeps_its_beginning_and_its_end() {
    // Too short for a middle: its old block has nothing to show of it as an older loop.
    for count in [5, 20] {
        let mut session = chain(vec![turns("a", count, 3)]);
        compact(&mut session, "a", &config(), PLENTY);
        session.push(turns("b", 3, 3).with_parent("a"));
        // Before the blocks are made again nothing is missing.
        let between = context(&session, "b", &config(), PLENTY);
        assert_eq!(letters(&between, "a").matches('-').count(), 0);
        assert_eq!(letters(&between, "a").len(), count as usize);
        assert!(
            texts(&between.messages)
                .iter()
                .any(|text| text.contains("a: question 0"))
        );
        // Then its block is one over all turns.
        assert_eq!(compact(&mut session, "b", &config(), PLENTY), ["b", "a"]);
        let shown = context(&session, "b", &config(), PLENTY);
        assert_eq!(letters(&shown, "a"), "s".repeat(count as usize));
        let last = format!("a: question {}", count - 1);
        assert!(
            texts(&shown.messages)
                .iter()
                .any(|text| text.contains(&last)),
            "{count}"
        );
        // A third time it stays.
        assert_eq!(compact(&mut session, "b", &config(), PLENTY), ["b"]);
    }
}

#[test]
fn compacting_again_and_again_changes_no_original() {
    let session = chain(vec![turns("a", 20, 80), turns("b", 30, 80)]);
    let originals = serde_json::to_string(&messages(&session)).unwrap();
    let mut agent = AgentContext::of_session(session, "b");
    let context = ContextConfig::new(6_000).with_system_prompt_tokens(100);
    let compactor = Compactor::new(context.with_token_counter(Arc::new(COUNTER)));
    let first = block_on(compactor.compact_context(&mut agent)).unwrap();
    let (shown, tokens) = (agent.messages.clone(), first.tokens_after);
    for _ in 0..5 {
        let again = block_on(compactor.compact_context(&mut agent)).unwrap();
        assert_eq!((again.tokens_before, again.tokens_after), (tokens, tokens));
        assert_eq!(agent.messages, shown);
        let session = agent.session.as_ref().unwrap();
        assert_eq!(
            serde_json::to_string(&messages(session)).unwrap(),
            originals
        );
    }
}

fn messages(session: &LoopSession<Msg>) -> Vec<&[Msg]> {
    session
        .loops()
        .iter()
        .map(|record| record.messages.as_slice())
        .collect()
}

#[test]
fn no_first_turns_keep_none() {
    let mut session = chain(vec![turns("a", 20, 3)]);
    compact(&mut session, "a", &config().with_kept_turns(0, 5), PLENTY);
    let block = session.get("a").unwrap().compaction_block.as_ref().unwrap();
    assert_eq!(block.keep_first, None);
    let shown = context(&session, "a", &config().with_kept_turns(0, 5), PLENTY);
    assert_eq!(
        letters(&shown, "a"),
        format!("{}{}", "s".repeat(15), "t".repeat(5))
    );
}

#[test]
fn what_the_user_said_in_the_middle_is_in_the_lines_and_the_rest_is_counted() {
    let mut session = chain(vec![turns("a", 30, 3)]);
    let small = config().with_max_summary_tokens(400);
    compact(&mut session, "a", &small, PLENTY);
    let block = session.get("a").unwrap().compaction_block.as_ref().unwrap();
    let middle = block.keep_compacted.as_ref().unwrap();
    assert!(texts(&middle.messages)[0].contains("User: a: question 2, please"));
    // It does not end silently.
    let omitted = middle.omitted.as_ref().unwrap();
    assert_eq!(omitted.turns.end_turn, middle.range.end_turn);
    assert!(
        texts(&middle.messages)
            .last()
            .unwrap()
            .contains(&omitted.to_string())
    );
    let shown = context(&session, "a", &small, PLENTY);
    let hidden = letters(&shown, "a").matches('-').count();
    assert_eq!((hidden, shown.omissions.len()), (omitted.turns.len(), 1));
}

#[test]
fn a_loop_larger_than_the_budget_is_in_scope_as_it_is_documented() {
    let session = chain(vec![turns("a", 60, 3), turns("b", 3, 3)]);
    let budget = COUNTER.messages(&session.get("a").unwrap().messages) - 1;
    let scoped = |scope| {
        let config = config().with_scope(scope);
        resolve_scope(&session, "b", &settings(&config, budget))
    };
    assert_eq!(scoped(CompactionScope::TokenBudget), 1);
    // As it is coded elsewhere.
    assert_eq!(scoped(CompactionScope::TokenBudgetRaw), 0);
}

#[test]
fn the_focus_is_used_and_one_configuration_rules_both_ways() {
    let focused = config()
        .with_focus("Only prices matter.")
        .with_kept_turns(1, 2);
    let mut session = chain(vec![turns("a", 20, 3)]);
    compact(&mut session, "a", &focused, PLENTY);
    let shown = texts(&context(&session, "a", &focused, PLENTY).messages);
    assert!(shown.contains(&"[Focus] Only prices matter.".to_owned()));
    // The reduction of a list takes its numbers from the same place.
    let context = ContextConfig::default().with_compaction(focused);
    let policy = ReductionPolicy::from(&context);
    assert_eq!((policy.keep_first, policy.keep_recent), (1, 2));
}

#[test]
fn a_context_that_does_not_fit_is_no_context() {
    let mut session = chain(vec![turns("a", 20, 80)]);
    compact(&mut session, "a", &fixed(0), 2_000);
    let shown = context(&session, "a", &fixed(0), 2_000);
    assert!(shown.tokens <= 2_000 && !shown.omissions.is_empty());
}

#[test]
fn parents_in_a_circle_end() {
    let mut session = chain(vec![turns("a", 3, 3), turns("b", 3, 3), turns("c", 3, 3)]);
    session.update("a", |record| record.parent_loop_id = Some("c".to_owned()));
    assert_eq!(session.chain("c").len(), 3);
    assert_eq!(
        compact(&mut session, "c", &fixed(9), PLENTY),
        ["c", "b", "a"]
    );
    assert_eq!(context(&session, "c", &fixed(9), PLENTY).loops, 3);
}

/// A list in which tool groups are everywhere.
fn lists() -> impl Strategy<Value = Vec<Msg>> {
    let piece = (0..4_usize, 1..40_usize);
    prop::collection::vec(piece, 1..30).prop_map(|pieces| {
        let mut list = Vec::new();
        for (index, (kind, size)) in pieces.into_iter().enumerate() {
            let id = format!("t{index}");
            match kind {
                0 => list.push(user(&"ask ".repeat(size))),
                1 => list.push(assistant(&"tell ".repeat(size))),
                _ => list.extend([call(&id), result(&id, &output(size))]),
            }
        }
        list
    })
}

proptest! {
    #[test]
    fn a_reduced_list_never_divides_a_call_from_its_result(
        list in lists(), budget in 20..800_u64, first in 0..5_usize, recent in 0..9_usize,
    ) {
        prop_assert!(check_openai(&list).is_empty());
        let policy = ReductionPolicy::new(budget).with_kept(first, recent);
        if let Ok(reduced) = compact_messages(list, &policy, &COUNTER) {
            prop_assert!(check_openai(&reduced.messages).is_empty(), "{:?}", reduced.messages);
            prop_assert!(reduced.tokens <= budget);
        }
    }

    #[test]
    fn a_pruned_list_never_divides_a_call_from_its_result(
        list in lists(), tokens in 1..500_u64, newest: bool,
    ) {
        let order = if newest { PruneOrder::NewestFirst } else { PruneOrder::OldestFirst };
        let mut pruning = Pruning::new(order);
        pruning.prun_with_memo(&list, tokens, "memo", &COUNTER);
        pruning.prun(&list, tokens, &COUNTER);
        let left = pruning.apply(&list);
        prop_assert!(check_openai(&left).is_empty(), "{left:?}");
        let users = |list: &[Msg]| list.iter().filter(|m| m.text().starts_with("ask")).count();
        prop_assert_eq!(users(&left), users(&list));
    }
}
