//! Chooses the blocks of a context.

use std::ops::Range;

use crate::blocks::Block;
use crate::context::{ContextMessage, Degradation};
use crate::forms::ShortForm;
use crate::policy::step_size;

/// Minimum tokens that remain of a boundary group that is shown in part.
const SMALLEST_BOUNDARY: u64 = 128;

/// Blocks that go into the context together, and the form in which they are shown.
pub(crate) struct Choice {
    /// Indices of the blocks.
    pub(crate) blocks: Range<usize>,
    pub(crate) shown: Shown,
}

/// The form in which blocks are shown.
pub(crate) enum Shown {
    /// One block whole, or shortened where it costs more than this, in tokens. It is left out where it cannot be
    /// shortened that much.
    Within(u64),
    /// A summary in a short form.
    Form(ShortForm),
    /// Neighbouring blocks as one text.
    Digest(ContextMessage, Degradation),
}

impl Choice {
    pub(crate) fn one(block: usize, shown: Shown) -> Self {
        Self {
            blocks: block..block + 1,
            shown,
        }
    }

    pub(crate) fn whole(block: usize) -> Self {
        Self::one(block, Shown::Within(u64::MAX))
    }

    pub(crate) fn within(block: usize, limit: u64) -> Self {
        Self::one(block, Shown::Within(limit))
    }
}

/// The index of the newest block that shows something.
pub(crate) fn newest(blocks: &[Block<'_>]) -> Option<usize> {
    blocks.iter().rposition(Block::shows)
}

/// Where the oldest blocks of a list are dropped.
pub(crate) struct Cut {
    /// Tokens that are dropped, from the beginning of the view on.
    pub(crate) drop: u64,
    /// Index of the first block that stays whole.
    pub(crate) first: usize,
    /// Index of the newest block that does not stay whole and shows something.
    pub(crate) boundary: Option<usize>,
    /// Tokens that remain of the boundary, where it is so large that dropping it would leave a hole.
    pub(crate) remains: Option<u64>,
}

/// Drops the oldest blocks in whole steps. Keeps the block `newest`, which must fit, and those after it.
///
/// Steps are counted in the costs that the view records, so that they are the same at every assembly,
/// wherever the input begins: `starts` are the costs before each block. Rendered costs decide what fits. Where
/// rendering adds so much that a step would drop more than its size of the context, the step is halved until
/// it does not: a step of one token drops only what does not fit.
pub(crate) fn cut(
    blocks: &[&Block<'_>],
    starts: &[u64],
    newest: usize,
    room: u64,
    steps: u64,
) -> Cut {
    let after = tokens_from(blocks);
    let from = |index: usize| after.get(index).copied().unwrap_or(0);
    let start = |index: usize| starts.get(index).copied().unwrap_or(0);
    let end =
        |index: usize| start(index).saturating_add(blocks.get(index).map_or(0, |block| block.cost));
    // The longest end of the input that fits. What was not read does not.
    let read = blocks
        .iter()
        .rposition(|block| block.is_unread())
        .map_or(0, |unread| unread + 1);
    let longest = after.partition_point(|tokens| *tokens > room).max(read);
    let over = longest
        .checked_sub(1)
        .and_then(|index| Some((index, blocks.get(index)?)));
    let Some((over, block)) = over else {
        return Cut {
            drop: start(0),
            first: 0,
            boundary: None,
            remains: None,
        };
    };
    // Where in the view the room begins: inside the first block that does not fit.
    let unused = room.saturating_sub(from(longest));
    let least = end(over).saturating_sub(unused.min(block.cost.saturating_sub(1)));
    let whole_step = step_size(room, steps);
    let mut size = whole_step;
    let (drop, first, boundary) = loop {
        let drop = least.div_ceil(size).saturating_mul(size);
        let first = starts
            .partition_point(|start| *start < drop)
            .clamp(longest, newest.max(longest));
        let boundary = blocks.iter().take(first).rposition(|block| block.shows());
        let lost = boundary
            .and_then(|index| blocks.get(index))
            .map_or(0, |block| block.tokens);
        let used = from(first).saturating_add(lost).saturating_add(whole_step);
        if used >= room || size == 1 {
            break (drop, first, boundary);
        }
        size /= 2;
    };
    let remains = boundary.and_then(|index| {
        let left = room.saturating_sub(from(first));
        remains(blocks.get(index)?, start(index), drop, whole_step, left)
    });
    Cut {
        drop,
        first,
        boundary,
        remains,
    }
}

/// The tokens that a step leaves of the block at the cut, if they fit into `left` tokens. Only of a group larger than a
/// step: dropping it would leave a hole.
fn remains(block: &Block<'_>, start: u64, drop: u64, step: u64, left: u64) -> Option<u64> {
    let remains = start.saturating_add(block.cost).saturating_sub(drop);
    let large = block.is_group() && start < drop && block.cost >= step;
    (large && (SMALLEST_BOUNDARY..=left).contains(&remains)).then_some(remains)
}

/// The rendered cost of the blocks from each index on, in tokens; one entry more than blocks.
fn tokens_from(blocks: &[&Block<'_>]) -> Vec<u64> {
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
