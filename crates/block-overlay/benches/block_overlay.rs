//! How long blocks and contexts take in sessions of 10, 100 and 1,000 loops. Four loops are in scope.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use block_overlay::{
    BlockSettings, CompactionConfig, DefaultBlockCompaction, LoopRecord, LoopSession, TurnRule,
    build_context_from_session, compact_session_loops,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use memory_model::{Message, RawJson, Timestamp};
use token_estimate::HeuristicEstimator;

const COUNTER: HeuristicEstimator = HeuristicEstimator::Bytes4PerPart;

/// A chain of loops of 20 turns, each with a tool.
fn session(loops: usize) -> (LoopSession<Message>, String) {
    let mut session = LoopSession::new("s");
    let mut parent: Option<String> = None;
    for index in 0..loops {
        let id = format!("loop {index}");
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
        let record = LoopRecord::new(id.as_str(), messages);
        session.push(match parent {
            Some(parent) => record.with_parent(parent),
            None => record,
        });
        parent = Some(id);
    }
    (session, parent.unwrap())
}

fn benches(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let config = CompactionConfig::default().with_turn_rule(TurnRule::Responses);
    let settings = BlockSettings::new(&config, 100_000, &COUNTER, Timestamp(1));
    for loops in [10, 100, 1_000] {
        let (session, newest) = session(loops);
        // Cloning the whole session would be measured too: only what is in scope is copied.
        let chain: Vec<LoopRecord<Message>> = session.ancestors(&newest).take(4).cloned().collect();
        let mut working = session.clone();
        c.bench_function(&format!("block-overlay/blocks/{loops}"), |b| {
            b.iter_batched(
                || chain.clone(),
                |chain| {
                    chain.into_iter().for_each(|record| working.push(record));
                    let strategy = &DefaultBlockCompaction;
                    let made = compact_session_loops(&mut working, &newest, strategy, &settings);
                    assert_eq!(runtime.block_on(made).unwrap().len(), 4);
                },
                BatchSize::SmallInput,
            );
        });
        c.bench_function(&format!("block-overlay/context/{loops}"), |b| {
            b.iter(|| {
                let context = build_context_from_session(&working, &newest, &settings).unwrap();
                assert_eq!(context.out_of_scope.as_ref().unwrap().loops, loops - 4);
                context
            });
        });
    }
}

criterion_group!(all, benches);
criterion_main!(all);
