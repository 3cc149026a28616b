//! Chooses the blocks (summaries and groups of messages) of a context.

use std::ops::Range;

use crate::blocks::Block;
use crate::context::ContextMessage;
use crate::policy::Form;

/// Minimum size of the shown part of a group of messages if the rest of the group is dropped, in tokens. A smaller part
/// is dropped too.
const SMALLEST_BOUNDARY: u64 = 128;

/// Neighbouring blocks (summaries or groups of messages) that a context includes, and the form in which it shows them.
pub(crate) struct Choice {
    /// Indices of the included blocks in the list of all blocks.
    pub(crate) blocks: Range<usize>,
    pub(crate) shown: ChosenForm,
}

/// The form in which a context shows blocks: shortened, as some lines of a summary, or as one text.
pub(crate) enum ChosenForm {
    /// One block of at most this cost, in tokens. The block is shown whole or shortened, or left out if it cannot be
    /// shortened that much.
    Within(u64),
    /// A summary in a short form, which is a selection of its lines.
    Form(ShortForm),
    /// One text that replaces neighbouring blocks.
    Digest(ContextMessage),
}

/// A rendered short form of a summary.
#[derive(Clone)]
pub(crate) struct ShortForm {
    /// The form, and its acknowledgement if there is one.
    pub(crate) messages: Vec<ContextMessage>,
    /// Cost of the messages, in tokens.
    pub(crate) tokens: u64,
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

/// Returns the index of the latest block that adds text to a context. `None` if no block does.
pub(crate) fn newest(blocks: &[Block<'_>]) -> Option<usize> {
    blocks.iter().rposition(Block::shows)
}

/// A block that is not a summary, such as a group of messages.
pub(crate) struct Other<'v, 'a> {
    /// Index of the block.
    pub(crate) index: usize,
    pub(crate) block: &'v Block<'a>,
    /// Cost of all earlier blocks as recorded in the view, in tokens.
    pub(crate) start: u64,
}

impl Other<'_, '_> {
    /// Returns the cost of this and all earlier blocks as recorded in the view, in tokens.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.block.cost)
    }
}

/// Position in a list of blocks (groups of messages). The blocks before this position are dropped.
#[derive(Default)]
pub(crate) struct Cut {
    /// Number of tokens to drop, in whole steps, counted in the costs that the view records.
    pub(crate) drop: u64,
    /// Index of the first block in the list that is shown whole.
    pub(crate) first: usize,
    /// Index of a large block before the position that is shown in part, and the tokens to show of it. `None` if there
    /// is no such block.
    pub(crate) partial: Option<(usize, u64)>,
}

/// Returns the position before which blocks (groups of messages) are dropped. Blocks are dropped oldest first, in whole
/// steps. The block at the index `newest`, which must fit, and all later blocks are kept.
///
/// The size of steps is measured in the costs that the view records, so that the steps are the same in every assembly.
/// Rendered costs decide which blocks fit. If rendering adds so much that more than a step of the room would stay
/// unused, the step is halved until less is unused. With a step of one token, only blocks that do not fit are dropped.
pub(crate) fn cut(others: &[Other<'_, '_>], newest: usize, room: u64, form: Form) -> Cut {
    let after = tokens_from(others);
    let from = |place: usize| after.get(place).copied().unwrap_or(0);
    // Index of the first block of the longest end of the list that fits. Unread blocks never fit.
    let unread = others.iter().rposition(|other| other.block.is_unread());
    let read = unread.map_or(0, |unread| unread + 1);
    let longest = after.partition_point(|tokens| *tokens > room).max(read);
    let Some(over) = longest.checked_sub(1).and_then(|place| others.get(place)) else {
        return Cut::default();
    };
    // Position in the view, in recorded tokens, at which the room begins. It is inside the last block that does not
    // fit.
    let unused = room.saturating_sub(from(longest));
    let least = over
        .end()
        .saturating_sub(unused.min(over.block.cost.saturating_sub(1)));
    let step = form.step_size(room);
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

/// Returns the rendered cost of the blocks from each index to the end, in tokens. The list has one entry more than
/// there are blocks.
fn tokens_from(others: &[Other<'_, '_>]) -> Vec<u64> {
    let mut sums = vec![0_u64];
    for other in others.iter().rev() {
        let sum = sums.last().copied().unwrap_or(0);
        sums.push(sum.saturating_add(other.block.shown_tokens()));
    }
    sums.reverse();
    sums
}
