//! Shortens a group in named steps until it fits.

use std::borrow::Cow;

use memory_model::{Accounting, Part, ResultContent, Role, SeqRange};
use turn_map::{clip_counted, left_out};

use crate::accounting::cost;
use crate::context::{ContextMessage, DegradationStep, MessageOrigin};
use crate::marks::{escape_marks, remark};
use crate::render::{range_pointer, render_text};

/// Minimum length of a clipped text, in tokens.
const SMALLEST_CLIP: u64 = 16;

/// Length from which a text's cost is derived from its part's cost instead of counted, in bytes.
const LARGE_TEXT: usize = 16_384;
/// Number of levels that are tried before all levels are searched.
const GUESSES: usize = 4;

/// Shortens a group to at most `limit` tokens. Returns the last step and the messages; fails with the cost of the
/// shortest form.
///
/// A smaller limit leads to a later step, and no step makes a part larger.
pub(crate) fn degrade(
    whole: &[ContextMessage],
    range: SeqRange,
    limit: u64,
    accounting: &dyn Accounting,
) -> Result<(DegradationStep, Vec<ContextMessage>), u64> {
    let messages = with_stubs(whole, limit, accounting);
    if total(&messages) <= limit {
        return Ok((DegradationStep::StubbedResults, marked(messages, whole)));
    }
    let blocks = clippable(&messages, accounting);
    if let Some(clipped) = clip_largest(&messages, &blocks, limit, accounting) {
        return Ok((DegradationStep::Clipped, marked(clipped, whole)));
    }
    let smallest = at_level(&messages, &blocks, 0, accounting);
    let text = render_text(whole);
    let text_tokens = accounting.text(&text);
    let expands = match whole.first().map(|message| &message.source) {
        Some(MessageOrigin::Summary { summary_id, .. }) => summary_id.to_string(),
        _ => range_pointer(range),
    };
    let as_text = |tokens: u64| {
        let text = clip(&text, text_tokens, tokens, &expands, accounting);
        let source = MessageOrigin::Trimmed {
            first: range.first,
            last: range.last,
        };
        let mut message = ContextMessage::new(Role::User, source, vec![Part::text(text)]);
        message.tokens = cost(accounting, &message);
        message
    };
    let pointer = as_text(0);
    let floor = total(&smallest).min(pointer.tokens);
    if floor > limit {
        return Err(floor);
    }
    if total(&smallest) <= pointer.tokens {
        return Ok((DegradationStep::Clipped, marked(smallest, whole)));
    }
    let mut message = pointer;
    let mut room = limit;
    // A message may cost more than its text: once for its overhead, once for its rounding.
    for _ in 0..4 {
        let longer = as_text(room);
        if longer.tokens <= limit {
            message = longer;
            break;
        }
        let Some(less) = room.checked_sub(longer.tokens - limit) else {
            break;
        };
        room = less;
    }
    Ok((DegradationStep::Text, vec![message]))
}

/// Whether parts that cannot be clipped, such as images, are at most a quarter of the messages' cost.
pub(crate) fn is_mostly_text(messages: &[ContextMessage], accounting: &dyn Accounting) -> bool {
    let parts = |message: &ContextMessage| {
        let parts = message.parts.iter();
        let tokens = parts.map(|part| unclippable_tokens(message.role, part, accounting));
        tokens.fold(0, u64::saturating_add)
    };
    let unclippable = messages.iter().map(parts).fold(0, u64::saturating_add);
    unclippable <= total(messages) / 4
}

/// The cost of the part's content that clipping cannot shorten, in tokens.
fn unclippable_tokens(role: Role, part: &Part, accounting: &dyn Accounting) -> u64 {
    match part {
        Part::Text { .. } | Part::ToolCall { .. } => 0,
        Part::ToolResult { content, .. } => match content {
            ResultContent::Text(_) => 0,
            ResultContent::Parts(parts) => {
                let tokens = parts.iter();
                let tokens = tokens.map(|part| unclippable_tokens(role, part, accounting));
                tokens.fold(0, u64::saturating_add)
            }
        },
        Part::Reasoning { .. } | Part::Image(_) | Part::File(_) | Part::Unknown { .. } => {
            part_cost(role, part, accounting)
        }
    }
}

pub(crate) fn total(messages: &[ContextMessage]) -> u64 {
    messages
        .iter()
        .map(|message| message.tokens)
        .fold(0, u64::saturating_add)
}

