//! An agent's loop with OpenAI's JSON: 300 turns with tools in a window of 16,000 tokens, a restart and a fork. In the
//! end the model finds the first words of the conversation again, with a tool call.
//!
//! The model is a script, so that the example needs no key and no network. In a real program, send the request to a
//! server instead.
//!
//! `--strategy handoff` compacts by handoff. It also shows `/compact` with instructions in the middle of the
//! conversation, and a program that dies while a model writes the summary.

#![allow(clippy::print_stdout, clippy::expect_used)]

use agent_memory::compaction::{CutPolicy, HandOver, HandOverOutcome};
use agent_memory::providers::openai;
use agent_memory::summaries::{SummarizerResponse, SummaryRequest};
use agent_memory::{
    HandoffPolicy, Memory, Message, RawJson, Session, Strategy, Summarizer, ToolCall,
    ToolDefinition, Window,
};
use serde::Deserialize;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const MODEL: &str = "gpt-5-mini";
const SYSTEM: &str = "You look after the servers of a small harbour.";
const TURNS: usize = 300;

/// A model that calls a tool in each turn, and searches the memory when the user asks about the past.
struct ScriptedModel {
    calls: usize,
}

impl ScriptedModel {
    /// Returns the response to a request, in the form of a server's response.
    fn complete(&mut self, request: &Value) -> Value {
        self.calls += 1;
        let messages = request["messages"].as_array().expect("a list of messages");
        let last = messages.last().expect("at least one message");
        let message = match (last["role"].as_str(), last["content"].as_str()) {
            (Some("tool"), text) => json!({
                "role": "assistant",
                "content": format!("Done: {}", text.unwrap_or_default()),
            }),
            (_, Some(text)) if text.contains("very first") => self.call(
                "memory_grep",
                json!({"pattern": "green", "scope": "messages"}),
            ),
            _ => {
                let server = format!("quay-{}", self.calls % 7);
                self.call("check_server", json!({"of": server}))
            }
        };
        let sent = request.to_string().len() / 4;
        json!({
            "choices": [{"message": message}],
            "usage": {"prompt_tokens": sent, "completion_tokens": 40, "total_tokens": sent + 40},
        })
    }

    fn call(&self, tool: &str, arguments: Value) -> Value {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call =
            json!({"id": format!("call_{}", self.calls), "type": "function", "function": function});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    }
}

fn check_server_tool() -> Result<ToolDefinition> {
    let schema = r#"{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}"#;
    Ok(ToolDefinition::new("check_server", RawJson::parse(schema)?)
        .with_description("Returns the state of a server."))
}

#[derive(Deserialize)]
struct Arguments {
    of: String,
}

/// Runs a tool of the application, and returns the message with its result. An error becomes a result too, so that the
/// model sees it.
fn run(call: ToolCall<'_>) -> Message {
    if call.name != "check_server" {
        return call.failed(format!("there is no tool {}", call.name));
    }
    let arguments: Arguments = match call.parse() {
        Ok(arguments) => arguments,
        Err(error) => return call.failed(error.to_string()),
    };
    let lines = (1..=12).map(|n| format!("{}: disk {n} is at {} %", arguments.of, n * 7));
    call.result(lines.collect::<Vec<_>>().join("\n"))
}

/// A model that never answers. It stands for a model that is still writing when the program dies.
#[derive(Debug)]
struct Silent;

#[async_trait::async_trait]
impl Summarizer for Silent {
    fn id(&self) -> &str {
        "silent@1"
    }

