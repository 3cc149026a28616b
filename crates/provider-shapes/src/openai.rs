//! OpenAI chat completions, and the many servers with the same interface.
//!
//! - Each result is a separate message. Images and files of a result follow the results in a user's message, because
//!   the format takes only text in results.
//! - Reasoning is read from `reasoning_content` or `reasoning`, which some servers add. These servers expect it back
//!   with the calls that it led to. So unsigned reasoning is sent as `reasoning_content` of a message with calls, and
//!   other reasoning is left out.
//! - Images are sent as PNG, JPEG, WebP or GIF or by URL, sound as WAV or MP3, and files as PDF or by their id.
//! - Arguments are sent as they came if they are a JSON object. Other arguments are sent as text in an object, and read
//!   back from there.
//! - Ids of calls are sent as they came if they are short enough: see [`chat_call_id`].
//! - The format has no field for failed results.
//! - Names of participants are sent as `name`. Characters that the format does not accept become `_`.

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
use crate::unknown::as_text;
use crate::{Provider, arguments, chat_call_id, failed, media, original_call_id, reply, within};

/// Media types of images that the format takes.
pub(crate) const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// Returns the value of the request's field `messages`.
pub fn write(messages: &[Message]) -> Vec<Value> {
    write_fitted(&within(messages, Provider::OpenAi.limits(None)))
}

/// Writes messages that are within the provider's limits on pictures, documents and bytes.
pub(crate) fn write_fitted(messages: &[Message]) -> Vec<Value> {
    let prepared = Prepared::new(messages);
    let mut out = Vec::new();
    // Content of the results so far that is not text.
    let mut attached: Vec<Value> = Vec::new();
    for message in prepared.iter() {
        let (results, others): (Vec<&Part>, Vec<&Part>) = message
            .parts
            .iter()
            .partition(|part| matches!(part, Part::ToolResult { .. }));
        if results.is_empty() {
            flush(&mut attached, &mut out);
        }
        for part in results {
            if let Part::ToolResult {
                call_id,
                content,
                is_error,
            } = part
            {
                let content = result_content(call_id, content, &mut attached);
                out.push(json!({
                    "role": "tool",
                    "tool_call_id": chat_call_id(call_id),
                    "content": failed::mark(content, *is_error, "text"),
                }));
            }
        }
        let written = match message.role {
            Role::System => {
                texts(&others).map(|content| json!({"role": "system", "content": content}))
            }
            Role::User | Role::Tool => {
                let content = user_content(&others);
                if content.is_some() {
                    flush(&mut attached, &mut out);
                }
                content.map(|content| json!({"role": "user", "content": content}))
            }
            Role::Assistant => assistant(&others),
        };
        if let Some(mut written) = written {
            if let (Some(name), Some(fields)) = (&message.name, written.as_object_mut()) {
                fields.insert("name".to_owned(), wire_name(name).into());
            }
            out.push(written);
        }
    }
    flush(&mut attached, &mut out);
    out
}

/// Writes the content of results that is not text as a user's message.
fn flush(attached: &mut Vec<Value>, out: &mut Vec<Value>) {
    if !attached.is_empty() {
        out.push(json!({"role": "user", "content": std::mem::take(attached)}));
    }
}

/// Joins content. A single text becomes a string, any other content a list.
fn content(mut blocks: Vec<Value>) -> Option<Value> {
    match blocks.as_slice() {
        [] => None,
        [one] if one.get("type").is_some_and(|kind| kind == "text") => {
            blocks.swap_remove(0).get_mut("text").map(Value::take)
        }
        _ => Some(blocks.into()),
    }
}

