//! Work of the routes of sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_memory::context::{AssembleRequest, AssemblyPolicy};
use agent_memory::store::EntryOutcome;
use agent_memory::transcripts::{Formats, PlainLines, ReadOptions};
use agent_memory::{Budget, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refusal::Refusal;
use super::server::{Answer, Call, Server};
use crate::commands::context;
use crate::commands::sessions::{SessionList, listed};
use crate::error::from_format;

/// Default budget of a context, in tokens.
const BUDGET: u64 = 32_000;

/// Lists the sessions.
pub(super) async fn list(server: Arc<Server>) -> Result<Answer, Refusal> {
    let all = server.visible.all(&server.memory).await?;
    let mut sessions = Vec::new();
    for info in &all {
        sessions.push(listed(&server.memory, info, &all).await?);
    }
    Answer::json(&SessionList { sessions })
}

/// Messages to store.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NewMessages {
    /// Messages in the form of `agent-memory export`, such as {"role":"user","content":"…","external_id":"…"}.
    messages: Vec<Value>,
}

/// Report of storing messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stored {
    session: String,
    /// Position of the log's last entry.
    head: u32,
    inserted: usize,
    duplicates: usize,
    /// Number of messages that were not stored because a different one has their external id.
    conflicts: usize,
    outcomes: Vec<Outcome>,
}

/// Outcome of one message.
#[derive(Debug, Serialize, JsonSchema)]
struct Outcome {
    /// inserted, duplicate or conflict.
    outcome: &'static str,
    /// Position of the message in the log, or of the message that has its external id.
    seq: u32,
}

/// Stores messages in a session.
pub(super) async fn store(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let given: NewMessages = serde_json::from_slice(&call.body)?;
    let messages: Result<Vec<Message>, Refusal> = given.messages.into_iter().map(read).collect();
    let messages = messages?;
    let session = server.visible.open(&server.memory, call.key()).await?;
    let report = session.ingest_batch(messages).await?;
    server
        .metrics
        .stored
        .fetch_add(report.inserted() as u64, Ordering::Relaxed);
    let outcome = |outcome: &EntryOutcome| match outcome {
        EntryOutcome::Inserted(seq) => ("inserted", seq.0),
        EntryOutcome::Duplicate(seq) => ("duplicate", seq.0),
        EntryOutcome::Conflict(seq) => ("conflict", seq.0),
    };
    let outcomes = report.outcomes.iter().map(outcome);
    Answer::json(&Stored {
        session: session.key().to_string(),
        head: report.head.0,
        inserted: report.inserted(),
        duplicates: report.duplicates(),
        conflicts: report.conflicts(),
        outcomes: outcomes
            .map(|(outcome, seq)| Outcome { outcome, seq })
            .collect(),
    })
}

/// Reads a message as a line of an export. One without an id gets none.
fn read(mut given: Value) -> Result<Message, Refusal> {
    let needed =
        "a message is an object with a role (system, user, assistant or tool) and content or parts";
    let has_id = given.get("external_id").is_some_and(Value::is_string);
    let fields = given.as_object_mut().filter(|fields| {
        let role = fields.get("role").and_then(Value::as_str);
        role.is_some_and(|role| ["system", "user", "assistant", "tool"].contains(&role))
    });
    // The path names the session.
    fields
        .ok_or_else(|| Refusal::invalid(needed))?
        .remove("session");
    let formats = Formats::empty().with(PlainLines::new());
    let transcript = formats.read(given.to_string().as_bytes(), &ReadOptions::default());
    let transcript =
        transcript.map_err(|error| Refusal::from(from_format("the message", &error)))?;
    let mut sessions = transcript.sessions.into_iter();
    let message = sessions.next().and_then(|mut log| log.messages.pop());
    let mut message = message.ok_or_else(|| Refusal::invalid(needed))?;
    message.external_id = message.external_id.filter(|_| has_id);
    Ok(message)
}

/// Assembles the context of a session.
pub(super) async fn assemble(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let budget = match call.query.get("budget") {
        None => BUDGET,
        Some(text) => text
            .parse()
            .map_err(|_| Refusal::invalid("budget is a number of tokens"))?,
    };
    let session = server.session(call.key()).await?.in_use().await?;
    let view = session.current_view().await?;
    let request = AssembleRequest::new(Budget::tokens(budget), AssemblyPolicy::once());
    let context = view.assemble(request).await?;
    Answer::json(&context::answer(&session, &context))
}

/// Answers with a retrieval tool of a session.
pub(super) async fn call_tool(server: Arc<Server>, call: Call) -> Result<Answer, Refusal> {
    let session = server.session(call.key()).await?.in_use().await?;
    let arguments = std::str::from_utf8(&call.body);
    let arguments = arguments.map_err(|_| Refusal::invalid("the body is not UTF-8"))?;
    let arguments = match arguments.trim() {
        "" => "{}",
        arguments => arguments,
    };
    let tools = session.retrieval().with_stop(call.stop.clone());
    let answer = tools
        .call(call.route.tool.unwrap_or_default(), arguments)
        .await;
    match answer.is_error {
        true => Err(Refusal::of_tool(&answer)),
        false => Answer::json(&answer.json),
    }
}
