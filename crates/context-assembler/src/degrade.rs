//! Shortens a group of messages until it fits a limit, in several steps that each remove more.

use std::borrow::Cow;

use memory_model::{Accounting, Part, ResultContent, Role, SeqRange};
use turn_map::{clip_counted, left_out};

use crate::accounting::cost;
use crate::context::{ContextMessage, DegradationStep, MessageOrigin};
use crate::marks::{escape_marks, remark};
use crate::render::{range_pointer, render_text};

/// Minimum length of a clipped text, in tokens.
const SMALLEST_CLIP: u64 = 16;

/// Minimum length of a text for which the cost is derived from the cost of its part instead of counted, in bytes.
const LARGE_TEXT: usize = 16_384;
/// Number of guessed levels to try before the search over all levels, and of guessed lengths of a single clipped part.
const GUESSES: usize = 4;

/// Shortens a group of messages to at most `limit` tokens, with the first sufficient step: stubs for tool results, then
/// clipped texts, then one text for all messages. Returns this step and the shortened messages. If no step is
/// sufficient, returns the cost of the shortest possible form as an error.
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
    let blocks = clippable(&messages, MediaParts::Clipped, accounting);
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
    // A message may cost more than its text, because of its overhead and of rounding.
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

/// Shortens the texts of a group of messages until it costs at most `limit` tokens, and keeps its pictures and files.
/// Returns `None` if this is not possible.
pub(crate) fn clip_texts(
    whole: &[ContextMessage],
    limit: u64,
    accounting: &dyn Accounting,
) -> Option<Vec<ContextMessage>> {
    let blocks = clippable(whole, MediaParts::Kept, accounting);
    let clipped = clip_largest(whole, &blocks, limit, accounting)?;
    Some(marked(clipped, whole))
}

/// Returns whether parts that cannot be clipped, such as images, are at most a quarter of the messages' cost.
pub(crate) fn is_mostly_text(messages: &[ContextMessage], accounting: &dyn Accounting) -> bool {
    let parts = |message: &ContextMessage| {
        let parts = message.parts.iter();
        let tokens = parts.map(|part| unclippable_tokens(message.role, part, accounting));
        tokens.fold(0, u64::saturating_add)
    };
    let unclippable = messages.iter().map(parts).fold(0, u64::saturating_add);
    unclippable <= total(messages) / 4
}

/// Returns the cost of the content of a part that clipping cannot shorten, in tokens.
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

/// Marks the messages that differ from `whole` as shortened, and returns all messages.
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

/// Returns the argument of the expand tool for a message, such as `message:7`.
pub(crate) fn pointer(message: &ContextMessage) -> String {
    match (&message.source, message.source.range()) {
        (MessageOrigin::Summary { summary_id, .. }, _) => summary_id.to_string(),
        (_, Some(range)) => range_pointer(range),
        (_, None) => "what begins the context".to_owned(),
    }
}

/// Returns the cost that a part adds to its message, in tokens.
pub(crate) fn part_cost(role: Role, part: &Part, accounting: &dyn Accounting) -> u64 {
    accounting
        .parts(role, std::slice::from_ref(part))
        .saturating_sub(accounting.parts(role, &[]))
}

/// Replaces tool results by stubs, oldest first, until the messages fit. The latest result is kept, because the model
/// waits for it.
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
    let mut shorter = messages.to_vec();
    let mut used = total(messages);
    // The latest stub, with the cost of the result in whose place it is.
    let mut newest = None;
    for (at, part_at) in results {
        if used <= limit {
            break;
        }
        if let Some(message) = shorter.get_mut(at)
            && let Some((stub, tokens)) = stub(message, part_at, accounting)
            && let Some(part) = message.parts.get_mut(part_at)
        {
            *part = stub;
            used = used.saturating_sub(message.tokens);
            message.tokens = cost(accounting, message);
            used = used.saturating_add(message.tokens);
            newest = Some((at, part_at, tokens));
        }
    }
    if let Some(newest) = newest
        && let Some(longer) = clip_instead(messages, &shorter, newest, limit, accounting)
        && let Some(message) = shorter.get_mut(newest.0)
    {
        *message = longer;
    }
    shorter
}

/// If more than a quarter of `limit` is unused, returns a message with the beginning and the end of a tool result
/// instead of its stub. `tokens` is the cost of the result.
fn clip_instead(
    messages: &[ContextMessage],
    stubbed: &[ContextMessage],
    (at, part_at, tokens): (usize, usize, u64),
    limit: u64,
    accounting: &dyn Accounting,
) -> Option<ContextMessage> {
    let used = total(stubbed);
    let mut room = limit.checked_sub(used).filter(|left| *left > limit / 4)?;
    let (message, stub) = (messages.get(at)?, stubbed.get(at)?);
    let part = message.parts.get(part_at)?;
    let Part::ToolResult { content, .. } = part else {
        return None;
    };
    let text = flat(content);
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
        *longer.parts.get_mut(part_at)? = clipped_part(message, part, &block, room, accounting);
        longer.tokens = cost(accounting, &longer);
        let with = (used - stub.tokens).saturating_add(longer.tokens);
        if with <= limit {
            return Some(longer);
        }
        room = room.checked_sub(with - limit)?;
    }
    None
}