fn text_block(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn texts(parts: &[&Part]) -> Option<Value> {
    let texts = parts.iter().filter_map(|part| as_text(part));
    content(texts.filter_map(|text| text_block(&text)).collect())
}

fn user_content(parts: &[&Part]) -> Option<Value> {
    content(parts.iter().filter_map(|part| user_block(part)).collect())
}

fn user_block(part: &Part) -> Option<Value> {
    let block = match part {
        Part::Image(media) | Part::File(media) => match media::is_image(part, media) {
            true => media::url(media, IMAGE_TYPES)
                .map(|url| json!({"type": "image_url", "image_url": {"url": url}})),
            false => file_block(media),
        },
        Part::Unknown { raw } => file_by_id(raw),
        _ => None,
    };
    block.or_else(|| text_block(&as_text(part)?))
}

/// Returns a file that the provider stores, by its id.
fn file_by_id(raw: &RawJson) -> Option<Value> {
    let block = native(raw, &["file"])?;
    let id = block.get("file")?.get("file_id")?.as_str()?;
    (!id.is_empty()).then(|| json!({"type": "file", "file": {"file_id": id}}))
}

fn file_block(file: &Media) -> Option<Value> {
    let Source::Data { media_type, data } = media::source(file)? else {
        return None;
    };
    let format = match &*media_type {
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        PDF => {
            let data = format!("data:{media_type};base64,{data}");
            let file = json!({"filename": "file.pdf", "file_data": data});
            return Some(json!({"type": "file", "file": file}));
        }
        _ => return None,
    };
    let audio = json!({"data": data, "format": format});
    Some(json!({"type": "input_audio", "input_audio": audio}))
}

fn assistant(parts: &[&Part]) -> Option<Value> {
    let mut blocks = Vec::new();
    let mut calls = Vec::new();
    let mut reasoning = Vec::new();
    for part in parts {
        match part {
            Part::Reasoning {
                text,
                signature: None,
            } => reasoning.push(text.as_str()),
            Part::ToolCall {
                id,
                name,
                arguments,
            } => calls.push(json!({
                "id": chat_call_id(id),
                "type": "function",
                "function": {"name": wire_name(name), "arguments": arguments::to_object_text(arguments)},
            })),
            Part::Unknown { raw } => {
                let text = as_text(part);
                blocks.extend(refusal(raw).or_else(|| text_block(&text?)));
            }
            part => blocks.extend(as_text(part).and_then(|text| text_block(&text))),
        }
    }
    let content = content(blocks);
    if content.is_none() && calls.is_empty() {
        return None;
    }
    let mut message = Object::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content.into());
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
        let reasoning = reasoning.join("\n\n");
        if !reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), reasoning.into());
        }
    }
    Some(message.into())
}

fn refusal(raw: &RawJson) -> Option<Value> {
    let block = native(raw, &["refusal"])?;
    let refusal = text(block.as_object()?, "refusal").filter(|text| !text.is_empty())?;
    Some(json!({"type": "refusal", "refusal": refusal}))
}

/// Returns the text of a result. Other content is added to `attached`.
fn result_content(call_id: &str, result: &ResultContent, attached: &mut Vec<Value>) -> Value {
    let parts = match result {
        ResultContent::Text(text) => return text.as_str().into(),
        ResultContent::Parts(parts) => parts,
    };
    let mut blocks = Vec::new();
    for part in parts {
        match user_block(part) {
            Some(block) if block.get("type").is_some_and(|kind| kind == "text") => {
                blocks.push(block);
            }
            Some(block) => {
                let label = format!("Part of the result of {}:", chat_call_id(call_id));
                attached.extend(text_block(&label));
                attached.push(block);
            }
            None => {}
        }
    }
    match blocks.is_empty() {
        true => "".into(),
        false => blocks.into(),
    }
}

/// Reads the messages of a request, or `choices[].message` of a response.
///
/// Fields that are not content are kept in the messages' `meta`, unless they are null. The fields of a part are kept
/// there under `blocks`. They are not sent again, for example the `detail` of an image.
///
/// A system message becomes a message of the log like any other, which a compaction summarizes once it is old. To keep
/// instructions at the beginning of every request, leave the message out of the list and pass its text to the session
/// (`OpenSession::system` of `agent-memory`).
///
/// # Errors
/// `Invalid` if a message is no object, has an unknown role or lacks required content. The text names the message.
pub fn read(messages: &[Value]) -> Result<Vec<Message>, Error> {
    messages
        .iter()
        .enumerate()
        .map(|(at, message)| read_one(message, &format!("messages[{at}]")))
        .collect()
}

