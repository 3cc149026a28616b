//! Anthropic messages.
//!
//! - System messages before the first other message are sent as `system`. A later one is sent as a user's text between
//!   `<system>` tags. In other texts, the `<` of such a tag is written `&lt;`.
//! - Neighbouring messages of one role are sent as one message. In a user's message the results come first.
//! - Reasoning that Anthropic signed is sent as `thinking` with its signature. Other reasoning is left out. Reasoning
//!   at the end of a message is left out too, because the API does not accept it there. `redacted_thinking` is sent as
//!   it came.
//! - A web search of the provider's tool is sent as it came, if the message also has its result.
//! - Blank texts are left out. White space is removed from the end of a last message of the assistant.
//! - Images are sent as JPEG, PNG, GIF or WebP or by an https URL, and files as PDF. A failed result has only text, and
//!   its images follow the results. The name of a participant is put before the first text of a user's message.

use std::collections::BTreeSet;

use memory_model::{
    Media, MediaSource, Message, Part, RawJson, Reply, ResultContent, Role, ToolDefinition,
};
use serde_json::{Value, json};
use token_estimate::Usage;

use crate::error::Error;
use crate::fields::{
    Facts, Object, invalid, native, object, schema, string, text, tokens, unknown,
};
use crate::media::{PDF, Source};
use crate::prepare::{Prepared, wire_name};
use crate::turns::{CONTINUED, Speaker, Turns, escape_system, said_by, split_results, system_text};
use crate::unknown::as_text;
use crate::{Provider, arguments, media, original_call_id, reply, wire_call_id, within};

/// Minimum length of Anthropic's signatures, in bytes. Marks of other providers in this field are shorter.
const MIN_SIGNATURE: usize = 64;
const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// Content of a failed result without text.
const NO_OUTPUT: &str = "(no output)";

/// Returns the values of the request's fields `system` and `messages`.
pub fn write(messages: &[Message]) -> (Option<Value>, Vec<Value>) {
    write_fitted(&within(messages, Provider::Anthropic.limits(None)))
}

/// Writes messages that are within the provider's limits on pictures, documents and bytes.
pub(crate) fn write_fitted(messages: &[Message]) -> (Option<Value>, Vec<Value>) {
    let prepared = Prepared::new(messages);
    let mut system = Vec::new();
    let mut turns = Turns::default();
    for message in prepared.iter() {
        match message.role {
            Role::System => {
                let texts = message.parts.iter().filter_map(as_text);
                let texts = texts.filter(|text| !text.trim().is_empty());
                match !turns.is_empty() {
                    false => system.extend(texts.filter_map(|text| text_block(&text))),
                    true => {
                        let texts = texts.map(|text| system_text(&text));
                        let blocks = texts.filter_map(|text| text_block(&text)).collect();
                        turns.content(Speaker::User, blocks);
                    }
                }
            }
            Role::Assistant => turns.content(Speaker::Model, assistant(&message.parts)),
            Role::User | Role::Tool => {
                let (results, others) = user(message.name.as_deref(), &message.parts);
                turns.results(results);
                turns.content(Speaker::User, others);
            }
        }
    }
    let mut turns = turns.finish(json!({"type": "text", "text": CONTINUED}));
    for (speaker, blocks) in &mut turns {
        if *speaker == Speaker::Model {
            pair_searches(blocks);
        }
    }
    if let Some((Speaker::Model, blocks)) = turns.last_mut() {
        trim_end(blocks);
    }
    let messages = turns.into_iter().map(|(speaker, content)| {
        let role = match speaker {
            Speaker::User => "user",
            Speaker::Model => "assistant",
        };
        json!({"role": role, "content": content})
    });
    let system = match system.as_mut_slice() {
        [] => None,
        [one] => one.get_mut("text").map(Value::take),
        _ => Some(Value::Array(system)),
    };
    (system, messages.collect())
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Returns a block with a text of a user, a model or a tool.
fn said(text: &str) -> Option<Value> {
    text_block(&escape_system(text))
}

/// Returns a call of the server's web search, or its result, if it is complete.
fn web_search(raw: &RawJson) -> Option<Value> {
    let block = native(raw, &["server_tool_use", "web_search_tool_result"])?;
    let fields = block.as_object()?;
    let content = fields.get("content");
    let block = match text(fields, "type")? {
        "server_tool_use" if text(fields, "name")? == "web_search" => json!({
            "type": "server_tool_use",
            "id": server_id(text(fields, "id")?)?,
            "name": "web_search",
            "input": fields.get("input").filter(|input| input.is_object())?,
        }),
        "web_search_tool_result" => json!({
            "type": "web_search_tool_result",
            "tool_use_id": server_id(text(fields, "tool_use_id")?)?,
            "content": match content? {
                Value::Array(results) => results.iter().map(search_result).collect::<Option<_>>()?,
                Value::Object(error) => json!({
                    "type": text(error, "type").filter(|kind| *kind == "web_search_tool_result_error")?,
                    "error_code": text(error, "error_code")?,
                }),
                _ => return None,
            },
        }),
        _ => return None,
    };
    Some(block)
}

/// Returns an id, if it has the form of the ids of server tool calls.
fn server_id(id: &str) -> Option<&str> {
    let name = id.strip_prefix("srvtoolu_")?;
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && name.bytes().all(of_name)).then_some(id)
}

