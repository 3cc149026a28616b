//! Shows summaries of summaries by the summaries below them, if each of these fits whole.

use memory_model::{Accounting, Seq, Summary};

use crate::blocks::{Block, Content};

/// Returns whether a block is a summary that was made only from summaries.
fn is_condensed(block: &Block<'_>) -> bool {
    let Content::Summary(summary) = block.content else {
        return false;
    };
    let mut children = summary.children.iter();
    children.all(|child| child.summary().is_some())
}

/// Replaces summaries of summaries by all of their children, the latest summary first, as long as all summaries
/// together cost at most `tokens` tokens. `below` has the children. If `acknowledge` is true, the assistant acknowledges
/// each of them.
///
/// The order does not depend on `tokens`, so with more tokens no range is shown by a deeper summary.
pub(crate) fn unfold<'a>(
    blocks: &mut Vec<Block<'a>>,
    below: &'a [Summary],
    tokens: u64,
    acknowledge: bool,
    accounting: &dyn Accounting,
) {
    let summaries = blocks.iter().filter(|block| block.is_summary());
    let mut sum = summaries.fold(0_u64, |sum, block| sum.saturating_add(block.tokens));
    while let Some(at) = blocks.iter().rposition(is_condensed)
        && let Some(block) = blocks.get(at)
        && let Some(children) = children(block, below, acknowledge, accounting)
    {
        let of_children = children.iter().map(|block| block.tokens);
        sum = of_children.fold(sum - block.tokens, u64::saturating_add);
        if sum > tokens {
            return;
        }
        // Quoted messages follow the child that covers them.
        let behind = blocks.iter().skip(at + 1);
        let quoted = behind.take_while(|block| block.is_quoted).count();
        let ends: Vec<Seq> = children.iter().map(|block| block.range.last).collect();
        let quoted = blocks.drain(at + 1..at + 1 + quoted);
        let mut pieces: Vec<Block<'a>> = children.into_iter().chain(quoted).collect();
        pieces.sort_by_key(|piece| {
            let child = ends.partition_point(|end| *end < piece.range.first);
            (child, piece.is_quoted)
        });
        blocks.splice(at..=at, pieces);
    }
}

/// Returns the blocks of a summary's children; `None` if one of them is not in `below`.
fn children<'a>(
    block: &Block<'a>,
    below: &'a [Summary],
    acknowledge: bool,
    accounting: &dyn Accounting,
) -> Option<Vec<Block<'a>>> {
    let Content::Summary(summary) = block.content else {
        return None;
    };
    let children = summary.children.iter().map(|child| {
        let id = child.summary()?;
        let child = below.iter().find(|summary| summary.id == *id)?;
        Some(Block::of_summary(child, acknowledge).counted(accounting))
    });
    children.collect()
}
