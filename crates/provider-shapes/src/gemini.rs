//! Gemini `generateContent`.
//!
//! - System messages before the first other message are sent as `systemInstruction`. A later one is sent as a user's
//!   text between `<system>` tags. In other texts, the `<` of such a tag is written `&lt;`.
//! - Neighbouring messages of one role are sent as one content. In a user's content the results come first, in the
//!   order of their calls.
//! - A result names its tool and holds `{"output": …}`, or `{"error": …}` if the tool failed. Images and files of a
//!   result follow it.
//! - Thoughts are sent as thoughts. A thought signature from Gemini is sent with the part that it came with. Signed
//!   reasoning of other providers is left out. In the current turn, the first call of each content gets a signature. If
//!   it has none, it gets the placeholder that Gemini's documentation gives for calls of other models.
//! - Images, audio, video and documents are sent if the models read their media type. A URL is sent if its declared
//!   type or its ending is such a media type, or if Google serves the URL.
//! - Ids of calls are sent. A call that came without an id is named after its tool: `ls_1`.
//! - Empty texts are left out. The name of a participant is put before the first text of a user's content.

use std::collections::HashMap;

use memory_model::{Media, MediaSource, Message, Part, Reply, ResultContent, Role, ToolDefinition};
use serde_json::{Value, json};
use token_estimate::Usage;

use crate::error::Error;
use crate::fields::{Facts, Object, invalid, object, schema, string, text, tokens, unknown};
use crate::media::Source;
use crate::prepare::{Prepared, wire_name};
use crate::turns::{CONTINUED, Speaker, Turns, escape_system, said_by, split_results, system_text};
use crate::unknown::as_text;
use crate::{Provider, arguments, media, original_call_id, reply, wire_call_id, within};

/// Prefix of a signature from Gemini, as [`Part::Reasoning`] holds it.
const SIGNED: &str = "gemini:";
/// Signature for calls of other models, from Gemini's page on thought signatures.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// Media types that the models read.
const MEDIA_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "audio/wav",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "video/mp4",
    "video/mpeg",
    "video/mpg",
    "video/mov",
    "video/quicktime",
    "video/avi",
    "video/x-flv",
    "video/webm",
    "video/wmv",
    "video/3gpp",
    "application/pdf",
    "text/plain",
    "text/html",
    "text/css",
    "text/csv",
    "text/xml",
    "text/rtf",
    "text/md",
    "text/markdown",
    "text/javascript",
];
/// Prefixes of the URLs that Google serves. Google knows their media types.
const OWN_URLS: [&str; 2] = [
    "https://generativelanguage.googleapis.com/",
    "https://www.youtube.com/",
];

/// Returns the values of the request's fields `systemInstruction` and `contents`.
pub fn write(messages: &[Message]) -> (Option<Value>, Vec<Value>) {
    write_fitted(&within(messages, Provider::Gemini.limits(None)))
}

/// Writes messages that are within the provider's limits on pictures, documents and bytes.
pub(crate) fn write_fitted(messages: &[Message]) -> (Option<Value>, Vec<Value>) {
    let prepared = Prepared::new(messages);
    let mut system = Vec::new();
    let mut turns = Turns::default();
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in prepared.iter() {
        match message.role {
            Role::System => {
                let texts = message.parts.iter().filter_map(as_text);
                let texts = texts.filter(|text| !text.is_empty());
                match !turns.is_empty() {
                    false => system.extend(texts.filter_map(|text| text_part(&text))),
                    true => {
                        let texts = texts.map(|text| system_text(&text));
                        let parts = texts.filter_map(|text| text_part(&text)).collect();
                        turns.content(Speaker::User, parts);
                    }
                }
            }
            Role::Assistant => {
                let calls = message.parts.iter().filter_map(|part| match part {
                    Part::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
                    _ => None,
                });
                names.extend(calls);
                turns.content(Speaker::Model, model(&message.parts));
            }
            Role::User | Role::Tool => {
                let (results, others) = user(message.name.as_deref(), &message.parts, &names);
                turns.results(results);
                turns.content(Speaker::User, others);
            }
        }
    }
    let mut contents = turns.finish(json!({"text": CONTINUED}));
    let mut before: &[Value] = &[];
    for (_, parts) in &mut contents {
        order_results(before, parts);
        before = parts;
    }
    sign_calls(&mut contents);
    let contents = contents.into_iter().map(|(speaker, parts)| {
        let role = match speaker {
            Speaker::User => "user",
            Speaker::Model => "model",
        };
        json!({"role": role, "parts": parts})
    });
    let system = (!system.is_empty()).then(|| json!({"parts": system}));
    (system, contents.collect())
}

