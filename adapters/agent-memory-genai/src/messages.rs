//! genai's messages as messages of a log, and back.

use std::collections::HashMap;

use agent_memory::{
    Message, Part, RawJson, Role,
    model::{EntryKind, Media, MediaSource, ResultContent},
};
use genai::ModelIden;
use genai::adapter::AdapterKind;
use genai::chat::{
    Binary, BinarySource, ChatMessage, ChatRole, ContentPart, MessageContent, ToolCall,
    ToolResponse,
};
use serde_json::{Value, json};

use crate::kept::Kept;

/// Stands for the name of a result's tool while the fields to keep are collected, so that it is always kept.
const NO_NAME: &str = "\0";
/// Key of custom content in an unknown part.
const CUSTOM: &str = "genai_custom";

/// Returns a message of a log for one of genai's.
///
/// - A thought signature directly before reasoning is that reasoning's, as genai has it; one that stands
///   alone is [`Part::Reasoning`] without text.
/// - What parts cannot say is kept in [`Message::meta`] under `genai`: signatures of calls, names of
///   files, the name of a result's tool, the message's options. [`to_genai`] puts it back.
/// - Custom content is [`Part::Unknown`].
///
/// ```
/// use genai::chat::ChatMessage;
///
/// let said = ChatMessage::user("Deploy only after the tests are green.");
/// let message = agent_memory_genai::from_genai(&said);
/// assert_eq!(message.text(), "Deploy only after the tests are green.");
/// let back = agent_memory_genai::to_genai(&[message]);
/// assert_eq!(back[0].content.first_text(), said.content.first_text());
/// ```
pub fn from_genai(message: &ChatMessage) -> Message {
    let mut kept = Kept::default();
    let mut parts: Vec<Part> = Vec::new();
    for content in message.content.parts() {
        if let (ContentPart::ReasoningContent(words), Some(Part::Reasoning { text, signature })) =
            (content, parts.last_mut())
            && text.is_empty()
            && signature.is_some()
            && !words.is_empty()
        {
            text.clone_from(words);
            continue;
        }
        let part = part(content);
        if let Some(from_part) = contents(&part, &|_| Some(NO_NAME)).first() {
            kept.keep_block(parts.len(), fields(content), &fields(from_part));
        }
        parts.push(part);
    }
    let role = match message.role {
        ChatRole::System => Role::System,
        ChatRole::User => Role::User,
        ChatRole::Assistant => Role::Assistant,
        ChatRole::Tool => Role::Tool,
    };
    let options = message.options.as_ref();
    kept.keep(
        "options",
        options.and_then(|options| serde_json::to_value(options).ok()),
    );
    let mut message = Message::new(role, parts);
    message.meta = kept.write(message.parts.len());
    message
}

/// Returns genai's messages for messages of a log, one for each. Notes are left out.
///
/// What [`from_genai`] kept in [`Message::meta`] is put back as long as the parts are what they were.
/// Facts beside the content (`external_id`, `created_at`, `turn`) are not sent. The name of a
/// participant stands before the first text of a user's message.
///
/// genai's tool results are one text: other content in a result becomes a short text that names it,
/// and whether the tool failed is not sent. The name of a result's tool is that of its call in
/// `messages`.
///
/// Calls and results are not paired here: a context that agent-memory assembles has them paired.
pub fn to_genai(messages: &[Message]) -> Vec<ChatMessage> {
    let mut names = HashMap::new();
    let messages = messages
        .iter()
        .filter(|message| message.kind == EntryKind::Message);
    messages
        .map(|message| {
            let kept = Kept::read(message.meta.as_ref());
            let name = message.name.as_deref();
            message_to_genai(message.role, name, &message.parts, &kept, &mut names)
        })
        .collect()
}

/// Names of called tools, by the call's id.
pub(crate) type Names = HashMap<String, String>;

