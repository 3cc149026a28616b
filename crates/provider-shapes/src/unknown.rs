//! Reads the content of unknown parts in the form that providers accept.

use memory_model::{Media, MediaSource, Message, Part, RawJson, ResultContent};
use serde_json::Value;

use crate::fields::{Object, text as string};
use crate::media::{ANY_FILE, ANY_IMAGE, from_url, named};

/// Types of reasoning. Only the provider that wrote such a part can read it.
const REASONING: &[&str] = &[
    "redacted_thinking",
    "thinking",
    "reasoning",
    "redacted_reasoning",
];

/// Type of the summary that a provider puts before the text of its reply. Only requests that ask for such a summary can
/// send it back.
const COMPACTION: &str = "compaction";

/// Returns the text of an unknown part: the summary of a compaction, or else its JSON without bytes. Returns `None` for
/// reasoning and for a blank summary.
pub(crate) fn text(raw: &RawJson) -> Option<String> {
    if let Some(compaction) = crate::fields::native(raw, &[COMPACTION]) {
        let summary = compaction.get("content").and_then(Value::as_str);
        return summary
            .filter(|text| !text.trim().is_empty())
            .map(str::to_owned);
    }
    match crate::fields::native(raw, REASONING) {
        Some(_) => None,
        None => Some(raw.without_bytes().into_owned()),
    }
}

/// Returns whether [`readable`] would return a message unchanged.
pub(crate) fn is_readable(message: &Message) -> bool {
    message.parts.iter().all(|part| match part {
        Part::Unknown { raw } => medium(raw).is_none(),
        Part::ToolResult {
            content: ResultContent::Parts(parts),
            ..
        } => parts.iter().all(|part| match part {
            Part::Unknown { raw } => {
                medium(raw).is_none() && text(raw).is_some_and(|text| text == raw.as_str())
            }
            part => !matches!(part, Part::ToolCall { .. } | Part::ToolResult { .. }),
        }),
        _ => true,
    })
}

/// Returns a message with its images and files as parts of their kind, for any shape that they came in. Its results
/// contain no calls and no results, and bytes only in images and files.
pub(crate) fn readable(message: &Message) -> Message {
    let mut message = message.clone();
    for part in &mut message.parts {
        match part {
            Part::Unknown { raw } => {
                if let Some(medium) = medium(raw) {
                    *part = medium;
                }
            }
            Part::ToolResult {
                content: ResultContent::Parts(parts),
                ..
            } => {
                let mut flat = Vec::with_capacity(parts.len());
                flatten(std::mem::take(parts), &mut flat);
                *parts = flat;
            }
            _ => {}
        }
    }
    message
}

/// Adds parts and the parts of their results. Parts nest to at most [`memory_model::MAX_PART_DEPTH`] levels.
fn flatten(parts: Vec<Part>, flat: &mut Vec<Part>) {
    for part in parts {
        match part {
            Part::ToolResult { content, .. } => match content {
                ResultContent::Text(text) => flat.push(Part::Text { text }),
                ResultContent::Parts(parts) => flatten(parts, flat),
            },
            Part::ToolCall {
                name, arguments, ..
            } => flat.push(Part::text(format!("{name} {}", arguments.without_bytes()))),
            Part::Unknown { raw } => match medium(&raw) {
                Some(medium) => flat.push(medium),
                None => match text(&raw) {
                    Some(text) if text != raw.as_str() => flat.push(Part::Text { text }),
                    Some(_) => flat.push(Part::Unknown { raw }),
                    None => {}
                },
            },
            part => flat.push(part),
        }
    }
}

/// Reads an image or a file in the shape of a provider, of the Model Context Protocol or of a library. Returns `None`
/// for any other content.
pub(crate) fn medium(raw: &RawJson) -> Option<Part> {
    let value: Value = serde_json::from_str(raw.as_str()).ok()?;
    let fields = value.as_object()?;
    let inner = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| fields.get(*key).and_then(Value::as_object))
    };
    if let Some(data) = inner(&["inlineData", "inline_data"]) {
        return of_data(data);
    }
    if let Some(file) = inner(&["fileData", "file_data"]) {
        let url = first(file, &["fileUri", "file_uri"])?;
        return Some(of_url(url, type_of(file).unwrap_or(ANY_FILE)));
    }
    let kind = string(fields, "type")?;
    match kind {
        "image" | "document" | "audio" | "video" => {
            let any = match kind {
                "image" => ANY_IMAGE,
                _ => ANY_FILE,
            };
            match inner(&["source"]) {
                Some(source) => match string(source, "type")? {
                    "base64" => of_data(source),
                    "url" => Some(of_url(string(source, "url")?, any)),
                    _ => None,
                },
                None => of_data(fields).or_else(|| {
                    let url = first(fields, &["image", "url", "image_url"])?;
                    Some(of_url(url, type_of(fields).unwrap_or(any)))
                }),
            }
        }
        "image_url" | "input_image" => {
            let url = match fields.get("image_url")? {
                Value::String(url) => url,
                image => image.get("url")?.as_str()?,
            };
            Some(of_url(url, ANY_IMAGE))
        }
        "file" | "input_file" => {
            let file = inner(&["file"]).unwrap_or(fields);
            let data = first(file, &["file_data", "file_url", "data", "url"])?;
            Some(of_url(data, type_of(file).unwrap_or(ANY_FILE)))
        }
        "input_audio" => {
            let audio = inner(&["input_audio"])?;
            let format = string(audio, "format").unwrap_or("wav");
            Some(of(&format!("audio/{format}"), string(audio, "data")?))
        }
        _ => None,
    }
}

