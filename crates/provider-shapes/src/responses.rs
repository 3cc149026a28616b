//! OpenAI responses.
//!
//! - A first system message with a single text is sent as `instructions`. Other system messages are items of the input.
//! - Calls and results are separate items. Results can hold images and files.
//! - Reasoning is sent if it came from this API. [`read`] keeps the whole item, with its id and encrypted content, as
//!   the signature. Reasoning without later content in its message is left out.
//! - A call of a server's tool is sent as it came, if it is complete and no reasoning before it is left out.
//! - Images are sent as PNG, JPEG, WebP or GIF or by URL. Files are sent as PDF or by URL.
//! - Arguments are sent as they came if they are a JSON object. Other arguments are sent as text in an object, and read
//!   back from there.
//! - The `phase` of an assistant's message is sent back, because the model expects it.
//! - The API has no field for failed results. The name of a participant is put before the first text.

use memory_model::{Media, Message, Part, RawJson, Reply, ResultContent, Role, ToolDefinition};
use serde_json::{Value, json};
use token_estimate::Usage;

use crate::error::Error;
use crate::fields::{Facts, Object, invalid, object, schema, string, text, tokens, unknown};
use crate::media::{PDF, Source};
use crate::openai::IMAGE_TYPES;
use crate::prepare::{Prepared, wire_name};
use crate::turns::said_by;
use crate::unknown::as_text;
use crate::{Provider, arguments, failed, media, original_call_id, reply, wire_call_id, within};

/// A field of an item, and whether its schema accepts a value.
type Field = (&'static str, fn(&Value) -> bool);

/// Calls of the server's tools. They hold their results. Each has its type, the prefix of its ids, its required fields
/// and its optional fields.
const SERVER_CALLS: &[(&str, &str, &[Field], &[Field])] = &[
    (
        "web_search_call",
        "ws",
        &[("action", Value::is_object)],
        &[],
    ),
    (
        "file_search_call",
        "fs",
        &[("queries", Value::is_array)],
        &[("results", |value| value.is_array() || value.is_null())],
    ),
    (
        "code_interpreter_call",
        "ci",
        &[
            ("code", |value| value.is_string() || value.is_null()),
            ("container_id", Value::is_string),
            ("outputs", |value| value.is_array() || value.is_null()),
        ],
        &[],
    ),
    (
        "image_generation_call",
        "ig",
        &[("result", |value| value.is_string() || value.is_null())],
        &[],
    ),
];

/// States of calls of the server's tools.
const CALL_STATES: [&str; 7] = [
    "in_progress",
    "searching",
    "interpreting",
    "generating",
    "completed",
    "incomplete",
    "failed",
];

/// States of reasoning.
const REASONING_STATES: [&str; 3] = ["in_progress", "completed", "incomplete"];

/// Returns the values of the request's fields `instructions` and `input`.
pub fn write(messages: &[Message]) -> (Option<String>, Vec<Value>) {
    write_fitted(&within(messages, Provider::Responses.limits(None)))
}

/// Writes messages that are within the provider's limits on pictures, documents and bytes.
pub(crate) fn write_fitted(messages: &[Message]) -> (Option<String>, Vec<Value>) {
    let prepared = Prepared::new(messages);
    let mut instructions = None;
    let mut input = Vec::new();
    for message in prepared.iter() {
        let parts = message.parts.as_slice();
        match message.role {
            Role::System => {
                let texts = parts.iter().filter_map(as_text);
                let mut texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
                if input.is_empty() && instructions.is_none() && texts.len() == 1 {
                    instructions = texts.pop();
                }
                let texts = texts.iter().filter_map(|text| input_text(text)).collect();
                input.extend(input_message("system", texts));
            }
            Role::Assistant => write_assistant(parts, &Phases::of(message), &mut input),
            Role::User | Role::Tool => write_user(message.name.as_deref(), parts, &mut input),
        }
    }
    (instructions, input)
}

fn input_text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}))
}

fn input_message(role: &str, content: Vec<Value>) -> Option<Value> {
    let message = json!({"type": "message", "role": role, "content": content});
    (!content.is_empty()).then_some(message)
}

fn input_block(part: &Part) -> Option<Value> {
    let block = match part {
        Part::Image(media) | Part::File(media) => match media::is_image(part, media) {
            true => media::url(media, IMAGE_TYPES)
                .map(|url| json!({"type": "input_image", "detail": "auto", "image_url": url})),
            false => file_block(media),
        },
        _ => None,
    };
    block.or_else(|| input_text(&as_text(part)?))
}

fn file_block(file: &Media) -> Option<Value> {
    let url = media::url(file, &[PDF])?;
    Some(match media::source(file)? {
        Source::Url { .. } => json!({"type": "input_file", "file_url": url}),
        Source::Data { .. } => {
            json!({"type": "input_file", "filename": "file.pdf", "file_data": url})
        }
    })
}