/// Returns the result of `fitting` for the largest number up to `most` that has one. If a number fits, all
/// smaller ones must fit too. `None` if no number above 0 fits.
pub(crate) fn last_that<T>(most: u64, fitting: impl Fn(u64) -> Option<T>) -> Option<T> {
    let (mut low, mut high, mut last) = (0, most, None);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match fitting(middle) {
            Some(it) => (low, last) = (middle, Some(it)),
            None => high = middle - 1,
        }
    }
    last
}

/// Returns the stub of a tool result, and the cost of the result; `None` if the stub is not shorter.
fn stub(message: &ContextMessage, at: usize, accounting: &dyn Accounting) -> Option<(Part, u64)> {
    let part = message.parts.get(at)?;
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
    (part_cost(message.role, &stub, accounting) < tokens).then_some((stub, tokens))
}

/// A part that may be clipped.
struct Clippable {
    message: usize,
    part: usize,
    /// Text of the part. `None` for a part that can only be omitted as a whole.
    text: Option<String>,
    /// Cost of the text alone, in tokens.
    text_tokens: u64,
    /// Cost of the part, in tokens.
    tokens: u64,
}

/// What happens to pictures and files when messages are shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaParts {
    /// Remarks replace them.
    Clipped,
    /// They stay.
    Kept,
}

/// Returns the parts that may be clipped, in order. Calls are not clipped, because their arguments would be invalid.
fn clippable(
    messages: &[ContextMessage],
    media: MediaParts,
    accounting: &dyn Accounting,
) -> Vec<Clippable> {
    let mut blocks = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (part_at, part) in message.parts.iter().enumerate() {
            let text = match part {
                Part::Text { text } => Some(text.clone()),
                Part::ToolResult { content, .. } => Some(flat(content)),
                Part::Unknown { raw } => Some(escape_marks(&raw.without_bytes()).into_owned()),
                Part::Image(_) | Part::File(_) if media == MediaParts::Kept => continue,
                // Signed reasoning cannot be changed.
                Part::Reasoning { .. } | Part::Image(_) | Part::File(_) => None,
                Part::ToolCall { .. } => continue,
            };
            // The cost of the message is known, so its only part is not counted again.
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

/// Returns the cost of a part's text alone, in tokens. `tokens` is the cost of the part.
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

/// Returns the content of a tool result as one text.
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

/// Clips all parts that cost more than a level to this level. Chooses the highest level at which the messages fit.
/// `None` if they do not fit at the lowest level, [`SMALLEST_CLIP`].
fn clip_largest(
    messages: &[ContextMessage],
    blocks: &[Clippable],
    limit: u64,
    accounting: &dyn Accounting,
) -> Option<Vec<ContextMessage>> {
    // A clipped part costs at least one token at any level, so more large parts than `limit` never fit.
    let large = blocks.iter().filter(|block| block.tokens > SMALLEST_CLIP);
    if large.count() as u64 > limit {
        return None;
    }
    // The costs of the parts give a good guess of the level. It is reduced by the tokens that rounding adds.
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
    let fitting = |level| {
        let clipped = at_level(messages, blocks, level, accounting);
        (total(&clipped) <= limit).then_some(clipped)
    };
    let smallest = fitting(SMALLEST_CLIP)?;
    // At a level above the limit the messages cannot fit.
    let largest = blocks.iter().map(|block| block.tokens).max().unwrap_or(0);
    let larger = last_that(largest.min(limit), |level| match level > SMALLEST_CLIP {
        true => fitting(level).map(Some),
        // The lower levels fit, but `smallest` is shown in their place.
        false => Some(None),
    });
    Some(larger.flatten().unwrap_or(smallest))
}

/// Returns the estimated highest level at which the messages fit, in tokens. A part above the level is assumed to cost
/// the level plus the part's cost without its text. `None` if the other parts alone do not fit.
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
        (sum <= room).then_some(level)
    };
    let largest = blocks.iter().map(|block| block.tokens).max().unwrap_or(0);
    last_that(largest.min(limit), fits).or(Some(0))
}

/// Clips every part that costs more than `level` tokens to this level, if this makes it shorter.
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
            phases: message.phases.clone(),
        };
        if changed {
            message.tokens = cost(accounting, &message);
        }
        out.push(message);
    }
    out
}

/// Returns the remark that replaces a part without text.
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

/// Returns the beginning and the end of a text with a pointer between them, at most `tokens` together. `whole` is the
/// cost of the text, in tokens. If the limit is too small for any text, returns the pointer alone, or the text if it is
/// shorter.
fn clip(text: &str, whole: u64, tokens: u64, pointer: &str, accounting: &dyn Accounting) -> String {
    clip_counted(text, whole, tokens, pointer, accounting.estimator())
        .unwrap_or_else(|| text.to_owned())
}
