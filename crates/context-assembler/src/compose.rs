//! Composes the messages of a context from the chosen blocks.

use memory_model::Accounting;

use crate::blocks::{Block, Content};
use crate::choose::{Choice, Shown};
use crate::context::{ContextMessage, Receipt, ShortenedSummary};
use crate::degrade::degrade;
use crate::forms::ShortForm;
use crate::ids::CallIds;

/// How a block is shown, from nothing to whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShownAs {
    #[default]
    Nothing,
    /// Shortened, or part of a digest.
    Shortened,
    /// A summary in a short form.
    Form,
    Whole,
}

/// Appends the chosen blocks to `messages`. Returns how each block is shown.
pub(crate) fn compose(
    blocks: &[Block<'_>],
    chosen: Vec<Choice>,
    accounting: &dyn Accounting,
    messages: &mut Vec<ContextMessage>,
    receipt: &mut Receipt,
) -> Vec<ShownAs> {
    let mut shown = vec![ShownAs::Nothing; blocks.len()];
    let mut composer = Composer {
        messages,
        receipt,
        accounting,
        ids: CallIds::default(),
    };
    for choice in chosen {
        let Some(block) = blocks.get(choice.blocks.start) else {
            continue;
        };
        let shown_as = match choice.shown {
            Shown::Form(form) => composer.form(block, form),
            Shown::Digest(message, degradation) => {
                composer.receipt.degraded.push(degradation);
                composer.messages.push(message);
                ShownAs::Shortened
            }
            Shown::Within(limit) => composer.block(block, limit),
        };
        let of_choice = shown.get_mut(choice.blocks);
        of_choice.unwrap_or_default().fill(shown_as);
    }
    shown
}

struct Composer<'a> {
    messages: &'a mut Vec<ContextMessage>,
    receipt: &'a mut Receipt,
    accounting: &'a dyn Accounting,
    ids: CallIds,
}

impl Composer<'_> {
    /// Appends a block: whole, or shortened to a limit in tokens if that is possible.
    fn block(&mut self, block: &Block<'_>, limit: u64) -> ShownAs {
        let mut renamed = block.renamed.clone();
        // No estimator counts ids: what a block costs stays the same.
        let rewritten = self.ids.take(&block.rendered, &mut renamed);
        let rendered = rewritten.as_deref().unwrap_or(&block.rendered);
        let shown_as = if block.tokens <= limit {
            self.messages.extend(rendered.iter().cloned());
            ShownAs::Whole
        } else {
            let Ok(degraded) = degrade(rendered, block.range, limit, self.accounting) else {
                return ShownAs::Nothing;
            };
            self.receipt.degraded.push(degraded.degradation);
            self.messages.extend(degraded.messages);
            ShownAs::Shortened
        };
        let receipt = &mut *self.receipt;
        receipt.stubbed_calls.extend(block.stubbed.iter().cloned());
        receipt.moved_results.extend(block.moved.iter().cloned());
        receipt.renamed_calls.append(&mut renamed);
        shown_as
    }

    /// Appends a summary in a short form.
    fn form(&mut self, block: &Block<'_>, form: ShortForm) -> ShownAs {
        let Content::Summary(summary) = block.content else {
            return ShownAs::Nothing;
        };
        self.receipt.shortened.push(ShortenedSummary {
            summary_id: summary.id.clone(),
            first: summary.range.first,
            last: summary.range.last,
            lines: form.lines,
            of_lines: form.of_lines,
            from_tokens: block.tokens,
            to_tokens: form.message.tokens,
        });
        self.messages.push(form.message);
        ShownAs::Form
    }
}
