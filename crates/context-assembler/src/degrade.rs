//! Shortening a group until it fits, in named steps.

use memory_model::{Accounting, Part, ResultContent, Role, SeqRange};

use crate::accounting::cost;
use crate::context::{ContextMessage, Degradation, Source, Step};
use crate::render::{message_pointer, render_text};

/// Texts are not clipped below this many tokens: what is left would say nothing.
const SMALLEST_CLIP: u64 = 16;

/// A group's messages, shortened to fit.
pub(crate) struct Degraded {
    pub(crate) messages: Vec<ContextMessage>,
    pub(crate) degradation: Degradation,
}

/// Shortens a group to at most `limit` tokens. Fails with what the last step needs at least.
pub(crate) fn degrade(
    whole: &[ContextMessage],
    range: SeqRange,
    limit: u64,
    accounting: &dyn Accounting,
) -> Result<Degraded, u64> {
    let from_tokens = total(whole);
    let done = |mut messages: Vec<ContextMessage>, step| {
        for (message, before) in messages.iter_mut().zip(whole) {
            if message.parts != before.parts {
                mark_trimmed(message);
            }
        }
        let to_tokens = total(&messages);
        Degraded {
            degradation: degradation(range, step, from_tokens, to_tokens),
            messages,
        }
    };
    let mut messages = whole.to_vec();
    if stub_results(&mut messages, limit, accounting) {
        return Ok(done(messages, Step::StubbedResults));
    }
    if clip_largest(&mut messages, limit, accounting) {
        return Ok(done(messages, Step::Clipped));
    }
    let message = as_text(whole, range, limit, accounting)?;
    let to_tokens = message.tokens;
    Ok(Degraded {
        messages: vec![message],
        degradation: degradation(range, Step::Text, from_tokens, to_tokens),
    })
}

fn degradation(range: SeqRange, step: Step, from_tokens: u64, to_tokens: u64) -> Degradation {
    Degradation {
        first: range.first,
        last: range.last,
        step,
        from_tokens,
        to_tokens,
    }
}

pub(crate) fn total(messages: &[ContextMessage]) -> u64 {
    messages
        .iter()
        .map(|message| message.tokens)
        .fold(0, u64::saturating_add)
}

fn mark_trimmed(message: &mut ContextMessage) {
    if let Source::Message { first, last } = message.source {
        message.source = Source::Trimmed { first, last };
    }
}

/// What to give the expand tool for the message that a part stands in.
fn pointer(message: &ContextMessage) -> String {
    match (&message.source, message.source.range()) {
        (Source::Summary { summary_id, .. }, _) => summary_id.to_string(),
        (_, Some(range)) if range.first == range.last => message_pointer(range.first),
        (_, Some(range)) => format!("messages:{}-{}", range.first, range.last),
        (_, None) => "the identity".to_owned(),
    }
}

/// Replaces results by stubs, oldest first, until the messages fit. True when they do.
fn stub_results(messages: &mut [ContextMessage], limit: u64, accounting: &dyn Accounting) -> bool {
    let mut sum = total(messages);
    for message in messages.iter_mut() {
        let pointer = pointer(message);
        for index in 0..message.parts.len() {
            if sum <= limit {
                return true;
            }
            let Some(Part::ToolResult { content, .. }) = message.parts.get_mut(index) else {
                continue;
            };
            let tokens = accounting.text(&content.text());
            let stub = format!("[result of {tokens} tokens left out; expand {pointer}]");
            let before = std::mem::replace(content, ResultContent::Text(stub));
            let now = cost(accounting, message);
            if now < message.tokens {
                sum = sum.saturating_sub(message.tokens - now);
                message.tokens = now;
            } else if let Some(Part::ToolResult { content, .. }) = message.parts.get_mut(index) {
                *content = before;
            }
        }
    }
    sum <= limit
}