/// Sorts the results in the order of their calls in the content before.
fn order_results(calls: &[Value], parts: &mut [Value]) {
    let calls: HashMap<&Value, usize> = calls
        .iter()
        .filter_map(|part| part.get("functionCall")?.get("id"))
        .zip(0..)
        .collect();
    parts.sort_by_key(|part| {
        let id = part
            .get("functionResponse")
            .and_then(|result| result.get("id"));
        id.and_then(|id| calls.get(id).copied())
            .unwrap_or(usize::MAX)
    });
}

/// Signs the first call of each content of the current turn. The turn begins with the user's last content without
/// results.
fn sign_calls(contents: &mut [(Speaker, Vec<Value>)]) {
    let begins = |(speaker, parts): &(Speaker, Vec<Value>)| {
        let is_result = |part: &Value| part.get("functionResponse").is_some();
        *speaker == Speaker::User && !parts.iter().any(is_result)
    };
    let turn = contents.iter().rposition(begins).unwrap_or(0);
    for (_, parts) in contents.iter_mut().skip(turn) {
        let is_call = |part: &&mut Value| part.get("functionCall").is_some();
        let first = parts.iter_mut().find(is_call);
        if let Some(fields) = first.and_then(Value::as_object_mut) {
            let signature = fields.entry("thoughtSignature");
            signature.or_insert_with(|| UNSIGNED.into());
        }
    }
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"text": text}))
}

/// Returns a part with a text of a user, a model or a tool.
fn said(text: &str) -> Option<Value> {
    text_part(&escape_system(text))
}

fn tool_name(name: &str) -> String {
    let name = wire_name(name);
    match name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true => name,
        // Gemini's names start with a letter or an underscore.
        false => format!("_{name}").chars().take(64).collect(),
    }
}

fn model(parts: &[Part]) -> Vec<Value> {
    let mut out = Vec::new();
    // Signature for the next part.
    let mut signature: Option<&str> = None;
    for part in parts {
        let written = match part {
            Part::Reasoning {
                text,
                signature: signed,
            } => match (text.is_empty(), signed.as_deref()) {
                (true, signed) => {
                    let next = signed.and_then(signature_of);
                    if let (Some(before), Some(_)) = (signature, next) {
                        out.push(signed_nothing(before));
                    }
                    signature = next.or(signature);
                    continue;
                }
                (false, None) => Some(json!({"text": text, "thought": true})),
                (false, Some(signed)) => signature_of(signed).map(
                    |signature| json!({"text": text, "thought": true, "thoughtSignature": signature}),
                ),
            },
            Part::ToolCall {
                id,
                name,
                arguments,
            } => Some(json!({"functionCall": {
                "id": wire_call_id(id),
                "name": tool_name(name),
                "args": arguments::to_object(arguments),
            }})),
            Part::Image(media) | Part::File(media) => {
                data_part(media).or_else(|| said(&as_text(part)?))
            }
            Part::Text { text } if text.is_empty() => signature.take().map(signed_nothing),
            part => as_text(part).and_then(|text| said(&text)),
        };
        let Some(mut written) = written else { continue };
        let is_thought = matches!(part, Part::Reasoning { .. });
        if let (false, Some(fields)) = (is_thought, written.as_object_mut()) {
            let signature = signature.take();
            fields.extend(signature.map(|text| ("thoughtSignature".to_owned(), text.into())));
        }
        out.push(written);
    }
    out.extend(signature.map(signed_nothing));
    out
}

