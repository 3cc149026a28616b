//! Sessions: the loops that get blocks, and their form in a context.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use block_overlay::{
    BlockCompactionStrategy, CompactedSection, CompactionConfig, CompactionScope,
    DefaultBlockCompaction, Error, LoopRecord, LoopSession, TurnMap, TurnRange,
    build_context_from_session, compact_session_loops, resolve_scope,
};
use token_estimate::TokenEstimatorExt as _;

use crate::world::{
    COUNTER, PLENTY, block_on, call, chain, child, compact, config, context, fixed, letters,
    output, result, text, texts, turns, user,
};

fn three() -> LoopSession {
    chain(["a", "b", "c"].map(|id| turns(id, 20, 60)).into())
}

fn by_tokens() -> CompactionConfig {
    CompactionConfig {
        compaction_scope: CompactionScope::TokenBudget,
        max_summary_tokens: 500,
        ..config()
    }
}

#[test]
fn without_blocks_a_context_is_the_messages() {
    let session = chain(vec![turns("a", 1, 3), turns("b", 1, 3), turns("c", 1, 3)]);
    let shown = context(&session, "c", &config(), PLENTY);
    assert_eq!(shown.messages.len(), 6);
    let originals = session
        .loops
        .iter()
        .flat_map(|record| record.messages.clone());
    assert_eq!(shown.messages, originals.collect::<Vec<_>>());
    assert_eq!(shown.tokens, COUNTER.messages(&shown.messages));
}

#[test]
fn a_context_of_blocks_is_smaller() {
    let mut session = three();
    let raw = context(&session, "c", &config(), PLENTY);
    compact(&mut session, "c", &config(), PLENTY);
    let blocks = context(&session, "c", &config(), PLENTY);
    assert!(
        blocks.tokens * 2 < raw.tokens,
        "{} of {}",
        blocks.tokens,
        raw.tokens
    );
    assert_eq!(letters(&blocks, "a"), "s".repeat(20));
    assert_eq!(
        letters(&blocks, "c"),
        format!("rr{}{}", "s".repeat(8), "t".repeat(10))
    );
    assert!(blocks.omissions.is_empty());
}

#[test]
fn the_first_turns_are_as_they_were_with_long_output_too() {
    let mut record = turns("a", 20, 60);
    let long = [call("long"), result("long", &output(80))];
    record
        .messages
        .splice(1..1, long.map(|message| message.with_turn("a", 0)));
    let mut session = chain(vec![record]);
    compact(&mut session, "a", &config(), PLENTY);
    let shown = context(&session, "a", &config(), PLENTY);
    assert!(letters(&shown, "a").starts_with("rrs"));
    let first = &session.get("a").unwrap().messages[..6];
    assert_eq!(&shown.messages[..6], first);
}

#[test]
fn all_three_loops_get_blocks_in_a_scope_of_two() {
    let mut session = three();
    assert_eq!(
        compact(&mut session, "c", &fixed(2), PLENTY),
        ["c", "b", "a"]
    );
    for (id, newest) in [("a", false), ("b", false), ("c", true)] {
        let block = session.get(id).unwrap().compaction_block.clone().unwrap();
        assert_eq!(block.keep_first.is_some(), newest, "{id}");
        assert_eq!(block.keep_recent.is_some(), newest, "{id}");
        assert!(block.keep_compacted.is_some(), "{id}");
    }
}

#[test]
fn a_loop_out_of_scope_is_named_and_counted() {
    let mut session = three();
    compact(&mut session, "c", &fixed(1), PLENTY);
    assert!(session.get("a").unwrap().compaction_block.is_none());
    let shown = context(&session, "c", &fixed(1), PLENTY);
    assert_eq!((shown.loops, shown.omissions.len()), (2, 0));
    let older = shown.out_of_scope.as_ref().unwrap();
    let messages = session.get("a").unwrap().messages.len();
    assert_eq!(
        (older.last_loop_id.as_str(), older.loops, older.messages),
        ("a", 1, messages)
    );
    let mark = format!("[… left out: {messages} messages of loop a …]");
    assert_eq!(text(&shown.messages[0]), mark);
}

#[test]
fn a_scope_by_tokens_takes_what_fits_compacted() {
    let scoped = by_tokens();
    let session = three();
    let raw = COUNTER.messages(&session.get("a").unwrap().messages);
    assert!(raw > 1_300, "{raw}");
    // Each older loop counts as 500 tokens, although all messages of either loop exceed the budget.
    for (budget, loops) in [(499, 0), (500, 1), (999, 1), (1_000, 2), (PLENTY, 2)] {
        assert_eq!(
            resolve_scope(&session, "c", &scoped, budget).unwrap(),
            loops,
            "{budget}"
        );
    }
}

