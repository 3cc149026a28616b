//! Parts: what a message consists of.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::RawJson;

/// One part of a message.
///
/// Reading never fails on a JSON object: what is not one of the known shapes, has a key twice or
/// holds text that is not Unicode (a lone surrogate) is kept as [`Part::Unknown`], verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Reasoning {
        /// The reasoning text; may be empty when the provider hides it.
        text: String,
        /// The provider's signature over it, to be sent back verbatim.
        signature: Option<String>,
    },
    /// A call of a tool.
    ToolCall {
        /// The id that the result names.
        id: String,
        /// The tool.
        name: String,
        /// The arguments as they came: JSON, or a JSON string where the source had one.
        arguments: RawJson,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        call_id: String,
        /// What the tool returned.
        content: ResultContent,
        /// Whether the tool failed; `None` where the source does not say.
        is_error: Option<bool>,
    },
    /// An image.
    Image(Media),
    /// A file.
    File(Media),
    /// Anything else, as the JSON text it came in.
    Unknown {
        /// The JSON text.
        raw: RawJson,
    },
}

/// What a tool returned: a string, or a list of parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ResultContent {
    /// A string.
    Text(String),
    /// A list of parts: texts, images, or unknown ones.
    Parts(Vec<Part>),
}

/// An image or a file: its media type, and its data or where to find it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// Base64 data or a URL.
    #[serde(flatten)]
    pub source: MediaSource,
}

/// Where a medium's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MediaSource {
    /// Base64 text, as it came.
    #[serde(rename = "data")]
    Data(String),
    /// A URL.
    #[serde(rename = "url")]
    Url(String),
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Calls `f` with every readable text in the part: texts, names, arguments, results.
    ///
    /// JSON is given as it came and, where that differs, with its strings decoded. Image and file
    /// data is left out.
    pub fn visit_texts<'a>(&'a self, f: &mut dyn FnMut(Cow<'a, str>)) {
        match self {
            Part::Text { text } | Part::Reasoning { text, .. } => f(Cow::Borrowed(text)),
            Part::ToolCall {
                name, arguments, ..
            } => {
                f(Cow::Borrowed(name));
                visit_json(arguments, f);
            }
            Part::ToolResult {
                content: ResultContent::Text(text),
                ..
            } => f(Cow::Borrowed(text)),
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => {
                for part in parts {
                    part.visit_texts(f);
                }
            }
            Part::Image(media) | Part::File(media) => {
                if let MediaSource::Url(url) = &media.source {
                    f(Cow::Borrowed(url));
                }
            }
            Part::Unknown { raw } => visit_json(raw, f),
        }
    }
}

fn visit_json<'a>(raw: &'a RawJson, f: &mut dyn FnMut(Cow<'a, str>)) {
    f(Cow::Borrowed(raw.as_str()));
    if raw.as_str().contains('\\') {
        f(Cow::Owned(raw.decoded_strings()));
    }
}

impl ResultContent {
    /// The result's text: the string, or its text parts joined by newlines.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            ResultContent::Text(text) => Cow::Borrowed(text),
            ResultContent::Parts(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| match part {
                        Part::Text { text } => Some(text.as_str()),
                        Part::Unknown { raw } => Some(raw.as_str()),
                        _ => None,
                    })
                    .collect();
                match texts.as_slice() {
                    [one] => Cow::Borrowed(one),
                    _ => Cow::Owned(texts.join("\n")),
                }
            }
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Part::Text { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Part::Reasoning { text, signature } => {
                map.serialize_entry("type", "reasoning")?;
                map.serialize_entry("text", text)?;
                if let Some(signature) = signature {
                    map.serialize_entry("signature", signature)?;
                }
            }
            Part::ToolCall {
                id,
                name,
                arguments,
            } => {
                map.serialize_entry("type", "tool_call")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("arguments", arguments)?;
            }
            Part::ToolResult {
                call_id,
                content,
                is_error,
            } => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("call_id", call_id)?;
                map.serialize_entry("content", content)?;
                if let Some(is_error) = is_error {
                    map.serialize_entry("is_error", is_error)?;
                }
            }
            Part::Image(media) => serialize_media(&mut map, "image", media)?,
            Part::File(media) => serialize_media(&mut map, "file", media)?,
            Part::Unknown { raw } => {
                map.serialize_entry("type", "unknown")?;
                map.serialize_entry("raw", raw)?;
            }
        }
        map.end()
    }
}

fn serialize_media<M: SerializeMap>(map: &mut M, tag: &str, media: &Media) -> Result<(), M::Error> {
    map.serialize_entry("type", tag)?;
    map.serialize_entry("media_type", &media.media_type)?;
    match &media.source {
        MediaSource::Data(data) => map.serialize_entry("data", data),
        MediaSource::Url(url) => map.serialize_entry("url", url),
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        checked_part(&raw)
    }
}

/// Reads a JSON array of parts, without a copy of their text in between.
///
/// # Errors
/// When it is not a JSON array of objects.
pub fn parts_from_json(json: &[u8]) -> Result<Vec<Part>, serde_json::Error> {
    let raw: Vec<&RawValue> = serde_json::from_slice(json)?;
    raw.into_iter().map(checked_part).collect()
}

fn checked_part<E: serde::de::Error>(raw: &RawValue) -> Result<Part, E> {
    if !raw.get().starts_with('{') {
        return Err(E::custom("a message part is a JSON object with a `type`"));
    }
    Ok(part_from_raw(raw))
}

