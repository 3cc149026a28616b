//! An agent's loop in OpenAI's JSON: 300 turns with tools over a window of 16,000 tokens, a restart, a fork, and the
//! first words found again by a tool call of the model.
//!
//! The model is a script, so that the example needs no key and no network. Put a request to a server in its place.
//!
//! `--strategy handoff` compacts by handoff: `/compact` with instructions in the middle of the talk, and a program that dies
//! while a model writes the summary.

#![allow(clippy::print_stdout, clippy::expect_used)]

use agent_memory::handoff::CutPolicy;
use agent_memory::providers::openai;
use agent_memory::{
    Builder, DagPolicy, HandOver, HandOverOutcome, HandoffPolicy, Memory, Message, ObservedUsage,
    RawJson, Retrieval, RetrievalLimits, Session, Strategy, Summarizer, SummarizerResponse,
    SummaryRequest, ToolCall, ToolDefinition, Window,
};
use serde::Deserialize;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const MODEL: &str = "gpt-5-mini";
const SYSTEM: &str = "You look after the servers of a small harbour.";
const TURNS: usize = 300;

/// A model that calls a tool in each turn, and looks the past up when it is asked about it.
struct ScriptedModel {
    calls: usize,
}

impl ScriptedModel {
    /// Answers a request, as a server answers it.
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

fn tools() -> Result<Vec<ToolDefinition>> {
    let schema = r#"{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}"#;
    let check = ToolDefinition::new("check_server", RawJson::parse(schema)?)
        .with_description("Returns the state of a server.");
    // The library's own tools find and read everything that was ever said in the conversation.
    let mut tools = vec![check];
    tools.extend(Retrieval::definitions());
    Ok(tools)
}

#[derive(Deserialize)]
struct Arguments {
    of: String,
}

/// Runs a tool, and returns the message with its result. What goes wrong is told to the model.
async fn run(session: &Session, window: &Window, call: ToolCall<'_>) -> Message {
    if Retrieval::has_tool(call.name) {
        let limits = RetrievalLimits::for_window(window.tokens);
        let retrieval = session.retrieval().with_limits(limits);
        let answer = retrieval.call(call.name, call.arguments.as_str()).await;
        return match answer.is_error {
            true => call.failed(answer.text),
            false => call.result(answer.text),
        };
    }
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

/// A model that has not answered yet when its program dies.
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

/// A memory in a file. Both strategies have their policy; `strategy` is that of sessions that chose none.
fn builder(path: &std::path::Path, window: &Window, strategy: Strategy) -> Builder {
    Memory::builder()
        .sqlite(path)
        .dag(DagPolicy::for_window(window.tokens))
        .handoff(HandoffPolicy::for_window(window.budget().get()))
        .strategy(strategy)
}

/// Does what a user's line that begins with a slash asks for.
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

/// Hands over with a model that never answers, and dies meanwhile: the next process finds the session as it was.
async fn die_in_a_handoff(path: &std::path::Path, window: &Window) -> Result<()> {
    // Everything but the last message is old, so that there is something to hand over.
    let policy = HandoffPolicy::default()
        .with_keep(CutPolicy::LastMessages { messages: 1 })
        .with_min_tokens(0);
    let memory = builder(path, window, Strategy::Handoff)
        .handoff(policy)
        .summarizer(std::sync::Arc::new(Silent))
        .open()
        .await?;
    let session = memory.get_session("harbour").await?;
    let before = session.spans().await?;
    let request = HandOver::default();
    let killed = std::time::Duration::from_millis(50);
    let handoff = tokio::time::timeout(killed, session.hand_over(&request)).await;
    assert!(handoff.is_err(), "the model did not answer");
    assert_eq!(session.spans().await?, before);
    // No farewell: the memory is dropped as a killed process drops it.
    Ok(())
}

/// One turn: the user's words, calls of the model and of its tools, until the model has nothing more to do.
async fn turn(
    session: &Session,
    window: &Window,
    model: &mut ScriptedModel,
    words: String,
) -> Result<String> {
    session.before_turn(window).await?;
    session.ingest(Message::user(words)).await?;
    loop {
        let context = session.before_call(window).await?.context;
        assert!(context.tokens <= window.budget().get());
        let reply = model.complete(&json!({
            "model": MODEL,
            "messages": context.to_openai(),
            "tools": openai::tools(session.tools()),
        }));
        let message = openai::read(&[reply["choices"][0]["message"].clone()])?.remove(0);
        session.ingest(message.clone()).await?;
        if let Some(usage) = openai::usage(&reply) {
            let observed = ObservedUsage::new(MODEL, usage).with_context(&context);
            session.observe_usage(&observed).await?;
        }
        for call in message.tool_calls() {
            session.ingest(run(session, window, call).await).await?;
        }
        if message.tool_calls().next().is_none() {
            session.after_turn(window).await?;
            return Ok(message.text());
        }
    }
}

/// The strategy that the command line asks for.
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
    let memory = builder(&path, &window, strategy).open().await?;
    let session = memory
        .session("harbour")
        .await?
        .with_system(SYSTEM, &tools()?);
    let first = "Deploy only after the tests are green.".to_owned();
    turn(&session, &window, &mut model, first).await?;
    for n in 1..TURNS {
        let words = format!("Look at the server on quay {n}, please, and tell me how full it is.");
        turn(&session, &window, &mut model, words).await?;
        if n == TURNS / 2 {
            // A program may end at any time: what was ingested is stored.
            if strategy == Strategy::Handoff {
                let told = command(&session, "/compact Keep what the quays are called.").await?;
                println!("/compact: {told}");
            }
            memory.close().await?;
            if strategy == Strategy::Handoff {
                die_in_a_handoff(&path, &window).await?;
            }
            return finish(&path, &window, &mut model, (n + 1, strategy)).await;
        }
    }
    Ok(())
}

/// The second half, by a process that knows nothing but the file.
async fn finish(
    path: &std::path::Path,
    window: &Window,
    model: &mut ScriptedModel,
    (from, strategy): (usize, Strategy),
) -> Result<()> {
    let memory = builder(path, window, strategy).open().await?;
    let session = memory
        .get_session("harbour")
        .await?
        .with_system(SYSTEM, &tools()?);
    for n in from..TURNS {
        let words = format!("Look at the server on quay {n}, please, and tell me how full it is.");
        turn(&session, window, model, words).await?;
    }

    // A fork goes its own way and shares what was before.
    let head = session.snapshot().await?.head;
    let fork = session.fork(head, "harbour, another try").await?;
    let answer = turn(
        &fork,
        window,
        model,
        "What did I say at the very first?".into(),
    )
    .await?;
    assert!(answer.contains("tests are green"), "{answer}");

    let context = session.assemble(window.budget()).await?;
    assert_eq!(
        context.messages[0].parts[0],
        agent_memory::Part::text(SYSTEM)
    );
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