fn write_user(name: Option<&str>, parts: &[Part], input: &mut Vec<Value>) {
    let mut content = Vec::new();
    let mut name = name;
    for part in parts {
        match part {
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => input.push(json!({
                "type": "function_call_output",
                "call_id": wire_call_id(call_id),
                "output": failed::mark(output(content), *is_error, "input_text"),
            })),
            Part::Text { text } if !text.is_empty() => {
                content.extend(input_text(&said_by(name.take(), text)));
            }
            part => content.extend(input_block(part)),
        }
    }
    input.extend(input_message("user", content));
}

fn output(result: &ResultContent) -> Value {
    match result {
        ResultContent::Text(text) => text.as_str().into(),
        ResultContent::Parts(parts) => {
            let blocks: Vec<Value> = parts.iter().filter_map(input_block).collect();
            match blocks.is_empty() {
                true => "".into(),
                false => blocks.into(),
            }
        }
    }
}

/// Phases of an assistant's words: comments on its work, and its answer.
const PHASES: [&str; 2] = ["commentary", "final_answer"];

/// Phases of an assistant's message, which its meta keeps.
struct Phases(Value);

impl Phases {
    fn of(message: &Message) -> Self {
        let meta = message.meta.as_ref().map_or("null", RawJson::as_str);
        Self(serde_json::from_str(meta).unwrap_or_default())
    }

    /// Returns the phase of the part at an index. The items of one answer have their phases under `blocks`. A message
    /// that was one item has its phase itself, or under `message` if it comes from a rollout.
    fn phase(&self, index: usize) -> Option<&str> {
        let part = self
            .0
            .get("blocks")
            .and_then(|it| it.get(index.to_string()));
        let places = [part, Some(&self.0), self.0.get("message")];
        let mut found = places
            .into_iter()
            .flatten()
            .filter_map(|it| it.get("phase"));
        let phase = found.find_map(Value::as_str)?;
        PHASES.contains(&phase).then_some(phase)
    }

    /// Returns the assistant's words in the part at an index as an item.
    fn said(&self, index: usize, text: &str) -> Option<Value> {
        let phase = self.phase(index).map(|phase| ("phase", phase));
        let fields = [("type", "message"), ("role", "assistant")];
        let fields = fields.into_iter().chain(phase).chain([("content", text)]);
        let item: Object = fields
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        (!text.is_empty()).then(|| item.into())
    }
}

fn write_assistant(parts: &[Part], phases: &Phases, input: &mut Vec<Value>) {
    // Reasoning must be followed by its result.
    let mut waiting = Vec::new();
    // The server refuses its calls without the reasoning that led to them.
    let mut left_out = false;
    for (index, part) in parts.iter().enumerate() {
        let item = match part {
            Part::Reasoning { signature, .. } => {
                let item = signature.as_deref().and_then(reasoning_item);
                left_out |= item.is_none();
                waiting.extend(item);
                continue;
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => Some(json!({
                "type": "function_call",
                "call_id": wire_call_id(id),
                "name": wire_name(name),
                "arguments": arguments::to_object_text(arguments),
            })),
            Part::Unknown { raw } => server_call(raw)
                .filter(|_| !left_out)
                .or_else(|| phases.said(index, &as_text(part)?)),
            part => as_text(part).and_then(|text| phases.said(index, &text)),
        };
        if let Some(item) = item {
            input.append(&mut waiting);
            input.push(item);
        }
    }
}

/// Returns a call of one of the server's tools, if it is complete.
fn server_call(raw: &RawJson) -> Option<Value> {
    let item: Value = serde_json::from_str(raw.as_str()).ok()?;
    let fields = item.as_object()?;
    let kind = text(fields, "type")?;
    let (_, prefix, required, optional) = SERVER_CALLS.iter().find(|(known, ..)| *known == kind)?;
    let complete = text(fields, "id").is_some_and(|id| id.starts_with(prefix))
        && text(fields, "status").is_some_and(|status| CALL_STATES.contains(&status))
        && required
            .iter()
            .all(|(name, is)| fields.get(*name).is_some_and(is))
        && optional
            .iter()
            .all(|(name, is)| fields.get(*name).is_none_or(is));
    let known = ["type", "id", "status"];
    let names = required.iter().chain(*optional).map(|(name, _)| *name);
    complete.then(|| only(fields, known.into_iter().chain(names)))
}

/// Returns the reasoning item in a signature, if the server can read the item.
fn reasoning_item(signature: &str) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let fields = item.as_object()?;
    let is_summary = |part: &Value| {
        let fields = part.as_object().filter(|fields| fields.len() == 2);
        fields.is_some_and(|fields| {
            text(fields, "type") == Some("summary_text") && text(fields, "text").is_some()
        })
    };
    let summary = fields.get("summary").and_then(Value::as_array);
    let is_state = |status: &Value| {
        let status = status.as_str();
        status.is_some_and(|status| REASONING_STATES.contains(&status))
    };
    let complete = text(fields, "type") == Some("reasoning")
        && text(fields, "id").is_some_and(|id| id.starts_with("rs"))
        && text(fields, "encrypted_content").is_some_and(|text| !text.is_empty())
        && summary.is_some_and(|summary| summary.iter().all(is_summary))
        && fields.get("status").is_none_or(is_state);
    let keys = ["type", "id", "summary", "encrypted_content", "status"];
    complete.then(|| only(fields, keys))
}

