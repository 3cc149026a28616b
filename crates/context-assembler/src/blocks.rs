//! Divides the input of an assembly into blocks: summaries and groups of messages. A block is shown, shortened or left
//! out as a unit.

use memory_model::{Accounting, EntryKind, LogEntry, Part, Seq, SeqRange, Summary};
use turn_map::{Atom, AtomBuilder, TrimPolicy};

use crate::accounting::cost;
use crate::context::{ContextMessage, DegradationStep, MessageOrigin, Receipt};
use crate::degrade::{clip_texts, degrade, total};
use crate::fit::Fitted;
use crate::group::render_atom;
use crate::input::{AssemblyInput, Item, Remark};
use crate::marks::{escape_part, note};
use crate::render::{
    acknowledgement, is_acknowledgement, message_pointer, render_omitted, render_summary,
};

/// Content of a block, the unit that a context shows, shortens or leaves out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    Summary(&'a Summary),
    /// A group of messages that must stay together, unchanged or trimmed.
    Group,
    /// A remark that the view omits messages.
    Omission,
    /// Messages that the caller did not read from the view.
    Unread,
}

/// A part of a context that is shown, shortened or left out as a unit.
pub(crate) struct Block<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) range: SeqRange,
    /// Cost of the block (a summary or a group of messages) as recorded in the view, in tokens.
    pub(crate) cost: u64,
    /// Number of messages in a group. 0 for summaries and omissions.
    pub(crate) messages: usize,
    /// Rendered messages of the block, in a form that providers accept.
    pub(crate) fitted: Fitted,
    /// Cost of the rendered messages, in tokens. It exceeds `cost` if stubs and headings are added, and is lower if
    /// messages of a response are joined or if the block is shortened.
    pub(crate) tokens: u64,
    /// Maximum cost of the block in the context, in tokens.
    pub(crate) limit: u64,
    /// Whether the block contains a message of the request that the user waits for.
    pub(crate) is_requested: bool,
    /// Whether a summary also covers the block's messages.
    pub(crate) is_quoted: bool,
    /// Way in which the block was shortened to its share of the room, and its cost before, in tokens. `None` if it was
    /// not shortened.
    pub(crate) capped: Option<(DegradationStep, u64)>,
}

impl<'a> Block<'a> {
    /// Creates the block of a summary, which ends with the assistant's acknowledgement if `acknowledge` is true. Its
    /// messages are not [counted](Self::counted).
    pub(crate) fn of_summary(summary: &'a Summary, acknowledge: bool) -> Self {
        let mut messages = render_summary(summary);
        if acknowledge && summary.messages.is_none() {
            messages.push(acknowledgement(summary));
        }
        let content = Content::Summary(summary);
        Self::other(content, summary.range, summary.tokens, messages)
    }

    /// Creates a block that is not a group.
    fn other(
        content: Content<'a>,
        range: SeqRange,
        cost: u64,
        messages: Vec<ContextMessage>,
    ) -> Self {
        Self {
            content,
            range,
            cost,
            messages: 0,
            fitted: Fitted {
                messages,
                ..Fitted::default()
            },
            tokens: 0,
            limit: u64::MAX,
            is_requested: false,
            is_quoted: false,
            capped: None,
        }
    }

    /// Returns the block with the cost of its messages.
    pub(crate) fn counted(mut self, accounting: &dyn Accounting) -> Self {
        for message in &mut self.fitted.messages {
            message.tokens = cost(accounting, message);
        }
        self.tokens = total(&self.fitted.messages);
        self
    }
}

impl Block<'_> {
    /// Returns whether the block adds text to a context. A block with a single note adds none, because notes are never
    /// sent to a model.
    pub(crate) fn shows(&self) -> bool {
        !self.fitted.messages.is_empty()
    }

    pub(crate) fn is_summary(&self) -> bool {
        matches!(self.content, Content::Summary(_))
    }

    pub(crate) fn is_group(&self) -> bool {
        matches!(self.content, Content::Group)
    }

    pub(crate) fn is_unread(&self) -> bool {
        matches!(self.content, Content::Unread)
    }

    /// Returns the assistant's acknowledgement of the block's summary. `None` if there is none.
    pub(crate) fn acknowledgement(&self) -> Option<&ContextMessage> {
        let last = self.fitted.messages.last()?;
        is_acknowledgement(last).then_some(last)
    }

    /// Returns the cost of the block in the context, in tokens.
    pub(crate) fn shown_tokens(&self) -> u64 {
        self.tokens.min(self.limit)
    }

    /// Shortens the texts of the block to at most `limit` tokens, and keeps its pictures and files. If that is not
    /// possible, shortens the whole block.
    pub(crate) fn cap_texts(&mut self, limit: u64, accounting: &dyn Accounting) {
        if self.tokens <= limit {
            return;
        }
        match clip_texts(&self.fitted.messages, limit, accounting) {
            Some(messages) => {
                self.capped = Some((DegradationStep::Clipped, self.tokens));
                self.tokens = total(&messages);
                self.fitted.messages = messages;
            }
            None => self.cap(limit, accounting),
        }
    }

    /// Shortens the block to at most `limit` tokens, if possible.
    pub(crate) fn cap(&mut self, limit: u64, accounting: &dyn Accounting) {
        if self.tokens <= limit {
            return;
        }
        let shortened = degrade(&self.fitted.messages, self.range, limit, accounting);
        if let Ok((step, messages)) = shortened {
            self.capped = Some((step, self.tokens));
            self.tokens = total(&messages);
            self.fitted.messages = messages;
        }
    }
}

