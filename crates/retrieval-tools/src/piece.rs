//! Cuts items (messages and summaries) that are too large for one answer into pieces that together contain every byte
//! once.
//!
//! A message is treated as one text, its payload: the texts of its parts, joined in order. An offset is a byte position
//! in the payload. An image or file with data is one character of the payload and is never cut.

use std::borrow::Cow;
use std::cell::OnceCell;

use memory_model::{Accounting, Media, MediaSource, Message, Part, RawJson, ResultContent, Role};

use crate::room::longest;

/// Character that replaces an image or file in a payload.
const MEDIUM: char = '\u{fffc}';

/// The content of a message or summary as one text.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    text: Cow<'a, str>,
    media: Vec<Medium<'a>>,
}

/// An image or file (a medium) in a payload.
#[derive(Debug)]
struct Medium<'a> {
    at: usize,
    part: &'a Part,
    role: Role,
    accounting: &'a dyn Accounting,
    /// Number of tokens. Counted on first use.
    tokens: OnceCell<u64>,
}

impl Medium<'_> {
    /// Returns the number of tokens of the medium.
    fn tokens(&self) -> u64 {
        *self.tokens.get_or_init(|| {
            let alone = Message::new(self.role, vec![self.part.clone()]);
            self.accounting.message(&alone)
        })
    }
}

impl<'a> Payload<'a> {
    /// Returns a payload that consists of one text.
    pub(crate) fn of_text(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            media: Vec::new(),
        }
    }

    /// Returns the payload of a message.
    pub(crate) fn of_message(message: &'a Message, accounting: &'a dyn Accounting) -> Self {
        if let [Part::Text { text }] = message.parts.as_slice() {
            return Self::of_text(text);
        }
        let mut out = Self::of_text("");
        out.collect(&message.parts, message.role, accounting);
        out
    }

    fn collect(&mut self, parts: &'a [Part], role: Role, accounting: &'a dyn Accounting) {
        for part in parts {
            match leaf(part) {
                PartContent::Text(text) => self.text.to_mut().push_str(text),
                PartContent::Medium => {
                    self.media.push(Medium {
                        at: self.text.len(),
                        part,
                        role,
                        accounting,
                        tokens: OnceCell::new(),
                    });
                    self.text.to_mut().push(MEDIUM);
                }
                PartContent::List(inner) => self.collect(inner, role, accounting),
            }
        }
    }

    /// Returns the length of the payload in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether a piece may begin at this offset.
    pub(crate) fn may_begin(&self, offset: usize) -> bool {
        offset < self.len() && self.text.is_char_boundary(offset)
    }

    /// Returns the text of the payload from byte offset `from` to byte offset `to`, exclusive.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Returns the number of tokens of a piece: of its text, and of its images and files that have at most `cap` tokens
    /// each. An answer leaves out larger ones.
    pub(crate) fn cost(
        &self,
        accounting: &dyn Accounting,
        (from, to): (usize, usize),
        cap: u64,
    ) -> u64 {
        let mut tokens = 0u64;
        let mut texts = String::new();
        let mut start = from;
        for medium in self.media.iter().filter(|m| from <= m.at && m.at < to) {
            let cost = medium.tokens();
            if cost <= cap {
                tokens = tokens.saturating_add(cost);
            }
            texts.push_str(self.slice(start, medium.at));
            start = medium.at + MEDIUM.len_utf8();
        }
        let rest = self.slice(start, to);
        let text = if texts.is_empty() {
            rest
        } else {
            texts.push_str(rest);
            &texts
        };
        if text.is_empty() {
            return tokens;
        }
        tokens.saturating_add(accounting.text(text))
    }

    /// Returns the end of the longest piece from offset `from` that has at most `cap` tokens. The piece contains at
    /// least one character, even if that character has more tokens.
    pub(crate) fn fit(&self, accounting: &dyn Accounting, from: usize, cap: u64) -> usize {
        let rest = self.slice(from, self.len());
        let bytes = longest(rest, |piece| {
            self.cost(accounting, (from, from + piece.len()), cap) <= cap
        });
        let first = rest.chars().next().map_or(0, char::len_utf8);
        from + bytes.max(first)
    }

    /// Returns the number of tokens of the medium at an offset.
    fn medium(&self, at: usize) -> u64 {
        self.media
            .iter()
            .find(|medium| medium.at == at)
            .map_or(0, Medium::tokens)
    }
}

/// Content of a part in the payload of a message.
enum PartContent<'a> {
    Text(&'a str),
    Medium,
    List(&'a [Part]),
}

fn leaf(part: &Part) -> PartContent<'_> {
    match part {
        Part::Text { text } | Part::Reasoning { text, .. } => PartContent::Text(text),
        Part::ToolCall { arguments, .. } => PartContent::Text(arguments.as_str()),
        Part::ToolResult { content, .. } => match content {
            ResultContent::Text(text) => PartContent::Text(text),
            ResultContent::Parts(parts) if parts.is_empty() => PartContent::Text(""),
            ResultContent::Parts(parts) => PartContent::List(parts),
        },
        Part::Image(media) | Part::File(media) => match &media.source {
            MediaSource::Data(_) => PartContent::Medium,
            MediaSource::Url(url) => PartContent::Text(url),
        },
        Part::Unknown { raw } => PartContent::Text(raw.as_str()),
    }
}

