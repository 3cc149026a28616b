//! rig's conversation memory over sessions.

use agent_memory::store::ConversationFilter;
use agent_memory::tokens::{TokenEstimatorExt, default_estimator};
use agent_memory::{DagPolicy, Memory, Window, context::MessageOrigin, testing};
use agent_memory_rig::{RigMemory, context_to_rig, from_rig, to_rig};
use rig_core::completion::Message as RigMessage;
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, CallId, Origin, Reasoning, ToolCall, ToolFunction,
    ToolName, ToolResultContent,
};
use rig_core::id::ConversationId;
use rig_core::memory::{ConversationMemory, MemoryError};
use serde_json::json;

const WINDOW: u64 = 4_000;

async fn memory(window: Window) -> RigMemory {
    let memory: Memory = testing::memory()
        .dag(DagPolicy::for_window(window.tokens))
        .open()
        .await
        .unwrap();
    RigMemory::new(memory, window)
}

/// One turn, as rig appends it: with signed reasoning, two calls and their results.
fn turn(n: usize) -> Vec<RigMessage> {
    let call = |id: String| {
        let name = ToolName::new("look").unwrap();
        ToolCall::new(
            CallId::from_wire(id),
            ToolFunction::new(name, json!({"at": n})),
        )
    };
    let calls = [call(format!("{n}-1")), call(format!("{n}-2"))];
    let thinking = json!({"type": "thinking", "thinking": "Look.", "signature": "c2lnbmVk"});
    let reasoning = AssistantContent::Reasoning(Reasoning::new("Look.")).with_native(thinking);
    let content = calls.iter().cloned().map(AssistantContent::ToolCall);
    let asked = AssistantMessage::new([reasoning].into_iter().chain(content).collect());
    let origin = Origin::new("anthropic.messages".to_owned(), "anthropic", "m");
    let seen = |call: &ToolCall| call.result(vec![ToolResultContent::text("full ".repeat(20))]);
    vec![
        RigMessage::user(format!("Look at quay {n}, please.")),
        RigMessage::Assistant(asked.with_origin(origin)),
        RigMessage::tool_results(calls.iter().map(seen).collect()),
        RigMessage::assistant(format!("Quay {n} is full.")),
    ]
}

#[tokio::test]
async fn everything_is_in_the_log_and_what_is_loaded_fits_the_budget() {
    let window = Window::new(WINDOW);
    let memory = memory(window).await;
    let id = ConversationId::new("harbour");
    let mut told = Vec::new();
    for n in 0..60 {
        memory.append(&id, turn(n)).await.unwrap();
        told.extend(turn(n));
        let loaded = memory.load(&id).await.unwrap();
        let log: Vec<_> = loaded.iter().map(from_rig).collect();
        let tokens = default_estimator().messages(&log);
        assert!(tokens <= window.budget().get(), "{n}: {tokens}");
        // The newest turn is there as it was appended.
        assert!(loaded.ends_with(&turn(n)), "{n}: {loaded:#?}");
    }
    let session = memory.session(&id).await.unwrap().unwrap();
    let log = session.entries().await.unwrap();
    let log: Vec<_> = log.into_iter().map(|entry| entry.message).collect();
    assert_eq!(to_rig(&log), told);
    assert!(memory.memory().verify().await.unwrap().is_ok());
    let context = session.assemble(window.budget()).await.unwrap();
    let is_summary = |message: &agent_memory::context::ContextMessage| {
        matches!(message.source, MessageOrigin::Summary { .. })
    };
    assert!(context.messages.iter().any(is_summary));
    let hits = session.retrieval().grep("at quay 0,").await.unwrap();
    assert!(hits.complete && !hits.hits.is_empty(), "{hits:?}");
}

#[tokio::test]
async fn a_conversation_that_fits_is_loaded_as_it_was() {
    let memory = memory(Window::new(64_000)).await;
    let id = ConversationId::new("harbour");
    assert_eq!(memory.load(&id).await.unwrap(), []);
    let told: Vec<RigMessage> = (0..3).flat_map(turn).collect();
    memory.append(&id, told.clone()).await.unwrap();
    assert_eq!(memory.load(&id).await.unwrap(), told);
    assert_eq!(memory.load(&ConversationId::new("pier")).await.unwrap(), []);
    let session = memory.session(&id).await.unwrap().unwrap();
    let context = session.assemble(memory.window().budget()).await.unwrap();
    assert_eq!(context_to_rig(&session, &context).await.unwrap(), told);
}

#[tokio::test]
async fn results_of_one_turn_are_loaded_as_one_message() {
    let memory = memory(Window::new(64_000)).await;
    let id = ConversationId::new("harbour");
    let mut told = turn(0);
    let RigMessage::User { content } = told[2].clone() else {
        panic!("{told:?}")
    };
    let single = content.into_iter().map(RigMessage::from);
    told.splice(2..3, single);
    assert_eq!(told.len(), 5);
    memory.append(&id, told).await.unwrap();
    assert_eq!(memory.load(&id).await.unwrap(), turn(0));
}

#[tokio::test]
async fn a_cleared_conversation_begins_anew_and_its_log_stays() {
    let memory = memory(Window::new(64_000)).await;
    let id = ConversationId::new("harbour");
    memory.clear(&id).await.unwrap();
    for n in 0..3 {
        memory.append(&id, turn(n)).await.unwrap();
        assert_eq!(memory.load(&id).await.unwrap(), turn(n));
        // A second time there is nothing to clear.
        for _ in 0..2 {
            memory.clear(&id).await.unwrap();
            assert_eq!(memory.load(&id).await.unwrap(), []);
        }
    }
    let of = |archived| {
        let mut filter = ConversationFilter::default();
        filter.archived = archived;
        filter
    };
    let listed = memory.memory().sessions(&of(true)).await.unwrap();
    let heads: Vec<u32> = listed.iter().map(|one| one.conversation.head.0).collect();
    assert_eq!(heads, [4, 4, 4]);
    assert!(
        memory
            .memory()
            .sessions(&of(false))
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn metadata_of_the_application_survives_clearing() {
    let memory = memory(Window::new(64_000)).await;
    let id = ConversationId::new("harbour");
    memory.append(&id, turn(0)).await.unwrap();
    let session = memory.session(&id).await.unwrap().unwrap();
    let patch = agent_memory::store::ConversationPatch {
        meta: agent_memory::RawJson::parse(r#"{"owner":"Anna"}"#).ok(),
        ..Default::default()
    };
    session.update(&patch).await.unwrap();
    memory.clear(&id).await.unwrap();
    let meta = session.info().await.unwrap().conversation.meta.unwrap();
    let meta: serde_json::Value = serde_json::from_str(meta.as_str()).unwrap();
    assert_eq!(meta, json!({"owner": "Anna", "rig_cleared": 1}));
}

#[tokio::test]
async fn a_budget_that_is_too_small_is_refused_by_name() {
    let memory = memory(Window::new(8)).await;
    let id = ConversationId::new("harbour");
    memory.append(&id, turn(0)).await.unwrap();
    let error = memory.load(&id).await.unwrap_err();
    assert!(matches!(error, MemoryError::Policy(_)), "{error:?}");
}