/// Returns the signature from Gemini that reasoning holds: Base64 in either alphabet, with padding or without.
fn signature_of(signed: &str) -> Option<&str> {
    let signature = signed.strip_prefix(SIGNED)?;
    let digits = signature.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    let padding = signature.len() - digits.len();
    let is_whole = match padding {
        0 => digits.len() % 4 != 1,
        _ => padding <= 2 && signature.len().is_multiple_of(4),
    };
    (is_whole && !digits.is_empty() && digits.bytes().all(is_digit)).then_some(signature)
}

/// Returns an empty part with a signature that belongs to no other part. Gemini ends a streamed answer with such a
/// part.
fn signed_nothing(signature: &str) -> Value {
    json!({"text": "", "thoughtSignature": signature})
}

/// Returns the results of a user's content, and its other parts.
fn user(
    name: Option<&str>,
    parts: &[Part],
    names: &HashMap<&str, &str>,
) -> (Vec<Value>, Vec<Value>) {
    let mut results = Vec::new();
    let mut others = Vec::new();
    let mut name = name;
    for part in parts {
        match part {
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                let key = match is_error {
                    Some(true) => "error",
                    _ => "output",
                };
                let tool = names.get(call_id.as_str()).copied().unwrap_or_default();
                results.push(json!({"functionResponse": {
                    "id": wire_call_id(call_id),
                    "name": tool_name(tool),
                    "response": {key: output(call_id, content, &mut others)},
                }}));
            }
            Part::Text { text } if !text.is_empty() => {
                others.extend(said(&said_by(name.take(), text)));
            }
            part => others.extend(user_part(part)),
        }
    }
    (results, others)
}

fn user_part(part: &Part) -> Option<Value> {
    let written = match part {
        Part::Image(media) | Part::File(media) => data_part(media),
        _ => None,
    };
    written.or_else(|| said(&as_text(part)?))
}

fn data_part(media: &Media) -> Option<Value> {
    if let Some(Source::Data { media_type, data }) = media::source(media) {
        let blob = json!({"mimeType": media_type, "data": data});
        let taken = MEDIA_TYPES.contains(&&*media_type);
        return taken.then(|| json!({"inlineData": blob}));
    }
    let MediaSource::Url(url) = &media.source else {
        return None;
    };
    let declared = media::type_name(&media.media_type);
    let media_type = match MEDIA_TYPES.contains(&&*declared) {
        true => declared,
        false => media::type_of_url(url, &media.media_type),
    };
    // A file in Google's storage has a URL with another scheme.
    let at_hand = url.starts_with("gs://") || media::source(media).is_some();
    match MEDIA_TYPES.contains(&&*media_type) {
        true => at_hand.then(|| json!({"fileData": {"mimeType": media_type, "fileUri": url}})),
        false => {
            let own = OWN_URLS.iter().any(|own| url.starts_with(own));
            own.then(|| json!({"fileData": {"fileUri": url}}))
        }
    }
}

/// Returns the output of a tool: a text, or a list of texts. Media are added to `others`.
fn output(call_id: &str, content: &ResultContent, others: &mut Vec<Value>) -> Value {
    let parts = match content {
        ResultContent::Text(text) => return escape_system(text).into_owned().into(),
        ResultContent::Parts(parts) => parts,
    };
    let mut texts: Vec<Value> = Vec::new();
    for part in parts {
        let data = match part {
            Part::Image(media) | Part::File(media) => data_part(media),
            _ => None,
        };
        match data {
            Some(data) => {
                let label = format!("Part of the result of {}:", wire_call_id(call_id));
                others.extend(text_part(&label));
                others.push(data);
            }
            None => {
                let text = as_text(part);
                texts.extend(text.map(|text| escape_system(&text).into_owned().into()));
            }
        }
    }
    texts.into()
}