fn search_result(result: &Value) -> Option<Value> {
    let fields = result.as_object()?;
    let mut written = json!({
        "type": text(fields, "type").filter(|kind| *kind == "web_search_result")?,
        "title": text(fields, "title")?,
        "url": text(fields, "url")?,
        "encrypted_content": text(fields, "encrypted_content").filter(|text| !text.is_empty())?,
    });
    if let (Some(age), Some(fields)) = (text(fields, "page_age"), written.as_object_mut()) {
        fields.insert("page_age".to_owned(), age.into());
    }
    Some(written)
}

/// Turns each call of the server's web search without a later result into text, and each result without a call.
fn pair_searches(blocks: &mut Vec<Value>) {
    let id = |block: &Value, kind: &str, field: &str| {
        let fields = block.as_object()?;
        let id = text(fields, field).filter(|_| text(fields, "type") == Some(kind))?;
        Some(id.to_owned())
    };
    let used = |block: &Value| id(block, "server_tool_use", "id");
    let returned = |block: &Value| id(block, "web_search_tool_result", "tool_use_id");
    let (mut seen, mut open, mut paired) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for block in blocks.iter() {
        if let Some(id) = used(block).filter(|id| seen.insert(id.clone())) {
            open.insert(id);
        } else if let Some(id) = returned(block).filter(|id| open.remove(id)) {
            paired.insert(id);
        }
    }
    // If an id comes twice, the first call and the first result behind it are a pair.
    let (mut uses, mut results) = (paired.clone(), BTreeSet::new());
    let settled = std::mem::take(blocks).into_iter().filter_map(|block| {
        let stays = match (used(&block), returned(&block)) {
            (Some(id), _) => {
                let stays = uses.remove(&id);
                results.extend(stays.then_some(id));
                stays
            }
            (_, Some(id)) => results.remove(&id),
            _ => true,
        };
        match stays {
            true => Some(block),
            false => as_text(&unknown(&block)).and_then(|text| said(&text)),
        }
    });
    *blocks = settled.collect();
}

/// Removes white space from the end of the last block, if the block is a text.
fn trim_end(blocks: &mut [Value]) {
    let last = blocks.last_mut().and_then(|block| block.get_mut("text"));
    if let Some(Value::String(text)) = last {
        text.truncate(text.trim_end().len());
    }
}

