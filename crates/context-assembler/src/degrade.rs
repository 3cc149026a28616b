//! Shortens a group in named steps until it fits.

use std::borrow::Cow;

use memory_model::{Accounting, Part, ResultContent, Role, SeqRange};
use turn_map::{clip_counted, left_out};

use crate::accounting::cost;
use crate::context::{ContextMessage, Degradation, DegradationStep, MessageOrigin};
use crate::marks::{escape_marks, remark};
use crate::render::{range_pointer, render_text};

/// Minimum length of a clipped text, in tokens.
const SMALLEST_CLIP: u64 = 16;

/// Length from which a text's cost is derived from its part's cost rather than counted, in bytes.
const LARGE_TEXT: usize = 16_384;
/// Number of levels that are tried before all levels are searched.
const GUESSES: usize = 4;

/// A group's messages, shortened to fit.
pub(crate) struct Degraded {
    pub(crate) messages: Vec<ContextMessage>,
    pub(crate) degradation: Degradation,
}

/// Shortens a group to at most `limit` tokens. Fails with the cost of the shortest form.
///
/// A smaller limit takes a later step, and no step makes anything larger.
pub(crate) fn degrade(
    whole: &[ContextMessage],
    range: SeqRange,
    limit: u64,
    accounting: &dyn Accounting,
) -> Result<Degraded, u64> {
    let from_tokens = total(whole);
    let done = |messages: Vec<ContextMessage>, step| Degraded {
        degradation: Degradation {
            first: range.first,
            last: range.last,
            step,
            from_tokens,
            to_tokens: total(&messages),
        },
        messages,
    };
    let mut messages = whole.to_vec();
    stub_old_results(&mut messages, limit, accounting);
    if total(&messages) <= limit {
        return Ok(done(
            marked(messages, whole),
            DegradationStep::StubbedResults,
        ));
    }
    let blocks = clippable(&messages, accounting);
    if let Some(clipped) = clip_largest(&messages, &blocks, limit, accounting) {
        return Ok(done(marked(clipped, whole), DegradationStep::Clipped));
    }
    let smallest = at_level(&messages, &blocks, 0, accounting);
    let text = GroupText::new(whole, range, accounting);
    let pointer = text.message(0, accounting);
    let floor = total(&smallest).min(pointer.tokens);
    if floor > limit {
        return Err(floor);
    }
    if total(&smallest) <= pointer.tokens {
        return Ok(done(marked(smallest, whole), DegradationStep::Clipped));
    }
    let message = text.within(limit, accounting).unwrap_or(pointer);
    Ok(done(vec![message], DegradationStep::Text))
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
fn pointer(message: &ContextMessage) -> String {
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

/// Replaces results by stubs, oldest first, until the messages fit. The newest result stays, because
/// the model waits for it.
fn stub_old_results(messages: &mut [ContextMessage], limit: u64, accounting: &dyn Accounting) {
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    let newest = messages
        .iter()
        .rposition(|message| message.parts.iter().any(is_result));
    let mut sum = total(messages);
    for (index, message) in messages.iter_mut().enumerate() {
        if sum <= limit {
            return;
        }
        let keep = usize::from(newest == Some(index));
        let mut old: Vec<usize> = (0..message.parts.len())
            .filter(|at| message.parts.get(*at).is_some_and(is_result))
            .collect();
        old.truncate(old.len().saturating_sub(keep));
        let pointer = pointer(message);
        let stubs: Vec<(usize, Part)> = old
            .into_iter()
            .filter_map(|at| {
                Some((
                    at,
                    stub(message.role, message.parts.get(at)?, &pointer, accounting)?,
                ))
            })
            .collect();
        if stubs.is_empty() {
            continue;
        }
        let others = sum - message.tokens;
        let with = |count: usize| {
            let mut shorter = message.clone();
            for (at, stub) in stubs.iter().take(count) {
                if let Some(part) = shorter.parts.get_mut(*at) {
                    *part = stub.clone();
                }
            }
            shorter.tokens = cost(accounting, &shorter);
            shorter
        };
        let mut best = with(stubs.len());
        if others.saturating_add(best.tokens) <= limit {
            // All of them are enough: find how few are.
            let (mut low, mut high) = (0, stubs.len());
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let some = with(middle);
                if others.saturating_add(some.tokens) <= limit {
                    (high, best) = (middle, some);
                } else {
                    low = middle;
                }
            }
        }
        sum = others.saturating_add(best.tokens);
        *message = best;
    }
}

/// The stub of a result, if it is shorter.
fn stub(role: Role, part: &Part, pointer: &str, accounting: &dyn Accounting) -> Option<Part> {
    let Part::ToolResult {
        call_id, is_error, ..
    } = part
    else {
        return None;
    };
    let tokens = part_cost(role, part, accounting);
    let stub = Part::ToolResult {
        call_id: call_id.clone(),
        content: ResultContent::Text(left_out(tokens, pointer)),
        is_error: *is_error,
    };
    (part_cost(role, &stub, accounting) < tokens).then_some(stub)
}

/// A part that may be clipped.
struct Clippable {
    message: usize,
    part: usize,
    /// Text of the part; `None` for one that is left out whole.
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
            // What the message costs is known: a part that is alone in it is not counted again.
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
    // What is clipped costs some tokens whatever the level: not worth trying.
    let large = blocks.iter().filter(|block| block.tokens > SMALLEST_CLIP);
    if large.count() as u64 > limit {
        return None;
    }
    // What the parts cost says nearly which level it is; what clipping rounds is taken off the level.
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
    let mut best = at_level(messages, blocks, SMALLEST_CLIP, accounting);
    if total(&best) > limit {
        return None;
    }
    // A level above the limit clips nothing that has to be.
    let largest = blocks.iter().map(|block| block.tokens).max().unwrap_or(0);
    let (mut low, mut high) = (SMALLEST_CLIP, largest.min(limit));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let clipped = at_level(messages, blocks, middle, accounting);
        if total(&clipped) <= limit {
            (low, best) = (middle, clipped);
        } else {
            high = middle - 1;
        }
    }
    Some(best)
}

