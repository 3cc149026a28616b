//! A client of genai that writes summaries.

use agent_memory_genai::GenAi;
use agent_memory_genai::agent_memory::models::{ChatModel, ChatPrompt, FailureKind};
use agent_memory_genai::agent_memory::{Message, Mode, summaries::LlmSummarizer, testing};
use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn the_applications_own_client_is_asked() {
    let server = Server::start(|_| {
        let message = json!({"role": "assistant", "content": "They renamed forty modules."});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99});
        (
            200,
            json!({"choices": [choice], "usage": usage, "model": "small"}),
        )
    })
    .await
    .unwrap();
    let model = GenAi::new("openai", "small").unwrap();
    let model = model.with_client(server.client.clone());
    let answer = model.complete(&ChatPrompt::new("Be brief.", "What?")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.text, "They renamed forty modules.");
    assert_eq!(answer.usage.unwrap().total(), 99);
    let request = &server.requests()[0];
    assert_eq!(request["model"], "small");
    assert_eq!(request["messages"][1]["content"], "What?");

    let memory = testing::memory()
        .summarizer(LlmSummarizer::new("small", model))
        .open()
        .await
        .unwrap();
    let session = memory.session("chat").await.unwrap();
    for n in 1..=40 {
        let words = format!("Rename module {n}, please. ").repeat(8);
        session.ingest(Message::user(words)).await.unwrap();
    }
    session.compact(Mode::Full).await.unwrap();
    let tree = session
        .current_view()
        .await
        .unwrap()
        .tree(1)
        .await
        .unwrap()
        .to_string();
    let summaries = session.plan_redo(&Default::default()).await.unwrap();
    assert_eq!(summaries.provisional(), 0, "{tree}");
    assert!(server.requests().len() > 1);
}

#[tokio::test]
async fn a_refusal_is_the_same_failure_as_with_a_client_of_its_own() {
    let server = Server::start(|_| (401, json!({"error": {"message": "no such key"}})))
        .await
        .unwrap();
    let model = GenAi::new("openai", "small").unwrap();
    let model = model.with_client(server.client.clone());
    let failure = model.complete(&ChatPrompt::new("", "What?")).await;
    assert_eq!(failure.unwrap_err().kind(), FailureKind::Auth);
}
