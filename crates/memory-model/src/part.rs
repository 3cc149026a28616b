//! Parts of messages.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{RawJson, is_same_value};

/// Maximum number of nested levels of parts that reading accepts, so that recursive code over parts has a bounded
/// depth. A message's parts are the first level, and the parts in a tool result's content are the next level. On the
/// last level, a tool result with a list as its content is kept as [`Part::Unknown`], verbatim.
pub const MAX_PART_DEPTH: usize = 8;

/// One part of a message.
///
/// Reading never fails on a JSON object. [`Part::Unknown`] keeps an object verbatim if it has an unknown shape, a
/// duplicate key, text that is not Unicode (a lone surrogate), or more nested levels than [`MAX_PART_DEPTH`].
///
/// Any self-describing serde format can hold a part. [`RawJson`] describes how other formats than JSON write the raw
/// JSON of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A text.
    Text {
        /// The text, verbatim.
        text: String,
    },
    /// The model's reasoning.
    Reasoning {
        /// Text of the reasoning; may be empty when the provider hides it.
        text: String,
        /// The provider's signature over the reasoning, to be sent back verbatim.
        signature: Option<String>,
    },
    /// A call of a tool by the model.
    ToolCall {
        /// Id of the call. The call's result names it.
        id: String,
        /// Name of the called tool.
        name: String,
        /// Original arguments of the call: JSON, or a JSON string if the source had a string.
        arguments: RawJson,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call that the result answers.
        call_id: String,
        /// Content that the tool returned.
        content: ResultContent,
        /// Whether the call failed; `None` if the source does not say.
        is_error: Option<bool>,
    },
    /// An image.
    Image(Media),
    /// A file.
    File(Media),
    /// Any other part, kept as its original JSON text.
    Unknown {
        /// JSON text of the part, verbatim.
        raw: RawJson,
    },
}

/// Content of a tool's result: a string, or a list of parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ResultContent {
    /// Content that is one string.
    Text(String),
    /// Content that is a list of parts: texts, images, or unknown ones.
    Parts(Vec<Part>),
}

/// An image or a file: its media type, and its data or address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Media {
    /// Media type of the image or file, such as `image/png`.
    pub media_type: String,
    /// The image or file itself, or its URL.
    #[serde(flatten)]
    pub source: MediaSource,
}

/// Bytes of an image or file: the bytes themselves, or their URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MediaSource {
    /// Bytes as the original Base64 text.
    #[serde(rename = "data")]
    Data(String),
    /// URL of the bytes.
    #[serde(rename = "url")]
    Url(String),
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the number of entries in the map that serde writes for the part.
    fn entries(&self) -> usize {
        match self {
            Part::Text { .. } | Part::Unknown { .. } => 2,
            Part::Reasoning { signature, .. } => 2 + usize::from(signature.is_some()),
            Part::ToolCall { .. } => 4,
            Part::ToolResult { is_error, .. } => 3 + usize::from(is_error.is_some()),
            Part::Image(_) | Part::File(_) => 3,
        }
    }

    fn has_same_values(&self, other: &Self) -> bool {
        match (self, other) {
            (Part::Unknown { raw: one }, Part::Unknown { raw: other }) => one.has_same_value(other),
            (
                Part::ToolCall {
                    id,
                    name,
                    arguments,
                },
                Part::ToolCall {
                    id: other_id,
                    name: other_name,
                    arguments: others,
                },
            ) => (id, name) == (other_id, other_name) && arguments.has_same_value(others),
            (
                Part::ToolResult {
                    call_id,
                    content: ResultContent::Parts(parts),
                    is_error,
                },
                Part::ToolResult {
                    call_id: other_id,
                    content: ResultContent::Parts(others),
                    is_error: other_error,
                },
            ) => (call_id, is_error) == (other_id, other_error) && have_same_values(parts, others),
            // A signature may be a whole item in JSON.
            (
                Part::Reasoning {
                    text,
                    signature: Some(signature),
                },
                Part::Reasoning {
                    text: other_text,
                    signature: Some(others),
                },
            ) => text == other_text && is_same_value(signature, others),
            (one, other) => one == other,
        }
    }

    /// Calls `f` with every readable text in the part: texts, names, arguments, results.
    ///
    /// JSON is passed as its original text, and a second time with decoded strings if that differs. Image and file data
    /// is left out.
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

/// Returns whether two lists of parts are equal. JSON in them is compared by its value.
pub(crate) fn have_same_values(one: &[Part], other: &[Part]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.has_same_values(other))
}

fn visit_json<'a>(raw: &'a RawJson, f: &mut dyn FnMut(Cow<'a, str>)) {
    f(Cow::Borrowed(raw.as_str()));
    if raw.as_str().contains('\\') {
        f(Cow::Owned(raw.decoded_strings()));
    }
}

impl ResultContent {
    /// Returns the text of the content: the string, or the text parts joined by newlines.
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
        let mut map = serializer.serialize_map(Some(self.entries()))?;
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
        let raw = RawJson::deserialize(deserializer)?;
        checked_part(raw.as_raw())
    }
}