/// The highest level at which the messages fit if every part above it costs the level and its cost beside its text, in
/// tokens; `None` when the other parts alone do not fit.
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
    let (mut low, mut high) = (0, largest.min(limit));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// Clips every part above `level` tokens to it, where that is shorter.
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
        (None, Part::Image(_)) => remark(format!("image left out; expand {pointer}")),
        (None, Part::File(_)) => remark(format!("file left out; expand {pointer}")),
        (None, _) => remark("reasoning left out"),
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

/// A text's beginning and end, with a pointer between them, at most `tokens` together; `whole` is
/// what it costs, in tokens. With no room for any text the shorter of text and pointer is left.
fn clip(text: &str, whole: u64, tokens: u64, pointer: &str, accounting: &dyn Accounting) -> String {
    clip_counted(text, whole, tokens, pointer, accounting.estimator())
        .unwrap_or_else(|| text.to_owned())
}

/// A group as one text.
struct GroupText {
    range: SeqRange,
    pointer: String,
    text: String,
    tokens: u64,
}

impl GroupText {
    fn new(whole: &[ContextMessage], range: SeqRange, accounting: &dyn Accounting) -> Self {
        let pointer = match whole.first().map(|message| &message.source) {
            Some(MessageOrigin::Summary { summary_id, .. }) => summary_id.to_string(),
            _ => range_pointer(range),
        };
        let text = render_text(whole);
        let tokens = accounting.text(&text);
        Self {
            range,
            pointer,
            text,
            tokens,
        }
    }

    /// A message of the text, clipped to `tokens`.
    fn message(&self, tokens: u64, accounting: &dyn Accounting) -> ContextMessage {
        let text = clip(&self.text, self.tokens, tokens, &self.pointer, accounting);
        let mut message = ContextMessage {
            role: Role::User,
            name: None,
            tokens: 0,
            source: MessageOrigin::Trimmed {
                first: self.range.first,
                last: self.range.last,
            },
            parts: vec![Part::text(text)],
        };
        message.tokens = cost(accounting, &message);
        message
    }

