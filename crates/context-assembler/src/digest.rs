//! Digests: one text for neighbouring messages that were dropped. It points to them, and has the beginnings
//! of the newest ones, or of all, as far as its limit allows.

use std::collections::HashMap;

use memory_model::{Accounting, Part, ResultContent, Role, SeqRange};

use crate::accounting::cost;
use crate::blocks::{Block, Content};
use crate::context::{ContextMessage, MessageOrigin};
use crate::degrade::{last_that, total};
use crate::marks::{escape_marks, remark};
use crate::render::range_pointer;

/// Least length of a message's beginning, in characters.
const SHORTEST_HEAD: usize = 24;

/// Longest end of a message that is never left out, in characters: what stands for it is as long.
const SHORTEST_END: usize = 4;

/// Bytes of a text that cost at least a token, by any estimator.
const BYTES_PER_TOKEN: u64 = 16;

/// Digests of several stretches of blocks.
pub(crate) struct Digests {
    /// One message for each stretch.
    pub(crate) messages: Vec<ContextMessage>,
    /// Whether the digests have all text of the messages.
    pub(crate) complete: bool,
}

impl Digests {
    /// Cost of the digests, in tokens.
    pub(crate) fn tokens(&self) -> u64 {
        total(&self.messages)
    }
}

/// The positions of neighbouring blocks.
pub(crate) fn range_of(blocks: &[Block<'_>]) -> Option<SeqRange> {
    SeqRange::new(blocks.first()?.range.first, blocks.last()?.range.last)
}

/// Renders a digest of each stretch, oldest first, that cost at most `limit` tokens together if their
/// pointers do.
///
/// With a larger limit and fewer messages at the end of the stretches, no beginning of a message is shorter.
pub(crate) fn digests(
    stretches: &[&[Block<'_>]],
    limit: u64,
    accounting: &dyn Accounting,
) -> Digests {
    let writer = Writer::new(stretches, limit, accounting);
    let longest = writer
        .heads
        .iter()
        .map(|head| head.chars)
        .max()
        .unwrap_or(0);
    let all = writer.heads.len();
    let fits = |heads: usize, chars: usize| writer.fits(heads, chars, limit);
    if !writer.all_heads || !fits(all, SHORTEST_HEAD.min(longest)) {
        let heads = last_that(all as u64, |heads| fits(heads as usize, SHORTEST_HEAD));
        return writer.digests(heads as usize, SHORTEST_HEAD, false);
    }
    let levels = levels(longest);
    let chars = |level: u64| levels.get(level as usize).copied().unwrap_or(longest);
    let level = last_that(levels.len() as u64 - 1, |level| fits(all, chars(level)));
    let chars = chars(level);
    writer.digests(all, chars, chars >= longest)
}

/// Lengths of beginnings that are tried, in characters: each a sixth more than the one before, up to `longest`.
fn levels(longest: usize) -> Vec<usize> {
    let next = |chars: &usize| Some(chars + chars / 6);
    let shorter = std::iter::successors(Some(SHORTEST_HEAD), next);
    let shorter = shorter.take_while(|chars| *chars < longest);
    shorter.chain([longest]).collect()
}

/// The beginning of a message.
struct Head {
    /// Index of the message's stretch.
    stretch: usize,
    /// Position and author, as they are shown.
    author: String,
    /// Text of the message on one line, as far as it could be shown.
    text: String,
    /// Number of characters of the text.
    chars: usize,
}

impl Head {
    fn line(&self, chars: usize) -> String {
        match self.text.char_indices().nth(chars) {
            Some((end, _)) if self.chars > chars.saturating_add(SHORTEST_END) => {
                let text = self.text.get(..end).unwrap_or_default();
                // A bracket before the ellipsis would look like a remark.
                let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == '[');
                format!("{}: {text}…", self.author)
            }
            _ => format!("{}: {}", self.author, self.text),
        }
    }
}

struct Writer<'b> {
    /// Range and number of messages of each stretch.
    stretches: Vec<(SeqRange, u64)>,
    /// Heads of the messages, newest first; no more than could be shown.
    heads: Vec<Head>,
    /// Whether these are the heads of all messages.
    all_heads: bool,
    accounting: &'b dyn Accounting,
}

impl<'b> Writer<'b> {
    fn new(stretches: &[&[Block<'_>]], limit: u64, accounting: &'b dyn Accounting) -> Self {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let most_chars = usize::try_from(limit.saturating_mul(BYTES_PER_TOKEN));
        let most_chars = most_chars.unwrap_or(usize::MAX);
        let mut writer = Self {
            stretches: Vec::with_capacity(stretches.len()),
            heads: Vec::new(),
            all_heads: true,
            accounting,
        };
        for (stretch, blocks) in stretches.iter().enumerate().rev() {
            let Some(range) = range_of(blocks) else {
                continue;
            };
            let mut messages = 0;
            for block in blocks.iter().rev() {
                match block.content {
                    Content::Group => messages += block.messages as u64,
                    _ => {
                        messages += u64::from(block.shows()) * block.range.len();
                        continue;
                    }
                }
                if writer.heads.len() < most {
                    let heads = heads(stretch, block, most_chars);
                    writer.heads.extend(heads.into_iter().rev());
                } else {
                    writer.all_heads = false;
                }
            }
            writer.stretches.push((range, messages));
        }
        writer.stretches.reverse();
        writer
    }

    /// The digests with the newest `heads` heads of at most `chars` characters.
    fn digests(&self, heads: usize, chars: usize, complete: bool) -> Digests {
        let stretches = self.stretches.iter().enumerate();
        let messages = stretches.map(|(at, (range, messages))| {
            let heads = self
                .heads
                .iter()
                .take(heads)
                .filter(|head| head.stretch == at);
            let mut lines: Vec<String> = heads.map(|head| head.line(chars)).collect();
            lines.reverse();
            let mut message = digest(*range, *messages, &lines);
            message.tokens = cost(self.accounting, &message);
            message
        });
        Digests {
            messages: messages.collect(),
            complete,
        }
    }

    fn fits(&self, heads: usize, chars: usize, limit: u64) -> bool {
        let shown = self.heads.iter().take(heads);
        let bytes = shown.map(|head| head.author.len() + head.chars.min(chars));
        let bytes = bytes.fold(0_u64, |sum, bytes| sum.saturating_add(bytes as u64));
        bytes <= limit.saturating_mul(BYTES_PER_TOKEN)
            && self.digests(heads, chars, false).tokens() <= limit
    }
}

/// A digest of `messages` messages with these lines.
fn digest(range: SeqRange, messages: u64, lines: &[String]) -> ContextMessage {
    let pointer = range_pointer(range);
    let what = match (messages, lines.len()) {
        (1, 0) => "1 message left out".to_owned(),
        (_, 0) => format!("{messages} messages left out"),
        (_, shown) if shown as u64 >= messages => format!("{messages} messages, shortened"),
        (_, shown) => format!("{messages} messages, the beginnings of the last {shown}"),
    };
    let mut text = remark(format!("{what}; expand {pointer}"));
    if !lines.is_empty() {
        // A line feed behind the last line, so that nothing at its end looks like a remark.
        let body = format!("\n{}\n", lines.join("\n"));
        text.push_str(escape_marks(&body).trim_end());
    }
    let source = MessageOrigin::Trimmed {
        first: range.first,
        last: range.last,
    };
    ContextMessage::new(Role::User, source, vec![Part::text(text)])
}

/// The heads of a block's messages, in order, with at most `most` characters of each text.
fn heads(stretch: usize, block: &Block<'_>, most: usize) -> Vec<Head> {
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
    let head = |message: &ContextMessage| {
        let tool = message.parts.iter().find_map(|part| match part {
            Part::ToolResult { call_id, .. } => tools.get(call_id.as_str()),
            _ => None,
        });
        let first = message.source.range().unwrap_or(block.range).first;
        let mut line = OneLine::new(most);
        message.parts.iter().for_each(|part| line.part(part));
        let mut author = OneLine::new(SHORTEST_HEAD);
        match tool {
            Some(tool) => author.push(tool),
            None => author.push(&message.role.to_string()),
        }
        Head {
            stretch,
            author: format!("{first} {}", author.text),
            text: line.text,
            chars: line.chars,
        }
    };
    // A stub stands in place of its call, and says nothing.
    let before = std::iter::once(None).chain(block.fitted.messages.iter().map(Some));
    let messages = block.fitted.messages.iter().zip(before);
    let is_stub = |message: &ContextMessage, before: Option<&ContextMessage>| {
        message.role == Role::Tool && before.is_some_and(|call| call.source == message.source)
    };
    let messages = messages.filter(|(message, before)| !is_stub(message, *before));
    messages.map(|(message, _)| head(message)).collect()
}

/// Texts on one line, with single spaces and without control characters.
struct OneLine {
    text: String,
    chars: usize,
    most: usize,
}

impl OneLine {
    fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            most,
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

    /// Adds a text behind a space.
    fn push(&mut self, text: &str) {
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