/// Returns the fields of an item that have these names.
fn only<'a>(fields: &Object, names: impl IntoIterator<Item = &'a str>) -> Value {
    let names = names.into_iter();
    let field = |name: &str| Some((name.to_owned(), fields.get(name)?.clone()));
    names.filter_map(field).collect::<Object>().into()
}

/// Reads the items of a request's input, or of the `output` of a response. The model's items between two messages of
/// others become one message.
///
/// Fields that are not content are kept in the messages' `meta`, unless they are null. Of these, only the `phase` of what
/// the assistant says is sent again.
///
/// A system prompt becomes a message of the log like any other, which a compaction summarizes once it is old. To keep
/// instructions at the beginning of every request, do not pass them here but to the session (`OpenSession::system` of
/// `agent-memory`).
///
/// # Errors
/// `Invalid` if an item is no object or lacks a field that its type requires. The text names the item.
pub fn read(instructions: Option<&str>, input: &[Value]) -> Result<Vec<Message>, Error> {
    let mut messages: Vec<Message> = instructions.map(Message::system).into_iter().collect();
    let mut model = Model::default();
    for (at, item) in input.iter().enumerate() {
        let place = format!("input[{at}]");
        let fields = object(item, &place)?;
        let kind = text(fields, "type").unwrap_or("message");
        let role = text(fields, "role");
        match (kind, role) {
            ("message", Some("assistant"))
            | ("reasoning" | "function_call" | "custom_tool_call", _) => {
                model.item(kind, item, fields, &place)?;
            }
            ("message", Some(role @ ("user" | "system" | "developer"))) => {
                messages.extend(model.finish());
                messages.push(read_message(role, fields, &place)?);
            }
            ("message", role) => {
                let text = format!(
                    "the role {role:?} is unknown: use system, developer, user or assistant"
                );
                return Err(invalid(&place, text));
            }
            ("function_call_output" | "custom_tool_call_output", _) => {
                messages.extend(model.finish());
                let call_id = original_call_id(string(fields, "call_id", &place)?).into_owned();
                let content = match fields.get("output") {
                    None | Some(Value::Null) => ResultContent::Text(String::new()),
                    Some(Value::String(text)) => ResultContent::Text(text.clone()),
                    Some(list) => ResultContent::Parts(read_content(
                        Some(list),
                        &place,
                        0,
                        &mut Facts::default(),
                    )?),
                };
                let mut facts = Facts::default();
                facts.message(fields, &["type", "call_id", "output"]);
                let (content, is_error) = failed::unmark(content);
                let result = Part::ToolResult {
                    call_id,
                    content,
                    is_error,
                };
                let mut message = Message::new(Role::Tool, vec![result]);
                message.meta = facts.finish();
                messages.push(message);
            }
            _ => model.parts.push(unknown(item)),
        }
    }
    messages.extend(model.finish());
    Ok(messages)
}

/// Items of the model that become one message.
#[derive(Debug, Default)]
struct Model {
    parts: Vec<Part>,
    facts: Facts,
}