#[test]
fn a_scope_by_tokens_ends_before_the_first_loop_that_does_not_fit() {
    let session = chain(vec![
        turns("a", 1, 3),
        turns("b", 20, 60),
        turns("c", 20, 60),
    ]);
    let small = COUNTER.messages(&session.get("a").unwrap().messages);
    assert!(small < 499, "{small}");
    // The small loop would fit, but the one after it does not.
    for (budget, loops) in [(499, 0), (500, 1), (499 + small, 1), (500 + small, 2)] {
        let scope = resolve_scope(&session, "c", &by_tokens(), budget);
        assert_eq!(scope.unwrap(), loops, "{budget}");
    }
}

#[test]
fn loops_that_exceed_the_budget_with_all_messages_are_shown_by_their_summaries() {
    let mut session = three();
    let raw = COUNTER.messages(&session.get("a").unwrap().messages);
    compact(&mut session, "c", &by_tokens(), raw);
    let shown = context(&session, "c", &by_tokens(), raw);
    assert!(shown.tokens <= raw && shown.out_of_scope.is_none());
    let shown_texts = texts(&shown.messages);
    for id in ["a", "b"] {
        assert!(letters(&shown, id).starts_with("ss"), "{id}");
        let line = format!("[Summary] User: {id}: question 0, please");
        let has = |text: &String| text.starts_with(&line);
        assert!(shown_texts.iter().any(has), "{shown_texts:?}");
    }
}

#[test]
fn a_scope_by_tokens_leaves_the_third_loop_without_a_block() {
    let scoped = by_tokens();
    let mut session = three();
    assert_eq!(compact(&mut session, "c", &scoped, 700), ["c", "b"]);
    assert!(session.get("a").unwrap().compaction_block.is_none());
    let mut session = three();
    assert_eq!(compact(&mut session, "c", &scoped, PLENTY), ["c", "b", "a"]);
}

#[test]
fn a_larger_budget_shows_no_fewer_loops_and_no_fewer_tokens() {
    let scoped = by_tokens();
    let mut before = (0, 0);
    for budget in [3_000, 4_000, 5_000, 8_000, 20_000, PLENTY] {
        let mut session = three();
        compact(&mut session, "c", &scoped, budget);
        let shown = context(&session, "c", &scoped, budget);
        assert!(shown.tokens <= budget);
        assert!(
            (shown.loops, shown.tokens) >= before,
            "{budget}: {before:?}"
        );
        before = (shown.loops, shown.tokens);
    }
}

#[test]
fn a_context_never_costs_more_than_it_may() {
    let mut session = three();
    compact(&mut session, "c", &config(), PLENTY);
    let whole = context(&session, "c", &config(), PLENTY);
    let mut budget = whole.tokens;
    while let Ok(shown) = build_context_from_session(&session, "c", &config(), budget) {
        assert!(shown.tokens <= budget && shown.tokens == COUNTER.messages(&shown.messages));
        let hidden = letters(&shown, "a") + &letters(&shown, "b") + &letters(&shown, "c");
        assert_eq!(hidden.len(), 60);
        let counted: usize = shown
            .omissions
            .iter()
            .map(|one| one.turns.indices().len())
            .sum();
        assert_eq!(hidden.matches('-').count(), counted);
        assert!(
            hidden
                .trim_start_matches('-')
                .chars()
                .all(|letter| letter != '-'),
            "{hidden}"
        );
        budget -= budget / 10;
    }
    let error = build_context_from_session(&session, "c", &config(), budget).unwrap_err();
    assert!(matches!(error, Error::BudgetTooSmall { .. }));
    assert!(
        error.to_string().contains("the newest turn of loop `c`"),
        "{error}"
    );
}

#[test]
fn messages_after_a_block_was_made_are_shown_as_they_are() {
    let mut session = chain(vec![turns("a", 20, 3)]);
    compact(&mut session, "a", &config(), PLENTY);
    let more = [
        user("And then?").with_turn("a", 19),
        user("Next.").with_turn("a", 20),
    ];
    let record = session.get_mut("a").unwrap();
    record.messages.extend(more.clone());
    let shown = context(&session, "a", &config(), PLENTY);
    assert_eq!(shown.messages[shown.messages.len() - 2..], more);
    assert_eq!(letters(&shown, "a").len(), 21);
    assert!(letters(&shown, "a").ends_with("tr"));
}

