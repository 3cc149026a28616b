//! Assembling a context.

use memory_model::{Accounting, Seq, SeqRange};

use crate::blocks::{Block, Content, blocks};
use crate::choose::{Choice, fill, newest, step};
use crate::compose::{ShownAs, compose};
use crate::context::{Context, Dropped, Error, ErrorKind, MessageOrigin, Receipt};
use crate::degrade::{degrade, total};
use crate::forms::Forms;
use crate::input::AssemblyInput;
use crate::policy::{AssemblyPolicy, Budget, Eviction};
use crate::preamble::Preamble;
use crate::shorten::shorten;

/// Assembles a context within `budget`: its cost by `accounting` and a request's cost beside its
/// messages are within the budget's [`limit`](Budget::limit), by the estimator's own factor unless the
/// budget has one.
///
/// `identity` comes first, as a system message: see [`render_identity`](crate::render_identity).
/// The newest group is always included, shortened where necessary.
///
/// Providers accept the messages: the results of each call stand right behind its message and
/// nowhere else, in tool messages of their own. Lines of one response are joined, calls without a
/// result get a stub, results move behind their calls, those that came too late are text where
/// they stand, and no two calls have the same id. The receipt names what was moved and renamed.
///
/// # Errors
/// `BudgetTooSmall` when identity and newest group do not fit however much the group is
/// shortened; `needed` is then the smallest budget that does. Not with
/// [`whole_tail`](AssemblyPolicy::whole_tail), which goes over the budget instead.
pub fn assemble(
    input: &AssemblyInput,
    identity: Option<&str>,
    budget: Budget,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> Result<Context, Error> {
    let preamble = Preamble {
        identity,
        ..Preamble::default()
    };
    assemble_with_preamble(input, &preamble, budget, policy, accounting)
}

/// Assembles a context as [`assemble`], which begins with a preamble. It is always whole: what it costs is
/// taken from the budget first.
///
/// # Errors
/// `BudgetTooSmall` when preamble and newest group do not fit: see [`assemble`].
pub fn assemble_with_preamble(
    input: &AssemblyInput,
    preamble: &Preamble<'_>,
    budget: Budget,
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> Result<Context, Error> {
    let budget = budget.or_safety_factor(accounting.estimator().safety_factor());
    let overhead = accounting.estimator().request_overhead();
    let request = overhead.saturating_add(preamble.tools_tokens);
    let mut receipt = Receipt {
        view_tokens: input.view_tokens,
        limit: budget.limit(),
        request_tokens: request,
        tools_tokens: preamble.tools_tokens,
        ..Receipt::default()
    };
    let blocks = blocks(input, accounting, &mut receipt);
    let pinned = preamble.messages(accounting);
    for message in &pinned {
        match message.source {
            MessageOrigin::System => receipt.system_tokens = message.tokens,
            _ => receipt.identity_tokens = message.tokens,
        }
    }
    let fixed = total(&pinned).saturating_add(request);
    let too_small = |newest: u64| Error {
        kind: ErrorKind::BudgetTooSmall {
            needed: budget.tokens_needed_for(newest.saturating_add(fixed)),
        },
        budget: budget.get(),
        fixed,
    };
    if fixed > overhead && fixed > receipt.limit && !policy.keeps_tail() {
        return Err(too_small(floor_of_newest(&blocks, policy, accounting)));
    }
    let room = receipt.limit.saturating_sub(fixed);
    let chosen = choose(
        &blocks,
        input.tokens_before,
        room,
        policy,
        policy.whole_tail,
        accounting,
        &mut receipt,
    );
    let mut messages = pinned;
    let shown = compose(&blocks, chosen, accounting, &mut messages, &mut receipt)
        .ok_or_else(|| too_small(floor_of_newest(&blocks, policy, accounting)))?;
    receipt.dropped = dropped(input, &blocks, &shown);
    if policy.shortening_steps().is_some() {
        receipt.boundary = boundary(&blocks, &shown);
    }
    Ok(Context {
        tokens: total(&messages),
        messages,
        budget: budget.get(),
        receipt,
    })
}

/// The newest block that is neither whole nor a form of a summary.
fn boundary(blocks: &[Block<'_>], shown: &[ShownAs]) -> Option<Dropped> {
    let mut newest_first = blocks.iter().zip(shown).rev();
    let boundary = newest_first.find(|(block, shown)| block.shows() && **shown < ShownAs::Form);
    boundary.map(|(block, _)| block.boundary())
}

/// Chooses the blocks by the policy.
fn choose(
    blocks: &[Block<'_>],
    tokens_before: u64,
    room: u64,
    policy: &AssemblyPolicy,
    whole_tail: Option<usize>,
    accounting: &dyn Accounting,
    receipt: &mut Receipt,
) -> Vec<Choice> {
    if let Some(steps) = policy.shortening_steps() {
        return shorten(blocks, tokens_before, room, steps, accounting, receipt);
    }
    match policy.eviction {
        Eviction::Stepped { steps } if whole_tail.is_none() => step(blocks, room, steps, receipt),
        eviction => fill(blocks, room, whole_tail, eviction, receipt),
    }
}

/// The minimum cost of the newest block that shows something, in tokens.
fn floor_of_newest(
    blocks: &[Block<'_>],
    policy: &AssemblyPolicy,
    accounting: &dyn Accounting,
) -> u64 {
    let Some(block) = newest(blocks).and_then(|index| blocks.get(index)) else {
        return 0;
    };
    let floor = match degrade(&block.rendered, block.range, 0, accounting) {
        Ok(_) => 0,
        Err(needed) => needed.min(block.tokens),
    };
    match block.content {
        Content::Summary(summary) if policy.shortening_steps().is_some() => {
            floor.min(Forms::new(summary, block.tokens, accounting).tokens(0))
        }
        _ => floor,
    }
}

/// Returns what the view shows and the context does not. Neighbours are one entry, even with notes
/// between them.
fn dropped(input: &AssemblyInput, blocks: &[Block<'_>], shown: &[ShownAs]) -> Vec<Dropped> {
    let mut out: Vec<Dropped> = Vec::new();
    let before = blocks
        .first()
        .and_then(|block| SeqRange::new(Seq::FIRST, block.range.first.prev()));
    if let Some(range) = before {
        out.push(Dropped {
            first: range.first,
            last: range.last,
            tokens: input.tokens_before,
        });
    }
    let mut neighbour = !out.is_empty();
    for (block, shown) in blocks.iter().zip(shown) {
        if !block.shows() && !block.is_unread() {
            continue;
        }
        if *shown > ShownAs::Nothing {
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
