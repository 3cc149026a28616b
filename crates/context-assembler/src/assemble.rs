//! Assembles a context from a view of a conversation.

use memory_model::{Accounting, Part, Role};

use crate::accounting::cost;
use crate::blocks::{Block, Content, blocks};
use crate::choose::{Choice, newest};
use crate::compose::{ShownAs, compose};
use crate::context::{Context, ContextMessage, Dropped, Error, ErrorKind, MessageOrigin, Receipt};
use crate::degrade::{degrade, total};
use crate::forms::Forms;
use crate::input::AssemblyInput;
use crate::marks::render_state;
use crate::media::{MediaLimits, bytes, limit_media};
use crate::policy::{AssemblyPolicy, Budget};
use crate::preamble::Preamble;
use crate::render::is_acknowledgement;
use crate::shorten::shorten;

/// Assembles a context from a view of a conversation. The cost of the context, together with the overhead of a request,
/// is at most the [`limit`](Budget::limit) of `budget`. `accounting` counts the costs. If the budget has no safety
/// factor, the estimator's safety factor is used.
///
/// The preamble comes first and is always included whole. The latest group of messages (a message with its tool calls
/// and results) is always included, shortened if necessary.
///
/// Providers accept the messages. The results of each tool call directly follow the message with the call, in separate
/// tool messages. Results elsewhere in the log are moved there. The messages of one model response are joined. A call
/// without a result gets a stub as its result, and a late result becomes text at its position. No two calls have the
/// same id. The receipt lists the moved results and renamed calls.
///
/// A budget may also limit [pictures](Budget::with_pictures) and [bytes](Budget::with_bytes).
///
/// # Errors
/// `TooFewBytes` if the preamble and the latest group exceed the budget's bytes. `BudgetTooSmall` if they cost more
/// than the budget even after the group was shortened as far as possible. Then `needed` is the smallest sufficient
/// budget. With [`whole_tail`](AssemblyPolicy::whole_tail) the context exceeds the budget instead.
pub fn assemble(
    input: &AssemblyInput,
    preamble: &Preamble<'_>,
    budget: Budget,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> Result<Context, Error> {
    let budget = budget.or_safety_factor(accounting.estimator().safety_factor());
    let mut media = MediaLimits {
        pictures: budget.pictures(),
        bytes: budget.bytes(),
    };
    let mut limit = budget.limit();
    let mut least = 0;
    loop {
        let room = AttemptLimits {
            budget,
            limit,
            media,
        };
        let context = assemble_within(input, preamble, room, policy, accounting);
        let Some(most) = budget.bytes() else {
            return context;
        };
        let context = match context {
            Err(_) if limit < budget.limit() => return Err(too_few_bytes(most, least)),
            context => context?,
        };
        let (all, of_media) = bytes(&context.messages);
        if all <= most {
            return Ok(context);
        }
        // With `whole_tail` texts are not shortened.
        let is_least = limit == 0 || (policy.whole_tail.is_some() && of_media == 0);
        if is_least {
            return Err(too_few_bytes(most, all));
        }
        least = all;
        // Pictures and files get the bytes that texts leave. If no picture or file is left, the texts are shortened.
        match media.bytes {
            Some(bytes) if of_media > 0 && bytes > 0 => {
                let left = most.saturating_sub(all - of_media);
                media.bytes = Some(left.min(bytes.saturating_sub(1)));
            }
            _ => {
                let part = u128::from(limit) * u128::from(most) / u128::from(all);
                limit = u64::try_from(part)
                    .unwrap_or(limit)
                    .min(limit - 1 - limit / 65);
            }
        }
    }
}

fn too_few_bytes(most: u64, needed: u64) -> Error {
    Error {
        kind: ErrorKind::TooFewBytes { needed },
        budget: most,
        fixed: 0,
    }
}

/// Limits of one attempt to assemble a context.
struct AttemptLimits {
    budget: Budget,
    /// Maximum estimated cost, in tokens. At most the budget's limit.
    limit: u64,
    media: MediaLimits,
}

fn assemble_within(
    input: &AssemblyInput,
    preamble: &Preamble<'_>,
    limits: AttemptLimits,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> Result<Context, Error> {
    let budget = limits.budget;
    let overhead = accounting.estimator().request_overhead();
    let request = overhead.saturating_add(preamble.tools_tokens);
    let mut receipt = Receipt {
        view_tokens: input.view_tokens,
        limit: limits.limit,
        request_tokens: request,
        tools_tokens: preamble.tools_tokens,
        requested: input.requested.clone(),
        ..Receipt::default()
    };
    let acknowledge = policy.acknowledge_summaries;
    let mut blocks = blocks(input, acknowledge, accounting, &mut receipt);
    let is_live = policy.form.is_live();
    receipt.media_left_out = limit_media(&mut blocks, limits.media, is_live, accounting);
    let mut messages = preamble.messages(accounting);
    for message in &messages {
        match message.source {
            MessageOrigin::System => receipt.system_tokens = message.tokens,
            _ => receipt.identity_tokens = message.tokens,
        }
    }
    let begin = messages.len();
    let fixed = total(&messages).saturating_add(request);
    let too_small = |blocks: &[Block<'_>]| {
        let block = newest(blocks).and_then(|index| blocks.get(index));
        let least = block.map_or(0, |block| least_tokens(block, accounting));
        Error {
            kind: ErrorKind::BudgetTooSmall {
                needed: budget.tokens_needed_for(least.saturating_add(fixed)),
            },
            budget: budget.get(),
            fixed,
        }
    };
    if fixed > overhead && fixed > receipt.limit && policy.whole_tail.is_none() {
        return Err(too_small(&blocks));
    }
    let mut room = receipt.limit.saturating_sub(fixed);
    let state = state(input, &blocks, room, accounting);
    room -= state.as_ref().map_or(0, |state| state.tokens);
    let chosen = match policy.whole_tail {
        Some(messages) => newest_that_fit(&blocks, room, messages),
        None => shorten(
            &mut blocks,
            &input.below,
            room,
            policy,
            accounting,
            &mut receipt,
        ),
    };
    let shown = compose(&blocks, chosen, accounting, &mut messages, &mut receipt);
    if let Some(state) = state {
        let is_summary =
            |message: &ContextMessage| matches!(message.source, MessageOrigin::Summary { .. });
        let last = messages.iter().rposition(is_summary);
        messages.insert(last.map_or(begin, |last| last + 1), state);
    }
    if newest(&blocks).and_then(|index| shown.get(index)) == Some(&ShownAs::Nothing) {
        return Err(too_small(&blocks));
    }
    without_double_answers(&mut messages);
    receipt.dropped = dropped(&blocks, &shown);
    receipt.boundary = boundary(&blocks, &shown);
    Ok(Context {
        tokens: total(&messages),
        messages,
        budget: budget.get(),
        receipt,
    })
}

/// Removes acknowledgements of summaries before other messages of the assistant, so that the roles alternate. A provider
/// would join the two messages, and refuse text before reasoning.
fn without_double_answers(messages: &mut Vec<ContextMessage>) {
    let next: Vec<Option<Role>> = messages
        .iter()
        .skip(1)
        .map(|next| Some(next.role))
        .collect();
    let mut next = next.into_iter().chain([None]);
    messages.retain(|message| {
        let answered = next.next().flatten() == Some(Role::Assistant);
        !(answered && is_acknowledgement(message))
    });
}

/// Returns the message that describes the current state of the conversation; `None` if the input has no description or
/// no items, or if the latest block needs the room.
fn state(
    input: &AssemblyInput,
    blocks: &[Block<'_>],
    room: u64,
    accounting: &dyn Accounting,
) -> Option<ContextMessage> {
    let origin = MessageOrigin::State {
        first: blocks.first()?.range.first,
        last: blocks.last()?.range.last,
    };
    let parts = vec![Part::text(render_state(input.state.as_ref()?))];
    let mut message = ContextMessage::new(Role::User, origin, parts);
    message.tokens = cost(accounting, &message);
    let newest = newest(blocks).and_then(|index| blocks.get(index));
    let fits = |tokens: u64| tokens.saturating_add(message.tokens) <= room;
    // A block that fits whole is not shortened to learn its least cost.
    let is_shown = fits(newest.map_or(0, |block| block.tokens))
        || newest.is_some_and(|block| fits(least_tokens(block, accounting)));
    is_shown.then_some(message)
}

/// Chooses the blocks (summaries and groups of messages) with the latest `tail` messages, and every earlier block that
/// still fits, latest first.
fn newest_that_fit(blocks: &[Block<'_>], room: u64, tail: usize) -> Vec<Choice> {
    let (mut used, mut messages) = (0_u64, 0);
    let mut chosen: Vec<Choice> = Vec::new();
    for (index, block) in blocks.iter().enumerate().rev() {
        let with = used.saturating_add(block.tokens);
        if !block.is_unread() && (messages < tail.max(1) || with <= room) {
            used = with;
            messages += block.messages;
            chosen.push(Choice::whole(index));
        }
    }
    chosen.reverse();
    chosen
}

/// Returns the latest block (summary or group of messages) that the context does not show whole. A summary in a shorter
/// form counts as whole.
fn boundary(blocks: &[Block<'_>], shown: &[ShownAs]) -> Option<Dropped> {
    let mut newest_first = blocks.iter().zip(shown).rev();
    let boundary = newest_first
        .find(|(block, shown)| block.shows() && !block.is_quoted && **shown != ShownAs::Kept);
    boundary.map(|(block, _)| Dropped {
        first: block.range.first,
        last: block.range.last,
        tokens: block.tokens,
    })
}

/// Returns the minimum cost of a block (a summary or a group of messages), in tokens.
fn least_tokens(block: &Block<'_>, accounting: &dyn Accounting) -> u64 {
    let least = match degrade(&block.fitted.messages, block.range, 0, accounting) {
        Ok(_) => 0,
        Err(needed) => needed.min(block.tokens),
    };
    match block.content {
        Content::Summary(summary) => least.min(Forms::of(0, summary, block, accounting).tokens(0)),
        _ => least,
    }
}

/// Returns the ranges that the view shows and the context does not. Neighbouring ranges are one entry, even with notes
/// between them.
fn dropped(blocks: &[Block<'_>], shown: &[ShownAs]) -> Vec<Dropped> {
    let mut out: Vec<Dropped> = Vec::new();
    let mut neighbour = false;
    for (block, shown) in blocks.iter().zip(shown) {
        if block.is_quoted || (!block.shows() && !block.is_unread()) {
            continue;
        }
        if *shown != ShownAs::Nothing {
            neighbour = false;
            continue;
        }
        match out.last_mut().filter(|_| neighbour) {
            Some(last) => {
                last.last = block.range.last;
                last.tokens = last.tokens.saturating_add(block.cost);
            }
            None => out.push(Dropped {
                first: block.range.first,
                last: block.range.last,
                tokens: block.cost,
            }),
        }
        neighbour = true;
    }
    out
}