/// Reads the fields `systemInstruction` and `contents` of a request. The `candidates[].content` of a response can be
/// read as a content too. Results in a user's content become a message of the role `tool` before it.
///
/// A thought signature is kept as reasoning before the part that it came with.
///
/// A system prompt becomes a message of the log like any other, which a compaction summarizes once it is old. To keep
/// instructions at the beginning of every request, do not pass them here but to the session (`OpenSession::system` of
/// `agent-memory`).
///
/// # Errors
/// `Invalid` if a content is no object, or if its role or parts do not belong to the format. The text names the
/// content.
pub fn read(system: Option<&Value>, contents: &[Value]) -> Result<Vec<Message>, Error> {
    let mut out = Vec::new();
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let fields = object(system, "systemInstruction")?;
        let (parts, facts) = read_parts(fields, "systemInstruction")?;
        let mut message = Message::new(Role::System, parts);
        message.meta = facts.finish();
        out.push(message);
    }
    for (at, content) in contents.iter().enumerate() {
        let place = format!("contents[{at}]");
        let fields = object(content, &place)?;
        let (parts, mut facts) = read_parts(fields, &place)?;
        facts.message(fields, &["role", "parts"]);
        match text(fields, "role").unwrap_or("user") {
            "model" => {
                let mut message = Message::new(Role::Assistant, parts);
                message.meta = facts.finish();
                out.push(message);
            }
            "user" | "function" => {
                if at == 0 && matches!(parts.as_slice(), [Part::Text { text }] if text == CONTINUED)
                {
                    continue;
                }
                out.extend(split_results(parts, facts));
            }
            role => {
                let text = format!("the role {role:?} is unknown: use user or model");
                return Err(invalid(&place, text));
            }
        }
    }
    Ok(out)
}

fn read_parts(content: &Object, place: &str) -> Result<(Vec<Part>, Facts), Error> {
    let mut facts = Facts::default();
    let mut out = Vec::new();
    let Some(parts) = content.get("parts").and_then(Value::as_array) else {
        return Err(invalid(place, "it has no list `parts`"));
    };
    // Number of calls or results of each tool so far. Ids for calls without one are made from these numbers.
    let mut unnamed: HashMap<String, usize> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{at}]");
        let fields = object(part, &place)?;
        let signature = text(fields, "thoughtSignature").filter(|text| *text != UNSIGNED);
        let signature = signature.map(|text| format!("{SIGNED}{text}"));
        let thought = fields.get("thought").and_then(Value::as_bool) == Some(true);
        match (thought, text(fields, "text")) {
            (true, Some(text)) => {
                out.push(Part::Reasoning {
                    text: text.to_owned(),
                    signature,
                });
                continue;
            }
            _ => {
                out.extend(signature.map(|signature| Part::Reasoning {
                    text: String::new(),
                    signature: Some(signature),
                }));
            }
        }
        let (part, known) = match known_part(fields, &place, &mut unnamed)? {
            Some(known) => known,
            None => (unknown(part), [].as_slice()),
        };
        if !known.is_empty() {
            facts.part(out.len(), fields, known);
        }
        out.push(part);
    }
    Ok((out, facts))
}

/// Reads a part, and returns the names of the fields that it holds.
fn known_part(
    fields: &Object,
    place: &str,
    unnamed: &mut HashMap<String, usize>,
) -> Result<Option<(Part, &'static [&'static str])>, Error> {
    let inner = |key: &str| fields.get(key).and_then(Value::as_object);
    if let Some(text) = text(fields, "text") {
        return Ok(Some((
            Part::text(text),
            &["text", "thought", "thoughtSignature"],
        )));
    }
    if let Some(call) = inner("functionCall") {
        let name = string(call, "name", &format!("{place}.functionCall"))?;
        let part = Part::ToolCall {
            id: id(call, name, unnamed),
            name: name.to_owned(),
            arguments: match call.get("args") {
                Some(args) if !args.is_null() => arguments::from_value(args),
                _ => arguments::from_text("{}"),
            },
        };
        return Ok(Some((part, &["functionCall", "thoughtSignature"])));
    }
    if let Some(result) = inner("functionResponse") {
        let name = string(result, "name", &format!("{place}.functionResponse"))?;
        let (content, is_error) = response(result.get("response"));
        let part = Part::ToolResult {
            call_id: id(result, name, unnamed),
            content,
            is_error,
        };
        return Ok(Some((part, &["functionResponse"])));
    }
    let media = |media_type: Option<&str>, source: MediaSource| {
        let media_type = media_type.unwrap_or(media::ANY_FILE).to_owned();
        let media = Media { media_type, source };
        match media.media_type.starts_with("image/") {
            true => Part::Image(media),
            false => Part::File(media),
        }
    };
    if let Some(data) = inner("inlineData")
        && let Some(bytes) = text(data, "data")
    {
        let source = MediaSource::Data(bytes.to_owned());
        let part = media(text(data, "mimeType"), source);
        return Ok(Some((part, &["inlineData", "thoughtSignature"])));
    }
    if let Some(data) = inner("fileData")
        && let Some(uri) = text(data, "fileUri")
    {
        let source = MediaSource::Url(uri.to_owned());
        let part = media(text(data, "mimeType"), source);
        return Ok(Some((part, &["fileData", "thoughtSignature"])));
    }
    Ok(None)
}

