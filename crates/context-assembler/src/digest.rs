//! Digests: one text that replaces neighbouring dropped messages. It has a pointer to the messages, and the beginnings
//! and ends of as many messages as its limit allows. Texts of people come before output of tools, and later messages
//! before earlier ones.

use std::collections::HashMap;

use memory_model::{Accounting, Part, ResultContent, Role, Seq, SeqRange};

use crate::accounting::cost;
use crate::blocks::{Block, Content};
use crate::context::{ContextMessage, MessageOrigin};
use crate::degrade::{last_that, total};
use crate::marks::{escape_marks, remark};
use crate::render::range_pointer;

/// Minimum length of the shown beginning of a message, in characters. Shorter beginnings are useless.
const SHORTEST_HEAD: usize = 72;

/// Maximum length of an author's name, in characters.
const LONGEST_AUTHOR: usize = 24;

/// Minimum length of a shortened message that also shows its end, in characters.
const BOTH_ENDS: usize = 32;

/// Minimum length of the shown end of a message, in characters.
const SHORTEST_TAIL: usize = 8;

/// Maximum length of an end that is never omitted, in characters, because an ellipsis would be as long.
const SHORTEST_END: usize = 4;

/// Maximum number of bytes of text for one token, with any estimator.
const BYTES_PER_TOKEN: u64 = 16;

/// Renders one digest (a text with a pointer and excerpts) for each stretch of neighbouring blocks (groups of
/// messages), oldest first. Together the digests cost at most `limit` tokens, unless their pointers alone cost more.
/// Also returns whether the digests contain the whole text of the messages.
///
/// With a larger limit, or with fewer messages at the end of the stretches, no beginning of a message becomes shorter.
pub(crate) fn digests(
    stretches: &[&[Block<'_>]],
    limit: u64,
    accounting: &dyn Accounting,
) -> (Vec<ContextMessage>, bool) {
    let most_bytes = limit.saturating_mul(BYTES_PER_TOKEN);
    // Beginnings of the messages, latest first, and texts of people and the model before all others. No more than could
    // be shown.
    let mut heads: Vec<Excerpt> = Vec::new();
    let mut all_heads = true;
    for (stretch, blocks) in stretches.iter().enumerate().rev() {
        for block in blocks.iter().rev().filter(|block| block.is_group()) {
            if (heads.len() as u64) < limit {
                let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
                heads.extend(heads_of(stretch, block, most).into_iter().rev());
            } else {
                all_heads = false;
            }
        }
    }
    heads.sort_by_key(|head| !head.speaks);
    // Renders the digests with the first `count` beginnings of at most `chars` characters.
    let render = |count: usize, chars: usize| -> Vec<ContextMessage> {
        let messages = stretches.iter().enumerate().filter_map(|(at, blocks)| {
            let heads = heads.iter().take(count).filter(|head| head.stretch == at);
            let mut heads: Vec<&Excerpt> = heads.collect();
            heads.sort_by_key(|head| head.place);
            let lines: Vec<String> = heads.iter().map(|head| head.line(chars)).collect();
            let mut message = digest(blocks, &lines)?;
            message.tokens = cost(accounting, &message);
            Some(message)
        });
        messages.collect()
    };
    let fitting = |count: usize, chars: usize| {
        let shown = heads.iter().take(count);
        let bytes = shown.map(|head| (head.author.len() + head.chars.min(chars)) as u64);
        let may_fit = bytes.fold(0, u64::saturating_add) <= most_bytes;
        let digests = may_fit.then(|| render(count, chars));
        digests.filter(|digests| total(digests) <= limit)
    };
    let all = heads.len();
    let longest = heads.iter().map(|head| head.chars).max().unwrap_or(0);
    let levels = levels(longest);
    let chars = |level: u64| levels.get(level as usize).copied().unwrap_or(longest);
    let with_all = |level| Some((fitting(all, chars(level))?, chars(level) >= longest));
    let shortest = all_heads.then(|| with_all(0)).flatten();
    let Some(shortest) = shortest else {
        let digests = last_that(all as u64, |count| fitting(count as usize, SHORTEST_HEAD));
        return (digests.unwrap_or_else(|| render(0, SHORTEST_HEAD)), false);
    };
    last_that(levels.len() as u64 - 1, with_all).unwrap_or(shortest)
}

/// Returns the lengths of beginnings to try, in characters, up to `longest`. Each is a sixth longer than the one
/// before.
fn levels(longest: usize) -> Vec<usize> {
    let next = |chars: &usize| Some(chars + chars / 6);
    let shorter = std::iter::successors(Some(SHORTEST_HEAD), next);
    let shorter = shorter.take_while(|chars| *chars < longest);
    shorter.chain([longest]).collect()
}

/// Beginning and end of a message, as a line of a digest.
struct Excerpt {
    /// Index of the stretch that contains the message.
    stretch: usize,
    /// Position of the message, and its index in its block.
    place: (Seq, usize),
    /// Whether the message has text of a person or the model. False for output of a tool and for a call alone.
    speaks: bool,
    /// Position and author of the message, as shown.
    author: String,
    /// Text of the message on one line, up to the maximum length that could be shown.
    text: String,
    /// Number of characters in `text`.
    chars: usize,
    /// End of the message on one line. `None` if `text` is the whole message.
    end: Option<String>,
}

impl Excerpt {
    /// Returns the beginning and the end of the message, with `chars` characters together.
    ///
    /// With more characters, neither of them becomes shorter.
    fn line(&self, chars: usize) -> String {
        let author = &self.author;
        if self.chars <= chars.saturating_add(SHORTEST_END) {
            return format!("{author}: {}", self.text);
        }
        let head = (chars - chars / 3).max(chars.min(BOTH_ENDS));
        // A bracket before the ellipsis would look like the beginning of a remark.
        let is_open = |c: char| c.is_whitespace() || c == '[';
        let is_close = |c: char| c.is_whitespace() || c == ']';
        let end = self.text.char_indices().nth(head);
        let end = end.map_or(self.text.len(), |(end, _)| end);
        let head_text = self.text.get(..end).unwrap_or_default();
        // The beginning ends between words, unless it would lose half of its length.
        let words = head_text
            .rfind(is_open)
            .filter(|end| *end > head_text.len() / 2);
        let head_text = head_text
            .get(..words.unwrap_or(head_text.len()))
            .unwrap_or_default();
        let tail_text = match chars - head {
            tail @ SHORTEST_TAIL.. => last_chars(self.end.as_deref().unwrap_or(&self.text), tail),
            _ => "",
        };
        format!(
            "{author}: {}…{}",
            head_text.trim_end_matches(is_open),
            tail_text.trim_start_matches(is_close)
        )
    }
}

/// Returns the last `count` characters of a text.
fn last_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count.saturating_sub(1));
    start.map_or(text, |(start, _)| text.get(start..).unwrap_or_default())
}