fn assistant(parts: &[Part]) -> Vec<Value> {
    let mut blocks = Vec::new();
    // Reasoning cannot be the last block.
    let mut reasoning = Vec::new();
    for part in parts {
        let block = match part {
            Part::Reasoning { text, signature } => {
                let signature = signature.as_deref().filter(|text| is_signature(text));
                reasoning.extend(signature.map(|signature| {
                    json!({"type": "thinking", "thinking": text, "signature": signature})
                }));
                continue;
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => Some(json!({
                "type": "tool_use",
                "id": wire_call_id(id),
                "name": wire_name(name),
                "input": arguments::to_object(arguments),
            })),
            Part::Unknown { raw } => {
                if let Some(block) = redacted(raw) {
                    reasoning.push(block);
                    continue;
                }
                web_search(raw).or_else(|| said(&as_text(part)?))
            }
            part => as_text(part).and_then(|text| said(&text)),
        };
        if let Some(block) = block {
            blocks.append(&mut reasoning);
            blocks.push(block);
        }
    }
    blocks
}

fn redacted(raw: &RawJson) -> Option<Value> {
    let block = native(raw, &["redacted_thinking"])?;
    let data = text(block.as_object()?, "data").filter(|data| !data.is_empty())?;
    Some(json!({"type": "redacted_thinking", "data": data}))
}

/// Returns whether a signature can be Anthropic's: it is Base64 and long enough.
fn is_signature(text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    text.len() >= MIN_SIGNATURE && text.bytes().all(base64)
}

/// Returns the results of a user's message, and its other content.
fn user(name: Option<&str>, parts: &[Part]) -> (Vec<Value>, Vec<Value>) {
    let mut results = Vec::new();
    let mut others = Vec::new();
    let mut name = name;
    for part in parts {
        match part {
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => results.push(tool_result(call_id, content, *is_error, &mut others)),
            Part::Text { text } if !text.trim().is_empty() => {
                others.extend(said(&said_by(name.take(), text)));
            }
            part => others.extend(user_block(part)),
        }
    }
    (results, others)
}

fn user_block(part: &Part) -> Option<Value> {
    medium(part).or_else(|| said(&as_text(part)?))
}

/// Returns an image or a PDF, if the API takes it.
fn medium(part: &Part) -> Option<Value> {
    let (Part::Image(medium) | Part::File(medium)) = part else {
        return None;
    };
    let (kind, types) = match media::is_image(part, medium) {
        true => ("image", IMAGE_TYPES),
        false => ("document", [PDF].as_slice()),
    };
    let url = media::url(medium, types)?;
    let source = match media::source(medium)? {
        Source::Data { media_type, data } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        Source::Url { .. } if url.starts_with("https:") => json!({"type": "url", "url": url}),
        Source::Url { .. } => return None,
    };
    Some(json!({"type": kind, "source": source}))
}

/// Returns a result. Images and files of a failed result are added to `others`.
fn tool_result(
    call_id: &str,
    content: &ResultContent,
    is_error: Option<bool>,
    others: &mut Vec<Value>,
) -> Value {
    let failed = is_error == Some(true);
    let content: Option<Value> = match content {
        ResultContent::Text(text) => {
            (!text.trim().is_empty()).then(|| escape_system(text).into_owned().into())
        }
        ResultContent::Parts(parts) => {
            let mut blocks = Vec::new();
            for part in parts {
                match medium(part).filter(|_| failed) {
                    Some(medium) => {
                        let label = format!("Part of the result of {}:", wire_call_id(call_id));
                        others.extend(text_block(&label));
                        others.push(medium);
                        blocks.extend(as_text(part).and_then(|text| said(&text)));
                    }
                    None => blocks.extend(user_block(part)),
                }
            }
            (!blocks.is_empty()).then(|| blocks.into())
        }
    };
    let content = content.or_else(|| failed.then(|| NO_OUTPUT.into()));
    let mut result = Object::new();
    result.insert("type".to_owned(), "tool_result".into());
    result.insert("tool_use_id".to_owned(), wire_call_id(call_id).into());
    result.extend(content.map(|content| ("content".to_owned(), content)));
    result.extend(is_error.map(|is_error| ("is_error".to_owned(), is_error.into())));
    result.into()
}

/// Reads the fields `system` and `messages` of a request. A response can be read as a message too. Results in a user's
/// message become a message of the role `tool` before it.
///
/// Fields that are not content are kept in the messages' `meta`, unless they are null. They are not sent again. The
/// `id` of a response is kept as [`Message::response`].
///
/// A system prompt becomes a message of the log like any other, which a compaction summarizes once it is old. To keep
/// instructions at the beginning of every request, do not pass them here but to the session (`OpenSession::system` of
/// `agent-memory`).
///
/// # Errors
/// `Invalid` if a message is no object, or if its role or content does not belong to the format. The text names the
/// message.
pub fn read(system: Option<&Value>, messages: &[Value]) -> Result<Vec<Message>, Error> {
    let mut out = Vec::new();
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let (parts, facts) = content(system, "system")?;
        let mut message = Message::new(Role::System, parts);
        message.meta = facts.finish();
        out.push(message);
    }
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let fields = object(message, &place)?;
        let role = string(fields, "role", &place)?;
        let (parts, mut facts) = match fields.get("content") {
            Some(value) => content(value, &format!("{place}.content"))?,
            None => return Err(invalid(&place, "it has no `content`")),
        };
        match role {
            "user" => {
                if at == 0 && matches!(parts.as_slice(), [Part::Text { text }] if text == CONTINUED)
                {
                    continue;
                }
                facts.message(fields, &["role", "content"]);
                out.extend(split_results(parts, facts));
            }
            "assistant" => {
                facts.message(fields, &["role", "content", "type", "id"]);
                let mut message = Message::new(Role::Assistant, parts);
                message.response = text(fields, "id").map(str::to_owned);
                message.meta = facts.finish();
                out.push(message);
            }
            role => {
                let text = format!("the role {role:?} is unknown: use user or assistant");
                return Err(invalid(&place, text));
            }
        }
    }
    Ok(out)
}

fn content(content: &Value, place: &str) -> Result<(Vec<Part>, Facts), Error> {
    let mut facts = Facts::default();
    let parts = match content {
        Value::String(text) => vec![Part::text(text)],
        Value::Array(blocks) => {
            let blocks = blocks.iter().enumerate();
            let read = blocks.map(|(at, block)| block_part(block, at, &mut facts));
            read.collect()
        }
        _ => {
            let problem = "it is neither a text nor a list of blocks";
            return Err(invalid(place, problem));
        }
    };
    Ok((parts, facts))
}

