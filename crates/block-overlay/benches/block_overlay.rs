//! Time to make blocks and contexts in sessions of 10, 100 and 1,000 loops. Four loops are in scope.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use block_overlay::{
    CompactionConfig, DefaultBlockCompaction, LoopRecord, LoopSession, build_context_from_session,
    compact_session_loops,
};
use criterion::{Criterion, criterion_group, criterion_main};
use memory_model::{Message, RawJson};

/// Returns a chain of loops of 20 turns, each with a tool call.
fn session(loops: usize) -> (LoopSession, String) {
    let mut session = LoopSession::default();
    for index in 0..loops {
        let mut messages = vec![Message::user("Look at all of it.")];
        for turn in 0..20 {
            let call = format!("{index}-{turn}");
            messages.push(Message::tool_call(
                &call,
                "read",
                RawJson::parse("{}").unwrap(),
            ));
            messages.push(Message::tool_result(
                &call,
                "a line of the output\n".repeat(80),
            ));
        }
        session.loops.push(LoopRecord {
            loop_id: format!("loop {index}"),
            parent_loop_id: session.loops.last().map(|parent| parent.loop_id.clone()),
            messages,
            compaction_block: None,
        });
    }
    (session, format!("loop {}", loops - 1))
}

fn benches(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (config, budget) = (CompactionConfig::default(), 100_000);
    for loops in [10, 100, 1_000] {
        let (mut session, newest) = session(loops);
        c.bench_function(&format!("block-overlay/blocks/{loops}"), |b| {
            b.iter(|| {
                for record in session.loops.iter_mut().rev().take(4) {
                    record.compaction_block = None;
                }
                let strategy = &DefaultBlockCompaction;
                let made = compact_session_loops(&mut session, &newest, strategy, &config, budget);
                assert_eq!(runtime.block_on(made).unwrap().len(), 4);
            });
        });
        c.bench_function(&format!("block-overlay/context/{loops}"), |b| {
            b.iter(|| {
                let context = build_context_from_session(&session, &newest, &config, budget);
                let context = context.unwrap();
                assert_eq!(context.out_of_scope.as_ref().unwrap().loops, loops - 4);
                context
            });
        });
    }
}

criterion_group!(all, benches);
criterion_main!(all);