/// Reads a JSON array of parts. Does not copy the text of each part in between.
///
/// # Errors
/// If `json` is not a JSON array of objects.
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

/// Reads a part from a JSON object. An object in a form that [`Part`] never writes becomes [`Part::Unknown`].
pub fn part_from_raw(raw: &RawValue) -> Part {
    part_on_level(raw, 1)
}

/// Reads a part of a tool result's content, as [`part_from_raw`] does. The part is on the second of the
/// [`MAX_PART_DEPTH`] nested levels.
pub fn inner_part_from_raw(raw: &RawValue) -> Part {
    part_on_level(raw, 2)
}

/// Reads a part on the nested level `level`, which is at most [`MAX_PART_DEPTH`].
fn part_on_level(raw: &RawValue, level: usize) -> Part {
    known_part(raw.get(), level).unwrap_or_else(|| Part::Unknown {
        raw: RawJson::from_raw(raw),
    })
}

/// Reads the value of a field that exists. `null` is then an error, unlike a missing field.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
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
    #[serde(default, deserialize_with = "present")]
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
    #[serde(default, deserialize_with = "present")]
    is_error: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MediaShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    media_type: String,
    #[serde(default, deserialize_with = "present")]
    data: Option<String>,
    #[serde(default, deserialize_with = "present")]
    url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnknownShape {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    raw: RawJson,
}

fn known_part(json: &str, level: usize) -> Option<Part> {
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
            let content = result_content(shape.content.get(), level)?;
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

/// Returns the value of `type` if it is the first field, as [`Part`] writes it. This saves parsing the whole object.
fn written_tag(json: &str) -> Option<&str> {
    let (tag, _) = json.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    tag.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        .then_some(tag)
}

/// Parses the content of a tool result on the nested level `level`. `None` if the content is neither a string nor a
/// list of objects, or if it is a list on the last level.
fn result_content(json: &str, level: usize) -> Option<ResultContent> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok().map(ResultContent::Text),
        b'[' if level < MAX_PART_DEPTH => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let parts = items.into_iter().map(|item| {
                let object = item.get().starts_with('{');
                object.then(|| part_on_level(item, level + 1))
            });
            parts.collect::<Option<_>>().map(ResultContent::Parts)
        }
        _ => None,
    }
}

/// Returns whether parts have more nested levels than reading accepts: see [`MAX_PART_DEPTH`].
pub(crate) fn nest_too_deeply(parts: &[Part]) -> bool {
    deeper_than(parts, MAX_PART_DEPTH)
}

fn deeper_than(parts: &[Part], levels: usize) -> bool {
    parts.iter().any(|part| match part {
        Part::ToolResult {
            content: ResultContent::Parts(inner),
            ..
        } => levels <= 1 || deeper_than(inner, levels - 1),
        _ => false,
    })
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
    fn a_tag_is_found_at_any_place() {
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
    fn parts_nest_to_a_stated_depth() {
        let nested = |levels: usize| {
            let open = r#"{"type":"tool_result","call_id":"1","content":["#;
            let inner = r#"{"type":"text","text":"x"}"#;
            let (open, close) = (open.repeat(levels - 1), "]}".repeat(levels - 1));
            format!("{open}{inner}{close}")
        };
        let depth = |mut part: &Part| {
            let mut depth = 1;
            while let Part::ToolResult { content, .. } = part {
                let ResultContent::Parts(inner) = content else {
                    break;
                };
                part = &inner[0];
                depth += 1;
            }
            depth
        };
        for (levels, found) in [(1, 1), (7, 7), (8, 8), (9, 8), (10, 8), (100_000, 8)] {
            let json = nested(levels);
            let part: Part = serde_json::from_str(&json).unwrap();
            assert_eq!(depth(&part), found, "{levels}");
            let list = parts_from_json(format!("[{json}]").as_bytes()).unwrap();
            assert_eq!(list, std::slice::from_ref(&part));
            assert!(!nest_too_deeply(std::slice::from_ref(&part)));
            let written = serde_json::to_string(&part).unwrap();
            assert!(levels > MAX_PART_DEPTH || written == json);
            assert_eq!(serde_json::from_str::<Part>(&written).unwrap(), part);
        }
        let mut part = Part::text("x");
        for level in 1..12 {
            part = Part::ToolResult {
                call_id: "1".to_owned(),
                content: ResultContent::Parts(vec![part]),
                is_error: None,
            };
            let message = crate::Message::new(crate::Role::Tool, vec![part.clone()]);
            assert_eq!(message.body().is_err(), level >= MAX_PART_DEPTH, "{level}");
        }
    }

    #[test]
    fn unknown_parts_are_kept() {
        for json in [
            r#"{"type":"text","text":"a\ud800"}"#,
            r#"{"type":"text","text":"a","text":"b"}"#,
            r#"{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}"#,
            r#"{"type":"tool_result","call_id":"1","content":null}"#,
            r#"{"type":"tool_result","call_id":"1","content":[1]}"#,
            r#"{"type":"tool_result","call_id":"1","content":"","is_error":null}"#,
            r#"{"type":"reasoning","text":"","signature":null}"#,
            r#"{"type":"image","media_type":"a/b","url":"u","data":null}"#,
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
