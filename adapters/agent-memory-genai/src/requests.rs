//! Requests and responses of an agent's loop.

use std::collections::HashMap;

use agent_memory::context::{ContextMessage, MessageOrigin};
use agent_memory::{Context, RawJson, Reply, Result, Seq, SeqRange, Session};
use genai::chat::{ChatMessage, ChatRequest, ChatResponse, ContentPart};
use serde_json::json;

use crate::kept::Kept;
use crate::messages::{from_genai, message_to_genai};
use crate::tools::to_genai_tools;
use crate::usage::from_genai_usage;

/// Returns the request of a session's next call: the messages of a context that the session assembled,
/// and the session's tools.
///
/// What [`from_genai`] kept of messages that the context shows verbatim is put back: their log entries are read for
/// it. Neighbouring tool messages become one.
///
/// # Errors
/// When the store fails.
pub async fn chat_request(session: &Session, context: &Context) -> Result<ChatRequest> {
    let mut kept = HashMap::new();
    for range in verbatim_ranges(&context.messages) {
        let mut next = Some(range);
        while let Some(range) = next {
            let page = session.entries_in(range).await?;
            for entry in page.items {
                kept.insert(entry.seq, Kept::read(entry.message.meta.as_ref()));
            }
            next = page.next;
        }
    }
    let nothing = Kept::default();
    let mut names = HashMap::new();
    let mut messages: Vec<ChatMessage> = Vec::with_capacity(context.messages.len());
    for one in &context.messages {
        let kept = position(&one.source).and_then(|seq| kept.get(&seq));
        let message = message_to_genai(
            one.role,
            one.name.as_deref(),
            &one.parts,
            kept.unwrap_or(&nothing),
            &mut names,
        );
        match messages.last_mut() {
            Some(last) if is_tool(last) && is_tool(&message) => {
                last.content.extend(message.content)
            }
            _ => messages.push(message),
        }
    }
    let tools = to_genai_tools(session.tools());
    let request = ChatRequest::new(messages);
    Ok(match tools.is_empty() {
        true => request,
        false => request.with_tools(tools),
    })
}

fn is_tool(message: &ChatMessage) -> bool {
    message.role == genai::chat::ChatRole::Tool && message.options.is_none()
}

/// Returns the position of the one log entry that a message of a context is; `None` for anything else.
fn position(source: &MessageOrigin) -> Option<Seq> {
    match source {
        MessageOrigin::Message { first, last } | MessageOrigin::Trimmed { first, last }
            if first == last =>
        {
            Some(*first)
        }
        _ => None,
    }
}

/// Returns the ranges of neighbouring log entries that a context shows.
fn verbatim_ranges(messages: &[ContextMessage]) -> Vec<SeqRange> {
    let positions = messages.iter().map(|message| position(&message.source));
    let mut positions: Vec<Seq> = positions.flatten().collect();
    positions.sort_unstable();
    let mut ranges: Vec<(Seq, Seq)> = Vec::new();
    for seq in positions {
        match ranges.last_mut() {
            Some((_, last)) if seq <= last.next() => *last = seq,
            _ => ranges.push((seq, seq)),
        }
    }
    let ranges = ranges.into_iter();
    ranges
        .filter_map(|(first, last)| SeqRange::new(first, last))
        .collect()
}

/// Returns a response as a reply for [`Session::reply`]: its message with tool calls and reasoning, the model, and the usage.
/// The message's `meta` has the model's name and the reason why the response ended.
pub fn reply(response: &ChatResponse) -> Reply {
    let mut content = response.content.clone();
    if let Some(reasoning) = &response.reasoning_content
        && !content.contains_reasoning_content()
    {
        content.insert(0, ContentPart::ReasoningContent(reasoning.clone()));
    }
    let message = ChatMessage::assistant(content);
    let mut message = from_genai(&message);
    message.response.clone_from(&response.response_id);
    let meta = message
        .meta
        .take()
        .and_then(|meta| serde_json::from_str(meta.as_str()).ok());
    let mut meta: serde_json::Map<String, serde_json::Value> = meta.unwrap_or_default();
    let model = response.model_iden.model_name.to_string();
    meta.insert("model".to_owned(), json!(model));
    if let Some(reason) = &response.stop_reason {
        meta.insert("stop_reason".to_owned(), json!(reason.raw()));
    }
    message.meta = RawJson::from_value(&meta).ok();
    let mut reply = Reply::from(message);
    reply.model = Some(model);
    reply.usage = from_genai_usage(&response.usage);
    reply
}
