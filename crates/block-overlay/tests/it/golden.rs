//! A session of twenty turns: what its context shows, turn by turn.

use std::fmt::Write as _;
use std::sync::Arc;

use block_overlay::{
    BlockCompactionStrategy, DefaultBlockCompaction, LoopContext, SummarizingBlockCompaction,
    compact_session_loops,
};
use summarize_escalation::testing::{Answer, Scripted};

use crate::world::{Msg, block_on, chain, config, context, settings, turns};

/// The context of two loops with the newest of twenty turns, five of them recent.
fn shown(strategy: &dyn BlockCompactionStrategy<Msg>) -> LoopContext<Msg> {
    let config = config().with_kept_turns(2, 5);
    let mut session = chain(vec![turns("x", 4, 3), turns("a", 4, 3), turns("b", 20, 70)]);
    let scoped = config.with_scope(block_overlay::CompactionScope::FixedCount(1));
    let settings = settings(&scoped, 50_000);
    block_on(compact_session_loops(
        &mut session,
        "b",
        strategy,
        &settings,
    ))
    .unwrap();
    context(&session, "b", &scoped, 50_000)
}

fn printed(context: &LoopContext<Msg>) -> String {
    let mut text = String::new();
    for turn in &context.turns {
        writeln!(text, "{turn}").unwrap();
    }
    for omission in &context.omissions {
        writeln!(text, "omitted: {omission}").unwrap();
    }
    if let Some(older) = &context.out_of_scope {
        writeln!(text, "out of scope: {older}").unwrap();
    }
    writeln!(
        text,
        "{} tokens in {} messages",
        context.tokens,
        context.messages.len()
    )
    .unwrap();
    for message in &context.messages {
        let line: String = message.text().replace('\n', " ").chars().take(96).collect();
        writeln!(text, "{:<9} {line}", message.role.as_str()).unwrap();
    }
    text
}

#[test]
fn twenty_turns_by_default() {
    let context = shown(&DefaultBlockCompaction);
    let lines = context
        .messages
        .iter()
        .filter(|m| m.text().starts_with("[Summary] "))
        .count();
    // Four of the older loop, thirteen of the newest.
    assert_eq!(lines, 4 + 13);
    insta::assert_snapshot!(printed(&context));
}

#[test]
fn twenty_turns_by_a_model() {
    let text = "The user asked twenty questions about b, and every one was answered at length.";
    let model = Scripted::new([Answer::text(text), Answer::text("Four questions about a.")]);
    let mut ladder = summarize_escalation::Ladder::default();
    ladder.gate = None;
    let strategy = SummarizingBlockCompaction::with_ladder(Arc::new(model), ladder);
    insta::assert_snapshot!(printed(&shown(&strategy)));
}