/// Returns genai's message of these parts. The names of the tools that it calls are added to `names`.
pub(crate) fn message_to_genai(
    role: Role,
    name: Option<&str>,
    parts: &[Part],
    kept: &Kept,
    names: &mut Names,
) -> ChatMessage {
    let mut content: Vec<ContentPart> = Vec::with_capacity(parts.len());
    for (at, one) in parts.iter().enumerate() {
        if let Part::ToolCall { id, name, .. } = one {
            names.insert(id.clone(), name.clone());
        }
        let plain = contents(one, &|id| names.get(id).map(String::as_str));
        let restored = match plain.as_slice() {
            [single] => kept
                .block(at, parts.len(), &fields(single))
                .and_then(|block| with_fields(single, block))
                .filter(|block| part(block) == *one),
            _ => None,
        };
        match restored {
            Some(restored) => content.push(restored),
            None => content.extend(plain),
        }
    }
    let text = content.iter_mut().find_map(|part| match part {
        ContentPart::Text(text) => Some(text),
        _ => None,
    });
    if let (Role::User, Some(name), Some(text)) = (role, name, text) {
        *text = format!("{name}: {text}");
    }
    let role = match role {
        Role::System => ChatRole::System,
        Role::User => ChatRole::User,
        Role::Assistant => ChatRole::Assistant,
        Role::Tool => ChatRole::Tool,
    };
    let mut message = ChatMessage::new(role, MessageContent::from_parts(content));
    message.options = kept
        .field("options")
        .and_then(|options| serde_json::from_value(options.clone()).ok());
    message
}

/// Returns the fields of content that is an object in genai's JSON; `null` for other content.
fn fields(content: &ContentPart) -> Value {
    let value = match content {
        ContentPart::Binary(binary) => serde_json::to_value(binary),
        ContentPart::ToolCall(call) => serde_json::to_value(call),
        ContentPart::ToolResponse(response) => serde_json::to_value(response),
        ContentPart::Text(_)
        | ContentPart::ThoughtSignature(_)
        | ContentPart::ReasoningContent(_)
        | ContentPart::Custom(_) => Ok(Value::Null),
    };
    value.unwrap_or_default()
}

/// Returns content of the same kind with these fields; `None` when they are not of that kind.
fn with_fields(content: &ContentPart, fields: Value) -> Option<ContentPart> {
    match content {
        ContentPart::Binary(_) => serde_json::from_value(fields).ok().map(ContentPart::Binary),
        ContentPart::ToolCall(_) => serde_json::from_value(fields)
            .ok()
            .map(ContentPart::ToolCall),
        ContentPart::ToolResponse(_) => serde_json::from_value(fields)
            .ok()
            .map(ContentPart::ToolResponse),
        _ => None,
    }
}

fn part(content: &ContentPart) -> Part {
    match content {
        ContentPart::Text(text) => Part::text(text),
        ContentPart::Binary(binary) => {
            let media = Media {
                media_type: binary.content_type.clone(),
                source: match &binary.source {
                    BinarySource::Url(url) => MediaSource::Url(url.clone()),
                    BinarySource::Base64(data) => MediaSource::Data(data.to_string()),
                },
            };
            match binary.is_image() {
                true => Part::Image(media),
                false => Part::File(media),
            }
        }
        ContentPart::ToolCall(call) => Part::ToolCall {
            id: call.call_id.clone(),
            name: call.fn_name.clone(),
            arguments: raw(&call.fn_arguments),
        },
        ContentPart::ToolResponse(response) => Part::ToolResult {
            call_id: response.call_id.clone(),
            content: ResultContent::Text(response.content.clone()),
            is_error: None,
        },
        ContentPart::ThoughtSignature(signature) => Part::Reasoning {
            text: String::new(),
            signature: Some(signature.clone()),
        },
        ContentPart::ReasoningContent(text) => Part::Reasoning {
            text: text.clone(),
            signature: None,
        },
        ContentPart::Custom(custom) => {
            let model = custom.model_iden.as_ref();
            let fields = json!({
                "data": custom.data,
                "adapter_kind": model.map(|model| model.adapter_kind),
                "model_name": model.map(|model| model.model_name.to_string()),
            });
            Part::Unknown {
                raw: raw(&json!({CUSTOM: fields})),
            }
        }
    }
}

