//! Chooses the blocks (summaries and groups of messages) of a context that covers the whole view. Blocks are shortened
//! before any is left out.

use std::ops::Range;

use memory_model::{Accounting, Summary};

use crate::allotment::{SummaryCosts, allot};
use crate::blocks::Block;
use crate::choose::{Choice, ChosenForm, Other, cut, newest};
use crate::context::{ContextMessage, DegradationStep, Receipt};
use crate::degrade::{degrade, is_mostly_text, total};
use crate::digest::digests;
use crate::media::limit_media_tokens;
use crate::policy::{ABOVE_EVERY_FLOOR, AssemblyPolicy, Form, large_share};
use crate::skeleton::{Run, Skeleton, SkeletonPiece};
use crate::unfold::unfold;

/// Divisor for the maximum cost of a single request: a quarter of the room. With several requests, each gets less.
const REQUEST_SHARE: u64 = 4;

/// Maximum share of the room for the pictures and files of requests, as a fraction.
const MEDIA_SHARE: (u64, u64) = (4, 5);

/// Minimum room beside the pictures and files of requests, in tokens.
const BESIDE_MEDIA: u64 = 1_500;

/// Divisor for the maximum cost of the latest group of messages: half of the room.
const NEWEST_SHARE: u64 = 2;

/// Divisor for the minimum size of digests in a context that is used once: a twentieth of the room.
const DIGEST_SHARE: u64 = 20;

/// Maximum number of times that the room for digests is reduced, because their messages have less text.
const DIGEST_ROUNDS: usize = 4;

/// A view that is being shortened to fit the room.
///
/// Summaries without ranks are shown whole as far as they fit, even if messages lose room. Then come the messages of the
/// view, then the children of summaries, then quoted messages. So a larger room takes nothing away.
struct Shortening<'v, 'a> {
    blocks: &'v [Block<'a>],
    skeleton: Skeleton<'a>,
    /// Total costs of the summaries.
    costs: SummaryCosts,
    /// Cost of the pointers to all runs of dropped messages, in tokens.
    pointers: u64,
    /// Blocks (groups of messages) that are not summaries and not always shown whole, oldest first.
    others: Vec<Other<'v, 'a>>,
    room: u64,
    form: Form,
    /// Index of the latest group of messages; `None` if the view ends with a summary.
    newest: Option<usize>,
    /// Cost of the latest group of messages, in tokens.
    newest_tokens: u64,
    /// Whether there are summaries without ranks, which are shown whole or not at all.
    has_written: bool,
    accounting: &'v dyn Accounting,
}

/// Chooses the blocks (summaries and groups of messages) of a context of at most `room` tokens.
///
/// Summaries are shortened in steps, to the tokens of [`SummaryCosts::share`](crate::allotment::SummaryCosts::share).
/// The oldest groups of messages are dropped in steps and replaced by digests. In a context that is used once, summaries
/// of the blocks are replaced by their children in `below`, if these fit whole.
pub(crate) fn shorten<'a>(
    blocks: &mut Vec<Block<'a>>,
    below: &'a [Summary],
    room: u64,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    let form = policy.form;
    let Some(latest) = newest(blocks) else {
        return Vec::new();
    };
    let sum = blocks
        .iter()
        .map(|block| block.tokens)
        .fold(0, u64::saturating_add);
    let may_unfold = form == Form::Once && !below.is_empty();
    if sum <= room && !blocks.iter().any(Block::is_unread) && !may_unfold {
        return (0..blocks.len()).map(Choice::whole).collect();
    }
    let mut most = (room / MEDIA_SHARE.1 * MEDIA_SHARE.0).min(room.saturating_sub(BESIDE_MEDIA));
    loop {
        let media = cap_requests(blocks, (room, most), sum, accounting);
        limit_large(blocks, latest, (room, media), form, accounting);
        if media == 0 || is_enough(blocks, latest, room, accounting) {
            break;
        }
        // One picture less.
        most = media - 1;
    }
    if may_unfold && !blocks.iter().any(Block::is_unread) {
        let of_view = |block: &&Block<'_>| !block.is_quoted || block.is_requested;
        let messages = blocks.iter().filter(|block| !block.is_summary());
        let messages = messages.filter(of_view).map(Block::shown_tokens);
        let left = room.saturating_sub(messages.fold(0, u64::saturating_add));
        let acknowledge = policy.acknowledge_summaries;
        unfold(blocks, below, left, acknowledge, accounting);
        let shown = blocks.iter().map(|block| block.tokens);
        if shown.fold(0, u64::saturating_add) <= room {
            return (0..blocks.len()).map(Choice::whole).collect();
        }
    }
    let mut choices = Shortening::new(blocks, room, form, accounting).choices(receipt);
    choices.sort_by_key(|choice| choice.blocks.start);
    choices
}

