//! Arguments and answer of `expand`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use memory_model::{Part, Role, Seq, SeqRange, SummaryId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::error::Error;
use crate::text::{Cut, Moment, fenced, go_on, moment, parts, short};

/// Default maximum number of tokens in an answer.
pub(crate) const DEFAULT_TOKEN_CAP: u64 = 4000;

/// Maximum number of messages and summaries in an answer, however few tokens they have.
pub(crate) const MAX_CHILDREN: usize = 1000;

/// Arguments of [`Retrieval::expand`](crate::Retrieval::expand), the tool `memory_expand`. The comments of the fields
/// are also their descriptions for a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["summary_id"]))]
pub struct ExpandArgs {
    /// A summary's id such as sum_0123456789abcdef, or message:12, or messages:12-40.
    pub summary_id: String,
    /// Maximum tokens of content; 4000 if not given.
    #[schemars(extend("default" = DEFAULT_TOKEN_CAP))]
    pub token_cap: u64,
    /// The cursor of an earlier answer, to go on after it; the other arguments stay the same.
    pub cursor: Option<String>,
}

impl Default for ExpandArgs {
    fn default() -> Self {
        Self {
            summary_id: String::new(),
            token_cap: DEFAULT_TOKEN_CAP,
            cursor: None,
        }
    }
}

impl ExpandArgs {
    /// Creates arguments that expand a summary by its id, or read messages by a pointer such as `message:12`.
    pub fn new(summary_id: impl Into<String>) -> Self {
        Self {
            summary_id: summary_id.into(),
            ..Self::default()
        }
    }
}

impl Arguments for ExpandArgs {
    const NAME: &'static str = "memory_expand";
    const TITLE: &'static str = "Read what a summary stands for";
    const DESCRIPTION: &'static str = "Read what a summary was made from, word for word: the messages of a leaf \
        summary, the summaries inside a condensed one. Also reads messages by their position.";
}

impl From<&str> for ExpandArgs {
    fn from(summary_id: &str) -> Self {
        Self::new(summary_id)
    }
}

/// The object that a call of `expand` reads: a summary or messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The summary with this id, read as its children: messages and summaries.
    Summary(SummaryId),
    /// The messages at these positions, written as `message:12` or `messages:12-40`.
    Messages(SeqRange),
}

impl Target {
    /// Returns the text to which cursors for this target are bound. It omits the last position, because the log may
    /// grow between two calls.
    pub(crate) fn question(&self) -> String {
        match self {
            Target::Summary(id) => format!("expand {id}"),
            Target::Messages(range) => format!("expand messages:{}", range.first),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Summary(id) => id.fmt(f),
            Target::Messages(range) if range.first == range.last => {
                write!(f, "message:{}", range.first)
            }
            Target::Messages(range) => write!(f, "messages:{}-{}", range.first, range.last),
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::invalid(
                "summary_id is required: give a summary's id such as \"sum_0123456789abcdef\", \
                 or a pointer such as \"message:12\" or \"messages:12-40\"",
            ));
        }
        let numbers = match text.strip_prefix("messages:") {
            Some(numbers) => Some(numbers),
            None => text.strip_prefix("message:"),
        };
        let Some(numbers) = numbers else {
            return Ok(Target::Summary(SummaryId::new(text)));
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let seq = |digits: &str| digits.trim().parse().ok().map(Seq);
        seq(first)
            .zip(seq(last))
            .and_then(|(first, last)| SeqRange::new(first, last))
            .map(Target::Messages)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "{} names no messages: write \"message:12\", or \"messages:12-40\" with the \
                     smaller number first; the first message is 1",
                    short(text)
                ))
            })
    }
}

/// Position at which an expansion continues: at the beginning of an item or inside it. An item is a message or a
/// summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpandCursor {
    /// Position of the item in the log. For a summary: position of the first message that it covers.
    pub(crate) seq: Seq,
    /// Number of bytes of the item that earlier answers contained. 0 at the beginning of the item.
    pub(crate) offset: usize,
    /// Number of tokens of the whole item, so that the next answer need not count them again. 0 if unknown.
    pub(crate) of_tokens: u64,
}

impl fmt::Display for ExpandCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.seq)?;
        if self.offset > 0 {
            write!(f, "+{}", self.offset)?;
        }
        if self.of_tokens > 0 {
            write!(f, "/{}", self.of_tokens)?;
        }
        Ok(())
    }
}