/// The messages, with those that were changed marked as shortened.
fn marked(mut messages: Vec<ContextMessage>, whole: &[ContextMessage]) -> Vec<ContextMessage> {
    for (message, before) in messages.iter_mut().zip(whole) {
        if let MessageOrigin::Message { first, last } = message.source
            && message.parts != before.parts
        {
            message.source = MessageOrigin::Trimmed { first, last };
        }
    }
    messages
}

/// The argument of the expand tool for the message that holds a part.
pub(crate) fn pointer(message: &ContextMessage) -> String {
    match (&message.source, message.source.range()) {
        (MessageOrigin::Summary { summary_id, .. }, _) => summary_id.to_string(),
        (_, Some(range)) => range_pointer(range),
        (_, None) => "what begins the context".to_owned(),
    }
}

/// The cost that a part adds to a message, in tokens.
fn part_cost(role: Role, part: &Part, accounting: &dyn Accounting) -> u64 {
    accounting
        .parts(role, std::slice::from_ref(part))
        .saturating_sub(accounting.parts(role, &[]))
}

/// Replaces results by stubs, oldest first, until the messages fit. The latest result stays, because the model waits
/// for it.
fn with_stubs(
    messages: &[ContextMessage],
    limit: u64,
    accounting: &dyn Accounting,
) -> Vec<ContextMessage> {
    let parts = |(at, message): (usize, &ContextMessage)| {
        let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
        let results = message.parts.iter().map(is_result).enumerate();
        let results = results.filter_map(move |(part, is_result)| is_result.then_some((at, part)));
        results.collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, usize)> = messages.iter().enumerate().flat_map(parts).collect();
    results.pop();
    let stubs = results.into_iter().filter_map(|(at, part)| {
        let message = messages.get(at)?;
        let stub = stub(message, message.parts.get(part)?, accounting)?;
        Some((at, part, stub))
    });
    let stubs: Vec<(usize, usize, Part)> = stubs.collect();
    let stubbed = |count: usize| {
        let mut shorter = messages.to_vec();
        let stubs = stubs.get(..count).unwrap_or_default();
        for of_message in stubs.chunk_by(|a, b| a.0 == b.0) {
            let at = of_message.first().map_or(0, |(at, ..)| *at);
            let Some(message) = shorter.get_mut(at) else {
                continue;
            };
            for (_, part_at, stub) in of_message {
                if let Some(part) = message.parts.get_mut(*part_at) {
                    part.clone_from(stub);
                }
            }
            message.tokens = cost(accounting, message);
        }
        shorter
    };
    // The largest count before which there are too few.
    let count = last_that(stubs.len() as u64, |count| {
        total(&stubbed(count as usize - 1)) > limit
    });
    let shorter = stubbed(count as usize);
    let newest = count.checked_sub(1).and_then(|at| stubs.get(at as usize));
    newest
        .and_then(|(at, part, _)| clip_instead(messages, &shorter, (*at, *part), limit, accounting))
        .unwrap_or(shorter)
}

/// Replaces the stub of a result by the result's beginning and end if more than a quarter of `limit` is unused.
fn clip_instead(
    messages: &[ContextMessage],
    stubbed: &[ContextMessage],
    (at, part_at): (usize, usize),
    limit: u64,
    accounting: &dyn Accounting,
) -> Option<Vec<ContextMessage>> {
    let used = total(stubbed);
    let mut room = limit.checked_sub(used).filter(|left| *left > limit / 4)?;
    let (message, stub) = (messages.get(at)?, stubbed.get(at)?);
    let part = message.parts.get(part_at)?;
    let Part::ToolResult { content, .. } = part else {
        return None;
    };
    let text = flat(content);
    let tokens = part_cost(message.role, part, accounting);
    let block = Clippable {
        message: at,
        part: part_at,
        text_tokens: text_cost(message.role, part, &text, tokens, accounting),
        text: Some(text),
        tokens,
    };
    // A part may cost more than its text.
    for _ in 0..GUESSES {
        let mut longer = stub.clone();
        let clipped = clipped_part(message, part, &block, room, accounting);
        longer.parts.get_mut(part_at)?.clone_from(&clipped);
        longer.tokens = cost(accounting, &longer);
        let with = (used - stub.tokens).saturating_add(longer.tokens);
        if with <= limit {
            let mut out = stubbed.to_vec();
            out.get_mut(at)?.clone_from(&longer);
            return Some(out);
        }
        room = room.checked_sub(with - limit)?;
    }
    None
}