    async fn summarize(
        &self,
        _: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, agent_memory::summaries::Error> {
        std::future::pending().await
    }
}

/// Opens the session with the settings that the database does not store: the window, the system prompt and the tools.
async fn open(memory: &Memory, window: Window) -> Result<Session> {
    let session = memory.session("harbour").window(window).system(SYSTEM);
    // The memory's own tools search and read all messages of the conversation.
    Ok(session.tools([check_server_tool()?]).memory_tools().await?)
}

/// Runs the command in a line of the user that begins with a slash.
async fn command(session: &Session, line: &str) -> Result<String> {
    let Some(instructions) = line.strip_prefix("/compact") else {
        return Ok(format!("there is no command {line}: /compact is one"));
    };
    let mut request = HandOver::default();
    if !instructions.trim().is_empty() {
        request.instructions = Some(instructions.trim().to_owned());
    }
    Ok(match session.hand_over(&request).await? {
        HandOverOutcome::Done(handoff) => format!(
            "handed over: {} messages in {} tokens, from message {} on as they are",
            handoff.archived, handoff.summary_tokens, handoff.kept_from
        ),
        HandOverOutcome::Skipped(reason) => format!("nothing was done: {reason:?}"),
    })
}

/// Starts a handoff with a model that never answers, and dies during the handoff. The next process finds the session
/// unchanged.
async fn die_in_a_handoff(path: &std::path::Path) -> Result<()> {
    // All messages except the last are old, so that there are messages to hand over.
    let policy = HandoffPolicy {
        keep: CutPolicy::LastMessages { messages: 1 },
        min_tokens: 0,
        ..HandoffPolicy::default()
    };
    let builder = Memory::builder().sqlite(path).handoff(policy);
    let memory = builder.summarizer(Silent).open().await?;
    let session = memory.get_session("harbour").await?;
    let before = session.current_view().await?.spans().await?;
    let request = HandOver::default();
    let killed = std::time::Duration::from_millis(50);
    let handoff = tokio::time::timeout(killed, session.hand_over(&request)).await;
    assert!(handoff.is_err(), "the model did not answer");
    assert_eq!(session.current_view().await?.spans().await?, before);
    // The memory is dropped without closing, as when a process is killed.
    Ok(())
}

/// Runs one turn: the user's message, model calls and tool calls, until the model replies without a tool call.
async fn turn(session: &Session, model: &mut ScriptedModel, words: &str) -> Result<String> {
    session.user(words).await?;
    loop {
        let context = session.context().await?;
        let response = model.complete(&json!({
            "model": MODEL,
            "messages": context.to_openai(),
            "tools": openai::tools(session.tools()),
        }));
        let reply = openai::reply(&response)?;
        session.reply(&reply).await?;
        if reply.calls().next().is_none() {
            return Ok(reply.text());
        }
        for call in reply.calls() {
            if !session.answer(call).await? {
                session.ingest(run(call)).await?;
            }
        }
    }
}

/// Returns the strategy that the command line requests.
fn strategy() -> Result<Strategy> {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (None, _) => Ok(Strategy::Dag),
        (Some("--strategy"), Some(name)) => Ok(name.parse()?),
        _ => Err("give --strategy dag, handoff or blocks, or nothing".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("memory.db");
    let window = Window::new(16_000);
    let mut model = ScriptedModel { calls: 0 };

    let strategy = strategy()?;
    let builder = Memory::builder().sqlite(&path).strategy(strategy);
    let memory = builder.open().await?;
    let session = open(&memory, window).await?;
    turn(
        &session,
        &mut model,
        "Deploy only after the tests are green.",
    )
    .await?;
    for n in 1..=TURNS / 2 {
        turn(&session, &mut model, &question(n)).await?;
    }
    if strategy == Strategy::Handoff {
        let told = command(&session, "/compact Keep what the quays are called.").await?;
        println!("/compact: {told}");
    }
    // Closing is optional: a program may end at any time without losing ingested messages.
    memory.close().await?;
    if strategy == Strategy::Handoff {
        die_in_a_handoff(&path).await?;
    }
    let builder = Memory::builder().sqlite(&path).strategy(strategy);
    finish(&builder.open().await?, window, &mut model).await
}

fn question(n: usize) -> String {
    format!("Look at the server on quay {n}, please, and tell me how full it is.")
}

/// Runs the second half, as a new process that has only the database.
async fn finish(memory: &Memory, window: Window, model: &mut ScriptedModel) -> Result<()> {
    let session = open(memory, window).await?;
    for n in TURNS / 2 + 1..TURNS {
        turn(&session, model, &question(n)).await?;
    }

    // A fork shares the messages before it, and has separate messages after that.
    let head = session.info().await?.conversation.head;
    let fork = session.fork(head, "harbour, another try").await?;
    let answer = turn(&fork, model, "What did I say at the very first?").await?;
    assert!(answer.contains("tests are green"), "{answer}");

    let context = session.assemble(window.budget()).await?;
    let first = &context.messages[0].parts[0];
    assert_eq!(*first, agent_memory::Part::text(SYSTEM));
    let log = session.entries().await?;
    let told: u64 = log.iter().map(|entry| entry.tokens).sum();
    assert!(memory.verify().await?.is_ok());
    println!(
        "{TURNS} turns, {} messages of {told} tokens; a context of {} tokens in {} messages",
        log.len(),
        context.tokens,
        context.messages.len()
    );
    println!("the fork answered: {answer}");
    memory.close().await?;
    Ok(())
}
