//! Properties of every context, checked from outside: from the log, the view and the context, without the assembler's
//! costs of groups.

use std::collections::BTreeSet;

use agent_memory::{
    Context, Role, Seq, SeqRange,
    context::MessageOrigin,
    model::{LogEntry, Span},
};
use memory_model::{Accounting, EntryKind, SpanBody};
use turn_map::AtomBuilder;

use crate::provider::accepted;

/// A span or a group of messages, which a budget includes or excludes as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) range: SeqRange,
    pub(crate) tokens: u64,
    pub(crate) shows: bool,
}

/// Returns the blocks of a view.
pub(crate) fn blocks(log: &[LogEntry], spans: &[Span]) -> Vec<Block> {
    let head = log.last().map_or(Seq(0), |entry| entry.seq);
    let mut blocks = Vec::new();
    for span in spans {
        let Some(range) = span.range.up_to(head) else {
            continue;
        };
        match &span.body {
            SpanBody::Raw => {
                let entries = &log[range.first.0 as usize - 1..range.last.0 as usize];
                let mut builder = AtomBuilder::starting_at(range.first.0 as usize);
                entries.iter().for_each(|entry| builder.push(entry));
                for atom in builder.finish().iter() {
                    let atom_range = atom.range();
                    let range =
                        SeqRange::new(Seq(atom_range.start as u32), Seq(atom_range.end as u32 - 1))
                            .unwrap();
                    let entries = &log[atom_range.start - 1..atom_range.end - 1];
                    let tokens = entries.iter().map(|entry| entry.tokens).sum();
                    let shows = entries.iter().any(|entry| entry.kind == EntryKind::Message);
                    blocks.push(Block {
                        range,
                        tokens,
                        shows,
                    });
                }
            }
            _ => blocks.push(Block {
                range,
                tokens: span.tokens,
                shows: true,
            }),
        }
    }
    blocks
}

/// Checks the budget, the order, the pairs of calls and results, and that the last group is shown.
pub(crate) fn check(
    context: &Context,
    budget: u64,
    blocks: &[Block],
    accounting: &dyn Accounting,
) -> Result<(), String> {
    let counted: u64 = context
        .messages
        .iter()
        .map(|m| accounting.parts(m.role, &m.parts))
        .sum();
    let request = accounting.estimator().request_overhead();
    if counted != context.tokens || context.tokens + request > budget {
        return Err(format!(
            "{} tokens counted, {} said, {request} for the request, {budget} allowed",
            counted, context.tokens
        ));
    }
    check_order(context)?;
    if let Some(newest) = blocks.iter().rfind(|block| block.shows) {
        let shown = context.messages.iter().rev().find_map(|m| m.source.range());
        let whole = shown.is_some_and(|shown| newest.range.contains(shown.last));
        if !whole {
            return Err(format!(
                "the newest group {} is missing: {shown:?}",
                newest.range
            ));
        }
        let trimmed = context
            .messages
            .iter()
            .filter(|m| matches!(m.source, MessageOrigin::Trimmed { .. }))
            .all(|m| {
                let range = m.source.range().unwrap();
                context
                    .receipt
                    .degraded
                    .iter()
                    .any(|d| d.first <= range.first && range.last <= d.last)
            });
        if !trimmed {
            return Err("something is shortened that the receipt does not name".to_owned());
        }
    }
    Ok(())
}

/// Checks that providers accept the messages, and that the messages are in the log's order, except for results that the
/// receipt lists as moved.
pub(crate) fn check_order(context: &Context) -> Result<(), String> {
    accepted(&context.messages)?;
    let moved: BTreeSet<Seq> = context
        .receipt
        .moved_results
        .iter()
        .map(|moved| moved.from)
        .collect();
    let firsts: Vec<Seq> = context
        .messages
        .iter()
        .filter_map(|m| Some((m.role, m.source.range()?.first)))
        .filter(|(role, first)| *role != Role::Tool || !moved.contains(first))
        .map(|(_, first)| first)
        .collect();
    if !firsts.is_sorted() {
        return Err(format!("positions do not rise: {firsts:?}"));
    }
    Ok(())
}

/// Checks that a stepped context uses its budget: either all content fits, or at least three quarters of the budget are
/// used, minus the one block at the cut.
pub(crate) fn check_use(context: &Context, blocks: &[Block]) -> Result<(), String> {
    if context.receipt.dropped.is_empty() && context.receipt.degraded.is_empty() {
        return Ok(());
    }
    let Some(boundary) = &context.receipt.boundary else {
        return Err("something is left out, but no boundary is named".to_owned());
    };
    let block = blocks
        .iter()
        .find(|block| block.range.first == boundary.first && block.range.last == boundary.last);
    let Some(block) = block else {
        return Err(format!("the boundary {boundary:?} is no span and no group"));
    };
    let limit = context.receipt.limit;
    let least = (limit * 3 / 4).saturating_sub(block.tokens);
    if context.tokens < least {
        return Err(format!(
            "only {} of {limit} tokens are used, and the block at the cut has {}",
            context.tokens, block.tokens
        ));
    }
    Ok(())
}