/// The largest number up to `most` that fits, if smaller ones do; 0 if none does.
pub(crate) fn last_that(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// The stub of a result, if it is shorter.
fn stub(message: &ContextMessage, part: &Part, accounting: &dyn Accounting) -> Option<Part> {
    let Part::ToolResult {
        call_id, is_error, ..
    } = part
    else {
        return None;
    };
    let tokens = part_cost(message.role, part, accounting);
    let stub = Part::ToolResult {
        call_id: call_id.clone(),
        content: ResultContent::Text(left_out(tokens, &pointer(message))),
        is_error: *is_error,
    };
    (part_cost(message.role, &stub, accounting) < tokens).then_some(stub)
}

/// A part that may be clipped.
struct Clippable {
    message: usize,
    part: usize,
    /// Text of the part; `None` for one that is only omitted whole.
    text: Option<String>,
    /// Cost of the text by itself, in tokens.
    text_tokens: u64,
    /// Cost of the part, in tokens.
    tokens: u64,
}

/// The parts that may be clipped, in order. Calls may not, because clipped arguments are invalid.
fn clippable(messages: &[ContextMessage], accounting: &dyn Accounting) -> Vec<Clippable> {
    let mut blocks = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (part_at, part) in message.parts.iter().enumerate() {
            let text = match part {
                Part::Text { text } => Some(text.clone()),
                Part::ToolResult { content, .. } => Some(flat(content)),
                Part::Unknown { raw } => Some(escape_marks(&raw.without_bytes()).into_owned()),
                // Signed reasoning is sent back whole or not at all.
                Part::Reasoning { .. } | Part::Image(_) | Part::File(_) => None,
                Part::ToolCall { .. } => continue,
            };
            // The message's cost is known: its only part is not counted again.
            let tokens = match message.parts.as_slice() {
                [_] => message
                    .tokens
                    .saturating_sub(accounting.parts(message.role, &[])),
                _ => part_cost(message.role, part, accounting),
            };
            blocks.push(Clippable {
                message: at,
                part: part_at,
                text_tokens: text.as_ref().map_or(0, |text| {
                    text_cost(message.role, part, text, tokens, accounting)
                }),
                text,
                tokens,
            });
        }
    }
    blocks
}

/// The cost of a part's text by itself, in tokens; the part costs `tokens`.
fn text_cost(role: Role, part: &Part, text: &str, tokens: u64, accounting: &dyn Accounting) -> u64 {
    let empty = match part {
        Part::Text { .. } => Part::text(""),
        Part::ToolResult {
            call_id,
            content: ResultContent::Text(_),
            is_error,
        } => Part::ToolResult {
            call_id: call_id.clone(),
            content: ResultContent::Text(String::new()),
            is_error: *is_error,
        },
        _ => return accounting.text(text),
    };
    if text.len() < LARGE_TEXT {
        return accounting.text(text);
    }
    tokens.saturating_sub(part_cost(role, &empty, accounting))
}

