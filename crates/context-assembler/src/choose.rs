//! Chooses the blocks of a context.

use std::ops::Range;

use crate::blocks::Block;
use crate::context::ContextMessage;
use crate::policy::step_size;

/// Minimum tokens that remain of a boundary group that is shown in part.
const SMALLEST_BOUNDARY: u64 = 128;

/// Blocks that are included together, and the form in which they are shown.
pub(crate) struct Choice {
    /// Indices of the blocks.
    pub(crate) blocks: Range<usize>,
    pub(crate) shown: ChosenForm,
}

/// The form in which blocks are shown.
pub(crate) enum ChosenForm {
    /// One block of at most this cost, in tokens: whole, or shortened. It is left out if it cannot be shortened
    /// that much.
    Within(u64),
    /// A summary in a short form.
    Form(ShortForm),
    /// Neighbouring blocks as one text.
    Digest(ContextMessage),
}

/// A short form of a summary, rendered.
pub(crate) struct ShortForm {
    pub(crate) message: ContextMessage,
    pub(crate) lines: usize,
    pub(crate) of_lines: usize,
}

impl Choice {
    pub(crate) fn one(block: usize, shown: ChosenForm) -> Self {
        Self {
            blocks: block..block + 1,
            shown,
        }
    }

    pub(crate) fn whole(block: usize) -> Self {
        Self::one(block, ChosenForm::Within(u64::MAX))
    }

    pub(crate) fn within(block: usize, limit: u64) -> Self {
        Self::one(block, ChosenForm::Within(limit))
    }
}

/// The index of the latest visible block.
pub(crate) fn newest(blocks: &[Block<'_>]) -> Option<usize> {
    blocks.iter().rposition(Block::shows)
}

/// A block that is not a summary.
pub(crate) struct Other<'v, 'a> {
    /// Index of the block.
    pub(crate) index: usize,
    pub(crate) block: &'v Block<'a>,
    /// Cost that the view records for the earlier blocks, in tokens.
    pub(crate) start: u64,
}

impl Other<'_, '_> {
    /// Cost that the view records for the block and the earlier ones, in tokens.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.block.cost)
    }
}

/// Position in a list before which blocks are dropped.
#[derive(Default)]
pub(crate) struct Cut {
    /// Tokens that are dropped.
    pub(crate) drop: u64,
    /// Index in the list of the first block that stays whole.
    pub(crate) first: usize,
    /// Index of a block that is too large to be dropped without a hole, and the tokens that remain of it.
    pub(crate) partial: Option<(usize, u64)>,
}

/// Drops the oldest blocks in whole steps. Keeps the block at the index `newest`, which must fit, and the later ones.
///
/// Steps are counted in the costs that the view records, so that they are the same at every assembly. Rendered costs
/// decide which blocks fit. If rendering adds so much that a step would drop more than its size of the context, the
/// step is halved until it does not: a step of one token drops only blocks that do not fit.
pub(crate) fn cut(others: &[Other<'_, '_>], newest: usize, room: u64, steps: u64) -> Cut {
    let after = tokens_from(others);
    let from = |place: usize| after.get(place).copied().unwrap_or(0);
    // The longest end of the list that fits. Blocks that were not read do not.
    let unread = others.iter().rposition(|other| other.block.is_unread());
    let read = unread.map_or(0, |unread| unread + 1);
    let longest = after.partition_point(|tokens| *tokens > room).max(read);
    let Some(over) = longest.checked_sub(1).and_then(|place| others.get(place)) else {
        return Cut::default();
    };
    // Position in the view at which the room begins: inside the first block that does not fit.
    let unused = room.saturating_sub(from(longest));
    let least = over
        .end()
        .saturating_sub(unused.min(over.block.cost.saturating_sub(1)));
    let step = step_size(room, steps);
    let mut size = step;
    loop {
        let drop = least.div_ceil(size).saturating_mul(size);
        let first = others
            .partition_point(|other| other.start < drop)
            .clamp(longest, newest.max(longest));
        let dropped = others
            .iter()
            .take(first)
            .rposition(|other| other.block.shows());
        let boundary = dropped.and_then(|place| Some((place, others.get(place)?)));
        let lost = boundary.map_or(0, |(_, other)| other.block.shown_tokens());
        if size > 1 && from(first).saturating_add(lost).saturating_add(step) < room {
            size /= 2;
            continue;
        }
        let left = room.saturating_sub(from(first));
        let partial = boundary.and_then(|(place, other)| {
            let remains = other.end().saturating_sub(drop);
            let block = other.block;
            let large = block.is_group() && other.start < drop && block.cost >= step;
            (large && (SMALLEST_BOUNDARY..=left).contains(&remains)).then_some((place, remains))
        });
        return Cut {
            drop,
            first,
            partial,
        };
    }
}

/// The rendered cost of the blocks from each index on, in tokens; one entry more than blocks.
fn tokens_from(others: &[Other<'_, '_>]) -> Vec<u64> {
    let mut sums = vec![0_u64];
    for other in others.iter().rev() {
        let sum = sums.last().copied().unwrap_or(0);
        sums.push(sum.saturating_add(other.block.shown_tokens()));
    }
    sums.reverse();
    sums
}
