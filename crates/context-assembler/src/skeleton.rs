//! Minimum content of a context that covers a view: the headline of each summary, and a pointer in place of each run of
//! messages.

use std::ops::Range;

use memory_model::Accounting;

use crate::allotment::SummaryCosts;
use crate::blocks::{Block, Content};
use crate::context::ContextMessage;
use crate::digest::digests;
use crate::forms::Forms;

/// A piece of a view: a summary, or neighbouring blocks (groups of messages) without a summary.
pub(crate) enum SkeletonPiece<'a> {
    Summary(Forms<'a>),
    /// Blocks that are always shown whole, with their cost in tokens: a request, or blocks that cost at most as much as
    /// a pointer to them.
    Small(Range<usize>, u64),
    Run(Run),
}

/// Neighbouring blocks that are not summaries. They may be dropped, except the group that is always kept.
pub(crate) struct Run {
    pub(crate) blocks: Range<usize>,
    /// Pointer to the blocks that may be dropped. `None` if some blocks of the run were not read or are covered by a
    /// summary, or if all blocks that may be dropped add no text to a context (notes).
    pub(crate) pointer: Option<ContextMessage>,
}

impl Run {
    /// Returns the cost of the pointer, in tokens. 0 without a pointer.
    pub(crate) fn pointer_tokens(&self) -> u64 {
        self.pointer.as_ref().map_or(0, |pointer| pointer.tokens)
    }
}

impl SkeletonPiece<'_> {
    /// Returns the minimum cost of the piece in a context, in tokens: of the headline, the small blocks, or the
    /// pointer.
    pub(crate) fn least(&self) -> u64 {
        match self {
            SkeletonPiece::Summary(forms) => forms.tokens(0),
            SkeletonPiece::Small(_, tokens) => *tokens,
            SkeletonPiece::Run(run) => run.pointer_tokens(),
        }
    }
}

/// The pieces of a view, oldest first.
pub(crate) struct Skeleton<'a> {
    pub(crate) pieces: Vec<SkeletonPiece<'a>>,
}

impl<'a> Skeleton<'a> {
    /// Divides the blocks of a view into the pieces of a skeleton. `kept` is the index of the block that is never
    /// dropped: the latest group of messages. `None` if the latest block is a summary.
    pub(crate) fn new(
        blocks: &[Block<'a>],
        kept: Option<usize>,
        accounting: &dyn Accounting,
    ) -> Self {
        let mut pieces = Vec::new();
        let mut start = 0;
        for (index, block) in blocks.iter().enumerate() {
            let quotes = |at: usize| blocks.get(at).is_some_and(|block| block.is_quoted);
            if start < index && quotes(index - 1) != block.is_quoted {
                pieces.push(run(blocks, start..index, kept, accounting));
                start = index;
            }
            let piece = match block.content {
                Content::Summary(summary) => {
                    SkeletonPiece::Summary(Forms::of(index, summary, block, accounting))
                }
                _ if block.is_requested && Some(index) != kept => {
                    SkeletonPiece::Small(index..index + 1, block.tokens)
                }
                _ => continue,
            };
            if start < index {
                pieces.push(run(blocks, start..index, kept, accounting));
            }
            pieces.push(piece);
            start = index + 1;
        }
        if start < blocks.len() {
            pieces.push(run(blocks, start..blocks.len(), kept, accounting));
        }
        Self { pieces }
    }

    /// Returns the total costs of the summaries, whole and as headlines. Includes the blocks that are always shown
    /// whole.
    pub(crate) fn costs(&self) -> SummaryCosts {
        let mut costs = SummaryCosts::default();
        for piece in &self.pieces {
            let (whole, least, is_written) = match piece {
                SkeletonPiece::Summary(forms) => {
                    let whole = forms.tokens(forms.count() - 1);
                    (whole, forms.tokens(0), forms.is_written)
                }
                SkeletonPiece::Small(_, tokens) => (*tokens, *tokens, false),
                SkeletonPiece::Run(_) => continue,
            };
            let most = if is_written { whole } else { least };
            costs.whole = costs.whole.saturating_add(whole);
            costs.headlines = costs.headlines.saturating_add(least);
            costs.written = costs.written.saturating_add(most);
        }
        costs
    }

    /// Returns whether a summary is shown whole or not at all, because its lines have no ranks.
    pub(crate) fn has_written(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, SkeletonPiece::Summary(forms) if forms.is_written))
    }

    /// Returns the cost of the blocks that are always shown whole, in tokens.
    pub(crate) fn small_tokens(&self) -> u64 {
        let small = self.pieces.iter().map(|piece| match piece {
            SkeletonPiece::Small(_, tokens) => *tokens,
            _ => 0,
        });
        small.sum()
    }

    /// Returns the runs of neighbouring blocks (groups of messages) that may be dropped, oldest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.pieces.iter().filter_map(|piece| match piece {
            SkeletonPiece::Run(run) => Some(run),
            _ => None,
        })
    }

    /// Returns the index of the first of the latest pieces that together cost at most `tokens` in their shortest forms.
    pub(crate) fn newest_within(&self, tokens: u64) -> usize {
        let mut sum = 0_u64;
        let newest_first = self.pieces.iter().enumerate().rev();
        let mut within = newest_first.take_while(|(_, piece)| {
            sum = sum.saturating_add(piece.least());
            sum <= tokens
        });
        within
            .by_ref()
            .last()
            .map_or(self.pieces.len(), |(first, _)| first)
    }
}

/// Returns the piece for a run of blocks: whole if other blocks follow and the run costs at most as much as its
/// pointer, otherwise a run with its pointer.
fn run<'a>(
    blocks: &[Block<'a>],
    range: Range<usize>,
    kept: Option<usize>,
    accounting: &dyn Accounting,
) -> SkeletonPiece<'a> {
    let run = blocks.get(range.clone()).unwrap_or_default();
    let read_whole = !run.iter().any(|block| block.is_unread() || block.is_quoted);
    let end = kept.map_or(range.end, |kept| range.end.min(kept));
    let droppable = blocks.get(range.start..end).unwrap_or_default();
    let pointer = (read_whole && droppable.iter().any(Block::shows))
        .then(|| digests(&[droppable], 0, accounting).0.pop())
        .flatten();
    let tokens = run
        .iter()
        .map(|block| block.tokens)
        .fold(0, u64::saturating_add);
    let before_summary = range.end < blocks.len();
    match pointer {
        Some(pointer) if before_summary && tokens <= pointer.tokens => {
            SkeletonPiece::Small(range, tokens)
        }
        pointer => SkeletonPiece::Run(Run {
            blocks: range,
            pointer,
        }),
    }
}
