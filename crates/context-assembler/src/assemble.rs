//! Assembling a context.

use memory_model::{Accounting, Seq, SeqRange};

use crate::blocks::{Block, blocks};
use crate::choose::{fill, newest, step};
use crate::context::{Context, Dropped, Error, ErrorKind, MessageOrigin, Receipt};
use crate::degrade::{degrade, total};
use crate::ids::CallIds;
use crate::input::AssemblyInput;
use crate::policy::{AssemblyPolicy, Budget, Eviction};
use crate::preamble::Preamble;

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
    let limit = budget.limit();
    let mut receipt = Receipt {
        view_tokens: input.view_tokens,
        limit,
        request_tokens: request,
        ..Receipt::default()
    };
    let blocks = blocks(input, accounting, &mut receipt);
    receipt.tools_tokens = preamble.tools_tokens;
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
    };
    if fixed > overhead && fixed > limit && policy.whole_tail.is_none() {
        let floor = newest(&blocks).and_then(|index| blocks.get(index));
        let floor = floor.map_or(0, |block| floor_of(block, accounting));
        return Err(too_small(floor));
    }
    let room = limit.saturating_sub(fixed);

    let chosen = match policy.eviction {
        Eviction::Stepped { steps } if policy.whole_tail.is_none() => {
            step(&blocks, room, steps, &mut receipt)
        }
        eviction => fill(&blocks, room, policy.whole_tail, eviction, &mut receipt),
    };
    let mut messages = pinned;
    let mut shown = vec![false; blocks.len()];
    let mut ids = CallIds::default();
    for choice in chosen {
        let (Some(block), Some(shown)) = (blocks.get(choice.block), shown.get_mut(choice.block))
        else {
            continue;
        };
        let mut renamed = block.renamed.clone();
        // No estimator counts ids: what a block costs stays the same.
        let rewritten = ids.take(&block.rendered, &mut renamed);
        let rendered = rewritten.as_deref().unwrap_or(&block.rendered);
        match choice.limit.filter(|limit| block.tokens > *limit) {
            None => messages.extend(rendered.iter().cloned()),
            Some(limit) => match degrade(rendered, block.range, limit, accounting) {
                Ok(degraded) => {
                    receipt.degraded.push(degraded.degradation);
                    messages.extend(degraded.messages);
                }
                Err(needed) if choice.required => {
                    return Err(too_small(needed));
                }
                Err(_) => continue,
            },
        }
        *shown = true;
        receipt.stubbed_calls.extend(block.stubbed.iter().cloned());
        receipt.moved_results.extend(block.moved.iter().cloned());
        receipt.renamed_calls.append(&mut renamed);
    }
    receipt.dropped = dropped(input, &blocks, &shown);
    Ok(Context {
        tokens: total(&messages),
        messages,
        budget: budget.get(),
        receipt,
    })
}

/// The minimum cost of a block, in tokens.
fn floor_of(block: &Block, accounting: &dyn Accounting) -> u64 {
    match degrade(&block.rendered, block.range, 0, accounting) {
        Ok(_) => 0,
        Err(needed) => needed.min(block.tokens),
    }
}

/// Returns what the view shows and the context does not. Neighbours are one entry, even with notes
/// between them.
fn dropped(input: &AssemblyInput, blocks: &[Block], shown: &[bool]) -> Vec<Dropped> {
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
        if !block.shows() {
            continue;
        }
        if *shown {
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
