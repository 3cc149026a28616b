//! Parts of messages.

mod deserialize;
mod serialize;

use std::borrow::Cow;

use serde::Serialize;

use crate::json::{RawJson, is_same_value};
pub use deserialize::{inner_part_from_raw, part_from_raw, parts_from_json};

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
