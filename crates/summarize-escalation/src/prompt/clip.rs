//! Limits on the texts that a prompt shows.

use serde::{Deserialize, Serialize};

/// Default number of characters below which a prompt shortens no arguments and no result of a tool call. Two thirds of a
/// shortened text are from its start and one third from its end; between them is the number of omitted characters.
pub const LEAST_CHARS: usize = 2_000;
/// Default maximum number of characters that a prompt shows of a pasted document.
pub const DOCUMENT_CHARS: usize = 8_000;

/// Default number of tokens above which a source is shortened even if the model's window has room for it. It is what
/// a prompt of texts of [`LEAST_CHARS`] characters costs for an ordinary leaf, so that a summary costs about the same
/// whatever the lengths of its results.
pub const ROOM_TOKENS: u64 = 10_000;

/// Maximum number of characters that a prompt shows of each text; `None` shows the whole text. Of a longer text, the
/// prompt shows two thirds of the maximum from the start and one third from the end. Between them it gives the number
/// of omitted characters, the length of the whole text, and the message that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clip {
    /// Maximum number of characters of a text of the user or the assistant.
    pub text: Option<usize>,
    /// Maximum number of characters of a document: a user's text that is too long to have been typed, or a message of
    /// the role system.
    pub documents: Option<usize>,
    /// Maximum number of characters of a tool call's arguments.
    pub arguments: Option<usize>,
    /// Maximum number of characters that are kept of a tool result. `None` keeps all.
    pub results: Option<usize>,
    /// Maximum number of characters of an earlier summary.
    pub summaries: Option<usize>,
    /// Number of characters to which arguments and results may be shortened if the source is longer than there is room
    /// for. The longest of them are shortened first, and none below this number. `None` shortens none for this reason.
    pub least: Option<usize>,
    /// Maximum cost of the shown source, in tokens, as far as `least` allows; `None` shows as much as the model's window
    /// has room for. A window with less room always counts.
    pub room: Option<u64>,
}

impl Default for Clip {
    /// Shows texts of users and assistants whole, [`DOCUMENT_CHARS`] characters of a document, and as much of tool calls
    /// and results as there is room for, at least [`LEAST_CHARS`] characters of each. There is room for [`ROOM_TOKENS`]
    /// tokens, or for as much as the model's window has, if that is less.
    fn default() -> Self {
        Self {
            documents: Some(DOCUMENT_CHARS),
            least: Some(LEAST_CHARS),
            room: Some(ROOM_TOKENS),
            ..Self::NONE
        }
    }
}

impl Clip {
    /// Sets no maximum: all texts are shown whole.
    pub const NONE: Self = Self {
        text: None,
        documents: None,
        arguments: None,
        results: None,
        summaries: None,
        least: None,
        room: None,
    };

    /// Returns these maximums, each lowered to at most `chars` characters.
    pub fn at_most(self, chars: usize) -> Self {
        Self {
            text: lower(self.text, chars),
            documents: lower(self.documents, chars),
            summaries: lower(self.summaries, chars),
            ..self.tools_at_most(chars)
        }
    }

    /// Returns these maximums, with those of arguments and results lowered to at most `chars` characters.
    pub(crate) fn tools_at_most(self, chars: usize) -> Self {
        Self {
            arguments: lower(self.arguments, chars),
            results: lower(self.results, chars),
            ..self
        }
    }

    /// Returns these maximums for a source with this number of messages and summaries. A source of one message has no limit
    /// but the model's window.
    pub(crate) fn for_pieces(self, pieces: usize) -> Self {
        match pieces {
            1 => Self {
                documents: None,
                room: None,
                ..self
            },
            _ => self,
        }
    }

    /// Returns the smallest maximums to which a lack of room may lead, for a source with this number of messages and
    /// summaries. A source of one message keeps its maximums.
    pub(crate) fn shortest(self, pieces: usize) -> Self {
        match self.least {
            Some(chars) if pieces != 1 => self.tools_at_most(chars),
            _ => self.for_pieces(pieces),
        }
    }
}

fn lower(limit: Option<usize>, chars: usize) -> Option<usize> {
    Some(limit.map_or(chars, |limit| limit.min(chars)))
}

/// Returns at most `chars` characters of a text. A note in between gives the number of omitted characters, the number
/// of all characters, and `whole`, the hint to the message that shows the whole text.
pub(super) fn shorten(text: &str, chars: usize, whole: &str) -> String {
    let total = text.chars().count();
    if total <= chars {
        return text.to_owned();
    }
    let tail = chars / 3;
    let head = chars - tail;
    let offset = |nth: usize| {
        text.char_indices()
            .nth(nth)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, left) = (text.get(..offset(head)).unwrap_or(""), total - chars);
    let plural = if left == 1 { "" } else { "s" };
    let note = format!("[… {left} more character{plural} of {total}: expand {whole} …]");
    match text.get(offset(total - tail)..).unwrap_or("") {
        "" => format!("{start}\n{note}"),
        end => format!("{start}\n{note}\n{end}"),
    }
}
