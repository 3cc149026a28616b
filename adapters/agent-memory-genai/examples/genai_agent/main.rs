//! An agent's loop with a client of genai: 100 turns with tools over a window of 8,000 tokens. The same client writes the
//! summaries, and the first words are found again by a tool call of the model.
//!
//! The model is a script behind a server on this machine, so that the example needs no key and no network.

#![allow(clippy::print_stdout)]

mod server;

use agent_memory::store::InMemoryStore;
use agent_memory_genai::agent_memory::{
    Memory, Mode, RawJson, Session, ToolCall, ToolDefinition, Window, summaries::LlmSummarizer,
};
use agent_memory_genai::genai::Client;
use agent_memory_genai::{GenAi, chat_request, reply};
use serde_json::{Value, json};
use server::Server;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const MODEL: &str = "gpt-5-mini";
const TURNS: usize = 100;

/// Answers a request: a summary where there are no tools, and otherwise calls of tools and what they returned.
fn script(request: &Value) -> (u16, Value) {
    let last = request["messages"].as_array().and_then(|list| list.last());
    let last = last.cloned().unwrap_or_default();
    let text = last["content"].as_str().unwrap_or_default();
    let call = |tool: &str, of: &str| {
        let id = format!("call_{:x}", request.to_string().len());
        let function = json!({"name": tool, "arguments": json!({"of": of}).to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    };
    let message = match request["tools"].is_array() {
        false => {
            let names = (0..7).map(|n| format!("quay-{n}")).collect::<Vec<_>>();
            let summary = format!(
                "Deploy only after the tests are green. Disks looked at on the servers {}.",
                names.join(", ")
            );
            json!({"role": "assistant", "content": summary})
        }
        true if last["role"] == "tool" => {
            json!({"role": "assistant", "content": format!("Done: {text}")})
        }
        true if text.contains("very first") => call("search_history", "tests are green"),
        true => call("check_server", &format!("quay-{}", text.len() % 7)),
    };
    let reason = match message["tool_calls"].is_array() {
        true => "tool_calls",
        false => "stop",
    };
    let sent = request.to_string().len() / 4;
    let answer = json!({
        "id": "chatcmpl-1",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": sent, "completion_tokens": 40, "total_tokens": sent + 40},
    });
    (200, answer)
}

fn tools() -> Result<Vec<ToolDefinition>> {
    let schema = r#"{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}"#;
    Ok(vec![
        ToolDefinition::new("check_server", RawJson::parse(schema)?)
            .with_description("Returns the state of a server."),
        ToolDefinition::new("search_history", RawJson::parse(schema)?)
            .with_description("Searches everything that was ever said in this conversation."),
    ])
}

/// Runs a tool. What goes wrong is told to the model.
async fn run(session: &Session, call: ToolCall<'_>) -> Result<String> {
    let arguments: Value = call.parse()?;
    let of = arguments["of"].as_str().unwrap_or_default();
    match call.name {
        "check_server" => {
            let lines = (1..=12).map(|n| format!("{of}: disk {n} is at {} %", n * 7));
            Ok(lines.collect::<Vec<_>>().join("\n"))
        }
        "search_history" => {
            let hits = session.retrieval().grep(of).await?.hits;
            let first = hits.into_iter().next().map(|hit| hit.snippet);
            Ok(first.unwrap_or_else(|| "nothing was found".to_owned()))
        }
        name => Ok(format!("there is no tool {name}")),
    }
}

/// One turn: the user's words, calls of the model and of its tools, until the model has nothing more to do.
async fn turn(session: &Session, client: &Client, words: String) -> Result<String> {
    session.user(words).await?;
    loop {
        let context = session.context().await?;
        let request = chat_request(session, &context).await?;
        let reply = reply(&client.exec_chat(MODEL, request, None).await?);
        session.reply(&reply).await?;
        for call in reply.calls() {
            let result = run(session, call).await?;
            session.ingest(call.result(result)).await?;
        }
        if reply.calls().next().is_none() {
            return Ok(reply.text());
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let server = Server::start(script).await?;
    let client = server.client.clone(); // `Client::new()?` where the keys are in the environment
    let writer = GenAi::new("openai", MODEL)?.with_client(client.clone());
    let memory = Memory::builder()
        .store(InMemoryStore::new()) // `.sqlite(path)` with the feature `sqlite`
        .summarizer(LlmSummarizer::new(MODEL, writer))
        .open()
        .await?;
    let session = memory.session("harbour").window(Window::new(8_000));
    let session = session.system("You look after the servers of a small harbour.");
    let session = session.tools(tools()?).await?;

    let first = "Deploy only after the tests are green.".to_owned();
    turn(&session, &client, first).await?;
    for n in 1..TURNS {
        let words = format!("Look at the server on quay {n}, please, and tell me how full it is.");
        turn(&session, &client, words).await?;
    }
    let question = "What did I say at the very first?".to_owned();
    let answer = turn(&session, &client, question).await?;
    assert!(
        answer.contains("Deploy only after the tests are green."),
        "the first words were not found again: {answer}"
    );

    session.compact(Mode::Full).await?;
    let log = session.entries().await?;
    assert_eq!(log.len(), (TURNS + 1) * 4);
    let told: u64 = log.iter().map(|entry| entry.tokens).sum();
    let requests = server.requests();
    let summaries = requests
        .iter()
        .filter(|one| !one["tools"].is_array())
        .count();
    let tree = session.current_view().await?.tree(1).await?.to_string();
    assert!(
        summaries > 0 && tree.contains("· normal"),
        "the client wrote no summary:\n{tree}"
    );
    assert!(memory.verify().await?.is_ok());
    println!(
        "{} turns, {} messages of {told} tokens; {} requests, {summaries} of them for summaries",
        TURNS + 1,
        log.len(),
        requests.len()
    );
    println!("{tree}");
    println!("the model answered: {answer}");
    Ok(())
}