impl ExpandCursor {
    /// Returns the position at the beginning of an item.
    pub(crate) fn at(seq: Seq) -> Self {
        Self {
            seq,
            offset: 0,
            of_tokens: 0,
        }
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let numbers = text.strip_prefix('x')?;
        let (place, of_tokens) = numbers.split_once('/').unwrap_or((numbers, "0"));
        let (seq, offset) = place.split_once('+').unwrap_or((place, "0"));
        Some(Self {
            seq: Seq(seq.parse().ok()?),
            offset: offset.parse().ok()?,
            of_tokens: of_tokens.parse().ok()?,
        })
    }
}

/// Answer of `expand`: the children of a summary (messages and summaries), or the requested messages. Serializes to
/// JSON for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExpandAnswer {
    /// The object that was read: the id of a summary, or a pointer to messages such as `messages:12-40`.
    pub summary_id: String,
    /// Position of the first message of the object.
    pub first: Seq,
    /// Position of the last message of the object, inclusive.
    pub last: Seq,
    /// Number of tokens of [`children`](Self::children). This is at most the requested maximum, unless a single
    /// character has more tokens.
    pub tokens: u64,
    /// Whether this answer reaches the end of the object, so that no more content follows.
    pub complete: bool,
    /// Cursor for the rest, to pass in [`ExpandArgs::cursor`]. `None` if the answer is complete. A cursor is valid only
    /// for the same conversation and the same object.
    pub cursor: Option<String>,
    /// Cursor that skips the rest of the last child, if only a piece of it is shown. `None` if the last child is whole,
    /// or if it is also the last one of the object.
    #[serde(skip)]
    pub(crate) behind_clipped: Option<String>,
    /// Pointers with which `expand` can read any part of a long rest directly, such as `messages:41-80`. They divide
    /// the rest into ranges with about equal numbers of tokens. Empty if the next answer is likely to contain the whole
    /// rest, or if the rest contains summaries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<String>,
    /// Number of notes that this answer skipped. Notes are entries of the log that are not messages.
    pub notes: u64,
    /// The messages and summaries in this answer, in the order of the log.
    pub children: Vec<ExpandedChild>,
}

/// An item in an answer of `expand`: a message or a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExpandedChild {
    /// A message, or a piece of a message that is too large for one answer.
    Message(ExpandedMessage),
    /// A summary, or a piece of a summary that is too large for one answer. `expand` can read this summary in turn.
    Summary(ExpandedSummary),
}

/// A message in an answer of `expand`, or a piece of a message that is too large for one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExpandedMessage {
    /// Position of the message in the log.
    pub seq: Seq,
    /// Id of the message in the application from which it was imported. `None` if it has none.
    pub external_id: Option<String>,
    /// Role of the message's author.
    pub role: Role,
    /// Name of the message's author; `None` if the message has none.
    pub name: Option<String>,
    /// Time at which the message was written.
    #[serde(serialize_with = "moment")]
    pub created_at: Timestamp,
    /// Number of tokens of the shown content. A whole message counts with all readable content, including reasoning,
    /// and normally with at least its number of tokens in a context.
    pub tokens: u64,
    /// Verbatim parts of the message. In a piece, the first and the last part may be cut. The arguments of a cut tool
    /// call are a JSON string with an excerpt of the original JSON text. The same applies to a cut part of unknown
    /// type.
    pub parts: Vec<Part>,
    /// Whether only a piece of the message is shown, or images or files are left out.
    pub clipped: bool,
    /// Pointer with which `expand` reads the whole message, such as `message:12`. `None` if the whole message is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Location of the shown piece in the whole message. `None` if the whole message is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<Piece>,
    /// Size of the images and files that were left out, in bytes. An image or file is left out if it alone has more
    /// tokens than the requested maximum. Its part is shown with empty data.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out_bytes: usize,
}

/// A summary in an answer of `expand`, or a piece of a summary that is too large for one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExpandedSummary {
    /// Id of the summary.
    pub summary_id: SummaryId,
    /// Depth of the summary in the tree of summaries. 0 for a summary that was made directly of messages.
    pub depth: u32,
    /// Position of the first message that the summary covers.
    pub first: Seq,
    /// Position of the last message that the summary covers, inclusive.
    pub last: Seq,
    /// Number of tokens of the summary. If only a piece is shown: number of tokens of the text in
    /// [`content`](Self::content).
    pub tokens: u64,
    /// Text of the summary, or of the shown piece.
    pub content: String,
    /// Whether only a piece of the summary is shown.
    pub clipped: bool,
    /// Id of the summary, with which `describe` returns the whole summary. `None` if the whole summary is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Location of the shown piece in the whole text. `None` if the whole summary is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<Piece>,
}

