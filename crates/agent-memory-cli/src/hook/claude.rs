//! Claude Code's compactions, answered to its mod.
//!
//! The mod hands over the messages of the conversation and takes a list back: messages that stay, as indexes, and
//! messages to build anew.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agent_memory::context::{ContextMessage, MessageOrigin};
use agent_memory::view::ViewAtVersion;
use agent_memory::{CompactRequest, Memory, Part, Role, Seq, SeqRange};
use serde_json::{Value, json};

use super::answer;
use super::door::Door;
use super::event::Event;
use super::{appended, rendering};
use crate::app::App;

/// Returns the messages that replace the conversation, or the reason for the agent's own compaction.
pub(super) async fn compact(
    app: &App,
    memory: &Memory,
    event: &Event,
    budget: u64,
) -> anyhow::Result<Option<Value>> {
    let fallback = |reason: &str| Ok(Some(json!({"fallback": reason})));
    let Some(path) = transcript(event) else {
        return fallback("the session has no transcript");
    };
    let Some(key) = appended::import(app, memory, event, &path).await? else {
        return fallback("the transcript has no session");
    };
    let session = memory.get_session(key).await?;
    session.compact(CompactRequest::to_fit(budget)).await?;
    let view = session.current_view().await?;
    let before = rendering::cost(&event.messages.iter().map(once).collect::<Vec<_>>());
    let budget = rendering::budget(budget, before);
    let context = view.assemble(rendering::request(&session, budget)).await?;
    let list = Replacement::new(app, &view, event, &context.messages).await?;
    let Some(messages) = list.paired() else {
        return fallback("a call would have no result, or a result no call");
    };
    let kept = messages.iter().filter(|one| one.get("keep").is_some());
    if kept.count() == event.messages.len() {
        return fallback("the conversation is too short to be made shorter");
    }
    Door::of(&session).await?.replaced(&session).await?;
    Ok(Some(json!({
        "messages": messages,
        "tokens_before": before,
        "tokens_after": context.tokens,
    })))
}

/// Returns the path of a session's transcript. The event may not have it.
fn transcript(event: &Event) -> Option<PathBuf> {
    if event.transcript_path.is_some() {
        return event.transcript().map(Path::to_path_buf);
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if event.session_id.is_empty() || !event.session_id.chars().all(is_name) {
        return None;
    }
    let home = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|home| !home.is_empty());
    let home = match home {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()?.join(".claude"),
    };
    let folders = std::fs::read_dir(home.join("projects")).ok()?.flatten();
    let name = format!("{}.jsonl", event.session_id);
    let paths = folders.map(|folder| folder.path().join(&name));
    let written = |path: &PathBuf| std::fs::metadata(path).ok()?.modified().ok();
    // A session that moved to another folder has two.
    paths.filter(|path| path.is_file()).max_by_key(written)
}

/// The list of messages that replace a conversation.
struct Replacement<'a> {
    event: &'a Event,
    messages: Vec<Value>,
}

impl<'a> Replacement<'a> {
    async fn new(
        app: &App,
        view: &ViewAtVersion,
        event: &'a Event,
        context: &[ContextMessage],
    ) -> anyhow::Result<Self> {
        // A handle is the id of a line in the transcript.
        let handles: Vec<String> = event.messages.iter().map(handle).collect();
        let session = view.session();
        let positions = session
            .memory()
            .store()
            .find(session.id(), &handles)
            .await?;
        let known = positions.iter().enumerate();
        let known = known.filter_map(|(index, seq)| Some(((*seq)?, index)));
        let index_of: HashMap<Seq, usize> = known.collect();
        let mut list = Self {
            event,
            messages: Vec::new(),
        };
        let mut texts = vec![rendering::opening(app, view).await?];
        let mut last = None;
        for message in context {
            texts.extend(rendering::heading(message, last));
            last = Some(message);
            match list.kept(message, &index_of) {
                Some(kept) => {
                    list.flush(&mut texts);
                    list.messages
                        .extend(kept.into_iter().map(|at| json!({"keep": at})));
                }
                None if tools_in(message) > 0 => {
                    list.flush(&mut texts);
                    list.messages.push(rebuilt(message));
                }
                None => texts.push(rendering::text(message)),
            }
        }
        list.flush(&mut texts);
        // The newest messages may not be in the transcript yet.
        let last = index_of.values().max().map_or(0, |last| last + 1);
        let newest = (last..event.messages.len()).filter(|_| !index_of.is_empty());
        list.messages.extend(newest.map(|at| json!({"keep": at})));
        Ok(list)
    }