fn first<'a>(fields: &'a Object, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| string(fields, key))
}

fn type_of(fields: &Object) -> Option<&str> {
    first(
        fields,
        &["media_type", "mimeType", "mime_type", "mediaType"],
    )
}

fn of_data(fields: &Object) -> Option<Part> {
    Some(of(type_of(fields)?, string(fields, "data")?))
}

fn of(media_type: &str, data: &str) -> Part {
    part(Media {
        media_type: media_type.to_owned(),
        source: MediaSource::Data(data.to_owned()),
    })
}

fn of_url(url: &str, media_type: &str) -> Part {
    part(from_url(url, media_type))
}

fn part(media: Media) -> Part {
    match media.media_type.starts_with("image/") {
        true => Part::Image(media),
        false => Part::File(media),
    }
}

/// Returns a part's text, or the text that replaces the part if the provider has no place for it. Returns `None` for
/// reasoning, calls and results. Bytes never become text.
pub(crate) fn as_text(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::Image(media) => Some(named("image", media)),
        Part::File(media) => Some(named("file", media)),
        Part::Unknown { raw } => text(raw),
        Part::Reasoning { .. } | Part::ToolCall { .. } | Part::ToolResult { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "iVBORw0KGgo=";

    fn read(json: &str) -> Option<Part> {
        medium(&RawJson::parse(json.replace("PNG", PNG)).unwrap())
    }

    #[test]
    fn images_and_files_are_found_in_every_shape() {
        let png = of("image/png", PNG);
        for json in [
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"PNG"},"cache_control":{}}"#,
            r#"{"type":"image","mimeType":"image/png","data":"PNG"}"#,
            r#"{"type":"image","image":"data:image/png;base64,PNG"}"#,
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,PNG","detail":"low"}}"#,
            r#"{"type":"image_url","image_url":"data:image/png;base64,PNG"}"#,
            r#"{"type":"input_image","image_url":"data:image/png;base64,PNG"}"#,
            r#"{"inlineData":{"mimeType":"image/png","data":"PNG"}}"#,
            r#"{"inline_data":{"mime_type":"image/png","data":"PNG"}}"#,
        ] {
            assert_eq!(read(json), Some(png.clone()), "{json}");
        }
        for (json, media_type) in [
            (
                r#"{"type":"image","source":{"type":"url","url":"https://a.b/c"}}"#,
                "image/*",
            ),
            (
                r#"{"type":"input_file","file_url":"https://a.b/c"}"#,
                "application/octet-stream",
            ),
            (
                r#"{"fileData":{"fileUri":"https://a.b/c","mimeType":"image/png"}}"#,
                "image/png",
            ),
        ] {
            assert_eq!(read(json), Some(of_url("https://a.b/c", media_type)));
        }
        let data = r#"{"type":"file","data":"PNG","mediaType":"image/png"}"#;
        assert_eq!(read(data), Some(of_url(PNG, "image/png")));
        let pdf = r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}"#;
        assert_eq!(read(pdf), Some(of("application/pdf", "JVBERi0=")));
        let audio = r#"{"type":"input_audio","input_audio":{"format":"wav","data":"AAAA"}}"#;
        assert_eq!(read(audio), Some(of("audio/wav", "AAAA")));
    }

    #[test]
    fn of_a_compaction_the_summary_is_shown() {
        let shown = |json: &str| text(&RawJson::parse(json).unwrap());
        let summary = shown(r#"{"type":"compaction","content":"They greeted."}"#);
        assert_eq!(summary.as_deref(), Some("They greeted."));
        for empty in [
            r#"{"type":"compaction","content":null}"#,
            r#"{"type":"compaction","content":" "}"#,
        ] {
            assert_eq!(shown(empty), None);
        }
    }

    #[test]
    fn everything_else_stays_what_it_is() {
        for json in [
            "7",
            r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
            r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"Words."}}"#,
            r#"{"type":"file","file":{"file_id":"f"}}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","text":"Words."}}"#,
            r#"{"type":"text","text":"Words.","cache_control":{}}"#,
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
