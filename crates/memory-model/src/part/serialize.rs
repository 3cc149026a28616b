//! Writes parts in the form of any serde format.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Media, MediaSource, Part};

impl Part {
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