    /// A message of at most `limit` tokens, if clipping gets there.
    fn within(&self, limit: u64, accounting: &dyn Accounting) -> Option<ContextMessage> {
        let mut room = limit;
        // A message may cost more than its text: once for its overhead, once for its rounding.
        for _ in 0..4 {
            let message = self.message(room, accounting);
            if message.tokens <= limit {
                return Some(message);
            }
            room = room.checked_sub((message.tokens - limit).max(1))?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use memory_model::{LogEntry, Message, RawJson, Seq};
    use token_estimate::{EstimatorId, MessageView, PartView, TokenEstimator, default_estimator};

    use super::*;
    use crate::accounting::ContextAccounting;
    use crate::{AssemblyInput, AssemblyPolicy, Budget, Item, Preamble, assemble};

    /// Bytes of a large result.
    const LARGE: usize = 500_000;

    /// Notes how many bytes are counted.
    #[derive(Debug)]
    struct Counting(Arc<dyn TokenEstimator>, AtomicUsize);

    struct Visited<'a>(&'a dyn MessageView, &'a AtomicUsize);

    impl MessageView for Visited<'_> {
        fn role(&self) -> token_estimate::Role {
            self.0.role()
        }

        fn parts(&self, visit: &mut dyn FnMut(PartView<'_>)) {
            self.0.parts(&mut |part| {
                let content = match part {
                    PartView::ToolResult { content, .. } => content,
                    _ => std::slice::from_ref(&part),
                };
                for part in content {
                    if let PartView::Text(text) = part {
                        self.1.fetch_add(text.len(), Ordering::Relaxed);
                    }
                }
                visit(part);
            });
        }
    }

    impl TokenEstimator for Counting {
        fn id(&self) -> EstimatorId {
            self.0.id()
        }

        fn text(&self, text: &str) -> u64 {
            self.1.fetch_add(text.len(), Ordering::Relaxed);
            self.0.text(text)
        }

        fn message(&self, message: &dyn MessageView) -> u64 {
            self.0.message(&Visited(message, &self.1))
        }
    }

    #[test]
    fn a_large_result_is_counted_and_clipped_once() {
        let counting = Arc::new(Counting(default_estimator(), AtomicUsize::new(0)));
        let accounting = ContextAccounting::new(counting.clone());
        let line = "src/lib.rs:42: error: the value moved here was borrowed before\n";
        let messages = [
            Message::user("What does the build say?"),
            Message::tool_call("large", "read", RawJson::parse("{}").unwrap()),
            Message::tool_result("large", line.repeat(LARGE / line.len())),
        ];
        let mut running = 0;
        let log: Vec<LogEntry> = (1..)
            .zip(messages)
            .map(|(seq, message)| {
                let tokens = accounting.message(&message);
                running += tokens;
                LogEntry {
                    seq: Seq(seq),
                    message,
                    tokens,
                    running,
                    hash: memory_model::Hash::ZERO,
                }
            })
            .collect();
        let input = AssemblyInput {
            view_tokens: running,
            items: vec![Item::Raw(log)],
        };
        counting.1.store(0, Ordering::Relaxed);
        let budget = Budget::tokens(8_000);
        let policy = AssemblyPolicy::default();
        let context = assemble(&input, &Preamble::default(), budget, &policy, &accounting).unwrap();
        let newest = context.receipt.degraded.last().unwrap();
        assert_eq!(newest.step, DegradationStep::Clipped);
        assert!(context.tokens > 6_000, "{} tokens", context.tokens);
        // The whole once, and what is left of it a few times.
        let counted = counting.1.load(Ordering::Relaxed);
        assert!(
            counted < 2 * LARGE,
            "{counted} bytes were counted for a result of {LARGE}"
        );
    }
}
