//! The messages of a page.

use std::borrow::Cow;

use agent_memory::model::{LogEntry, MediaSource, ResultContent};
use agent_memory::{Part, Role};
use serde::Serialize;

use crate::output::bytes;

/// Returns a text as the page shows it. Every text of a transcript and of a summary passes through such a function
/// before it is written.
pub(super) type Shown<'f> = &'f dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// An entry of the log with its content.
#[derive(Debug, Serialize)]
pub(super) struct Entry<'a> {
    pub(super) seq: u32,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    parts: Vec<Piece<'a>>,
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Reasoning {
        text: Cow<'a, str>,
    },
    Call {
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    Result {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// A picture or a file: its type and size, or its address. The page has no bytes of it.
    Media {
        text: Cow<'a, str>,
    },
    /// A part of an unknown type, as its JSON text.
    Other {
        text: Cow<'a, str>,
    },
}

impl<'a> Entry<'a> {
    pub(super) fn of(entry: &'a LogEntry, shown: Shown<'_>) -> Self {
        let message = &entry.message;
        Self {
            seq: entry.seq.0,
            role: message.role,
            name: message.name.as_deref().map(shown),
            parts: message
                .parts
                .iter()
                .map(|part| Piece::of(part, shown))
                .collect(),
        }
    }
}

impl<'a> Piece<'a> {
    fn of(part: &'a Part, shown: Shown<'_>) -> Self {
        match part {
            Part::Text { text } => Piece::Text { text: shown(text) },
            Part::Reasoning { text, .. } => Piece::Reasoning { text: shown(text) },
            Part::ToolCall {
                name, arguments, ..
            } => Piece::Call {
                name: shown(name),
                arguments: shown(arguments.as_str()),
            },
            Part::ToolResult {
                content, is_error, ..
            } => Piece::Result {
                text: result(content, shown),
                failed: *is_error == Some(true),
            },
            Part::Image(media) | Part::File(media) => {
                let text = match &media.source {
                    MediaSource::Url(url) => format!("{} at {url}", media.media_type),
                    MediaSource::Data(data) => {
                        format!("{}, {}", media.media_type, bytes(data.len() as u64 / 4 * 3))
                    }
                };
                Piece::Media {
                    text: Cow::Owned(shown(&text).into_owned()),
                }
            }
            Part::Unknown { raw } => Piece::Other {
                text: shown(raw.as_str()),
            },
        }
    }
}

/// Returns the text of a tool's result, with a line for each picture and file.
fn result<'a>(content: &'a ResultContent, shown: Shown<'_>) -> Cow<'a, str> {
    let parts = match content {
        ResultContent::Text(text) => return shown(text),
        ResultContent::Parts(parts) => parts,
    };
    let texts = parts.iter().map(|part| match Piece::of(part, shown) {
        Piece::Text { text }
        | Piece::Reasoning { text }
        | Piece::Result { text, .. }
        | Piece::Media { text }
        | Piece::Other { text } => text,
        Piece::Call { name, arguments } => Cow::Owned(format!("{name} {arguments}")),
    });
    Cow::Owned(texts.collect::<Vec<_>>().join("\n"))
}