fn read_one(message: &Value, place: &str) -> Result<Message, Error> {
    let fields = object(message, place)?;
    let mut facts = Facts::default();
    let mut parts = Vec::new();
    let known: &[&str];
    let role = match string(fields, "role", place)? {
        "tool" => {
            known = &["role", "content", "tool_call_id"];
            let (content, is_error) = failed::unmark(read_result(fields.get("content"), place)?);
            parts.push(Part::ToolResult {
                call_id: original_call_id(string(fields, "tool_call_id", place)?).into_owned(),
                content,
                is_error,
            });
            Role::Tool
        }
        "assistant" => {
            known = &[
                "role",
                "content",
                "name",
                "tool_calls",
                "refusal",
                "reasoning_content",
                "reasoning",
            ];
            let reasoning = text(fields, "reasoning_content").or_else(|| text(fields, "reasoning"));
            if let Some(reasoning) = reasoning.filter(|text| !text.is_empty()) {
                parts.push(Part::Reasoning {
                    text: reasoning.to_owned(),
                    signature: None,
                });
            }
            read_content(fields.get("content"), place, &mut parts, &mut facts)?;
            if let Some(refusal) = text(fields, "refusal") {
                parts.push(unknown(&json!({"type": "refusal", "refusal": refusal})));
            }
            read_calls(fields, place, &mut parts, &mut facts)?;
            Role::Assistant
        }
        role @ ("user" | "system" | "developer") => {
            known = match role {
                // The role is kept as a fact, because both roles are read as system messages.
                "developer" => &["content", "name"],
                _ => &["role", "content", "name"],
            };
            read_content(fields.get("content"), place, &mut parts, &mut facts)?;
            match role {
                "user" => Role::User,
                _ => Role::System,
            }
        }
        "function" => {
            return Err(invalid(
                place,
                "the role `function` names no call: send the result as `tool` with its `tool_call_id`",
            ));
        }
        role => {
            let text = format!(
                "the role {role:?} is unknown: use system, developer, user, assistant or tool"
            );
            return Err(invalid(place, text));
        }
    };
    facts.message(fields, known);
    let mut read = Message::new(role, parts);
    if role != Role::Tool {
        read.name = text(fields, "name").map(str::to_owned);
    }
    read.meta = facts.finish();
    Ok(read)
}

fn read_content(
    content: Option<&Value>,
    place: &str,
    parts: &mut Vec<Part>,
    facts: &mut Facts,
) -> Result<(), Error> {
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => parts.push(Part::text(text)),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                let part = read_block(block, parts.len(), facts);
                parts.push(part);
            }
        }
        Some(_) => {
            let problem = "it is neither a text nor a list of parts";
            return Err(invalid(&format!("{place}.content"), problem));
        }
    }
    Ok(())
}

fn read_block(block: &Value, index: usize, facts: &mut Facts) -> Part {
    known_block(block, index, facts).unwrap_or_else(|| unknown(block))
}

fn known_block(block: &Value, index: usize, facts: &mut Facts) -> Option<Part> {
    let fields = block.as_object()?;
    let inner = |key: &str| fields.get(key).and_then(Value::as_object);
    let kind = text(fields, "type")?;
    let part = match kind {
        "text" => {
            facts.part(index, fields, &["type", "text"]);
            Part::text(text(fields, "text")?)
        }
        "image_url" => {
            let image = inner("image_url")?;
            facts.part(index, image, &["url"]);
            Part::Image(media::from_url(text(image, "url")?, media::ANY_IMAGE))
        }
        "file" => {
            let file = inner("file")?;
            let data = media::from_url(text(file, "file_data")?, media::ANY_FILE);
            facts.part(index, file, &["file_data"]);
            Part::File(data)
        }
        "input_audio" => {
            let audio = inner("input_audio")?;
            let media_type = match text(audio, "format")? {
                "mp3" => "audio/mpeg".to_owned(),
                format => format!("audio/{format}"),
            };
            Part::File(Media {
                media_type,
                source: MediaSource::Data(text(audio, "data")?.to_owned()),
            })
        }
        _ => return None,
    };
    Some(part)
}

