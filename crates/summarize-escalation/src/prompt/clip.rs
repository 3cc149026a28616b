//! Limits on the texts that a prompt shows.

use serde::{Deserialize, Serialize};

/// Default maximum number of characters that a prompt shows of a tool call's arguments and of a tool's result. Two
/// thirds of them are from the start and one third from the end; between them is the number of omitted characters.
pub const CLIP_CHARS: usize = 2_000;

/// Maximum number of characters that a prompt shows of each text; `None` shows the whole text. Of a longer text, the
/// prompt shows two thirds of the maximum from the start and one third from the end. Between them it gives the number
/// of omitted characters and the message that shows the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Clip {
    /// Maximum number of characters of a text of the user or the assistant.
    pub text: Option<usize>,
    /// Maximum number of characters of a tool call's arguments.
    pub arguments: Option<usize>,
    /// Maximum number of characters that are kept of a tool result. `None` keeps all.
    pub results: Option<usize>,
    /// Maximum number of characters of an earlier summary.
    pub summaries: Option<usize>,
}

impl Default for Clip {
    /// Shows texts of users and assistants whole, and [`CLIP_CHARS`] characters of arguments and results.
    fn default() -> Self {
        Self {
            text: None,
            arguments: Some(CLIP_CHARS),
            results: Some(CLIP_CHARS),
            summaries: None,
        }
    }
}

impl Clip {
    /// Sets no maximum: all texts are shown whole.
    pub const NONE: Self = Self {
        text: None,
        arguments: None,
        results: None,
        summaries: None,
    };
    /// Returns these maximums, each lowered to at most `chars` characters.
    pub fn at_most(self, chars: usize) -> Self {
        let least = |limit: Option<usize>| Some(limit.map_or(chars, |limit| limit.min(chars)));
        Self {
            text: least(self.text),
            arguments: least(self.arguments),
            results: least(self.results),
            summaries: least(self.summaries),
        }
    }
}

/// Returns at most `chars` characters of a text. A note in between gives the number of omitted characters and `whole`,
/// the hint to the message that shows the whole text.
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
    let note = format!("[… {left} more character{plural}: expand {whole} …]");
    match text.get(offset(total - tail)..).unwrap_or("") {
        "" => format!("{start}\n{note}"),
        end => format!("{start}\n{note}\n{end}"),
    }
}
