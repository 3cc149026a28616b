//! Divides the input of an assembly into indivisible blocks.

use memory_model::{Accounting, EntryKind, LogEntry, Seq, SeqRange, Summary};
use turn_map::{Atom, AtomBuilder, TrimPolicy};

use crate::accounting::cost;
use crate::context::{ContextMessage, Dropped, MessageOrigin, MovedResult, Receipt, RenamedCall};
use crate::degrade::total;
use crate::fit::Fitted;
use crate::group::{Texts, render_atom};
use crate::input::{AssemblyInput, Item};
use crate::marks::escape_part;
use crate::render::{message_pointer, render_omitted, render_summary};

/// Content of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    Summary(&'a Summary),
    /// A group of messages, raw or trimmed.
    Group,
    /// A remark that the view leaves messages out.
    Omission,
    /// Messages that were not read.
    Unread,
}

/// An indivisible piece of a context.
pub(crate) struct Block<'a> {
    pub(crate) content: Content<'a>,
    pub(crate) range: SeqRange,
    /// Cost of the view before the block, in tokens.
    pub(crate) start: u64,
    /// Cost that the view records, in tokens.
    pub(crate) cost: u64,
    /// Number of messages of a group; 0 for summaries and omissions.
    pub(crate) messages: usize,
    pub(crate) rendered: Vec<ContextMessage>,
    /// Cost when rendered, in tokens: more than `cost` where stubs or headings were added, less where
    /// the lines of a response were joined.
    pub(crate) tokens: u64,
    pub(crate) stubbed: Vec<String>,
    pub(crate) moved: Vec<MovedResult>,
    pub(crate) renamed: Vec<RenamedCall>,
}

impl<'a> Block<'a> {
    /// A block of these messages, whose rendered cost is counted later.
    fn new(content: Content<'a>, range: SeqRange, cost: u64, fitted: Fitted) -> Self {
        Self {
            content,
            range,
            start: 0,
            cost,
            messages: 0,
            rendered: fitted.messages,
            tokens: 0,
            stubbed: fitted.stubbed,
            moved: fitted.moved,
            renamed: fitted.renamed,
        }
    }

    /// Cost of the view through the block, in tokens.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.cost)
    }

    /// Whether the block shows something; a single note does not.
    pub(crate) fn shows(&self) -> bool {
        !self.rendered.is_empty()
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

    /// The block as a boundary, with its rendered cost.
    pub(crate) fn boundary(&self) -> Dropped {
        Dropped {
            first: self.range.first,
            last: self.range.last,
            tokens: self.tokens,
        }
    }
}

/// The blocks of the input, oldest first.
pub(crate) fn blocks<'a>(
    input: &'a AssemblyInput,
    accounting: &dyn Accounting,
    receipt: &mut Receipt,
) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut start = input.tokens_before;
    let mut push = |mut block: Block<'a>| {
        for message in &mut block.rendered {
            message.tokens = cost(accounting, message);
        }
        block.tokens = total(&block.rendered);
        block.start = start;
        start = block.end();
        blocks.push(block);
    };
    for item in &input.items {
        match item {
            Item::Summary(summary) => {
                let content = Content::Summary(summary);
                let messages = of(render_summary(summary));
                push(Block::new(content, summary.range, summary.tokens, messages));
            }
            Item::Omitted(range) => {
                let messages = of(vec![render_omitted(*range)]);
                push(Block::new(Content::Omission, *range, 0, messages));
            }
            Item::Unread(range, cost) => {
                push(Block::new(Content::Unread, *range, *cost, of(Vec::new())));
            }
            Item::Raw(entries) => groups(entries, Texts::Stored, None, &mut push),
            Item::Trimmed(policy, entries, cost) => match policy.as_str().parse() {
                Ok(trim) => {
                    let (entries, shortened) = trimmed(&trim, entries, accounting);
                    groups(
                        &entries,
                        Texts::Shown,
                        Some(*cost),
                        &mut |mut block: Block<'a>| {
                            mark(&mut block.rendered, &shortened);
                            push(block);
                        },
                    );
                }
                Err(_) => {
                    if !receipt.unknown_trims.contains(policy) {
                        receipt.unknown_trims.push(policy.clone());
                    }
                    groups(entries, Texts::Stored, Some(*cost), &mut push);
                }
            },
        }
    }
    blocks
}

/// Messages that a provider accepts as they are.
fn of(messages: Vec<ContextMessage>) -> Fitted {
    Fitted {
        messages,
        ..Fitted::default()
    }
}

/// Applies a trim policy to entries and escapes their texts. Returns the entries and the positions of
/// those that it shortened.
fn trimmed(
    policy: &TrimPolicy,
    entries: &[LogEntry],
    accounting: &dyn Accounting,
) -> (Vec<LogEntry>, Vec<Seq>) {
    let mut shortened = Vec::new();
    let entries = entries.iter().map(|entry| {
        let mut entry = entry.clone();
        entry.message.parts.iter_mut().for_each(escape_part);
        let pointer = message_pointer(entry.seq);
        if let Some(message) = policy.trim(&entry.message, &pointer, accounting.estimator()) {
            shortened.push(entry.seq);
            entry.message = message;
        }
        entry
    });
    let entries = entries.collect();
    (entries, shortened)
}

/// Marks the messages that hold a shortened entry as trimmed. `shortened` is in order.
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

/// The groups of neighbouring entries. `cost` is the cost that the view records for all of them, where
/// it is not the sum of their costs.
fn groups<'a>(
    entries: &[LogEntry],
    texts: Texts,
    cost: Option<u64>,
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
        push(Block {
            messages: entries.iter().filter(message).count(),
            ..Block::new(
                Content::Group,
                range,
                cost,
                render_atom(&atom, entries, texts),
            )
        });
        before = after;
    }
}

/// The share of `cost` of the first `part` of `whole` tokens, rounded down, so that the differences of
/// shares add up to `cost`.
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

/// The atoms of neighbouring entries, each with its entries.
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
