//! Choosing what goes into a context.

use memory_model::{
    Accounting, EntryKind, LogEntry, Part, Role, Seq, SeqRange, Summary, TrimPolicyId,
};
use turn_map::{Atom, AtomBuilder, HullPolicy};

use crate::accounting::cost;
use crate::context::{Context, ContextMessage, Dropped, Error, ErrorKind, Receipt, Source};
use crate::degrade::{degrade, total};
use crate::policy::{AssemblyPolicy, Budget, Eviction, step_size, stepped};
use crate::render::{render_atom, render_omitted, render_summary};

/// A boundary group is shown in part only if at least so many tokens of it remain.
const SMALLEST_BOUNDARY: u64 = 128;

/// A stretch of a view, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Messages as they are. The first one begins an atom; of a span only a newer part may be
    /// given.
    Raw(Vec<LogEntry>),
    /// Messages under a trim policy, and what the view says they cost.
    Trimmed(TrimPolicyId, Vec<LogEntry>, u64),
    /// A summary.
    Summary(Box<Summary>),
    /// Messages that the view leaves out.
    Omitted(SeqRange),
}

/// What there is to choose from: the newer part of a view, oldest first, through its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Material {
    /// What the whole view costs, in tokens.
    pub view_tokens: u64,
    /// What the part of the view before the first item costs, in tokens.
    pub front: u64,
    /// The items; together they go through the log's head.
    pub items: Vec<Item>,
}

/// An indivisible piece of a context.
struct Block {
    range: SeqRange,
    /// What the view costs before it, in tokens.
    start: u64,
    /// What the view says that it costs, in tokens.
    cost: u64,
    /// How many messages it holds, for a group; summaries and omissions hold none.
    messages: usize,
    raw: bool,
    rendered: Vec<ContextMessage>,
    stubbed: Vec<String>,
}

impl Block {
    fn tokens(&self) -> u64 {
        total(&self.rendered)
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.cost)
    }

    fn dropped(&self) -> Dropped {
        Dropped {
            first: self.range.first,
            last: self.range.last,
            tokens: self.cost,
        }
    }
}

