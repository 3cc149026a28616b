//! rig's messages as messages of a log, and back.

use std::collections::HashMap;

use agent_memory::{Message, Part, RawJson, Role, model::ResultContent};
use rig_core::completion::message::{
    AssistantContent, AssistantMessage, CallId, Message as RigMessage, Reasoning, ToolCall,
    ToolFunction, ToolName, ToolResult, ToolResultContent, UserContent,
};
use rig_core::serde::Serialize;
use rig_core::serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kept::Kept;
use crate::media;

/// Name of a tool that no message names.
const UNKNOWN_TOOL: &str = "tool";
/// Stands for the name of a result's tool while the fields to keep are collected, so that it is always kept.
const NO_NAME: &str = "\0";
/// Id of a call that has none.
const NO_ID: &str = "_";

/// Returns a message of a log for one of rig's.
///
/// - A user's message of tool results alone gets the role tool.
/// - What parts cannot say is kept in [`Message::meta`] under `rig`: the provider's own items, citations,
///   the detail of an image, the name of a result's tool, the origin and the end of an assistant's turn.
///   [`to_rig`] puts it back.
/// - Content that no part can hold, such as a provider's file id or an opaque item, is [`Part::Unknown`].
/// - Raw bytes become Base64.
/// - The id of the provider's response becomes [`Message::response`].
///
/// ```
/// use rig_core::completion::Message as RigMessage;
///
/// let said = RigMessage::user("Deploy only after the tests are green.");
/// let message = agent_memory_rig::from_rig(&said);
/// assert_eq!(message.text(), "Deploy only after the tests are green.");
/// assert_eq!(agent_memory_rig::to_rig(&[message]), [said]);
/// ```
pub fn from_rig(message: &RigMessage) -> Message {
    let mut kept = Kept::default();
    let mut message = match message {
        RigMessage::System { content } => Message::system(content),
        RigMessage::User { content } => {
            let blocks = content.iter().map(encoded_user).enumerate();
            let parts: Vec<Part> = blocks
                .map(|(at, block)| {
                    let part = user_part(&block);
                    keep(&mut kept, at, &block, user_block(&part, &|_| Some(NO_NAME)));
                    part
                })
                .collect();
            let results = parts
                .iter()
                .all(|part| matches!(part, Part::ToolResult { .. }));
            let role = match results && !parts.is_empty() {
                true => Role::Tool,
                false => Role::User,
            };
            Message::new(role, parts)
        }
        RigMessage::Assistant(turn) => {
            let blocks = turn.content.iter().map(encoded_assistant).enumerate();
            let parts: Vec<Part> = blocks
                .map(|(at, block)| {
                    let part = assistant_part(&block);
                    keep(&mut kept, at, &block, assistant_block(&part));
                    part
                })
                .collect();
            kept.keep("origin", turn.origin.as_ref().and_then(to_value));
            kept.keep("stop", turn.stop.as_ref().and_then(to_value));
            let mut message = Message::new(Role::Assistant, parts);
            message.response = turn
                .origin
                .as_ref()
                .and_then(|origin| origin.response_id.clone());
            message
        }
    };
    message.meta = kept.write(message.parts.len());
    message
}

/// Returns rig's messages for messages of a log, one for each. Notes are left out.
///
/// What [`from_rig`] kept in [`Message::meta`] is put back as long as the parts are what they were.
/// Facts beside the content (`external_id`, `created_at`, `turn`) are not sent. The name of a
/// participant stands before the first text of a user's message. Content that rig has no place for,
/// such as a file in an assistant's message, becomes a short text that names it.
///
/// Calls and results are not paired here: rig does that when it sends a history.
pub fn to_rig(messages: &[Message]) -> Vec<RigMessage> {
    let mut names = HashMap::new();
    let messages = messages
        .iter()
        .filter(|message| message.kind == agent_memory::model::EntryKind::Message);
    messages
        .map(|message| {
            let kept = Kept::read(message.meta.as_ref());
            message_to_rig(
                message.role,
                message.name.as_deref(),
                &message.parts,
                &kept,
                &mut names,
            )
        })
        .collect()
}

/// Names of called tools, by the call's id.
pub(crate) type Names = HashMap<String, String>;