fn id(call: &Object, name: &str, unnamed: &mut HashMap<String, usize>) -> String {
    let count = unnamed.entry(name.to_owned()).or_default();
    *count += 1;
    match text(call, "id").filter(|id| !id.is_empty()) {
        Some(id) => original_call_id(id).into_owned(),
        None => format!("{name}_{count}"),
    }
}

/// Reads the output of a tool, and whether the tool failed.
fn response(response: Option<&Value>) -> (ResultContent, Option<bool>) {
    let Some(response) = response else {
        return (ResultContent::Text(String::new()), None);
    };
    let only = |key: &str| {
        let fields = response.as_object().filter(|fields| fields.len() == 1)?;
        match fields.get(key)? {
            Value::String(text) => Some(ResultContent::Text(text.clone())),
            Value::Array(texts) => {
                let texts = texts.iter().map(|text| text.as_str().map(Part::text));
                texts.collect::<Option<_>>().map(ResultContent::Parts)
            }
            _ => None,
        }
    };
    if let Some(content) = only("output") {
        return (content, None);
    }
    match only("error") {
        Some(content) => (content, Some(true)),
        None => (ResultContent::Text(response.to_string()), None),
    }
}

/// Reads a response: its message, model and usage.
///
/// # Errors
/// `Invalid` if the response has no `candidates[0].content`, as an error has none, or if its message cannot be
/// [`read`].
pub fn reply(response: &Value) -> Result<Reply, Error> {
    let content = reply::content(response, "/candidates/0/content")?;
    let messages = read(None, std::slice::from_ref(content))?;
    Ok(reply::reply(
        response,
        ("responseId", "modelVersion"),
        messages,
        usage(response),
    ))
}

/// Returns the usage of a response or of its field `usageMetadata`, or `None` without token counts.
///
/// Gemini includes cached tokens in `promptTokenCount`. [`Usage`] counts them separately from `input`. Thoughts count
/// as output.
pub fn usage(response: &Value) -> Option<Usage> {
    let usage = response.get("usageMetadata").unwrap_or(response);
    let count = |key: &str| tokens(usage, &[key]).unwrap_or(0);
    let prompt = tokens(usage, &["promptTokenCount"])?;
    let prompt = prompt.saturating_add(count("toolUsePromptTokenCount"));
    let cached = count("cachedContentTokenCount");
    Some(Usage {
        input: prompt.saturating_sub(cached),
        output: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        cache_read: cached,
        cache_write: 0,
        total: tokens(usage, &["totalTokenCount"]),
    })
}

/// Returns the value of the request's field `tools`: one tool with all declarations, or an empty list without tools.
pub fn tools(tools: &[ToolDefinition]) -> Vec<Value> {
    if tools.is_empty() {
        return Vec::new();
    }
    let declaration = |tool: &ToolDefinition| {
        json!({
            "name": tool.name,
            "description": tool.description.as_deref().unwrap_or_default(),
            "parametersJsonSchema": schema(tool),
        })
    };
    let declarations: Vec<Value> = tools.iter().map(declaration).collect();
    vec![json!({"functionDeclarations": declarations})]
}