/// Returns the blocks (summaries and groups of messages) of the input, oldest first. If `acknowledge` is true, the
/// block of each summary ends with the assistant's acknowledgement.
pub(crate) fn blocks<'a>(
    input: &'a AssemblyInput,
    acknowledge: bool,
    accounting: &dyn Accounting,
    receipt: &mut Receipt,
) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut push = |block: Block<'a>| {
        let mut block = block.counted(accounting);
        let from = input
            .requested
            .partition_point(|seq| *seq < block.range.first);
        let requested = input.requested.get(from);
        block.is_requested = matches!(block.content, Content::Group)
            && requested.is_some_and(|seq| *seq <= block.range.last);
        blocks.push(block);
    };
    let context = (&*input.remarks, accounting);
    for item in &input.items {
        match item {
            Item::Summary(summary) => push(Block::of_summary(summary, acknowledge)),
            Item::Omitted(range) => {
                let messages = vec![render_omitted(*range)];
                push(Block::other(Content::Omission, *range, 0, messages));
            }
            Item::Unread(range, cost) => {
                push(Block::other(Content::Unread, *range, *cost, Vec::new()));
            }
            Item::Raw(entries) => groups(entries, None, None, context, &mut push),
            Item::Quoted(entries) => groups(entries, None, None, context, &mut |block| {
                push(Block {
                    is_quoted: true,
                    ..block
                });
            }),
            Item::Trimmed(policy, entries, cost) => {
                let trim: Option<TrimPolicy> = policy.as_str().parse().ok();
                if trim.is_none() && !receipt.unknown_trims.contains(policy) {
                    receipt.unknown_trims.push(policy.clone());
                }
                groups(entries, trim.as_ref(), Some(*cost), context, &mut push);
            }
        }
    }
    blocks
}

/// Marks the messages made from shortened entries as trimmed. `shortened` are the positions of these entries, in order.
fn mark(rendered: &mut [ContextMessage], shortened: &[Seq]) {
    for message in rendered {
        if let MessageOrigin::Message { first, last } = message.source
            && shortened
                .get(shortened.partition_point(|seq| *seq < first))
                .is_some_and(|seq| *seq <= last)
        {
            message.source = MessageOrigin::Trimmed { first, last };
        }
    }
}

/// Divides neighbouring entries into groups, and shortens them if there is a trim policy. `cost` is the cost of all
/// entries as recorded in the view, if it is not the sum of their costs.
fn groups<'a>(
    entries: &[LogEntry],
    trim: Option<&TrimPolicy>,
    cost: Option<u64>,
    (remarks, accounting): (&[Remark], &dyn Accounting),
    push: &mut impl FnMut(Block<'a>),
) {
    let whole = sum(entries);
    let mut before = 0_u64;
    for (atom, entries) in atoms(entries) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            continue;
        };
        let Some(range) = SeqRange::new(first.seq, last.seq) else {
            continue;
        };
        let after = before.saturating_add(sum(entries));
        let cost = share(after, whole, cost).saturating_sub(share(before, whole, cost));
        let message = |entry: &&LogEntry| entry.kind == EntryKind::Message;
        let mut shortened = Vec::new();
        let mut fitted = render_atom(&atom, entries, |entry| {
            let mut message = entry.message.clone();
            let mut left_out = false;
            for part in &mut message.parts {
                left_out |= escape_part(part);
            }
            for remark in remarks.iter().filter(|remark| remark.seq == entry.seq) {
                for part in &mut message.parts {
                    if let Part::Text { text } = part {
                        note(text, &remark.behind, &remark.text);
                    }
                }
            }
            let pointer = message_pointer(entry.seq);
            let trimmed =
                trim.and_then(|trim| trim.trim(&message, &pointer, accounting.estimator()));
            if left_out || trimmed.is_some() {
                shortened.push(entry.seq);
            }
            if let Some(trimmed) = trimmed {
                message = trimmed;
            }
            message.parts
        });
        mark(&mut fitted.messages, &shortened);
        push(Block {
            content: Content::Group,
            range,
            cost,
            messages: entries.iter().filter(message).count(),
            fitted,
            tokens: 0,
            limit: u64::MAX,
            is_requested: false,
            is_quoted: false,
            capped: None,
        });
        before = after;
    }
}

/// Returns the share of `cost` that belongs to the first `part` of `whole` tokens. Shares are rounded down so that
/// their differences add up to `cost`.
fn share(part: u64, whole: u64, cost: Option<u64>) -> u64 {
    let Some(cost) = cost else { return part };
    let share = u128::from(part) * u128::from(cost) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn sum(entries: &[LogEntry]) -> u64 {
    entries
        .iter()
        .map(|entry| entry.tokens)
        .fold(0, u64::saturating_add)
}

/// Returns the atoms of neighbouring entries (runs of entries that must stay together), each with its entries.
fn atoms(entries: &[LogEntry]) -> Vec<(Atom, &[LogEntry])> {
    let Some(first) = entries.first() else {
        return Vec::new();
    };
    let origin = first.seq.0 as usize;
    let mut builder = AtomBuilder::starting_at(origin);
    for entry in entries {
        builder.push(entry);
    }
    let atoms = builder.finish();
    atoms
        .iter()
        .filter_map(|atom| {
            let range = atom.range();
            let slice = entries.get(range.start - origin..range.end - origin)?;
            Some((atom.clone(), slice))
        })
        .collect()
}