/// Reads a part of the shapes that [`Part`] writes; any other JSON object becomes
/// [`Part::Unknown`].
pub fn part_from_raw(raw: &RawValue) -> Part {
    known_part(raw.get()).unwrap_or_else(|| Part::Unknown {
        raw: RawJson::from_raw(raw),
    })
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    tag: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasoningShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    text: String,
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    id: String,
    name: String,
    arguments: RawJson,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultShape<'a> {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    call_id: String,
    #[serde(borrow)]
    content: &'a RawValue,
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MediaShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    media_type: String,
    data: Option<String>,
    url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnknownShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    raw: RawJson,
}

fn known_part(json: &str) -> Option<Part> {
    let tag = match written_tag(json) {
        Some(tag) => Cow::Borrowed(tag),
        None => serde_json::from_str::<Tag<'_>>(json).ok()?.tag,
    };
    Some(match tag.as_ref() {
        "text" => {
            let shape: TextShape = serde_json::from_str(json).ok()?;
            Part::Text { text: shape.text }
        }
        "reasoning" => {
            let shape: ReasoningShape = serde_json::from_str(json).ok()?;
            Part::Reasoning {
                text: shape.text,
                signature: shape.signature,
            }
        }
        "tool_call" => {
            let shape: CallShape = serde_json::from_str(json).ok()?;
            Part::ToolCall {
                id: shape.id,
                name: shape.name,
                arguments: shape.arguments,
            }
        }
        "tool_result" => {
            let shape: ResultShape<'_> = serde_json::from_str(json).ok()?;
            let content = result_content(shape.content.get())?;
            Part::ToolResult {
                call_id: shape.call_id,
                content,
                is_error: shape.is_error,
            }
        }
        "image" => Part::Image(media(json)?),
        "file" => Part::File(media(json)?),
        "unknown" => {
            let shape: UnknownShape = serde_json::from_str(json).ok()?;
            Part::Unknown { raw: shape.raw }
        }
        _ => return None,
    })
}

/// The tag, where it stands as [`Part`] writes it: the look at the whole object is saved.
fn written_tag(json: &str) -> Option<&str> {
    let (tag, _) = json.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    tag.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        .then_some(tag)
}

fn result_content(json: &str) -> Option<ResultContent> {
    match json.trim_start().as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok().map(ResultContent::Text),
        b'[' => serde_json::from_str(json).ok().map(ResultContent::Parts),
        _ => None,
    }
}

fn media(json: &str) -> Option<Media> {
    let shape: MediaShape = serde_json::from_str(json).ok()?;
    let source = match (shape.data, shape.url) {
        (Some(data), None) => MediaSource::Data(data),
        (None, Some(url)) => MediaSource::Url(url),
        _ => return None,
    };
    Some(Media {
        media_type: shape.media_type,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_round_trip() {
        for json in [
            r#"{"type":"text","text":"a\u0000b"}"#,
            r#"{"type":"reasoning","text":"","signature":"s"}"#,
            r#"{"type":"tool_call","id":"1","name":"read","arguments":{"b":1.00,"b":2,"n":1e400}}"#,
            r#"{"type":"tool_result","call_id":"1","content":"x","is_error":false}"#,
            r#"{"type":"tool_result","call_id":"1","content":[{"type":"text","text":"x"}]}"#,
            r#"{"type":"image","media_type":"image/png","data":"AAAA"}"#,
            r#"{"type":"file","media_type":"text/plain","url":"file:///a"}"#,
            r#"{"type":"unknown","raw":{"type":"server_tool","x":"\ud800"}}"#,
        ] {
            let part: Part = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&part).unwrap(), json);
            let list = format!("[{json}]");
            assert_eq!(parts_from_json(list.as_bytes()).unwrap(), [part]);
        }
    }

    #[test]
    fn a_tag_is_found_wherever_it_stands() {
        for json in [
            r#"{"type":"text","text":"a"}"#,
            r#"{ "type" : "text" , "text" : "a" }"#,
            r#"{"text":"a","type":"text"}"#,
            r#"{"type":"te\u0078t","text":"a"}"#,
        ] {
            let part: Part = serde_json::from_str(json).unwrap();
            assert_eq!(
                part,
                Part::Text {
                    text: "a".to_owned()
                },
                "{json}"
            );
        }
        for json in [
            r#"{"type":"text","type":"text","text":"a"}"#,
            r#"{"type":1,"text":"a"}"#,
        ] {
            let part: Part = serde_json::from_str(json).unwrap();
            assert!(matches!(part, Part::Unknown { .. }), "{json}");
        }
    }

    #[test]
    fn what_is_not_known_is_kept() {
        for json in [
            r#"{"type":"text","text":"a\ud800"}"#,
            r#"{"type":"text","text":"a","text":"b"}"#,
            r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"tool_result","call_id":"1","content":null}"#,
            r#"{"no":"type"}"#,
            r#"{}"#,
        ] {
            let part: Part = serde_json::from_str(json).unwrap();
            let Part::Unknown { raw } = &part else {
                panic!("{json} became {part:?}")
            };
            assert_eq!(raw.as_str(), json);
            let again: Part = serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap();
            assert_eq!(again, part);
        }
        assert!(serde_json::from_str::<Part>("1").is_err());
        assert!(parts_from_json(b"[1]").is_err() && parts_from_json(b"{}").is_err());
    }
}
