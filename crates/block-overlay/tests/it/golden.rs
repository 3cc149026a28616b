//! A session of twenty turns, and how its context shows each turn.

use std::fmt::Write as _;
use std::sync::Arc;

use block_overlay::{
    BlockCompactionStrategy, CompactionConfig, CompactionScope, DefaultBlockCompaction,
    LoopContext, SummarizingBlockCompaction, compact_session_loops,
};
use summarize_escalation::Ladder;
use summarize_escalation::testing::{Answer, Scripted};

use crate::world::{block_on, chain, context, kept, letters, text, turns};

/// Returns the context of two loops. The latest one has twenty turns, five of them recent.
fn shown(strategy: &dyn BlockCompactionStrategy) -> LoopContext {
    let config = CompactionConfig {
        compaction_scope: CompactionScope::FixedCount(1),
        ..kept(2, 5)
    };
    let mut session = chain(vec![turns("x", 4, 3), turns("a", 4, 3), turns("b", 20, 70)]);
    let made = compact_session_loops(&mut session, "b", strategy, &config, 50_000);
    block_on(made).unwrap();
    context(&session, "b", &config, 50_000)
}

fn printed(context: &LoopContext) -> String {
    let (a, b) = (letters(context, "a"), letters(context, "b"));
    let out = context.out_of_scope.as_ref().unwrap();
    let (tokens, count) = (context.tokens, context.messages.len());
    let mut printed = format!(
        "a {a}\nb {b}\n{} omissions\nout of scope: {}, {} messages\n{tokens} tokens in {count} messages\n",
        context.omissions.len(),
        out.last_loop_id,
        out.messages,
    );
    for message in &context.messages {
        let line: String = text(message).replace('\n', " ").chars().take(96).collect();
        writeln!(printed, "{:<9} {line}", message.role.as_str()).unwrap();
    }
    printed
}

#[test]
fn twenty_turns_by_default() {
    let context = shown(&DefaultBlockCompaction);
    let lines = context
        .messages
        .iter()
        .filter(|m| m.text().starts_with("[Summary] "))
        .count();
    // Four lines of the older loop, thirteen of the latest.
    assert_eq!(lines, 4 + 13);
    insta::assert_snapshot!(printed(&context));
}

#[test]
fn twenty_turns_by_a_model() {
    let text = "The user asked twenty questions about b, and every one was answered at length.";
    let model = Scripted::new([Answer::text(text), Answer::text("Four questions about a.")]);
    let ladder = Ladder {
        gate: None,
        ..Ladder::default()
    };
    let strategy = SummarizingBlockCompaction {
        summarizer: Arc::new(model),
        ladder,
        instructions: None,
    };
    insta::assert_snapshot!(printed(&shown(&strategy)));
}