/// A result as one text.
fn flat(content: &ResultContent) -> String {
    let ResultContent::Parts(parts) = content else {
        return content.text().into_owned();
    };
    let texts = parts.iter().map(|part| match part {
        Part::Text { text } => Cow::Borrowed(text.as_str()),
        Part::Reasoning { text, .. } => escape_marks(text),
        Part::Unknown { raw } => Cow::Owned(escape_marks(&raw.without_bytes()).into_owned()),
        Part::Image(_) => Cow::Owned(remark("image left out")),
        Part::File(_) => Cow::Owned(remark("file left out")),
        Part::ToolCall { .. } | Part::ToolResult { .. } => Cow::Owned(remark("left out")),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Clips all parts above a level to that level, the highest that makes the messages fit.
fn clip_largest(
    messages: &[ContextMessage],
    blocks: &[Clippable],
    limit: u64,
    accounting: &dyn Accounting,
) -> Option<Vec<ContextMessage>> {
    // A clipped part costs some tokens at any level: not worth trying.
    let large = blocks.iter().filter(|block| block.tokens > SMALLEST_CLIP);
    if large.count() as u64 > limit {
        return None;
    }
    // The costs of the parts give the level nearly; the tokens by which clipping rounds up are taken off it.
    let mut guess = level(messages, blocks, limit);
    for _ in 0..GUESSES {
        let Some(level) = guess.filter(|level| *level > SMALLEST_CLIP) else {
            break;
        };
        let clipped = at_level(messages, blocks, level, accounting);
        let over = total(&clipped).saturating_sub(limit);
        if over == 0 {
            return Some(clipped);
        }
        let above = blocks.iter().filter(|block| block.tokens > level);
        let above = (above.count() as u64).max(1);
        guess = level.checked_sub(over.div_ceil(above));
    }
    let clipped = |level| at_level(messages, blocks, level, accounting);
    if total(&clipped(SMALLEST_CLIP)) > limit {
        return None;
    }
    // At a level above the limit the messages cannot fit.
    let largest = blocks.iter().map(|block| block.tokens).max().unwrap_or(0);
    let level = last_that(largest.min(limit), |level| {
        level <= SMALLEST_CLIP || total(&clipped(level)) <= limit
    });
    Some(clipped(level.max(SMALLEST_CLIP)))
}

/// The highest level at which the messages fit if every part above it costs the level and the part's cost without its
/// text, in tokens; `None` if the other parts alone do not fit.
fn level(messages: &[ContextMessage], blocks: &[Clippable], limit: u64) -> Option<u64> {
    let clipped_at = |level: u64, block: &Clippable| {
        let beside = block.tokens.saturating_sub(block.text_tokens);
        block.tokens.min(level.saturating_add(beside))
    };
    let clippable: u64 = blocks.iter().map(|block| block.tokens).sum();
    let fixed = total(messages).saturating_sub(clippable);
    let room = limit.checked_sub(fixed)?;
    let fits = |level: u64| {
        let sum: u64 = blocks.iter().map(|block| clipped_at(level, block)).sum();
        sum <= room
    };
    let largest = blocks.iter().map(|block| block.tokens).max().unwrap_or(0);
    Some(last_that(largest.min(limit), fits))
}

/// Clips every part above `level` tokens to it if that is shorter.
fn at_level(
    messages: &[ContextMessage],
    blocks: &[Clippable],
    level: u64,
    accounting: &dyn Accounting,
) -> Vec<ContextMessage> {
    let mut blocks = blocks.iter().peekable();
    let mut out = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let mut parts = Vec::with_capacity(message.parts.len());
        let mut changed = false;
        for (part_at, part) in message.parts.iter().enumerate() {
            let block = blocks.next_if(|block| (block.message, block.part) == (at, part_at));
            let clipped = block
                .filter(|block| block.tokens > level)
                .map(|block| clipped_part(message, part, block, level, accounting))
                .filter(|new| {
                    let tokens = block.map_or(0, |block| block.tokens);
                    part_cost(message.role, new, accounting) < tokens
                });
            changed |= clipped.is_some();
            parts.push(clipped.unwrap_or_else(|| part.clone()));
        }
        let mut message = ContextMessage {
            role: message.role,
            name: message.name.clone(),
            tokens: message.tokens,
            source: message.source.clone(),
            parts,
        };
        if changed {
            message.tokens = cost(accounting, &message);
        }
        out.push(message);
    }
    out
}

/// The remark that replaces a part without text.
pub(crate) fn no_text(part: &Part, pointer: &str) -> String {
    match part {
        Part::Image(_) => remark(format!("image left out; expand {pointer}")),
        Part::File(_) => remark(format!("file left out; expand {pointer}")),
        _ => remark("reasoning left out"),
    }
}

fn clipped_part(
    message: &ContextMessage,
    part: &Part,
    block: &Clippable,
    level: u64,
    accounting: &dyn Accounting,
) -> Part {
    let pointer = pointer(message);
    let text = match (&block.text, part) {
        (Some(text), _) => clip(text, block.text_tokens, level, &pointer, accounting),
        (None, part) => no_text(part, &pointer),
    };
    match part {
        Part::ToolResult {
            call_id, is_error, ..
        } => Part::ToolResult {
            call_id: call_id.clone(),
            content: ResultContent::Text(text),
            is_error: *is_error,
        },
        _ => Part::text(text),
    }
}

/// A text's beginning and end, with a pointer between them, at most `tokens` together; `whole` is the text's cost, in
/// tokens. If no text fits, returns the shorter of text and pointer.
fn clip(text: &str, whole: u64, tokens: u64, pointer: &str, accounting: &dyn Accounting) -> String {
    clip_counted(text, whole, tokens, pointer, accounting.estimator())
        .unwrap_or_else(|| text.to_owned())
}
