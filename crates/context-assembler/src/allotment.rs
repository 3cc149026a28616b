//! Shares tokens among summaries: the total cost of a view's summaries, and the form in which each is shown.

use memory_model::Accounting;

use crate::choose::Choice;
use crate::forms::Forms;
use crate::policy::filled_part;

/// Factor by which a summary's share of the tokens falls with each summary after it.
const SHARE_OF_OLDER: f64 = 0.75;

/// Tokens that are enough for the summaries of a view, at most thirteen sixteenths of the room.
const ENOUGH: u64 = 6_000;
/// Tokens up to which the summaries may be seven eighths of the room: in a small room only messages of the latest group
/// fit besides, and the rest is of little use to others.
const MOST_OF_SMALL: u64 = 2_688;

/// Cost of the summaries of a view, in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SummaryCosts {
    /// Whole.
    pub(crate) whole: u64,
    /// As headlines.
    pub(crate) headlines: u64,
}

impl SummaryCosts {
    /// Minimum tokens of the summaries if the headlines fit.
    fn least(self, room: u64) -> u64 {
        let most = (room - room / 16 * 3).max((room - room / 8).min(MOST_OF_SMALL));
        let share = (room / 2).max(ENOUGH.min(most));
        self.whole.min(share.max(self.headlines))
    }

    /// Tokens of the summaries of a view with other blocks that cost `others`: all except the whole steps of `step`
    /// tokens by which the view exceeds the room.
    pub(crate) fn share(self, others: u64, room: u64, step: u64) -> u64 {
        let over = self.whole.saturating_add(others).saturating_sub(room);
        let steps = over.div_ceil(step).max(1);
        let rest = self.whole.saturating_sub(steps.saturating_mul(step));
        rest.max(self.least(room))
    }

    /// Tokens of the summaries in a context without steps, of a view with other blocks that cost `others`: the room that
    /// these leave, and at least the summaries' part of a room that both fill.
    pub(crate) fn filling(self, others: u64, room: u64) -> u64 {
        let left = room.saturating_sub(others);
        self.whole
            .min(left.max(filled_part(room)).max(self.headlines))
    }

    /// The largest smaller share of at most `left` tokens, for a latest group that needs some of the
    /// [`share`](Self::share); `None` if not even the headlines fit.
    ///
    /// Shares are [levels](level), so that the summaries stay the same while the size of the latest group varies.
    pub(crate) fn smaller_share(self, left: u64) -> Option<u64> {
        let share = self.whole.min(level(left).max(self.headlines));
        (share <= left).then_some(share)
    }
}

/// The largest level of at most `tokens` tokens. Levels do not depend on the context, so that a smaller room never has
/// a larger level. They are close in small contexts, in which every line counts, and far apart in large ones, for which
/// a provider's cache is worth more.
fn level(tokens: u64) -> u64 {
    let step = match tokens {
        ..2_048 => 32,
        2_048..4_096 => 64,
        4_096..8_192 => 1_024,
        _ => 2_048,
    };
    tokens - tokens % step
}

/// The growth of a summary by one form.
struct Growth {
    /// Share of the summary's weight that the longer form takes: smaller ones come first.
    share: f64,
    summary: usize,
    /// Index of the longer form.
    form: usize,
    tokens: u64,
}

/// Chooses the forms of summaries, oldest first, that cost at most `tokens` together.
///
/// All grow from their headlines at once, each in proportion to its size and to the root of the number of its messages,
/// and newer ones faster. The order of growth does not depend on `tokens`, so that with more tokens no summary gets a
/// shorter form.
pub(crate) fn allot(
    summaries: &[&Forms<'_>],
    tokens: u64,
    accounting: &dyn Accounting,
) -> Vec<Choice> {
    let order = growths(summaries);
    let mut sum: u64 = summaries.iter().map(|forms| forms.tokens(0)).sum();
    let fitting = order.iter().take_while(|growth| {
        sum = sum.saturating_add(growth.tokens);
        sum <= tokens
    });
    let mut chosen = vec![0_usize; summaries.len()];
    let mut count = 0_usize;
    for growth in fitting {
        if let Some(form) = chosen.get_mut(growth.summary) {
            *form = growth.form;
        }
        count += 1;
    }
    let in_forms = summaries.iter().zip(chosen);
    let mut allotted: Vec<(Choice, u64)> = in_forms
        .map(|(forms, form)| forms.choice(form, accounting))
        .collect();
    // The forms were chosen by the sums of their lines. The last growths are taken back until they fit as they are
    // rendered, or further ones are added as long as they fit.
    let mut sum: u64 = allotted.iter().map(|(_, tokens)| tokens).sum();
    loop {
        let grows = sum <= tokens;
        let at = if grows {
            Some(count)
        } else {
            count.checked_sub(1)
        };
        let growth = at.and_then(|at| order.get(at)).and_then(|growth| {
            let forms = summaries.get(growth.summary)?;
            Some((growth, forms, allotted.get_mut(growth.summary)?))
        });
        let Some((growth, forms, current)) = growth else {
            break;
        };
        let form = if grows { growth.form } else { growth.form - 1 };
        let next = forms.choice(form, accounting);
        let next_sum = (sum - current.1).saturating_add(next.1);
        if grows && next_sum > tokens {
            break;
        }
        (sum, *current) = (next_sum, next);
        count = if grows { count + 1 } else { count - 1 };
    }
    allotted.into_iter().map(|(choice, _)| choice).collect()
}

/// The growths of all summaries, in the order in which they happen.
fn growths(summaries: &[&Forms<'_>]) -> Vec<Growth> {
    let mut growths = Vec::new();
    let mut factor = 1.0_f64;
    for (summary, forms) in summaries.iter().enumerate().rev() {
        let whole = forms.tokens(forms.count() - 1).max(1) as f64;
        let size = whole * (forms.messages() as f64).sqrt();
        for form in 1..forms.count() {
            let (before, tokens) = (forms.tokens(form - 1), forms.tokens(form));
            growths.push(Growth {
                share: tokens as f64 / size / factor,
                summary,
                form,
                tokens: tokens.saturating_sub(before),
            });
        }
        factor *= SHARE_OF_OLDER;
    }
    // A stable sort: of equals the newer summary, and of one summary the shorter form, comes first.
    growths.sort_by(|a, b| a.share.total_cmp(&b.share));
    growths
}
