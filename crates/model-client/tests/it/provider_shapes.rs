//! Requests of the clients, for the check with the providers' own libraries.
//!
//! If `AGENT_MEMORY_REQUESTS` names a folder, the requests are written there, for `cargo xtask provider-types`.

use std::fmt::Write as _;
use std::path::PathBuf;

use model_client::{
    AnthropicMessages, ChatModel, ChatPrompt, GeminiGenerate, OpenAiCompatible, OpenAiResponses,
    OutputLimit, ReasoningEffort,
};
use wiremock::ResponseTemplate;

use crate::openai::{prompt, server};

/// Returns the client of each API with each setting, with the name of the API's shape.
fn clients(url: &str) -> Vec<(&'static str, Box<dyn ChatModel>)> {
    let mut all: Vec<(&'static str, Box<dyn ChatModel>)> = Vec::new();
    let efforts = [
        ReasoningEffort::None,
        ReasoningEffort::Minimal,
        ReasoningEffort::Low,
        ReasoningEffort::Medium,
        ReasoningEffort::High,
    ];
    macro_rules! add {
        ($shape:literal, $client:expr) => {
            all.push(($shape, Box::new($client)));
            all.push(($shape, Box::new($client.with_temperature(0.5))));
            for effort in efforts {
                all.push(($shape, Box::new($client.with_reasoning(effort))));
            }
        };
    }
    let chat = || OpenAiCompatible::new(url, "m").unwrap();
    add!("openai", chat());
    add!(
        "openai",
        chat().with_output_limit(OutputLimit::MaxCompletionTokens)
    );
    add!("responses", OpenAiResponses::new(url, "m").unwrap());
    add!("anthropic", AnthropicMessages::new(url, "m").unwrap());
    add!("gemini", GeminiGenerate::new(url, "m").unwrap());
    all
}

#[tokio::test]
async fn requests_are_written_for_the_providers_own_libraries() {
    let server = server(ResponseTemplate::new(418)).await;
    let prompts = [prompt(), ChatPrompt::new("", "What was said?")];
    let mut shapes = Vec::new();
    for (shape, client) in clients(&server.uri()) {
        for prompt in &prompts {
            client.complete(prompt).await.unwrap_err();
            shapes.push(shape);
        }
    }
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), shapes.len());
    let Some(folder) = std::env::var_os("AGENT_MEMORY_REQUESTS").map(PathBuf::from) else {
        return;
    };
    for shape in ["openai", "responses", "anthropic", "gemini"] {
        let mut lines = String::new();
        for (request, _) in requests.iter().zip(&shapes).filter(|(_, of)| **of == shape) {
            writeln!(lines, "{}", String::from_utf8_lossy(&request.body)).unwrap();
        }
        std::fs::write(folder.join(format!("clients.{shape}.jsonl")), lines).unwrap();
    }
}