/// Returns rig's message of these parts. The names of the tools that it calls are added to `names`.
pub(crate) fn message_to_rig(
    role: Role,
    name: Option<&str>,
    parts: &[Part],
    kept: &Kept,
    names: &mut Names,
) -> RigMessage {
    match role {
        Role::System => {
            let texts: Vec<String> = parts.iter().map(media::as_text).collect();
            RigMessage::System {
                content: texts.join("\n"),
            }
        }
        Role::User | Role::Tool => {
            let mut content: Vec<UserContent> = Vec::with_capacity(parts.len());
            for (at, part) in parts.iter().enumerate() {
                let block = user_block(part, &|id| names.get(id).map(String::as_str));
                let restored = to_value(&block)
                    .and_then(|block| kept.block(at, parts.len(), &block))
                    .and_then(|block| serde_json::from_value(block).ok())
                    .filter(|block| user_part(block) == *part);
                content.push(restored.unwrap_or(block));
            }
            let text = content.iter_mut().find_map(|block| match block {
                UserContent::Text(text) => Some(&mut text.text),
                _ => None,
            });
            if let (Some(name), Some(text)) = (name, text) {
                *text = format!("{name}: {text}");
            }
            RigMessage::User { content }
        }
        Role::Assistant => {
            let mut content: Vec<AssistantContent> = Vec::with_capacity(parts.len());
            for (at, part) in parts.iter().enumerate() {
                if let Part::ToolCall { id, name, .. } = part {
                    names.insert(id.clone(), name.clone());
                }
                let block = assistant_block(part);
                let restored = to_value(&block)
                    .and_then(|block| kept.block(at, parts.len(), &block))
                    .and_then(|block| serde_json::from_value(block).ok())
                    .filter(|block| assistant_part(block) == *part);
                content.push(restored.unwrap_or(block));
            }
            let mut turn = AssistantMessage::new(content);
            turn.origin = field(kept, "origin");
            turn.stop = field(kept, "stop");
            RigMessage::Assistant(turn)
        }
    }
}

fn field<T: DeserializeOwned>(kept: &Kept, name: &str) -> Option<T> {
    serde_json::from_value(kept.field(name)?.clone()).ok()
}

fn to_value(value: &impl Serialize) -> Option<Value> {
    serde_json::to_value(value).ok()
}

/// Keeps what a block says and its part does not.
fn keep<B: Serialize>(kept: &mut Kept, at: usize, block: &B, from_part: B) {
    if let (Some(block), Some(from_part)) = (to_value(block), to_value(&from_part)) {
        kept.keep_block(at, block, &from_part);
    }
}

/// Returns the part that keeps a block as rig's JSON.
fn unknown(block: &impl Serialize) -> Part {
    match RawJson::from_value(block) {
        Ok(raw) => Part::Unknown { raw },
        // Content of messages is always JSON.
        Err(error) => Part::text(format!("[content that is no JSON: {error}]")),
    }
}

fn encoded_user(block: &UserContent) -> UserContent {
    let mut block = block.clone();
    match &mut block {
        UserContent::Image(image) => media::encode_raw(&mut image.data),
        UserContent::Audio(audio) => media::encode_raw(&mut audio.data),
        UserContent::Video(video) => media::encode_raw(&mut video.data),
        UserContent::Document(document) => media::encode_raw(&mut document.data),
        UserContent::ToolResult(result) => {
            for item in &mut result.content {
                if let ToolResultContent::Image(image) = item {
                    media::encode_raw(&mut image.data);
                }
            }
        }
        UserContent::Text(_) => {}
    }
    block
}

fn encoded_assistant(block: &AssistantContent) -> AssistantContent {
    let mut block = block.clone();
    if let AssistantContent::Image(image) = &mut block {
        media::encode_raw(&mut image.data);
    }
    block
}

fn user_part(block: &UserContent) -> Part {
    let part = match block {
        UserContent::Text(text) => Some(Part::text(&text.text)),
        UserContent::ToolResult(result) => Some(Part::ToolResult {
            call_id: result.call.to_string(),
            content: result_content(&result.content),
            is_error: result.is_error.then_some(true),
        }),
        UserContent::Image(image) => media::image(image),
        content => media::file(content),
    };
    part.unwrap_or_else(|| unknown(block))
}

fn result_content(items: &[ToolResultContent]) -> ResultContent {
    match items {
        [item @ ToolResultContent::Text(text)] if *item == ToolResultContent::text(&text.text) => {
            ResultContent::Text(text.text.clone())
        }
        items => ResultContent::Parts(items.iter().map(result_part).collect()),
    }
}

fn result_part(item: &ToolResultContent) -> Part {
    let part = match item {
        ToolResultContent::Text(text) => Some(Part::text(&text.text)),
        ToolResultContent::Image(image) => media::image(image),
        ToolResultContent::Json { .. } => None,
    };
    // Fields of an item in a result are not kept apart: the item is kept whole.
    part.filter(|part| result_block(part) == *item)
        .unwrap_or_else(|| unknown(item))
}