#[test]
fn branches_and_reruns_follow_their_own_parents() {
    let mut session = chain(vec![turns("a", 3, 3), turns("b", 3, 3)]);
    for (id, parent) in [
        ("x", "a"),
        ("y", "a"),
        ("z", "y"),
        ("n", "z"),
        ("l", "lost"),
    ] {
        session.loops.push(child(parent, turns(id, 3, 3)));
    }
    let ids = |id: &str| -> String {
        let chain = session.chain(id).unwrap();
        chain.iter().map(|record| record.loop_id.as_str()).collect()
    };
    assert_eq!(
        [ids("b"), ids("x"), ids("n"), ids("l")],
        ["ab", "ax", "ayzn", "l"]
    );
    let made = compact(&mut session, "z", &config(), PLENTY);
    assert_eq!(made, ["z", "y", "a"]);
    assert!(session.get("x").unwrap().compaction_block.is_none());
    let shown = texts(&context(&session, "z", &config(), PLENTY).messages);
    let of_others = |text: &String| text.contains("x: ") || text.contains("b: ");
    assert!(!shown.iter().any(of_others), "{shown:?}");
}

#[test]
fn an_unknown_loop_is_an_error_that_names_it() {
    let mut session = three();
    let (strategy, config) = (&DefaultBlockCompaction, config());
    let made = compact_session_loops(&mut session, "zz", strategy, &config, PLENTY);
    let error = block_on(made).unwrap_err();
    assert!(matches!(error, Error::UnknownLoop { .. }));
    assert!(error.to_string().contains("has no loop `zz`"));
}

/// A strategy that waits, and makes sections of its own.
#[derive(Debug, Default)]
struct Custom(AtomicUsize);

fn section(turns: std::ops::Range<usize>, text: &str) -> Option<CompactedSection> {
    Some(CompactedSection {
        range: TurnRange::from_indices(turns)?,
        messages: vec![user(text)],
        omitted: None,
    })
}

#[async_trait]
impl BlockCompactionStrategy for Custom {
    fn keep_first(&self, _: &LoopRecord, _: &TurnMap, _: &CompactionConfig) -> Option<TurnRange> {
        TurnRange::from_indices(0..1)
    }

    fn keep_recent(
        &self,
        _: &LoopRecord,
        turn_map: &TurnMap,
        _: &CompactionConfig,
    ) -> Option<CompactedSection> {
        let end = turn_map.turn_count();
        section(end - 1..end, "The end.")
    }

    async fn keep_compacted(
        &self,
        _: &LoopRecord,
        turn_map: &TurnMap,
        _: &CompactionConfig,
        _: bool,
    ) -> block_overlay::Result<Option<CompactedSection>> {
        tokio::task::yield_now().await;
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(section(0..turn_map.turn_count(), "All of it."))
    }
}

#[tokio::test]
async fn a_strategy_of_ones_own_is_awaited_once_a_loop() {
    let custom = Custom::default();
    let mut session = chain(vec![turns("a", 4, 3), turns("b", 4, 3)]);
    compact_session_loops(&mut session, "b", &custom, &config(), PLENTY)
        .await
        .unwrap();
    assert_eq!(custom.0.load(Ordering::Relaxed), 2);
    // The newest loop has the three sections, an older one the digest alone.
    for (id, first, recent) in [
        ("a", None, None),
        (
            "b",
            TurnRange::from_indices(0..1),
            section(3..4, "The end."),
        ),
    ] {
        let block = session.get(id).unwrap().compaction_block.clone().unwrap();
        assert_eq!(block.keep_first, first, "{id}");
        assert_eq!(block.keep_compacted, section(0..4, "All of it."), "{id}");
        assert_eq!(block.keep_recent, recent, "{id}");
    }
    let shown = context(&session, "b", &config(), PLENTY);
    assert_eq!(
        [letters(&shown, "a"), letters(&shown, "b")],
        ["ssss", "rsst"]
    );
    let first = texts(&session.get("b").unwrap().messages[..2]);
    let shown = texts(&shown.messages);
    assert_eq!(shown[0], "All of it.");
    assert_eq!(shown[1..3], first);
    assert_eq!(shown[3..], ["All of it.", "The end."]);
}
