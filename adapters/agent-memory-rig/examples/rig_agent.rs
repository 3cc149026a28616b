//! A rig agent that remembers: 120 runs with a tool over a window of 8,000 tokens, and the first words found again by a
//! tool call of the model.
//!
//! The model is a script, so that the example needs no key and no network. Put a model of a provider in its place.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_memory::tokens::{TokenEstimatorExt, default_estimator};
use agent_memory::{Memory, Window};
use agent_memory_rig::{RigMemory, from_rig};
use rig_agent::AgentBuilder;
use rig_agent::tool::{DynamicTool, ToolExecutionError, ToolOutput};
use rig_core::completion::{CompletionRequest, CompletionResponse, Message, Usage};
use rig_core::driver::{Exchange, Model, Opened, Opening, Transport};
use rig_core::error::ProviderError;
use rig_core::id::ConversationId;
use rig_core::message::{
    AssistantContent, Origin, ToolCall, ToolFunction, ToolName, ToolResultContent, UserContent,
};
use rig_core::test_utils::{MockFrame, MockScript};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const RUNS: u64 = 120;
const CONVERSATION: &str = "harbour";
const WINDOW: u64 = 8_000;

/// A model that looks at a server in each run, and looks the past up when it is asked about it.
#[derive(Clone, Default)]
struct ScriptedModel {
    calls: Arc<AtomicU64>,
    /// Estimated tokens of the longest history that it was sent.
    longest: Arc<AtomicU64>,
}

impl ScriptedModel {
    fn answer(&self, request: &CompletionRequest) -> Option<AssistantContent> {
        let history: Vec<_> = request.chat_history.iter().map(from_rig).collect();
        let tokens = default_estimator().messages(&history);
        self.longest.fetch_max(tokens, Ordering::Relaxed);
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let Some(Message::User { content }) = request.chat_history.last() else {
            return None;
        };
        let (tool, argument) = match content.first()? {
            UserContent::ToolResult(result) => {
                let text = result.content.iter().find_map(ToolResultContent::as_text)?;
                return Some(AssistantContent::text(format!("Done: {text}")));
            }
            UserContent::Text(text) if text.text.contains("very first") => {
                ("search_history", "tests are green".to_owned())
            }
            _ => ("check_server", format!("quay-{}", number % 7)),
        };
        let function = ToolFunction::new(ToolName::new(tool).ok()?, json!({"of": argument}));
        let call = ToolCall::from_wire(format!("call_{number}"), function);
        Some(AssistantContent::ToolCall(call))
    }
}

impl Transport<MockScript> for ScriptedModel {
    fn send(&self, request: CompletionRequest, _exchange: Exchange) -> Opening<MockFrame> {
        let Some(answer) = self.answer(&request) else {
            let text = "the request does not end with a user's message";
            return Opening::failed(ProviderError::Provider(text.to_owned()));
        };
        let origin = Origin::new("example.api", "scripted", "scripted-1");
        let response = CompletionResponse::new(vec![answer], Usage::new(), origin, Value::Null);
        let frame = MockFrame::Response(Box::new(response));
        Opening::ready(Opened::new(futures::stream::iter([Ok(frame)])))
    }
}

/// A tool with one argument, a text.
fn tool<F>(
    name: &str,
    description: &str,
    run: impl Fn(String) -> F + Send + Sync + 'static,
) -> Result<DynamicTool>
where
    F: Future<Output = std::result::Result<String, ToolExecutionError>> + Send + 'static,
{
    let parameters =
        json!({"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]});
    let call = move |arguments: Value| {
        let result = run(arguments["of"].as_str().unwrap_or_default().to_owned());
        let output = async { result.await.map(ToolOutput::text) };
        Box::pin(output) as _
    };
    Ok(DynamicTool::new(
        ToolName::new(name)?,
        description,
        parameters,
        call,
    ))
}

/// Returns the state of a server.
async fn check_server(server: String) -> std::result::Result<String, ToolExecutionError> {
    let lines = (1..=12).map(|n| format!("{server}: disk {n} is at {} %", n * 7));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Searches the whole log of the conversation, whatever was summarized.
async fn search_history(
    memory: RigMemory,
    text: String,
) -> std::result::Result<String, ToolExecutionError> {
    let session = memory.session(&ConversationId::new(CONVERSATION)).await;
    let Some(session) = session.map_err(ToolExecutionError::from_error)? else {
        return Ok("nothing was said yet".to_owned());
    };
    let found = session.retrieval().grep(text.as_str()).await;
    let hits = found.map_err(ToolExecutionError::from_error)?.hits;
    let first = hits.into_iter().next().map(|hit| hit.snippet);
    Ok(first.unwrap_or_else(|| "nothing was found".to_owned()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let window = Window {
        system_tokens: 300,
        ..Window::new(WINDOW)
    }; // for rig's preamble and tools
    let memory = Memory::in_memory().await?; // or `Memory::open(path)` with the feature `sqlite`
    let memory = RigMemory::new(memory, window);
    let model = ScriptedModel::default();
    let searched = memory.clone();
    let tools = vec![
        tool(
            "check_server",
            "Returns the state of a server.",
            check_server,
        )?,
        tool(
            "search_history",
            "Searches everything that was ever said in this conversation.",
            move |text| search_history(searched.clone(), text),
        )?,
    ];
    let agent = AgentBuilder::new(Model::new(MockScript::default(), model.clone()))
        .preamble("You look after the servers of a small harbour.")
        .dynamic_tools(tools)
        .memory(memory.clone())
        .conversation(CONVERSATION)
        .default_max_turns(3)
        .build();

    agent
        .prompt("Deploy only after the tests are green.")
        .await?;
    for n in 1..RUNS {
        agent
            .prompt(format!("Look at the server on quay {n}, please."))
            .await?;
    }
    let answer = agent.prompt("What did I say at the very first?").await?;
    let answer = answer.output();
    assert!(
        answer.contains("Deploy only after the tests are green."),
        "the first words were not found again: {answer}"
    );

    let id = ConversationId::new(CONVERSATION);
    let session = memory.session(&id).await?.ok_or("nothing was stored")?;
    let log = session.entries().await?;
    let told: u64 = log.iter().map(|entry| entry.tokens).sum();
    let runs = usize::try_from(RUNS)? + 1;
    assert_eq!(log.len(), runs * 4);
    // A run adds the prompt, a call and a result to what was loaded.
    let longest = model.longest.load(Ordering::Relaxed);
    assert!(
        longest <= WINDOW && told > 3 * WINDOW,
        "{longest} of {told} tokens"
    );
    assert!(memory.memory().verify().await?.is_ok());
    println!(
        "{runs} runs, {} messages of {told} tokens; at most {longest} tokens sent",
        log.len()
    );
    println!("the agent answered: {answer}");
    Ok(())
}