fn assistant_part(block: &AssistantContent) -> Part {
    let part = match block {
        AssistantContent::Text(text) => Some(Part::text(&text.text)),
        AssistantContent::ToolCall(call) => Some(Part::ToolCall {
            id: call.id.to_string(),
            name: call.function.name.to_string(),
            arguments: arguments(&call.function),
        }),
        AssistantContent::Reasoning(reasoning) => {
            let item = reasoning.native.as_ref().map(|native| &native.item);
            let signature = item.and_then(|item| item.get("signature")?.as_str());
            Some(Part::Reasoning {
                text: reasoning.text.clone(),
                signature: signature.map(str::to_owned),
            })
        }
        AssistantContent::Image(image) => media::image(image),
        _ => None,
    };
    part.unwrap_or_else(|| unknown(block))
}

/// Returns the arguments of a call as they came: an object, or the text that is none.
fn arguments(function: &ToolFunction) -> RawJson {
    let text = match &function.invalid_arguments {
        Some(text) => RawJson::parse(text.as_str())
            .ok()
            // A JSON string stands for text that is not JSON, and an object is no invalid text.
            .filter(|json| json.as_str() == text && !text.starts_with(['"', '{']))
            .map_or_else(|| RawJson::from_value(text), Ok),
        None => RawJson::from_value(&function.arguments),
    };
    text.unwrap_or_else(|_| RawJson::from_raw(serde_json::value::RawValue::NULL))
}

fn function(name: ToolName, arguments: &RawJson) -> ToolFunction {
    let text = arguments.as_str();
    match serde_json::from_str::<String>(text) {
        Ok(inner) => ToolFunction::parse(name, &inner),
        Err(_) => ToolFunction::parse(name, text),
    }
}

/// Returns the name of a tool; that of an unknown tool where there is none.
fn tool_name(text: Option<&str>) -> Option<ToolName> {
    let text = text.filter(|text| !text.is_empty());
    ToolName::new(text.unwrap_or(UNKNOWN_TOOL)).ok()
}

fn call_id(id: &str) -> CallId {
    CallId::from_wire(if id.is_empty() { NO_ID } else { id })
}

/// Returns the block of a part in a user's message.
fn user_block<'a>(part: &Part, tool: &dyn Fn(&str) -> Option<&'a str>) -> UserContent {
    match part {
        Part::Text { text } => UserContent::text(text),
        Part::ToolResult {
            call_id: id,
            content,
            is_error,
        } => match tool_name(tool(id)) {
            Some(name) => UserContent::ToolResult(ToolResult {
                call: call_id(id),
                name,
                content: match content {
                    ResultContent::Text(text) => vec![ToolResultContent::text(text)],
                    ResultContent::Parts(parts) => parts.iter().map(result_block).collect(),
                },
                is_error: is_error.unwrap_or_default(),
            }),
            None => UserContent::text(media::as_text(part)),
        },
        Part::Image(image) => UserContent::Image(media::to_image(image)),
        Part::File(file) => media::to_content(file),
        Part::Unknown { raw } => own(raw).unwrap_or_else(|| UserContent::text(raw.as_str())),
        part => UserContent::text(media::as_text(part)),
    }
}

fn result_block(part: &Part) -> ToolResultContent {
    match part {
        Part::Text { text } => ToolResultContent::text(text),
        Part::Image(image) => ToolResultContent::Image(media::to_image(image)),
        Part::Unknown { raw } => own(raw).unwrap_or_else(|| ToolResultContent::text(raw.as_str())),
        part => ToolResultContent::text(media::as_text(part)),
    }
}

/// Returns the block of a part in an assistant's message.
fn assistant_block(part: &Part) -> AssistantContent {
    match part {
        Part::Text { text } => AssistantContent::text(text),
        Part::Reasoning { text, signature } => {
            let block = AssistantContent::Reasoning(Reasoning::new(text));
            match signature {
                Some(signature) => block.with_native(
                    json!({"type": "thinking", "thinking": text, "signature": signature}),
                ),
                None => block,
            }
        }
        Part::ToolCall {
            id,
            name,
            arguments,
        } => match tool_name(Some(name)) {
            Some(name) => {
                let function = function(name, arguments);
                AssistantContent::ToolCall(ToolCall::new(call_id(id), function))
            }
            None => AssistantContent::text(media::as_text(part)),
        },
        Part::Image(image) => AssistantContent::Image(media::to_image(image)),
        Part::Unknown { raw } => own(raw).unwrap_or_else(|| AssistantContent::text(raw.as_str())),
        part => AssistantContent::text(media::as_text(part)),
    }
}

/// Returns the block whose JSON this is; `None` for JSON of anything else.
fn own<B>(raw: &RawJson) -> Option<B>
where
    B: Serialize + DeserializeOwned,
{
    let value: Value = serde_json::from_str(raw.as_str()).ok()?;
    let block: B = serde_json::from_value(value.clone()).ok()?;
    (to_value(&block)? == value).then_some(block)
}
