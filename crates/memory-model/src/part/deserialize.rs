//! Reads parts. An object that no part is written as is kept verbatim.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{MAX_PART_DEPTH, Media, MediaSource, Part, ResultContent};
use crate::json::RawJson;

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
    use super::super::nest_too_deeply;
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
