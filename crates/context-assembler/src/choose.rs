//! Chooses the blocks of a context.

use crate::blocks::Block;
use crate::context::Receipt;
use crate::policy::{Eviction, step_size};

/// Minimum tokens that remain of a boundary group that is shown in part.
const SMALLEST_BOUNDARY: u64 = 128;

/// A block that goes into the context: whole, or shortened to a limit in tokens.
pub(crate) struct Choice {
    pub(crate) block: usize,
    pub(crate) limit: Option<u64>,
    /// Whether the context must include it.
    pub(crate) required: bool,
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
pub(crate) fn newest(blocks: &[Block]) -> Option<usize> {
    blocks.iter().rposition(Block::shows)
}

/// The newest block alone, shortened, because it does not fit.
fn newest_alone(newest: usize, blocks: &[Block], room: u64, receipt: &mut Receipt) -> Vec<Choice> {
    receipt.boundary = blocks.get(newest).map(Block::boundary);
    vec![Choice {
        block: newest,
        limit: Some(room),
        required: true,
    }]
}

/// Drops the oldest part in whole steps.
///
/// Steps are counted in the costs that the view records, so that they are the same at every assembly,
/// wherever the input begins. Rendered costs decide what fits. Where rendering adds so much that a
/// step would drop more than its size of the context, the step is halved until it does not: a step of
/// one token drops only what does not fit.
pub(crate) fn step(blocks: &[Block], room: u64, steps: u64, receipt: &mut Receipt) -> Vec<Choice> {
    let Some(newest) = newest(blocks) else {
        return Vec::new();
    };
    let after = tokens_from(blocks);
    let from = |index: usize| after.get(index).copied().unwrap_or(0);
    let start = |index: usize| blocks.get(index).map_or(0, |block| block.start);
    if from(newest) > room {
        receipt.stepped_tokens = start(newest);
        return newest_alone(newest, blocks, room, receipt);
    }
    // The longest end of the input that fits.
    let longest = after.partition_point(|tokens| *tokens > room);
    let Some(over) = longest.checked_sub(1).and_then(|index| blocks.get(index)) else {
        receipt.stepped_tokens = start(0);
        return (0..blocks.len()).map(Choice::whole).collect();
    };
    // Where in the view the room begins: inside the first block that does not fit.
    let unused = room - from(longest);
    let least = over
        .end()
        .saturating_sub(unused.min(over.cost.saturating_sub(1)));
    let whole_step = step_size(room, steps);
    let mut size = whole_step;
    let (drop, first, boundary) = loop {
        let drop = least.div_ceil(size).saturating_mul(size);
        let first = blocks
            .partition_point(|block| block.start < drop)
            .clamp(longest, newest);
        let boundary = blocks.iter().take(first).rposition(Block::shows);
        let lost = boundary
            .and_then(|index| blocks.get(index))
            .map_or(0, |block| block.tokens);
        let used = from(first).saturating_add(lost).saturating_add(whole_step);
        if used >= room || size == 1 {
            break (drop, first, boundary);
        }
        size /= 2;
    };
    receipt.stepped_tokens = drop;
    let mut chosen = Vec::new();
    if let Some((index, block)) = boundary.and_then(|index| Some((index, blocks.get(index)?))) {
        receipt.boundary = Some(block.boundary());
        // A group larger than a step would leave a hole: show as much of it as the step leaves.
        let remains = block.end().saturating_sub(drop);
        if block.raw
            && block.start < drop
            && block.cost >= whole_step
            && (SMALLEST_BOUNDARY..=room - from(first)).contains(&remains)
        {
            chosen.push(Choice {
                block: index,
                limit: Some(remains),
                required: false,
            });
        }
    }
    chosen.extend((first..blocks.len()).map(Choice::whole));
    chosen
}

/// The rendered cost of the blocks from each index on, in tokens; one entry more than blocks.
fn tokens_from(blocks: &[Block]) -> Vec<u64> {
    let mut sums = Vec::with_capacity(blocks.len() + 1);
    let mut sum = 0_u64;
    sums.push(sum);
    for block in blocks.iter().rev() {
        sum = sum.saturating_add(block.tokens);
        sums.push(sum);
    }
    sums.reverse();
    sums
}

/// Takes blocks newest first.
pub(crate) fn fill(
    blocks: &[Block],
    room: u64,
    whole_tail: Option<usize>,
    eviction: Eviction,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    let Some(newest) = newest(blocks) else {
        return Vec::new();
    };
    let newest_tokens = blocks.get(newest).map_or(0, |block| block.tokens);
    if whole_tail.is_none() && newest_tokens > room {
        return newest_alone(newest, blocks, room, receipt);
    }
    let mut chosen: Vec<Choice> = (newest..blocks.len()).map(Choice::whole).rev().collect();
    let mut used = newest_tokens;
    let mut tail: usize = blocks.iter().skip(newest).map(|block| block.messages).sum();
    for (index, block) in blocks.iter().enumerate().take(newest).rev() {
        let in_tail = whole_tail.is_some_and(|whole| tail < whole);
        let with = used.saturating_add(block.tokens);
        if in_tail || with <= room || !block.shows() {
            used = with;
            tail = tail.saturating_add(block.messages);
            chosen.push(Choice::whole(index));
            continue;
        }
        receipt.boundary.get_or_insert_with(|| block.boundary());
        if eviction != Eviction::NewestThatFit {
            break;
        }
    }
    chosen.reverse();
    chosen
}