/// Shortens the messages of the user's request to their share of the room, or to the tokens that all other blocks leave
/// if this is more. `sum` is the cost of all blocks (summaries and groups of messages), in tokens.
///
/// The pictures and files of the request belong to it. The latest ones that cost at most `most` tokens stay in addition to
/// the share. Returns the cost of those in shortened messages, in tokens.
fn cap_requests(
    blocks: &mut [Block<'_>],
    (room, most): (u64, u64),
    sum: u64,
    accounting: &dyn Accounting,
) -> u64 {
    let requests = blocks.iter().filter(|block| block.is_requested).count() as u64;
    let mut media = 0;
    for block in blocks.iter_mut().rev().filter(|block| block.is_requested) {
        let left = room.saturating_sub(sum.saturating_sub(block.tokens));
        let share = room / (REQUEST_SHARE - 1 + requests);
        if block.tokens <= share.max(left) {
            continue;
        }
        let before = block.tokens;
        let of_block = limit_media_tokens(block, most.saturating_sub(media), accounting);
        media += of_block;
        let share = room.saturating_sub(media) / (REQUEST_SHARE - 1 + requests);
        block.cap_texts(left.max(share + of_block), accounting);
        if block.tokens < before {
            let step = block
                .capped
                .map_or(DegradationStep::Clipped, |(step, _)| step);
            block.capped = Some((step, before));
        }
    }
    media
}

/// Returns whether the requests leave enough room for the headlines of all summaries, the latest group of messages and
/// pointers to the others.
fn is_enough(blocks: &[Block<'_>], newest: usize, room: u64, accounting: &dyn Accounting) -> bool {
    let group = blocks.get(newest).filter(|block| !block.is_summary());
    let skeleton = Skeleton::new(blocks, group.map(|_| newest), accounting);
    let pointers = skeleton.runs().map(Run::pointer_tokens);
    let least = pointers.fold(skeleton.costs().headlines, u64::saturating_add);
    least.saturating_add(group.map_or(0, Block::shown_tokens)) <= room
}

/// Limits large groups of messages to their share of the room, so that no group takes the room of all others. If small
/// groups leave more room, the large groups divide it evenly, except that the latest group gets at least half of the
/// whole room. Requests have a separate limit. The second part of `whole` are the tokens of the whole room that pictures
/// of requests take.
fn limit_large(
    blocks: &mut [Block<'_>],
    newest: usize,
    whole: (u64, u64),
    form: Form,
    accounting: &dyn Accounting,
) {
    let room = whole.0.saturating_sub(whole.1);
    let share = large_share(room);
    let mut large = Vec::new();
    let mut left = whole.0;
    for (index, block) in blocks.iter().enumerate() {
        let is_large = block.is_group() && !block.is_requested && block.tokens > share;
        if is_large && is_mostly_text(&block.fitted.messages, accounting) {
            large.push((index, block.tokens));
        } else {
            left = left.saturating_sub(block.tokens);
        }
    }
    if blocks.iter().any(Block::is_unread) {
        left = 0;
    }
    let mut limit = |index: usize, limit: u64| {
        if let Some(block) = blocks.get_mut(index) {
            block.limit = share.max(limit);
        }
    };
    if let Some((_, tokens)) = large.pop_if(|(index, _)| *index == newest) {
        let costs = large.iter().map(|(_, tokens)| *tokens).chain([tokens]);
        let most = even_share(costs.collect(), left).max(room / NEWEST_SHARE);
        left = left.saturating_sub(tokens.min(share.max(most)));
        limit(newest, most);
    }
    // Limits change in steps, so that the beginning of the context stays the same while messages are appended.
    let even = even_share(large.iter().map(|(_, tokens)| *tokens).collect(), left);
    let even = even - even % form.step_size(room);
    large.into_iter().for_each(|(index, _)| limit(index, even));
}

/// Returns the largest limit to which the `costs` above it can be cut so that all of them fit into `room` tokens.
fn even_share(mut costs: Vec<u64>, room: u64) -> u64 {
    costs.sort_unstable();
    let (mut left, mut count) = (room, costs.len() as u64);
    for cost in costs.iter() {
        let even = left / count;
        if *cost > even {
            return even;
        }
        (left, count) = (left - cost, count - 1);
    }
    u64::MAX
}

/// Returns the blocks (groups of messages) that are not summaries and not always shown whole, oldest first.
fn others<'v, 'a>(blocks: &'v [Block<'a>], skeleton: &Skeleton<'a>) -> Vec<Other<'v, 'a>> {
    let mut start = 0_u64;
    let mut others = Vec::new();
    for piece in &skeleton.pieces {
        let (indices, is_run) = match piece {
            SkeletonPiece::Summary(_) => continue,
            SkeletonPiece::Small(indices, _) => (indices, false),
            SkeletonPiece::Run(run) => (&run.blocks, true),
        };
        for index in indices.clone() {
            let Some(block) = blocks.get(index) else {
                continue;
            };
            if is_run {
                others.push(Other {
                    index,
                    block,
                    start,
                });
            }
            // A request counts although it is never dropped, so that the steps before and after it stay the same.
            if is_run || block.is_requested {
                start = start.saturating_add(block.cost);
            }
        }
    }
    others
}

impl<'v, 'a> Shortening<'v, 'a> {
    fn new(blocks: &'v [Block<'a>], room: u64, form: Form, accounting: &'v dyn Accounting) -> Self {
        let group = newest(blocks)
            .and_then(|newest| Some((newest, blocks.get(newest).filter(|it| !it.is_summary())?)));
        let newest_tokens = group.map_or(0, |(_, block)| block.shown_tokens());
        let newest = group.map(|(newest, _)| newest);
        let skeleton = Skeleton::new(blocks, newest, accounting);
        Self {
            costs: skeleton.costs(),
            pointers: skeleton.runs().map(Run::pointer_tokens).sum(),
            others: others(blocks, &skeleton),
            has_written: skeleton.has_written(),
            skeleton,
            blocks,
            room,
            form,
            newest,
            newest_tokens,
            accounting,
        }
    }

    /// Returns the room that the latest group of messages and the smallest digests leave in a context that is used once,
    /// in tokens.
    fn beside_newest(&self) -> u64 {
        let digests = match self.pointers {
            0 => 0,
            pointers => pointers.max(self.room / DIGEST_SHARE),
        };
        self.room
            .saturating_sub(self.newest_tokens.saturating_add(digests))
    }

    /// Chooses the largest of several fixed sizes for the summaries that leaves enough room for the latest group of
    /// messages.
    fn choices(&self, receipt: &mut Receipt) -> Vec<Choice> {
        let (room, costs) = (self.room, self.costs);
        let (mut stored, mut rendered) = (0_u64, 0_u64);
        let mut complete = true;
        for Other { block, .. } in &self.others {
            stored = stored.saturating_add(block.cost.min(block.limit));
            rendered = rendered.saturating_add(match block.is_unread() {
                true => block.cost,
                false => block.shown_tokens(),
            });
            complete &= !block.is_unread();
        }
        let others = stored.max(rendered);
        let share = match self.form {
            Form::Once => self.filling(rendered),
            Form::Live { .. } => costs.share(others, room, self.form.step_size(room)),
        };
        let left =
            |share: u64, needed: u64| room.checked_sub(share).is_some_and(|left| needed <= left);
        if complete && left(share, rendered) {
            receipt.stepped_tokens = costs.whole.saturating_sub(share);
            let mut choices = self.summaries(share);
            choices.extend(self.others.iter().map(|other| Choice::whole(other.index)));
            return choices;
        }
        let with_pointers = self.newest_tokens.saturating_add(self.pointers);
        // In a context that is used once, messages that fit need no pointers.
        let fits = self.form == Form::Once && self.fits_with_messages(share);
        if fits || left(share, with_pointers) {
            return self.with_others(share, receipt);
        }
        let smaller = costs.smaller_share(room.saturating_sub(with_pointers));
        if let Some(smaller) = smaller.filter(|smaller| *smaller < share && with_pointers <= room) {
            return self.with_newest(smaller, receipt);
        }
        let all = costs.headlines.saturating_add(self.pointers);
        let most = [room, room - room / 4].map(|most| most.min(all));
        let most = most
            .into_iter()
            .find(|most| left(*most, self.newest_tokens));
        self.with_newest_pieces(most.unwrap_or(all.min(room / 2)), receipt)
    }

    /// Returns the number of tokens for the summaries in a context that is used once. It is smaller if the messages
    /// between the summaries and the latest group of messages need a digest (a short text in their place).
    fn filling(&self, others: u64) -> u64 {
        let share = self.costs.filling(others, self.room);
        let is_only_newest = self.pointers == 0 && !self.has_written;
        let fits = others.saturating_add(share) <= self.room;
        if is_only_newest || fits || self.fits_with_messages(share) {
            return share;
        }
        share.min(self.beside_newest().max(self.costs.headlines))
    }

    /// Chooses summaries that cost `share` tokens together, the groups of messages from the first step that fits, and
    /// digests (short texts) in place of the earlier groups.
    fn with_others(&self, share: u64, receipt: &mut Receipt) -> Vec<Choice> {
        let room = self.room.saturating_sub(share);
        // Room for digests. It is reduced if the dropped messages have less text.
        let mut reserve = match self.pointers {
            0 => 0,
            // In a live session, messages that fit may be dropped with those that do not.
            pointers if self.fits_with_messages(share) => match self.form {
                Form::Once => 0,
                Form::Live { .. } => pointers,
            },
            pointers if self.form == Form::Once => {
                let left = room.saturating_sub(self.newest_tokens);
                pointers.max((self.room / DIGEST_SHARE).max(room / 8).min(left))
            }
            pointers => pointers.max(room / 8),
        };
        if room.saturating_sub(reserve) < self.newest_tokens {
            return self.with_newest(share, receipt);
        }
        let index_at = |place: usize| self.others.get(place).map(|other| other.index);
        let newest = self.newest.unwrap_or(self.blocks.len());
        let newest = self.others.partition_point(|other| other.index < newest);
        let mut rounds = 1;
        let (cut, stretches, mut digested) = loop {
            let cut = cut(
                &self.others,
                newest,
                room.saturating_sub(reserve),
                self.form,
            );
            let kept = cut.partial.map_or(cut.first, |(place, _)| place);
            let stretches = self.stretches(index_at(kept).unwrap_or(self.blocks.len()));
            let (digests, complete) = self.digests(&stretches, reserve);
            let tokens = total(&digests);
            if rounds < DIGEST_ROUNDS && complete && tokens < reserve - reserve / 4 {
                (reserve, rounds) = (tokens, rounds + 1);
                continue;
            }
            break (cut, stretches, digests);
        };
        let stepped = self.costs.whole.saturating_sub(share);
        receipt.stepped_tokens = stepped.saturating_add(cut.drop);
        let mut left = 0;
        if self.form == Form::Once {
            let whole = self.others.iter().skip(cut.first);
            let whole: u64 = whole.map(|other| other.block.shown_tokens()).sum();
            let messages = whole + cut.partial.map_or(0, |(_, limit)| limit);
            left = room.saturating_sub(messages);
            left = left.saturating_sub(total(&digested));
        }
        // Lines of summaries get the room that messages leave, and digests get the room that summaries leave.
        let mut choices = self.summaries(match self.has_written {
            true => share,
            false => share + left,
        });
        if self.form == Form::Once || self.has_written {
            let unused = (share + left).saturating_sub(self.cost(&choices));
            if unused > 0 {
                let limit = total(&digested).saturating_add(unused);
                digested = self.digests(&stretches, limit).0;
            }
        }
        if let Some((place, limit)) = cut.partial {
            choices.extend(index_at(place).map(|index| Choice::within(index, limit)));
        }
        let whole = self.others.iter().skip(cut.first);
        choices.extend(whole.map(|other| Choice::whole(other.index)));
        let digests = stretches.into_iter().zip(digested);
        choices.extend(digests.map(|(blocks, message)| Choice {
            blocks,
            shown: ChosenForm::Digest(message),
        }));
        choices
    }

    /// Returns whether whole summaries of `share` tokens fit together with all messages of the view, so that only quoted
    /// messages are left out.
    fn fits_with_messages(&self, share: u64) -> bool {
        let of_view = self.others.iter().filter(|it| !it.block.is_quoted);
        let complete = !of_view.clone().any(|other| other.block.is_unread());
        let tokens = of_view.map(|other| other.block.shown_tokens());
        let tokens = tokens.fold(share, u64::saturating_add);
        self.has_written && complete && tokens <= self.room
    }

    /// Returns digests (short texts that replace groups of messages) of these stretches of blocks that cost at most
    /// `limit` tokens together, and whether they contain the whole text of the messages.
    fn digests(&self, stretches: &[Range<usize>], limit: u64) -> (Vec<ContextMessage>, bool) {
        let slices: Vec<&[Block<'_>]> = stretches.iter().map(|blocks| self.slice(blocks)).collect();
        digests(&slices, limit, self.accounting)
    }

    /// Returns the ranges of blocks (groups of messages) before the block `kept` that digests replace.
    fn stretches(&self, kept: usize) -> Vec<Range<usize>> {
        let runs = self.skeleton.runs().filter(|run| run.pointer.is_some());
        let stretches = runs.map(|run| run.blocks.start..run.blocks.end.min(kept));
        let shows = |blocks: &Range<usize>| self.slice(blocks).iter().any(Block::shows);
        stretches.filter(shows).collect()
    }

    fn slice(&self, blocks: &Range<usize>) -> &[Block<'_>] {
        self.blocks.get(blocks.clone()).unwrap_or_default()
    }

    /// Chooses summaries that cost `share` tokens together, the latest group of messages whole, and pointers to the
    /// other groups.
    fn with_newest(&self, share: u64, receipt: &mut Receipt) -> Vec<Choice> {
        let newest = self.newest.unwrap_or(self.blocks.len());
        let before = self.others.iter().take_while(|other| other.index < newest);
        let dropped = before.map(|other| other.block.cost);
        let stepped = self.costs.whole.saturating_sub(share);
        receipt.stepped_tokens = dropped.fold(stepped, u64::saturating_add);
        let mut choices = self.summaries(share);
        choices.extend(self.skeleton.runs().filter_map(|run| self.pointer(run)));
        choices.extend(self.newest.map(Choice::whole));
        choices
    }

    /// Returns the pointer that replaces a run of neighbouring blocks. `None` if the run has no pointer.
    fn pointer(&self, run: &Run) -> Option<Choice> {
        let end = self.newest.unwrap_or(self.blocks.len());
        Some(Choice {
            blocks: run.blocks.start..run.blocks.end.min(end),
            shown: ChosenForm::Digest(run.pointer.clone()?),
        })
    }

    /// Returns the summaries in forms (selections of their lines) that cost at most `share` tokens together, and the
    /// blocks that are always shown whole.
    fn summaries(&self, share: u64) -> Vec<Choice> {
        let share = share.saturating_sub(self.skeleton.small_tokens());
        let mut choices = Vec::new();
        let mut forms = Vec::new();
        for piece in &self.skeleton.pieces {
            match piece {
                SkeletonPiece::Summary(of_summary) => forms.push(of_summary),
                SkeletonPiece::Small(blocks, _) => {
                    choices.extend(blocks.clone().map(Choice::whole))
                }
                SkeletonPiece::Run(_) => {}
            }
        }
        choices.extend(allot(&forms, share, self.accounting));
        choices
    }

    /// Returns the cost of the chosen blocks, in tokens. Each is shown whole or in a short form.
    fn cost(&self, choices: &[Choice]) -> u64 {
        let costs = choices.iter().map(|choice| match &choice.shown {
            ChosenForm::Form(form) => form.tokens,
            ChosenForm::Digest(message) => message.tokens,
            ChosenForm::Within(_) => self
                .slice(&choice.blocks)
                .iter()
                .map(Block::shown_tokens)
                .sum(),
        });
        costs.sum()
    }

    /// Chooses the latest group of messages, shortened if necessary, and as many of the latest headlines and pointers
    /// as fit into `tokens` tokens.
    fn with_newest_pieces(&self, tokens: u64, receipt: &mut Receipt) -> Vec<Choice> {
        receipt.stepped_tokens = self.costs.whole.saturating_sub(tokens);
        let limit = self.limit_of_newest(self.room.saturating_sub(tokens));
        let pieces = self
            .skeleton
            .newest_within(self.room.saturating_sub(limit).min(tokens));
        let mut choices = Vec::new();
        for piece in self.skeleton.pieces.iter().skip(pieces) {
            match piece {
                SkeletonPiece::Summary(forms) => choices.push(forms.choice(0, self.accounting).0),
                SkeletonPiece::Small(blocks, _) => {
                    choices.extend(blocks.clone().map(Choice::whole))
                }
                SkeletonPiece::Run(run) => choices.extend(self.pointer(run)),
            }
        }
        match self.newest {
            Some(newest) => choices.push(Choice::within(newest, limit)),
            None if choices.is_empty() => choices.extend(self.newest_summary()),
            None => {}
        }
        choices
    }

    /// Returns the maximum cost of the latest group of messages: `limit`, or the minimum cost of the group if that is
    /// more.
    fn limit_of_newest(&self, limit: u64) -> u64 {
        let newest = self.newest.and_then(|index| self.blocks.get(index));
        let Some(block) = newest.filter(|block| block.tokens > limit) else {
            return limit;
        };
        if limit >= ABOVE_EVERY_FLOOR || limit >= self.room {
            return limit;
        }
        let floor = degrade(&block.fitted.messages, block.range, limit, self.accounting).err();
        floor.map_or(limit, |floor| floor.min(block.tokens).min(self.room))
    }

    /// Chooses only the latest summary, for a room that is too small for its headline and another summary or group of
    /// messages.
    fn newest_summary(&self) -> Option<Choice> {
        let newest = newest(self.blocks)?;
        let forms = self.skeleton.pieces.iter().find_map(|piece| match piece {
            SkeletonPiece::Summary(forms) if forms.index == newest => Some(forms),
            _ => None,
        });
        Some(match forms.filter(|forms| forms.tokens(0) <= self.room) {
            Some(forms) => forms.choice(0, self.accounting).0,
            None => Choice::within(newest, self.room),
        })
    }
}