    /// Returns the indexes of the event's messages that a context's message shows unchanged. `None` if the event does not
    /// have them all.
    fn kept(&self, message: &ContextMessage, index_of: &HashMap<Seq, usize>) -> Option<Vec<usize>> {
        let MessageOrigin::Message { first, last } = message.source else {
            return None;
        };
        let range = SeqRange::new(first, last)?;
        // Notes between the messages have no place in the event.
        let found: Vec<usize> = (range.first.0..=range.last.0)
            .filter_map(|seq| index_of.get(&Seq(seq)).copied())
            .collect();
        let tools =
            |one: &Value| list_of(one, "toolUses").count() + list_of(one, "toolResults").count();
        let messages = found.iter().filter_map(|at| self.event.messages.get(*at));
        let in_event: usize = messages.map(tools).sum();
        (!found.is_empty() && in_event == tools_in(message)).then_some(found)
    }

    /// Adds the texts so far as one message of the user.
    fn flush(&mut self, texts: &mut Vec<String>) {
        let text = texts.join("\n\n");
        texts.clear();
        if !text.trim().is_empty() {
            let text = answer::marked(&text);
            self.messages.push(json!({"role": "user", "text": text}));
        }
    }

    /// Returns the messages if each call has its result after it and each result its call before it.
    fn paired(self) -> Option<Vec<Value>> {
        let mut open: Vec<String> = Vec::new();
        for message in &self.messages {
            let keep = message.get("keep").and_then(Value::as_u64);
            let message = match keep {
                Some(at) => self.event.messages.get(usize::try_from(at).ok()?)?,
                None => message,
            };
            open.extend(ids(message, "toolUses"));
            for id in ids(message, "toolResults") {
                open.remove(open.iter().position(|call| *call == id)?);
            }
        }
        (open.is_empty() && !self.messages.is_empty()).then_some(self.messages)
    }
}

/// Returns an event's message with each result once. The event has them up to four times.
fn once(message: &Value) -> Value {
    let each = |list, field| -> Vec<Option<&Value>> {
        list_of(message, list).map(|one| one.get(field)).collect()
    };
    json!([
        message.get("text"),
        each("toolUses", "input"),
        each("toolResults", "text")
    ])
}

fn handle(message: &Value) -> String {
    let handle = message.get("handle").and_then(Value::as_str);
    handle.unwrap_or_default().to_owned()
}

/// Returns the calls or results of an event's message.
fn list_of<'a>(message: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    message
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Returns the ids of the calls or results of an event's message.
fn ids(message: &Value, key: &str) -> impl Iterator<Item = String> {
    list_of(message, key).map(|one| {
        let id = one.get("tool_use_id").and_then(Value::as_str);
        id.unwrap_or_default().to_owned()
    })
}

/// Returns the number of calls and results in a context's message.
fn tools_in(message: &ContextMessage) -> usize {
    let is_tool = |part: &&Part| matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. });
    message.parts.iter().filter(is_tool).count()
}

/// Returns a message with calls or results in the mod's form.
fn rebuilt(message: &ContextMessage) -> Value {
    let mut texts = Vec::new();
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text } => texts.push(text.clone()),
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                let input: Value = serde_json::from_str(arguments.as_str()).unwrap_or_default();
                calls.push(json!({"tool_use_id": id, "tool": name, "input": input}));
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => results.push(json!({
                "tool_use_id": call_id,
                "text": rendering::result(content),
                "isError": is_error.unwrap_or(false),
            })),
            _ => {}
        }
    }
    let role = match message.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    let mut out = json!({"role": role, "text": texts.join("\n"), "toolUses": calls});
    if !results.is_empty() {
        out["toolResults"] = Value::from(results);
    }
    out
}