/// Location of a piece in the message or summary from which it was cut. The pieces together contain every byte of the
/// item exactly once. Offsets and lengths count the bytes of the item's texts, joined in order. An image or file with
/// data counts as 3 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Piece {
    /// Byte offset at which the piece begins in the whole message or summary.
    pub offset: usize,
    /// Length of the piece, in bytes.
    pub bytes: usize,
    /// Length of the whole message or summary, in bytes.
    pub of: usize,
    /// Number of tokens of the whole message or summary from which the piece was cut.
    pub of_tokens: u64,
    /// Part of the message in which the piece begins, as a list of indexes: `[2, 0]` is the first part inside the third
    /// part of the message. Empty for a summary.
    pub path: Vec<usize>,
    /// Byte offset at which the piece begins in this part. 0 if the piece contains the beginning of the part.
    pub at: usize,
    /// Whether the piece ends inside a part. The next piece then continues this part.
    pub open: bool,
}

// serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ExpandAnswer {
    /// Returns the answer as text for a model. All content is between fence lines, which the content itself cannot
    /// contain. The field `tokens` does not count the lines outside of the fences.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        out.push_str(&self.summary_id);
        if !self.summary_id.starts_with("message") {
            let _ = write!(out, " covers messages:{}-{}", self.first, self.last);
        }
        let items = match self.children.len() {
            1 => "1 item".to_owned(),
            count => format!("{count} items"),
        };
        let _ = write!(out, "; here {items}, {} tokens", self.tokens);
        match self.notes {
            0 => {}
            1 => out.push_str(", 1 note left out"),
            notes => {
                let _ = write!(out, ", {notes} notes left out");
            }
        }
        out.push_str(".\n");
        for child in &self.children {
            child.write(&mut out);
        }
        out.push('\n');
        match &self.cursor {
            None => out.push_str("This is all of it.\n"),
            Some(cursor) => {
                let _ = writeln!(out, "{}.", go_on("There is more:", false, cursor));
            }
        }
        if let Some(cursor) = &self.behind_clipped {
            let _ = writeln!(
                out,
                "To skip the rest of the clipped one, use cursor {} instead.",
                short(cursor)
            );
        }
        if !self.pointers.is_empty() {
            let _ = writeln!(
                out,
                "To read from another place, use one of these as summary_id: {}.",
                self.pointers.join(", ")
            );
        }
        out
    }
}

impl ExpandedChild {
    /// Writes an empty line, and then the lines of the item for a model.
    pub(crate) fn write(&self, out: &mut String) {
        out.push('\n');
        match self {
            ExpandedChild::Message(message) => message.write(out),
            ExpandedChild::Summary(summary) => summary.write(out),
        }
    }
}

impl ExpandedMessage {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "message:{} {}", self.seq, self.role);
        if let Some(name) = &self.name {
            let _ = write!(out, " {}", short(name));
        }
        let _ = write!(out, "{}, {} tokens", Moment(self.created_at), self.tokens);
        write_piece(out, self.piece.as_ref());
        if self.left_out_bytes > 0 {
            let needed = self.piece.as_ref().map_or(0, |piece| piece.of_tokens);
            let _ = write!(
                out,
                ", {} bytes of media left out: token_cap {needed} gives all",
                self.left_out_bytes
            );
        }
        out.push('\n');
        let cut = self.piece.as_ref().map(|piece| Cut {
            first: piece.at > 0,
            last: piece.open,
        });
        parts(out, &self.parts, cut.unwrap_or_default());
    }
}

impl ExpandedSummary {
    fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "summary {} of messages:{}-{}, depth {}, {} tokens",
            self.summary_id, self.first, self.last, self.depth, self.tokens
        );
        write_piece(out, self.piece.as_ref());
        out.push('\n');
        fenced(out, &self.content);
    }
}

fn write_piece(out: &mut String, piece: Option<&Piece>) {
    if let Some(piece) = piece {
        let _ = write!(
            out,
            ", clipped: bytes {} to {} of {}",
            piece.offset,
            piece.offset + piece.bytes,
            piece.of
        );
    }
}