fn block_part(block: &Value, index: usize, facts: &mut Facts) -> Part {
    let known = block
        .as_object()
        .and_then(|fields| Some((fields, known_block(fields)?)));
    match known {
        Some((fields, (part, known))) => {
            facts.part(index, fields, known);
            part
        }
        None => unknown(block),
    }
}

/// Reads a block, and returns the names of the fields that the part holds.
fn known_block(fields: &Object) -> Option<(Part, &'static [&'static str])> {
    let known: (Part, &[&str]) = match text(fields, "type")? {
        "text" => (Part::text(text(fields, "text")?), &["type", "text"]),
        "thinking" => {
            let part = Part::Reasoning {
                text: text(fields, "thinking")?.to_owned(),
                signature: text(fields, "signature").map(str::to_owned),
            };
            (part, &["type", "thinking", "signature"])
        }
        "tool_use" => {
            let part = Part::ToolCall {
                id: original_call_id(text(fields, "id")?).into_owned(),
                name: text(fields, "name")?.to_owned(),
                arguments: fields
                    .get("input")
                    .map_or_else(empty, arguments::from_value),
            };
            (part, &["type", "id", "name", "input"])
        }
        "tool_result" => {
            let part = Part::ToolResult {
                call_id: original_call_id(text(fields, "tool_use_id")?).into_owned(),
                content: result_content(fields.get("content")),
                is_error: fields.get("is_error").and_then(Value::as_bool),
            };
            (part, &["type", "tool_use_id", "content", "is_error"])
        }
        "image" => (
            Part::Image(read_source(fields, media::ANY_IMAGE)?),
            &["type", "source"],
        ),
        "document" => (Part::File(read_source(fields, PDF)?), &["type", "source"]),
        _ => return None,
    };
    Some(known)
}

fn empty() -> RawJson {
    arguments::from_text("{}")
}

fn result_content(content: Option<&Value>) -> ResultContent {
    match content {
        None | Some(Value::Null) => ResultContent::Text(String::new()),
        Some(Value::String(text)) => ResultContent::Text(text.clone()),
        Some(Value::Array(blocks)) => {
            let mut facts = Facts::default();
            let parts = blocks.iter().map(|block| match block.get("type") {
                // A result inside a result is kept as it came.
                Some(kind) if kind == "tool_result" => unknown(block),
                _ => block_part(block, 0, &mut facts),
            });
            ResultContent::Parts(parts.collect())
        }
        Some(value) => ResultContent::Parts(vec![unknown(value)]),
    }
}

/// Reads the source of an image or a document. `media_type` is used for a URL.
fn read_source(block: &Object, media_type: &str) -> Option<Media> {
    let source = block.get("source")?.as_object()?;
    match text(source, "type")? {
        "base64" => Some(Media {
            media_type: text(source, "media_type")?.to_owned(),
            source: MediaSource::Data(text(source, "data")?.to_owned()),
        }),
        "url" => Some(Media {
            media_type: media_type.to_owned(),
            source: MediaSource::Url(text(source, "url")?.to_owned()),
        }),
        _ => None,
    }
}

/// Reads a response: its message, model and usage.
///
/// # Errors
/// `Invalid` if the response has no `content`, as an error has none, or if its message cannot be [`read`].
pub fn reply(response: &Value) -> Result<Reply, Error> {
    let content = reply::content(response, "/content")?;
    let messages = read(None, &[json!({"role": "assistant", "content": content})])?;
    Ok(reply::reply(
        response,
        ("id", "model"),
        messages,
        usage(response),
    ))
}

/// Returns the usage of a response or of its field `usage`, or `None` without token counts.
pub fn usage(response: &Value) -> Option<Usage> {
    let usage = response.get("usage").unwrap_or(response);
    Some(Usage {
        input: tokens(usage, &["input_tokens"])?,
        output: tokens(usage, &["output_tokens"]).unwrap_or(0),
        cache_read: tokens(usage, &["cache_read_input_tokens"]).unwrap_or(0),
        cache_write: tokens(usage, &["cache_creation_input_tokens"]).unwrap_or(0),
        total: None,
    })
}

/// Returns the value of the request's field `tools`.
pub fn tools(tools: &[ToolDefinition]) -> Vec<Value> {
    let definition = |tool: &ToolDefinition| {
        let mut definition = json!({"name": tool.name, "input_schema": schema(tool)});
        if let (Some(description), Some(fields)) = (&tool.description, definition.as_object_mut()) {
            fields.insert("description".to_owned(), description.as_str().into());
        }
        definition
    };
    tools.iter().map(definition).collect()
}