fn read_result(content: Option<&Value>, place: &str) -> Result<ResultContent, Error> {
    match content {
        None | Some(Value::Null) => Ok(ResultContent::Text(String::new())),
        Some(Value::String(text)) => Ok(ResultContent::Text(text.clone())),
        content => {
            let mut parts = Vec::new();
            read_content(content, place, &mut parts, &mut Facts::default())?;
            Ok(ResultContent::Parts(parts))
        }
    }
}

fn read_calls(
    message: &Object,
    place: &str,
    parts: &mut Vec<Part>,
    facts: &mut Facts,
) -> Result<(), Error> {
    if let Some(call @ Value::Object(_)) = message.get("function_call") {
        // A call in the older format without ids.
        parts.push(unknown(
            &json!({"type": "function_call", "function_call": call}),
        ));
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for (at, call) in calls.into_iter().flatten().enumerate() {
        let place = format!("{place}.tool_calls[{at}]");
        let fields = object(call, &place)?;
        let id = original_call_id(string(fields, "id", &place)?).into_owned();
        let custom = fields.get("custom").and_then(Value::as_object);
        let (called, arguments) = match custom {
            Some(custom) => (custom, "input"),
            None => {
                let function = fields.get("function").unwrap_or(&Value::Null);
                (object(function, &format!("{place}.function"))?, "arguments")
            }
        };
        facts.part(
            parts.len(),
            fields,
            &["id", "type", "function", "custom", "index"],
        );
        let arguments = match called.get(arguments) {
            Some(Value::String(text)) if custom.is_some() => arguments::from_text(text),
            Some(Value::String(text)) => arguments::from_object_text(text),
            // Some servers send an object instead of a string.
            Some(value) if !value.is_null() => arguments::from_value(value),
            _ => arguments::from_text(""),
        };
        parts.push(Part::ToolCall {
            id,
            name: string(called, "name", &place)?.to_owned(),
            arguments,
        });
    }
    Ok(())
}

/// Reads a response: its message, model and usage.
///
/// # Errors
/// `Invalid` if the response has no `choices[0].message`, as an error has none, or if its message cannot be [`read`].
pub fn reply(response: &Value) -> Result<Reply, Error> {
    let message = reply::content(response, "/choices/0/message")?;
    let messages = vec![read_one(message, "choices[0].message")?];
    Ok(reply::reply(
        response,
        ("id", "model"),
        messages,
        usage(response),
    ))
}

/// Returns the usage of a response or of its field `usage`, or `None` without token counts.
///
/// OpenAI includes cached tokens in `prompt_tokens`. [`Usage`] counts them separately from `input`.
pub fn usage(response: &Value) -> Option<Usage> {
    let usage = response.get("usage").unwrap_or(response);
    let prompt = tokens(usage, &["prompt_tokens"])?;
    let cached = tokens(usage, &["prompt_tokens_details", "cached_tokens"]).unwrap_or(0);
    Some(Usage {
        input: prompt.saturating_sub(cached),
        output: tokens(usage, &["completion_tokens"]).unwrap_or(0),
        cache_read: cached,
        cache_write: 0,
        total: tokens(usage, &["total_tokens"]),
    })
}

/// Returns the value of the request's field `tools`.
pub fn tools(tools: &[ToolDefinition]) -> Vec<Value> {
    let function = |tool: &ToolDefinition| {
        let mut function = json!({"name": tool.name, "parameters": schema(tool)});
        if let (Some(description), Some(fields)) = (&tool.description, function.as_object_mut()) {
            fields.insert("description".to_owned(), description.as_str().into());
        }
        json!({"type": "function", "function": function})
    };
    tools.iter().map(function).collect()
}
