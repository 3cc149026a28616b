//! Chooses the blocks of a context so that it covers the whole view: what does not fit is shortened before
//! anything is left out.

use std::ops::Range;

use memory_model::Accounting;

use crate::allotment::{Allotted, allot};
use crate::blocks::Block;
use crate::choose::{Choice, Cut, Shown, cut, newest};
use crate::context::{Degradation, DegradationStep, Receipt};
use crate::degrade::degrade;
use crate::digest::{Digests, digests, range_of};
use crate::policy::step_size;
use crate::skeleton::{Piece, Run, Skeleton};

/// Limit from which every group can be shortened to it, in tokens.
const ABOVE_EVERY_FLOOR: u64 = 1_000;

/// Number of times that the room for digests is made smaller because their messages have less text.
const DIGEST_ROUNDS: usize = 4;

/// A view that is shortened to fit.
struct Shortening<'v, 'a> {
    blocks: &'v [Block<'a>],
    skeleton: Skeleton<'a>,
    room: u64,
    steps: u64,
    /// Index of the newest group; `None` where the view ends with a summary.
    newest: Option<usize>,
    accounting: &'v dyn Accounting,
}

/// Chooses the blocks of a context of at most `room` tokens.
///
/// Summaries are shortened in steps, and get what [`SummaryCosts::share`](crate::allotment::SummaryCosts::share)
/// says. Of the other blocks the oldest are dropped in steps, and digests stand for them.
pub(crate) fn shorten(
    blocks: &[Block<'_>],
    room: u64,
    steps: u64,
    accounting: &dyn Accounting,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    let Some(newest) = newest(blocks) else {
        return Vec::new();
    };
    let sum = blocks
        .iter()
        .map(|block| block.tokens)
        .fold(0, u64::saturating_add);
    if sum <= room && !blocks.iter().any(Block::is_unread) {
        return (0..blocks.len()).map(Choice::whole).collect();
    }
    let group = blocks
        .get(newest)
        .filter(|block| !block.is_summary())
        .map(|_| newest);
    let shortening = Shortening {
        skeleton: Skeleton::new(blocks, group, accounting),
        blocks,
        room,
        steps,
        newest: group,
        accounting,
    };
    let mut choices = shortening.choices(newest, receipt);
    choices.sort_by_key(|choice| choice.blocks.start);
    choices
}

impl<'v, 'a> Shortening<'v, 'a> {
    /// Cost of the newest group, in tokens.
    fn newest_tokens(&self) -> u64 {
        let newest = self.newest.and_then(|index| self.blocks.get(index));
        newest.map_or(0, |block| block.tokens)
    }

    /// Blocks of runs, oldest first.
    fn others(&self) -> Others<'v, 'a> {
        let mut others = Others {
            indices: Vec::new(),
            blocks: Vec::new(),
            starts: Vec::new(),
        };
        let mut start = 0_u64;
        for run in self.skeleton.runs() {
            for index in run.blocks.clone() {
                let Some(block) = self.blocks.get(index) else {
                    continue;
                };
                others.indices.push(index);
                others.blocks.push(block);
                others.starts.push(start);
                start = start.saturating_add(block.cost);
            }
        }
        others
    }

    /// Chooses the most of several fixed amounts beside which the newest group fits. `newest` is the index of the
    /// newest block that shows something.
    fn choices(&self, newest: usize, receipt: &mut Receipt) -> Vec<Choice> {
        let (room, costs) = (self.room, self.skeleton.costs());
        let (newest_tokens, pointers) = (self.newest_tokens(), self.skeleton.pointers());
        let others = self.others();
        let (stored, rendered) = others.costs();
        let share = costs.share(stored.max(rendered), room, step_size(room, self.steps));
        let left =
            |share: u64, needed: u64| room.checked_sub(share).is_some_and(|left| needed <= left);
        let with_pointers = newest_tokens.saturating_add(pointers);
        if left(share, with_pointers) || others.complete() && left(share, rendered) {
            return self.with_all(share, receipt);
        }
        let smaller = costs.smaller_share(room.saturating_sub(with_pointers));
        if let Some(smaller) = smaller.filter(|smaller| *smaller < share && with_pointers <= room) {
            return self.with_summaries(smaller, receipt);
        }
        let all = costs.headlines.saturating_add(pointers);
        let most = [room, room - room / 4].map(|most| most.min(all));
        let most = most.into_iter().find(|most| left(*most, newest_tokens));
        self.with_newest_pieces(most.unwrap_or(all.min(room / 2)), newest, receipt)
    }

    /// Summaries of `share` tokens, and the other blocks from the step on that fits beside them.
    fn with_all(&self, share: u64, receipt: &mut Receipt) -> Vec<Choice> {
        let room = self.room.saturating_sub(share);
        let mut choices = self.summaries(share);
        let others = self.others();
        let whole = self.skeleton.costs().whole;
        receipt.stepped_tokens = whole.saturating_sub(share);
        if others.complete() && others.costs().1 <= room {
            choices.extend(others.indices.iter().copied().map(Choice::whole));
            return choices;
        }
        let digestible = self.skeleton.runs().any(|run| run.pointer.is_some());
        let reserve = match digestible {
            true => (room / 8).max(self.skeleton.pointers()),
            false => 0,
        };
        if room.saturating_sub(reserve) < self.newest_tokens() {
            choices.extend(self.only_newest(receipt));
            return choices;
        }
        let (cut, digests) = self.cut_and_digest(&others, room, reserve);
        receipt.stepped_tokens = receipt.stepped_tokens.saturating_add(cut.drop);
        if let (Some(at), Some(limit)) = (cut.boundary, cut.remains) {
            choices.extend(
                others
                    .indices
                    .get(at)
                    .map(|index| Choice::within(*index, limit)),
            );
        }
        let whole = others.indices.iter().skip(cut.first).copied();
        choices.extend(whole.map(Choice::whole));
        choices.extend(digests);
        choices
    }

    /// The cut of the other blocks, and the digests of what it drops. `reserve` tokens of the room are for
    /// digests, or fewer where what is dropped has less text.
    fn cut_and_digest(
        &self,
        others: &Others<'_, '_>,
        room: u64,
        mut reserve: u64,
    ) -> (Cut, Vec<Choice>) {
        let newest = self
            .newest
            .and_then(|index| others.indices.binary_search(&index).ok());
        let newest = newest.unwrap_or(others.blocks.len());
        let mut rounds = DIGEST_ROUNDS;
        loop {
            let room = room.saturating_sub(reserve);
            let cut = cut(&others.blocks, &others.starts, newest, room, self.steps);
            let kept = match (cut.remains, cut.boundary) {
                (Some(_), Some(boundary)) => boundary,
                _ => cut.first,
            };
            let kept = others
                .indices
                .get(kept)
                .copied()
                .unwrap_or(self.blocks.len());
            let (stretches, digests) = self.digests(kept, reserve);
            let tokens = digests.tokens();
            rounds -= 1;
            if rounds > 0 && digests.complete && tokens < reserve - reserve / 4 {
                reserve = tokens;
                continue;
            }
            return (cut, self.digest_choices(stretches, digests));
        }
    }

    /// Digests of the runs before the block `kept`, at most `limit` tokens.
    fn digests(&self, kept: usize, limit: u64) -> (Vec<Range<usize>>, Digests) {
        let stretches = self.skeleton.runs().filter(|run| run.pointer.is_some());
        let stretches = stretches.map(|run| run.blocks.start..run.blocks.end.min(kept));
        let shows = |blocks: &Range<usize>| self.slice(blocks).iter().any(Block::shows);
        let stretches: Vec<Range<usize>> = stretches.filter(shows).collect();
        let slices: Vec<&[Block<'_>]> = stretches.iter().map(|blocks| self.slice(blocks)).collect();
        let digests = digests(&slices, limit, self.accounting);
        (stretches, digests)
    }

    fn slice(&self, blocks: &Range<usize>) -> &'v [Block<'a>] {
        self.blocks.get(blocks.clone()).unwrap_or_default()
    }

    fn digest_choices(&self, stretches: Vec<Range<usize>>, digests: Digests) -> Vec<Choice> {
        let digests = stretches.into_iter().zip(digests.messages);
        let choices = digests.filter_map(|(blocks, message)| {
            let slice = self.slice(&blocks);
            let range = range_of(slice)?;
            let degradation = Degradation {
                first: range.first,
                last: range.last,
                step: DegradationStep::Digest,
                from_tokens: slice
                    .iter()
                    .map(|block| block.tokens)
                    .fold(0, u64::saturating_add),
                to_tokens: message.tokens,
            };
            Some(Choice {
                blocks,
                shown: Shown::Digest(message, degradation),
            })
        });
        choices.collect()
    }

    /// The newest group whole, and pointers to all other blocks of runs.
    fn only_newest(&self, receipt: &mut Receipt) -> Vec<Choice> {
        let newest = self.newest.unwrap_or(self.blocks.len());
        let others = self.others();
        let at = others.indices.partition_point(|index| *index < newest);
        let dropped = others.starts.get(at).copied();
        let dropped = dropped.unwrap_or_else(|| others.costs().0);
        receipt.stepped_tokens = receipt.stepped_tokens.saturating_add(dropped);
        let (stretches, digests) = self.digests(newest, 0);
        let mut choices = self.digest_choices(stretches, digests);
        choices.extend(self.newest.map(Choice::whole));
        choices
    }

    /// Summaries of `share` tokens, the newest group whole, and pointers to the other blocks.
    fn with_summaries(&self, share: u64, receipt: &mut Receipt) -> Vec<Choice> {
        receipt.stepped_tokens = self.skeleton.costs().whole.saturating_sub(share);
        let mut choices = self.summaries(share);
        choices.extend(self.only_newest(receipt));
        choices
    }

    /// The summaries in forms of at most `share` tokens together, with the runs that are always whole.
    fn summaries(&self, share: u64) -> Vec<Choice> {
        let share = share.saturating_sub(self.skeleton.small_tokens());
        let (mut indices, mut forms) = (Vec::new(), Vec::new());
        let mut choices = Vec::new();
        for piece in &self.skeleton.pieces {
            match piece {
                Piece::Summary(index, of_summary) => {
                    indices.push(*index);
                    forms.push(of_summary);
                }
                Piece::Small(blocks, _) => choices.extend(blocks.clone().map(Choice::whole)),
                Piece::Run(_) => {}
            }
        }
        let allotted = allot(&forms, share, self.accounting);
        choices.extend(
            indices
                .into_iter()
                .zip(allotted)
                .map(|(index, one)| choice(index, one)),
        );
        choices
    }

    /// The newest group, shortened where necessary, and the newest headlines and pointers of `tokens` tokens
    /// together. `newest` is the index of the newest block that shows something.
    fn with_newest_pieces(&self, tokens: u64, newest: usize, receipt: &mut Receipt) -> Vec<Choice> {
        let whole = self.skeleton.costs().whole;
        receipt.stepped_tokens = whole.saturating_sub(tokens);
        let limit = self.limit_of_newest(self.room.saturating_sub(tokens));
        let pieces = self
            .skeleton
            .newest_within(self.room.saturating_sub(limit).min(tokens));
        let mut choices = Vec::new();
        for piece in self.skeleton.pieces.iter().skip(pieces) {
            match piece {
                Piece::Summary(index, forms) => {
                    choices.push(choice(*index, Allotted::new(forms, 0, self.accounting)));
                }
                Piece::Small(blocks, _) => choices.extend(blocks.clone().map(Choice::whole)),
                Piece::Run(run) => choices.extend(self.pointer(run)),
            }
        }
        if self.newest.is_some() {
            choices.push(Choice::within(newest, limit));
        } else if choices.is_empty() {
            choices.push(self.newest_summary(newest));
        }
        choices
    }

    /// The digest of a run without its newest group: a pointer.
    fn pointer(&self, run: &Run) -> Option<Choice> {
        run.pointer?;
        let end = self
            .newest
            .map_or(run.blocks.end, |newest| run.blocks.end.min(newest));
        let blocks = run.blocks.start..end;
        let digests = digests(&[self.slice(&blocks)], 0, self.accounting);
        self.digest_choices(vec![blocks], digests).pop()
    }

    /// The largest limit of the newest group: `limit`, or the least cost of the group.
    fn limit_of_newest(&self, limit: u64) -> u64 {
        let newest = self.newest.and_then(|index| self.blocks.get(index));
        let Some(block) = newest.filter(|block| block.tokens > limit) else {
            return limit;
        };
        if limit >= ABOVE_EVERY_FLOOR || limit >= self.room {
            return limit;
        }
        let floor = degrade(&block.rendered, block.range, limit, self.accounting).err();
        floor.map_or(limit, |floor| floor.min(block.tokens).min(self.room))
    }

    /// The newest summary alone, where not even its headline fits beside others.
    fn newest_summary(&self, newest: usize) -> Choice {
        let forms = self
            .skeleton
            .pieces
            .iter()
            .rev()
            .find_map(|piece| match piece {
                Piece::Summary(index, forms) if *index == newest => Some(forms),
                _ => None,
            });
        match forms.filter(|forms| forms.tokens(0) <= self.room) {
            Some(forms) => choice(newest, Allotted::new(forms, 0, self.accounting)),
            None => Choice::within(newest, self.room),
        }
    }
}

fn choice(index: usize, allotted: Allotted) -> Choice {
    match allotted.short {
        Some(form) => Choice::one(index, Shown::Form(form)),
        None => Choice::whole(index),
    }
}

/// Blocks that are no summaries, oldest first.
struct Others<'v, 'a> {
    /// Indices of the blocks.
    indices: Vec<usize>,
    blocks: Vec<&'v Block<'a>>,
    /// Cost of the other blocks before each, in tokens.
    starts: Vec<u64>,
}

impl Others<'_, '_> {
    /// Whether all of these blocks were read.
    fn complete(&self) -> bool {
        !self.blocks.iter().any(|block| block.is_unread())
    }

    /// Cost of the blocks, in tokens: as the view records it, and rendered.
    fn costs(&self) -> (u64, u64) {
        let costs = self.blocks.iter().map(|block| match block.is_unread() {
            true => (block.cost, block.cost),
            false => (block.cost, block.tokens),
        });
        costs.fold((0, 0), |sum: (u64, u64), cost| {
            (sum.0.saturating_add(cost.0), sum.1.saturating_add(cost.1))
        })
    }
}
