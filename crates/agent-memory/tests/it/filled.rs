//! A context that is assembled once fills its budget, and is within it by the exact count of the tokenizer.

use agent_memory::testing::memory;
use agent_memory::{
    Budget, Context, Message, Mode, RawJson, Session, Strategy,
    context::{AssemblyPolicy, MessageOrigin},
    tokens::{TokenEstimator as _, estimator},
};
use context_assembler::ContextAccounting;
use memory_model::Accounting as _;

/// Appends two hundred turns of prose, code, tables and Japanese.
async fn told(strategy: Strategy) -> Session {
    let memory = memory().strategy(strategy).open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    let mut messages = Vec::new();
    for n in 0..200 {
        let id = format!("c{n}");
        let arguments = format!(r#"{{"command":"rg -n 'fn parse_{n}' src/ && cargo test"}}"#);
        messages.push(Message::user(format!(
            "Please rename the function parse_{n} in module {n}, and say why the test fails."
        )));
        messages.push(Message::tool_call(
            &id,
            "bash",
            RawJson::parse(&arguments).unwrap(),
        ));
        let line = |line: usize| match n % 4 {
            0 => format!(
                "src/module_{n}.rs:{line}: let value_{line} = parse_{n}(&input[{line}..])?;\n"
            ),
            1 => format!(
                "| {line:>4} | 0x{:08x} | {} |\n",
                line * 7_919 * n,
                "─".repeat(12)
            ),
            2 => format!("モジュール{n}の{line}行目で関数の名前を変えました。\n"),
            _ => format!("Step {line} of {n} checks the callers and says what it has found.\n"),
        };
        let result: String = (0..12).map(line).collect();
        messages.push(Message::tool_result(&id, result));
        messages.push(Message::assistant(format!(
            "parse_{n} is read_{n} now. The test failed because its name was written out."
        )));
    }
    let stored = session.ingest_batch(messages).await.unwrap();
    assert!(stored.inserted() > 0);
    session.compact(Mode::Full).await.unwrap();
    session
}

fn counted(context: &Context) -> u64 {
    let exact = estimator("o200k").unwrap();
    let overhead = exact.request_overhead();
    let accounting = ContextAccounting::new(exact);
    let messages = context.messages.iter();
    let messages = messages.map(|message| accounting.parts(message.role, &message.parts));
    messages.sum::<u64>() + overhead
}

#[tokio::test]
async fn a_context_fills_its_budget_and_is_within_it() {
    for strategy in [Strategy::Dag, Strategy::Handoff, Strategy::Blocks] {
        let session = told(strategy).await;
        let policy = AssemblyPolicy::once();
        for budget in [1_000, 2_000, 3_000, 4_000, 8_000, 16_000] {
            let tokens = Budget::tokens(budget);
            let context = session
                .assemble(agent_memory::context::AssembleRequest::new(
                    tokens,
                    policy.clone(),
                ))
                .await
                .unwrap();
            let counted = counted(&context);
            let text = agent_memory::testing::render_context(&context);
            let first = "Please rename the function parse_0 in module 0";
            let begins = ["[1] ", "[1] User: "]
                .iter()
                .any(|mark| text.contains(&format!("{mark}{first}")));
            assert!(begins || budget < 4_000, "{strategy} {budget}: {text}");
            assert!(
                counted <= budget && counted * 100 >= budget * 95,
                "{strategy} {budget}: {counted} tokens, {text}"
            );
        }
    }
}

/// Rules of a user within a conversation, in five parts that are compacted one after the other.
#[tokio::test]
async fn a_context_with_room_shows_what_a_summary_was_condensed_from() {
    let memory = memory().open().await.unwrap();
    let session = memory.session("s").await.unwrap();
    for part in 0..5 {
        let mut messages = Vec::new();
        for n in 0..8 {
            messages.push(Message::user(format!(
                "Always name the table of report {part}{n} after its {n} owners, and keep it sorted by the day it came."
            )));
            messages.push(Message::assistant(format!("Report {part}{n} is done.")));
        }
        let _ = session.ingest_batch(messages).await.unwrap();
        session.compact(Mode::Full).await.unwrap();
    }
    let policy = AssemblyPolicy::once();
    let depths = async |tokens: u64| {
        let budget = Budget::tokens(tokens);
        let context = session
            .assemble(agent_memory::context::AssembleRequest::new(
                budget,
                policy.clone(),
            ))
            .await
            .unwrap();
        let ids = context
            .messages
            .iter()
            .filter_map(|message| match &message.source {
                MessageOrigin::Summary { summary_id, .. } => Some(summary_id.clone()),
                _ => None,
            });
        let mut depths = Vec::new();
        for id in ids {
            depths.push(session.retrieval().describe(&id).await.unwrap().depth);
        }
        depths
    };
    assert_eq!(depths(400).await, [2, 0]);
    assert_eq!(depths(600).await, [1, 1, 0]);
    assert_eq!(depths(800).await, [0, 0, 0, 0, 0]);
}
