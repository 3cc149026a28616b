//! Body of a summary: text in lines, each with a rank.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hash::FieldHasher;

/// A line of a [`SummaryBody`] with its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedLine<'a> {
    /// Text of the line, without a line feed.
    pub text: &'a str,
    /// Importance of the line among the lines of its body. When the body is shortened, lines with lower ranks are
    /// dropped first.
    pub rank: u8,
}

/// Text of a summary: lines in the order of the log, each with a rank.
///
/// Only ranks of the same body can be compared. If all lines have the same rank, each has rank 0.
///
/// ```
/// use memory_model::{RankedLine, SummaryBody};
///
/// let line = |text, rank| RankedLine { text, rank };
/// let body = SummaryBody::ranked([line("The port is 8080.", 9), line("Tests ran.", 2)]);
/// assert_eq!(body.text(), "The port is 8080.\nTests ran.");
/// assert_eq!(body.lines().next(), Some(line("The port is 8080.", 9)));
/// assert_eq!(SummaryBody::new("one\ntwo").ranks(), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct SummaryBody {
    text: String,
    /// Rank of each line; empty if all ranks are equal.
    ranks: Vec<u8>,
}

impl SummaryBody {
    /// Creates a body of lines with the same rank. Line feeds in `text` end the lines.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ranks: Vec::new(),
        }
    }

    /// Creates a body of ranked lines. A text with line feeds becomes several lines with the same rank.
    pub fn ranked<'a>(lines: impl IntoIterator<Item = RankedLine<'a>>) -> Self {
        let (mut texts, mut ranks) = (Vec::new(), Vec::new());
        for line in lines {
            ranks.extend(line.text.split('\n').map(|_| line.rank));
            texts.push(line.text);
        }
        Self {
            text: texts.join("\n"),
            ranks: without_equal(ranks),
        }
    }

    /// Creates a body from its text and the rank of each line; `ranks` is `None` when all ranks are equal.
    ///
    /// # Errors
    /// [`RankCountError`] if the number of ranks differs from the number of lines.
    pub fn from_parts(text: String, ranks: Option<Vec<u8>>) -> Result<Self, RankCountError> {
        let Some(ranks) = ranks else {
            return Ok(Self::new(text));
        };
        let lines = text.split('\n').count();
        if ranks.len() != lines {
            let ranks = ranks.len();
            return Err(RankCountError { lines, ranks });
        }
        let ranks = without_equal(ranks);
        Ok(Self { text, ranks })
    }

    /// Returns the lines joined by line feeds.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the rank of each line; `None` if all ranks are equal.
    pub fn ranks(&self) -> Option<&[u8]> {
        (!self.ranks.is_empty()).then_some(self.ranks.as_slice())
    }

    /// Returns the lines of the body, in order.
    pub fn lines(&self) -> impl Iterator<Item = RankedLine<'_>> {
        let ranks = self.ranks.iter().copied().chain(std::iter::repeat(0));
        let line = |(text, rank)| RankedLine { text, rank };
        self.text.split('\n').zip(ranks).map(line)
    }

    /// Adds the text and the ranks to a hash.
    pub(crate) fn add_to(&self, hasher: &mut FieldHasher) {
        hasher.bytes(self.text.as_bytes());
        hasher.bytes(&self.ranks);
    }
}

impl From<&str> for SummaryBody {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for SummaryBody {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// Error returned when the number of ranks differs from the number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankCountError {
    lines: usize,
    ranks: usize,
}

impl fmt::Display for RankCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, ranks } = self;
        write!(f, "the text has {lines} lines, but {ranks} ranks")
    }
}

impl std::error::Error for RankCountError {}

/// Returns the ranks, or an empty list if all ranks are equal.
fn without_equal(ranks: Vec<u8>) -> Vec<u8> {
    match ranks.windows(2).any(|pair| pair.first() != pair.last()) {
        true => ranks,
        false => Vec::new(),
    }
}

/// Serialized form of a [`SummaryBody`].
#[derive(Serialize, Deserialize)]
struct Parts {
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranks: Option<Vec<u8>>,
}

impl From<SummaryBody> for Parts {
    fn from(body: SummaryBody) -> Self {
        Self {
            text: body.text,
            ranks: Some(body.ranks).filter(|ranks| !ranks.is_empty()),
        }
    }
}

impl TryFrom<Parts> for SummaryBody {
    type Error = RankCountError;

    fn try_from(parts: Parts) -> Result<Self, RankCountError> {
        Self::from_parts(parts.text, parts.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ranks_are_not_stored() {
        let line = |text, rank| RankedLine { text, rank };
        let plain = SummaryBody::new("a\nb\n");
        assert_eq!(SummaryBody::ranked([line("a\nb", 7), line("", 7)]), plain);
        let parts = SummaryBody::from_parts("a\nb\n".to_owned(), Some(vec![3, 3, 3]));
        assert_eq!(parts, Ok(plain));
    }

    #[test]
    fn ranks_survive_json_and_their_number_is_checked() {
        let line = |text, rank| RankedLine { text, rank };
        let body = SummaryBody::ranked([line("a\nb", 1), line("c", 2)]);
        assert_eq!(body.ranks(), Some(&[1, 1, 2][..]));
        let json = serde_json::to_string(&body).unwrap();
        assert_eq!(json, r#"{"text":"a\nb\nc","ranks":[1,1,2]}"#);
        assert_eq!(serde_json::from_str::<SummaryBody>(&json).unwrap(), body);
        let wrong = serde_json::from_str::<SummaryBody>(r#"{"text":"a","ranks":[1,2]}"#);
        let message = wrong.unwrap_err().to_string();
        assert_eq!(message, "the text has 1 lines, but 2 ranks");
    }
}