impl Model {
    fn item(
        &mut self,
        kind: &str,
        item: &Value,
        fields: &Object,
        place: &str,
    ) -> Result<(), Error> {
        let index = self.parts.len();
        match kind {
            "reasoning" => {
                let lists = ["summary", "content"].into_iter();
                let lists = lists.filter_map(|key| fields.get(key)?.as_array());
                let texts: Vec<&str> = lists
                    .flatten()
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                self.parts.push(Part::Reasoning {
                    text: texts.join("\n\n"),
                    signature: Some(item.to_string()),
                });
            }
            "message" => {
                self.facts.part(index, fields, &["type", "role", "content"]);
                let parts = read_content(fields.get("content"), place, index, &mut self.facts)?;
                self.parts.extend(parts);
            }
            _ => {
                let arguments = match kind {
                    "custom_tool_call" => "input",
                    _ => "arguments",
                };
                let given = string(fields, arguments, place)?;
                self.facts
                    .part(index, fields, &["type", "call_id", "name", arguments]);
                self.parts.push(Part::ToolCall {
                    id: original_call_id(string(fields, "call_id", place)?).into_owned(),
                    name: string(fields, "name", place)?.to_owned(),
                    arguments: match kind {
                        "custom_tool_call" => arguments::from_text(given),
                        _ => arguments::from_object_text(given),
                    },
                });
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Option<Message> {
        let model = std::mem::take(self);
        let mut message = Message::new(Role::Assistant, model.parts);
        message.meta = model.facts.finish();
        (!message.parts.is_empty()).then_some(message)
    }
}

fn read_message(role: &str, fields: &Object, place: &str) -> Result<Message, Error> {
    let mut facts = Facts::default();
    let known: &[&str] = match role {
        // The role is kept as a fact, because both roles are read as system messages.
        "developer" => &["type", "content"],
        _ => &["type", "role", "content"],
    };
    facts.message(fields, known);
    let parts = read_content(fields.get("content"), place, 0, &mut facts)?;
    let role = match role {
        "user" => Role::User,
        _ => Role::System,
    };
    let mut message = Message::new(role, parts);
    message.meta = facts.finish();
    Ok(message)
}

/// Reads content. `first` is the index of its first part in the message.
fn read_content(
    content: Option<&Value>,
    place: &str,
    first: usize,
    facts: &mut Facts,
) -> Result<Vec<Part>, Error> {
    match content {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text)]),
        Some(Value::Array(blocks)) => Ok(blocks
            .iter()
            .enumerate()
            .map(|(at, block)| {
                known_block(block, first + at, facts).unwrap_or_else(|| unknown(block))
            })
            .collect()),
        Some(_) => {
            let problem = "it is neither a text nor a list of parts";
            Err(invalid(&format!("{place}.content"), problem))
        }
    }
}

fn known_block(block: &Value, index: usize, facts: &mut Facts) -> Option<Part> {
    let fields = block.as_object()?;
    let (part, known): (Part, &[&str]) = match text(fields, "type")? {
        "input_text" | "output_text" => {
            let empty = |key: &str| {
                let list = fields.get(key).and_then(Value::as_array);
                list.is_some_and(Vec::is_empty)
            };
            let known: &[&str] = match (empty("annotations"), empty("logprobs")) {
                (true, true) => &["type", "text", "annotations", "logprobs"],
                (true, false) => &["type", "text", "annotations"],
                _ => &["type", "text"],
            };
            (Part::text(text(fields, "text")?), known)
        }
        "input_image" => {
            let image = media::from_url(text(fields, "image_url")?, media::ANY_IMAGE);
            let known: &[&str] = match text(fields, "detail") {
                Some("auto") => &["type", "image_url", "detail"],
                _ => &["type", "image_url"],
            };
            (Part::Image(image), known)
        }
        "input_file" => {
            let url = text(fields, "file_data").or_else(|| text(fields, "file_url"))?;
            let file = media::from_url(url, media::ANY_FILE);
            (Part::File(file), &["type", "file_data", "file_url"])
        }
        _ => return None,
    };
    facts.part(index, fields, known);
    Some(part)
}

/// Reads a response: its messages, model and usage.
///
/// # Errors
/// `Invalid` if the response has no `output`, as an error has none, or if a message cannot be [`read`].
pub fn reply(response: &Value) -> Result<Reply, Error> {
    let output = reply::content(response, "/output")?;
    let items = output.as_array().map_or(&[][..], Vec::as_slice);
    let messages = read(None, items)?;
    Ok(reply::reply(
        response,
        ("id", "model"),
        messages,
        usage(response),
    ))
}

/// Returns the usage of a response or of its field `usage`, or `None` without token counts.
///
/// OpenAI includes cached tokens in `input_tokens`. [`Usage`] counts them separately from `input`.
pub fn usage(response: &Value) -> Option<Usage> {
    let usage = response.get("usage").unwrap_or(response);
    let input = tokens(usage, &["input_tokens"])?;
    let cached = tokens(usage, &["input_tokens_details", "cached_tokens"]).unwrap_or(0);
    Some(Usage {
        input: input.saturating_sub(cached),
        output: tokens(usage, &["output_tokens"]).unwrap_or(0),
        cache_read: cached,
        cache_write: 0,
        total: tokens(usage, &["total_tokens"]),
    })
}

/// Returns the value of the request's field `tools`, without strict checks of arguments.
pub fn tools(tools: &[ToolDefinition]) -> Vec<Value> {
    let function = |tool: &ToolDefinition| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": schema(tool),
            "strict": false,
        })
    };
    tools.iter().map(function).collect()
}
