//! Composes the messages of a context from the chosen blocks (summaries and groups of messages).

use memory_model::Accounting;

use crate::blocks::{Block, Content};
use crate::choose::{Choice, ChosenForm};
use crate::context::{
    ContextMessage, Degradation, DegradationStep, MessageOrigin, Receipt, ShortenedSummary,
};
use crate::degrade::{degrade, total};
use crate::ids::CallIds;

/// Form in which a context shows a block (a summary or a group of messages).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownAs {
    Nothing,
    /// The block is shortened, or part of a digest.
    Shortened,
    /// The block is shown whole, or it is a summary of which some lines are shown.
    Kept,
}

/// Appends the messages of the chosen blocks (summaries and groups of messages) to `messages`. Returns the form in
/// which each block is shown.
pub(crate) fn compose(
    blocks: &[Block<'_>],
    chosen: Vec<Choice>,
    accounting: &dyn Accounting,
    messages: &mut Vec<ContextMessage>,
    receipt: &mut Receipt,
) -> Vec<ShownAs> {
    let mut shown = vec![ShownAs::Nothing; blocks.len()];
    let mut ids = CallIds::default();
    for choice in chosen {
        let of_choice = blocks.get(choice.blocks.clone()).unwrap_or_default();
        let (Some(block), Some(last)) = (of_choice.first(), of_choice.last()) else {
            continue;
        };
        let shown_as = match choice.shown {
            ChosenForm::Form(form) => {
                if let Content::Summary(summary) = block.content {
                    receipt.shortened.push(ShortenedSummary {
                        summary_id: summary.id.clone(),
                        first: summary.range.first,
                        last: summary.range.last,
                        lines: form.lines,
                        of_lines: form.of_lines,
                        from_tokens: block.tokens,
                        to_tokens: form.tokens,
                    });
                }
                messages.extend(form.messages);
                ShownAs::Kept
            }
            ChosenForm::Digest(message) => {
                let tokens = of_choice.iter().map(|block| block.tokens);
                receipt.degraded.push(Degradation {
                    first: block.range.first,
                    last: last.range.last,
                    step: DegradationStep::Digest,
                    from_tokens: tokens.fold(0, u64::saturating_add),
                    to_tokens: message.tokens,
                });
                messages.push(message);
                ShownAs::Shortened
            }
            ChosenForm::Within(limit) => {
                let begin = messages.len();
                let limit = limit.min(block.limit);
                // Ids do not add to the cost, so renaming does not change the cost of a block.
                let mut renamed = block.fitted.renamed.clone();
                let rewritten = ids.take(&block.fitted.messages, &mut renamed);
                let rendered = rewritten.as_deref().unwrap_or(&block.fitted.messages);
                let shown_as = if block.tokens <= limit {
                    messages.extend(rendered.iter().cloned());
                    match block.capped {
                        Some((step, from_tokens)) => {
                            receipt.degraded.push(Degradation {
                                first: block.range.first,
                                last: block.range.last,
                                step,
                                from_tokens,
                                to_tokens: block.tokens,
                            });
                            ShownAs::Shortened
                        }
                        None => ShownAs::Kept,
                    }
                } else {
                    let Ok((step, degraded)) = degrade(rendered, block.range, limit, accounting)
                    else {
                        continue;
                    };
                    receipt.degraded.push(Degradation {
                        first: block.range.first,
                        last: block.range.last,
                        step,
                        from_tokens: block.capped.map_or(block.tokens, |(_, tokens)| tokens),
                        to_tokens: total(&degraded),
                    });
                    messages.extend(degraded);
                    ShownAs::Shortened
                };
                if block.is_quoted {
                    quoted(messages.get_mut(begin..).unwrap_or_default());
                }
                receipt
                    .stubbed_calls
                    .extend(block.fitted.stubbed.iter().cloned());
                receipt
                    .moved_results
                    .extend(block.fitted.moved.iter().cloned());
                receipt.renamed_calls.append(&mut renamed);
                shown_as
            }
        };
        shown
            .get_mut(choice.blocks)
            .unwrap_or_default()
            .fill(shown_as);
    }
    shown
}

/// Marks messages as quoted, because a summary also covers them.
fn quoted(messages: &mut [ContextMessage]) {
    for message in messages {
        if let MessageOrigin::Message { first, last } | MessageOrigin::Trimmed { first, last } =
            message.source
        {
            message.source = MessageOrigin::Quoted { first, last };
        }
    }
}