/// Clips the largest texts, one after the other, until the messages fit. True when they do.
fn clip_largest(messages: &mut [ContextMessage], limit: u64, accounting: &dyn Accounting) -> bool {
    // What can be clipped, with the text as it was.
    let mut blocks: Vec<Block> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (part_at, part) in message.parts.iter().enumerate() {
            let text = match part {
                Part::Text { text } => text.clone(),
                Part::ToolResult { content, .. } => content.text().into_owned(),
                Part::Unknown { raw } => raw.as_str().to_owned(),
                // Signed reasoning is sent back whole or not at all.
                Part::Reasoning { .. } | Part::Image(_) | Part::File(_) => String::new(),
                Part::ToolCall { .. } => continue,
            };
            let tokens = part_cost(message.role, part, accounting);
            blocks.push(Block {
                message: at,
                part: part_at,
                text,
                tokens,
            });
        }
    }
    // Every round makes one block smaller, so this ends; the bound is a safety net.
    for _ in 0..blocks.len().saturating_mul(4).saturating_add(8) {
        let sum = total(messages);
        if sum <= limit {
            return true;
        }
        let Some(block) = blocks.iter_mut().max_by_key(|block| block.tokens) else {
            return false;
        };
        if block.tokens <= SMALLEST_CLIP {
            return false;
        }
        let target = block.tokens.saturating_sub(sum - limit).max(SMALLEST_CLIP);
        let target = target.min(block.tokens - 1);
        let Some(message) = messages.get_mut(block.message) else {
            return false;
        };
        let pointer = pointer(message);
        let Some(part) = message.parts.get_mut(block.part) else {
            return false;
        };
        match part {
            Part::Reasoning { .. } => *part = Part::text("[reasoning left out]"),
            Part::Image(_) => *part = Part::text(format!("[image left out; expand {pointer}]")),
            Part::File(_) => *part = Part::text(format!("[file left out; expand {pointer}]")),
            Part::ToolResult { content, .. } => {
                *content = ResultContent::Text(clip(&block.text, target, &pointer, accounting));
            }
            _ => *part = Part::text(clip(&block.text, target, &pointer, accounting)),
        }
        let role = message.role;
        let tokens = message
            .parts
            .get(block.part)
            .map_or(0, |p| part_cost(role, p, accounting));
        // A block that does not get smaller is as small as it gets.
        block.tokens = if tokens < block.tokens { tokens } else { 0 };
        message.tokens = cost(accounting, message);
    }
    false
}

struct Block {
    message: usize,
    part: usize,
    text: String,
    tokens: u64,
}

fn part_cost(role: Role, part: &Part, accounting: &dyn Accounting) -> u64 {
    accounting.parts(role, std::slice::from_ref(part))
}

/// A text's beginning and end, with a pointer between them, at most `tokens` together. With no
/// room for any text only the pointer is left.
pub(crate) fn clip(text: &str, tokens: u64, pointer: &str, accounting: &dyn Accounting) -> String {
    let whole = accounting.text(text);
    if whole <= tokens {
        return text.to_owned();
    }
    let clipped = |bytes: usize| {
        let head = text.floor_char_boundary(bytes - bytes / 3);
        let tail = text.ceil_char_boundary(text.len() - (bytes / 3).min(text.len() - head));
        let (head, tail) = (
            text.get(..head).unwrap_or(""),
            text.get(tail..).unwrap_or(""),
        );
        format!("{head}\n[… of {whole} tokens, the middle is left out; expand {pointer} …]\n{tail}")
    };
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if accounting.text(&clipped(middle)) <= tokens {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    if low == 0 {
        format!("[{whole} tokens left out; expand {pointer}]")
    } else {
        clipped(low)
    }
}

/// A group as one text, clipped to fit; fails with what it needs at least.
fn as_text(
    whole: &[ContextMessage],
    range: SeqRange,
    limit: u64,
    accounting: &dyn Accounting,
) -> Result<ContextMessage, u64> {
    let pointer = match whole.first().map(|message| &message.source) {
        Some(Source::Summary { summary_id, .. }) => summary_id.to_string(),
        _ if range.first == range.last => message_pointer(range.first),
        _ => format!("messages:{}-{}", range.first, range.last),
    };
    let text = render_text(whole);
    let mut room = limit;
    loop {
        let mut message = ContextMessage {
            role: Role::User,
            name: None,
            tokens: 0,
            source: Source::Trimmed {
                first: range.first,
                last: range.last,
            },
            parts: vec![Part::text(clip(&text, room, &pointer, accounting))],
        };
        message.tokens = cost(accounting, &message);
        if message.tokens <= limit {
            return Ok(message);
        }
        if room == 0 {
            return Err(message.tokens);
        }
        // A message may cost more than its text.
        room = room.saturating_sub((message.tokens - limit).max(1));
    }
}