/// A piece of a message, as parts.
pub(crate) struct CutParts<'a> {
    payload: &'a Payload<'a>,
    from: usize,
    to: usize,
    cap: u64,
    position: usize,
    here: Vec<usize>,
    is_begun: bool,
    /// Parts of the piece. The first and the last one may be cut.
    pub(crate) parts: Vec<Part>,
    /// Location of the first part in the message: the index of each enclosing part, outermost first, and then the index
    /// of the part itself.
    pub(crate) path: Vec<usize>,
    /// Byte offset in this part at which the piece begins.
    pub(crate) at: usize,
    /// Whether the piece ends inside its last part.
    pub(crate) open: bool,
    /// Size of the images and files that were left out because they have more tokens than the maximum, in bytes.
    pub(crate) left_out: usize,
}

impl<'a> CutParts<'a> {
    /// Cuts the piece of a message from byte offset `from` to byte offset `to`, exclusive.
    pub(crate) fn new(
        payload: &'a Payload<'a>,
        parts: &[Part],
        (from, to): (usize, usize),
        cap: u64,
    ) -> Self {
        let mut cut = Self {
            payload,
            from,
            to,
            cap,
            position: 0,
            here: Vec::new(),
            is_begun: false,
            parts: Vec::new(),
            path: Vec::new(),
            at: 0,
            open: false,
            left_out: 0,
        };
        cut.parts = cut.list(parts);
        cut
    }

    fn list(&mut self, parts: &[Part]) -> Vec<Part> {
        let mut out = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            self.here.push(index);
            out.extend(self.part(part));
            self.here.pop();
        }
        out
    }

    fn part(&mut self, part: &Part) -> Option<Part> {
        let start = self.position;
        match leaf(part) {
            PartContent::Text(text) => {
                let (a, b) = self.take(text.len())?;
                if (a, b) == (0, text.len()) {
                    return Some(part.clone());
                }
                Some(cut_leaf(
                    part,
                    text.get(a..b).unwrap_or_default(),
                    b == text.len(),
                ))
            }
            PartContent::Medium => {
                self.take(MEDIUM.len_utf8())?;
                if self.payload.medium(start) <= self.cap {
                    return Some(part.clone());
                }
                let (Part::Image(media) | Part::File(media)) = part else {
                    return None;
                };
                if let MediaSource::Data(data) = &media.source {
                    self.left_out += data.len();
                }
                Some(with_source(part, media, MediaSource::Data(String::new())))
            }
            PartContent::List(inner) => {
                let inner = self.list(inner);
                let Part::ToolResult {
                    call_id, is_error, ..
                } = part
                else {
                    return None;
                };
                (!inner.is_empty()).then(|| Part::ToolResult {
                    call_id: call_id.clone(),
                    content: ResultContent::Parts(inner),
                    is_error: *is_error,
                })
            }
        }
    }

    /// Advances by a part with `len` bytes. Returns the range of these bytes that lies in the piece, or `None`. An
    /// empty part belongs to the piece that begins at or contains its position. At the end of the message it belongs to
    /// the last piece.
    fn take(&mut self, len: usize) -> Option<(usize, usize)> {
        let start = self.position;
        let end = start + len;
        self.position = end;
        let inside = if len == 0 {
            self.from <= start && (start < self.to || self.to == self.payload.len())
        } else {
            start < self.to && self.from < end
        };
        if !inside {
            return None;
        }
        let a = self.from.saturating_sub(start);
        let b = self.to.min(end) - start;
        if !self.is_begun {
            (self.is_begun, self.at) = (true, a);
            self.path.clone_from(&self.here);
        }
        self.open = b < len;
        Some((a, b))
    }
}

/// Returns an image or file with another source.
fn with_source(part: &Part, media: &Media, source: MediaSource) -> Part {
    let media = Media {
        media_type: media.media_type.clone(),
        source,
    };
    match part {
        Part::Image(_) => Part::Image(media),
        _ => Part::File(media),
    }
}

/// Returns a part with `text` as its content. JSON content becomes a JSON string with the excerpt. Only the last piece
/// keeps a signature.
fn cut_leaf(part: &Part, text: &str, end: bool) -> Part {
    // A string can always be written as JSON.
    let json = |text: &str| RawJson::from_value(&text);
    match part {
        Part::Reasoning { signature, .. } => Part::Reasoning {
            text: text.to_owned(),
            signature: signature.clone().filter(|_| end),
        },
        Part::ToolCall { id, name, .. } => match json(text) {
            Ok(arguments) => Part::ToolCall {
                id: id.clone(),
                name: name.clone(),
                arguments,
            },
            Err(_) => Part::text(text),
        },
        Part::ToolResult {
            call_id, is_error, ..
        } => Part::ToolResult {
            call_id: call_id.clone(),
            content: ResultContent::Text(text.to_owned()),
            is_error: *is_error,
        },
        Part::Image(media) | Part::File(media) => {
            with_source(part, media, MediaSource::Url(text.to_owned()))
        }
        Part::Unknown { .. } => match json(text) {
            Ok(raw) => Part::Unknown { raw },
            Err(_) => Part::text(text),
        },
        Part::Text { .. } => Part::text(text),
    }
}