/// Assembles a context of at most `budget` tokens.
///
/// `identity` comes first, as a system message. The newest group is always there, shortened if
/// need be. Lines of one response are joined; calls without a result get a stub; nothing splits a
/// call from its results.
///
/// # Errors
/// `BudgetTooSmall` when identity and newest group do not fit however much the group is
/// shortened.
pub fn assemble(
    material: &Material,
    identity: Option<&str>,
    budget: Budget,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> Result<Context, Error> {
    let mut receipt = Receipt {
        view_tokens: material.view_tokens,
        ..Receipt::default()
    };
    let blocks = blocks(material, accounting, &mut receipt);
    let identity = identity.map(|text| {
        let mut message = ContextMessage {
            role: Role::System,
            name: None,
            tokens: 0,
            source: Source::Identity,
            parts: vec![Part::text(text)],
        };
        message.tokens = cost(accounting, &message);
        message
    });
    receipt.identity_tokens = identity.as_ref().map_or(0, |message| message.tokens);
    let room = budget.get().saturating_sub(receipt.identity_tokens);
    let too_small = |needed: u64| Error {
        kind: ErrorKind::BudgetTooSmall { needed },
        budget: budget.get(),
    };
    if receipt.identity_tokens > budget.get() {
        return Err(too_small(receipt.identity_tokens));
    }

    let chosen = match policy.eviction {
        Eviction::Stepped { steps } if policy.whole_tail.is_none() => {
            step(&blocks, material.view_tokens, room, steps, &mut receipt)
        }
        eviction => fill(&blocks, room, policy.whole_tail, eviction, &mut receipt),
    };
    let mut messages: Vec<ContextMessage> = identity.into_iter().collect();
    let mut rendered: Vec<(usize, Vec<ContextMessage>)> = Vec::new();
    let mut left = room;
    // Newest first, so that an oldest group shown in part gets what is left.
    for choice in chosen.iter().rev() {
        let Some(block) = blocks.get(choice.block) else {
            continue;
        };
        match choice.limit {
            None => {
                left = left.saturating_sub(block.tokens());
                receipt.stubbed_calls.extend(block.stubbed.iter().cloned());
                rendered.push((choice.block, block.rendered.clone()));
            }
            Some(limit) => match degrade(&block.rendered, block.range, limit.min(left), accounting)
            {
                Ok(degraded) => {
                    left = left.saturating_sub(total(&degraded.messages));
                    receipt.stubbed_calls.extend(block.stubbed.iter().cloned());
                    receipt.degraded.push(degraded.degradation);
                    rendered.push((choice.block, degraded.messages));
                }
                Err(needed) if choice.required => {
                    return Err(too_small(needed.saturating_add(receipt.identity_tokens)));
                }
                Err(_) => {}
            },
        }
    }
    receipt.degraded.reverse();
    receipt.stubbed_calls.sort();
    rendered.reverse();
    receipt.dropped = dropped(material, &blocks, &rendered);
    messages.extend(rendered.into_iter().flat_map(|(_, messages)| messages));
    Ok(Context {
        tokens: total(&messages),
        messages,
        budget: budget.get(),
        receipt,
    })
}

/// A block that goes into the context: whole, or shortened to a limit in tokens.
struct Choice {
    block: usize,
    limit: Option<u64>,
    /// Whether there is no context without it.
    required: bool,
}

impl Choice {
    fn whole(block: usize) -> Self {
        Self {
            block,
            limit: None,
            required: false,
        }
    }
}

/// The index of the newest block that shows something.
fn newest(blocks: &[Block]) -> Option<usize> {
    blocks.iter().rposition(|block| !block.rendered.is_empty())
}

/// Drops the oldest part in whole steps.
fn step(
    blocks: &[Block],
    view_tokens: u64,
    room: u64,
    steps: u64,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    let Some(newest) = newest(blocks) else {
        return Vec::new();
    };
    let size = step_size(room, steps);
    let mut drop = stepped(view_tokens, room, steps);
    // What is selected by recorded costs may cost a little more when rendered.
    let first = loop {
        let first = blocks
            .iter()
            .position(|b| b.start >= drop)
            .unwrap_or(newest)
            .min(newest);
        let tokens: u64 = blocks.iter().skip(first).map(Block::tokens).sum();
        if tokens <= room {
            break first;
        }
        if first == newest {
            receipt.stepped_tokens = drop;
            receipt.boundary = blocks.get(newest).map(Block::dropped);
            return vec![Choice {
                block: newest,
                limit: Some(room),
                required: true,
            }];
        }
        drop = drop.saturating_add(size);
    };
    receipt.stepped_tokens = drop;
    let mut chosen = Vec::new();
    if let Some((index, boundary)) = blocks
        .iter()
        .enumerate()
        .take(first)
        .rfind(|(_, b)| b.start < drop && drop < b.end())
    {
        receipt.boundary = Some(boundary.dropped());
        // A group larger than a step would leave a hole: show as much of it as the step leaves.
        let remains = boundary.end() - drop;
        if index + 1 == first
            && boundary.raw
            && boundary.cost >= size
            && remains >= SMALLEST_BOUNDARY
        {
            chosen.push(Choice {
                block: index,
                limit: Some(remains),
                required: false,
            });
        }
    } else if drop > 0 && first > 0 {
        receipt.boundary = blocks.get(first - 1).map(Block::dropped);
    }
    chosen.extend((first..blocks.len()).map(Choice::whole));
    chosen
}

/// Takes blocks newest first.
fn fill(
    blocks: &[Block],
    room: u64,
    whole_tail: Option<usize>,
    eviction: Eviction,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    let Some(newest) = newest(blocks) else {
        return Vec::new();
    };
    let mut chosen: Vec<Choice> = (newest..blocks.len()).map(Choice::whole).rev().collect();
    let mut used: u64 = blocks.iter().skip(newest).map(Block::tokens).sum();
    if whole_tail.is_none() && used > room {
        receipt.boundary = blocks.get(newest).map(Block::dropped);
        return vec![Choice {
            block: newest,
            limit: Some(room),
            required: true,
        }];
    }
    let mut tail: usize = blocks.iter().skip(newest).map(|block| block.messages).sum();
    for (index, block) in blocks.iter().enumerate().take(newest).rev() {
        let tokens = block.tokens();
        let in_tail = whole_tail.is_some_and(|whole| tail < whole);
        if in_tail || used.saturating_add(tokens) <= room {
            used = used.saturating_add(tokens);
            tail = tail.saturating_add(block.messages);
            chosen.push(Choice::whole(index));
            continue;
        }
        receipt.boundary.get_or_insert_with(|| block.dropped());
        if eviction != Eviction::SkipMisfits {
            break;
        }
    }
    chosen.reverse();
    chosen
}

/// What is not in the context although the view shows it; neighbours are one entry.
fn dropped(
    material: &Material,
    blocks: &[Block],
    rendered: &[(usize, Vec<ContextMessage>)],
) -> Vec<Dropped> {
    let mut out: Vec<Dropped> = Vec::new();
    let before = blocks
        .first()
        .and_then(|b| SeqRange::new(Seq::FIRST, b.range.first.prev()));
    if let Some(range) = before {
        out.push(Dropped {
            first: range.first,
            last: range.last,
            tokens: material.front,
        });
    }
    for (index, block) in blocks.iter().enumerate() {
        let shown = rendered.iter().any(|(shown, _)| *shown == index);
        if shown || block.rendered.is_empty() {
            continue;
        }
        match out.last_mut() {
            Some(last) if last.last.next() == block.range.first => {
                last.last = block.range.last;
                last.tokens = last.tokens.saturating_add(block.cost);
            }
            _ => out.push(block.dropped()),
        }
    }
    out
}

fn blocks(material: &Material, accounting: &dyn Accounting, receipt: &mut Receipt) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut start = material.front;
    let mut push = |range: SeqRange, cost: u64, messages: usize, raw: bool, rendered, stubbed| {
        blocks.push(Block {
            range,
            start,
            cost,
            messages,
            raw,
            rendered,
            stubbed,
        });
        start = start.saturating_add(cost);
    };
    for item in &material.items {
        match item {
            Item::Summary(summary) => {
                let rendered = counted(render_summary(summary), accounting);
                push(
                    summary.range,
                    summary.tokens,
                    0,
                    false,
                    rendered,
                    Vec::new(),
                );
            }
            Item::Omitted(range) => {
                let rendered = counted(vec![render_omitted(*range)], accounting);
                push(*range, 0, 0, false, rendered, Vec::new());
            }
            Item::Raw(entries) | Item::Trimmed(_, entries, _) => {
                if let Item::Trimmed(policy, ..) = item {
                    receipt.unknown_trims.push(policy.clone());
                }
                for (atom, entries) in atoms(entries) {
                    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
                        continue;
                    };
                    let Some(range) = SeqRange::new(first.seq, last.seq) else {
                        continue;
                    };
                    let cost = entries.iter().map(|entry| entry.tokens).sum();
                    let mut stubbed = Vec::new();
                    let rendered = counted(render_atom(&atom, entries, &mut stubbed), accounting);
                    let messages = entries
                        .iter()
                        .filter(|e| e.kind == EntryKind::Message)
                        .count();
                    push(range, cost, messages, true, rendered, stubbed);
                }
            }
        }
    }
    blocks
}

fn counted(mut messages: Vec<ContextMessage>, accounting: &dyn Accounting) -> Vec<ContextMessage> {
    for message in &mut messages {
        message.tokens = cost(accounting, message);
    }
    messages
}

/// The atoms of neighbouring entries, each with its entries.
fn atoms(entries: &[LogEntry]) -> Vec<(Atom, &[LogEntry])> {
    let Some(first) = entries.first() else {
        return Vec::new();
    };
    let origin = first.seq.0 as usize;
    let mut builder = AtomBuilder::starting_at(origin, HullPolicy::default());
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