/// Returns the contents of a part: two for reasoning with its signature, and otherwise one.
fn contents<'a>(part: &Part, tool: &dyn Fn(&str) -> Option<&'a str>) -> Vec<ContentPart> {
    let content = match part {
        Part::Text { text } => ContentPart::Text(text.clone()),
        Part::Reasoning { text, signature } => {
            let signature = signature.clone().map(ContentPart::ThoughtSignature);
            let text = (!text.is_empty() || signature.is_none())
                .then(|| ContentPart::ReasoningContent(text.clone()));
            return signature.into_iter().chain(text).collect();
        }
        Part::ToolCall {
            id,
            name,
            arguments,
        } => ContentPart::ToolCall(ToolCall {
            call_id: id.clone(),
            fn_name: name.clone(),
            fn_arguments: value(arguments),
            thought_signatures: None,
        }),
        Part::ToolResult {
            call_id, content, ..
        } => ContentPart::ToolResponse(ToolResponse {
            call_id: call_id.clone(),
            fn_name: tool(call_id).map(str::to_owned),
            content: match content {
                ResultContent::Text(text) => text.clone(),
                ResultContent::Parts(parts) => {
                    let texts: Vec<String> = parts.iter().map(as_text).collect();
                    texts.join("\n")
                }
            },
        }),
        Part::Image(media) | Part::File(media) => {
            let source = match &media.source {
                MediaSource::Url(url) => BinarySource::Url(url.clone()),
                MediaSource::Data(data) => BinarySource::Base64(data.as_str().into()),
            };
            ContentPart::Binary(Binary::new(media.media_type.as_str(), source, None))
        }
        Part::Unknown { raw } => {
            custom(raw).unwrap_or_else(|| ContentPart::Text(raw.as_str().to_owned()))
        }
    };
    vec![content]
}

/// Reads custom content; `None` for JSON of anything else. genai's own JSON of a model's name cannot be read back.
fn custom(raw: &RawJson) -> Option<ContentPart> {
    let Value::Object(mut object) = serde_json::from_str(raw.as_str()).ok()? else {
        return None;
    };
    let fields = object.get_mut(CUSTOM)?.as_object_mut()?;
    let data = fields.remove("data")?;
    let model = match fields.get("model_name").and_then(Value::as_str) {
        Some(name) => {
            let kind = fields.get("adapter_kind")?.clone();
            let kind: AdapterKind = serde_json::from_value(kind).ok()?;
            Some(ModelIden::new(kind, name))
        }
        None => None,
    };
    Some(ContentPart::from_custom(data, model))
}

/// Returns arguments as a value. JSON that nests too deeply for a value is its text.
fn value(raw: &RawJson) -> Value {
    let value = serde_json::from_str(raw.as_str());
    value.unwrap_or_else(|_| raw.as_str().into())
}

fn raw(value: &impl serde::Serialize) -> RawJson {
    // genai's content is always JSON.
    RawJson::from_value(value)
        .unwrap_or_else(|_| RawJson::from_raw(serde_json::value::RawValue::NULL))
}

/// Returns the text that stands for a part in the result of a tool.
fn as_text(part: &Part) -> String {
    let named = |kind: &str, media: &Media| match &media.source {
        MediaSource::Data(data) => {
            // Four characters of Base64 are three bytes.
            let bytes = data.len() / 4 * 3;
            format!("[{kind}, {}, about {bytes} bytes]", media.media_type)
        }
        MediaSource::Url(url) => format!("[{kind}, {}, {url}]", media.media_type),
    };
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => text.clone(),
        Part::Image(media) => named("image", media),
        Part::File(media) => named("file", media),
        Part::Unknown { raw } => raw.as_str().to_owned(),
        Part::ToolCall { .. } | Part::ToolResult { .. } => {
            serde_json::to_string(part).unwrap_or_default()
        }
    }
}