/// Returns a digest (one text that replaces messages) of neighbouring blocks, with these lines. `None` if there are no
/// blocks.
fn digest(blocks: &[Block<'_>], lines: &[String]) -> Option<ContextMessage> {
    let range = SeqRange::new(blocks.first()?.range.first, blocks.last()?.range.last)?;
    let messages = blocks.iter().map(|block| match block.content {
        Content::Group => block.messages as u64,
        _ => u64::from(block.shows()) * block.range.len(),
    });
    let messages: u64 = messages.sum();
    let pointer = range_pointer(range);
    let what = match (messages, lines.len()) {
        (1, 0) => "1 message left out".to_owned(),
        (_, 0) => format!("{messages} messages left out"),
        (_, shown) if shown as u64 >= messages => format!("{messages} messages, shortened"),
        (_, shown) => format!("{messages} messages, the beginnings of {shown}"),
    };
    let mut text = remark(format!("{what}; expand {pointer}"));
    if !lines.is_empty() {
        // A line feed after the last line prevents its end from looking like the end of a remark.
        let body = format!("\n{}\n", lines.join("\n"));
        text.push_str(escape_marks(&body).trim_end());
    }
    let source = MessageOrigin::Trimmed {
        first: range.first,
        last: range.last,
    };
    Some(ContextMessage::new(
        Role::User,
        source,
        vec![Part::text(text)],
    ))
}

/// Returns the beginnings of a block's messages, in order, with at most `most` characters of each text.
fn heads_of(stretch: usize, block: &Block<'_>, most: usize) -> Vec<Excerpt> {
    let mut tools: HashMap<&str, &str> = HashMap::new();
    for part in block
        .fitted
        .messages
        .iter()
        .flat_map(|message| &message.parts)
    {
        if let Part::ToolCall { id, name, .. } = part {
            tools.insert(id, name);
        }
    }
    let head = |(place, message): (usize, &ContextMessage)| {
        let tool = message.parts.iter().find_map(|part| match part {
            Part::ToolResult { call_id, .. } => tools.get(call_id.as_str()),
            _ => None,
        });
        let first = message.source.range().unwrap_or(block.range).first;
        let mut line = OneLine::new(most);
        message.parts.iter().for_each(|part| line.part(part));
        let end = message.parts.last().filter(|_| line.chars >= most);
        let end = end.map(|part| {
            let mut end = OneLine::end(most);
            end.part(part);
            last_chars(&end.text, most).to_owned()
        });
        let mut author = OneLine::new(LONGEST_AUTHOR);
        match tool {
            Some(tool) => author.push(tool),
            None => author.push(&message.role.to_string()),
        }
        let is_text = |part: &Part| matches!(part, Part::Text { .. });
        Excerpt {
            stretch,
            place: (first, place),
            speaks: tool.is_none() && message.parts.iter().any(is_text),
            author: format!("{first} {}", author.text),
            text: line.text,
            chars: line.chars,
            end,
        }
    };
    // A stub has the origin of its call, but no text.
    let before = std::iter::once(None).chain(block.fitted.messages.iter().map(Some));
    let messages = block.fitted.messages.iter().zip(before);
    let is_stub = |message: &ContextMessage, before: Option<&ContextMessage>| {
        message.role == Role::Tool && before.is_some_and(|call| call.source == message.source)
    };
    let messages = messages.filter(|(message, before)| !is_stub(message, *before));
    let messages = messages.map(|(message, _)| message).enumerate();
    messages.map(head).collect()
}

/// Texts joined on one line, with single spaces and without control characters.
struct OneLine {
    text: String,
    chars: usize,
    /// Maximum number of characters.
    most: usize,
    /// Number of bytes to take from the end of each text.
    end_bytes: usize,
}

impl OneLine {
    fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            most,
            end_bytes: usize::MAX,
        }
    }

    /// Creates a line that takes at least `chars` characters from the end of each text.
    fn end(chars: usize) -> Self {
        Self {
            end_bytes: chars.saturating_mul(4),
            ..Self::new(usize::MAX)
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text { text } | Part::Reasoning { text, .. } => self.push(text),
            Part::ToolCall {
                name, arguments, ..
            } => {
                self.push(name);
                self.push(arguments.as_str());
            }
            Part::ToolResult { content, .. } => match content {
                ResultContent::Text(text) => self.push(text),
                ResultContent::Parts(parts) => {
                    let is_text =
                        |part: &&Part| matches!(part, Part::Text { .. } | Part::Unknown { .. });
                    parts
                        .iter()
                        .filter(is_text)
                        .for_each(|part| self.part(part));
                }
            },
            Part::Image(_) => self.push("(image)"),
            Part::File(_) => self.push("(file)"),
            Part::Unknown { raw } => self.push(&raw.without_bytes()),
        }
    }

    /// Appends a text after a space.
    fn push(&mut self, text: &str) {
        let start = text.len().saturating_sub(self.end_bytes);
        let text = text
            .get(text.ceil_char_boundary(start)..)
            .unwrap_or_default();
        let mut space = self.chars > 0;
        for c in text.chars() {
            if self.chars >= self.most {
                return;
            }
            if c.is_whitespace() {
                space = self.chars > 0;
                continue;
            }
            if std::mem::take(&mut space) {
                self.text.push(' ');
                self.chars += 1;
            }
            if c.is_control() {
                self.text.extend(c.escape_debug());
                self.chars += c.escape_debug().count();
            } else {
                self.text.push(c);
                self.chars += 1;
            }
        }
    }
}
