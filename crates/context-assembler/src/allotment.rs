//! Divides tokens among summaries: the total cost of the summaries in a context, and the length in which each is shown.

use memory_model::Accounting;

use crate::choose::{Choice, ChosenForm};
use crate::forms::Forms;
use crate::policy::filled_part;

/// Ratio between the shares of tokens of two neighbouring summaries of equal size. Among summaries of equal size, each
/// gets three quarters of the share of the next later one.
const SHARE_OF_OLDER: f64 = 0.75;

/// Cost of a view's summaries that is usually enough, in tokens. Limited to thirteen sixteenths of the room.
const ENOUGH: u64 = 6_000;
/// Cost up to which the summaries may take seven eighths of the room, in tokens. In a small room only messages of the
/// latest group fit in addition to summaries, and they need little of the rest.
const MOST_OF_SMALL: u64 = 2_688;

/// Total costs of the summaries of a view, in tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SummaryCosts {
    /// Cost if all summaries are shown whole.
    pub(crate) whole: u64,
    /// Cost if only the headline of each summary is shown.
    pub(crate) headlines: u64,
    /// Cost if the summaries without ranks are shown whole, and only the headlines of the others.
    pub(crate) written: u64,
}

impl SummaryCosts {
    /// Returns the minimum number of tokens for the summaries, if their headlines fit.
    fn least(self, room: u64) -> u64 {
        let most = (room - room / 16 * 3).max((room - room / 8).min(MOST_OF_SMALL));
        let share = (room / 2).max(ENOUGH.min(most)).max(self.written.min(most));
        self.whole.min(share.max(self.headlines))
    }

    /// Returns the number of tokens for the summaries in a context. `others` is the cost of the messages that are not
    /// summarized. While the view exceeds the room, the summaries lose whole steps of `step` tokens, down to a minimum.
    pub(crate) fn share(self, others: u64, room: u64, step: u64) -> u64 {
        let over = self.whole.saturating_add(others).saturating_sub(room);
        let steps = over.div_ceil(step).max(1);
        let rest = self.whole.saturating_sub(steps.saturating_mul(step));
        rest.max(self.least(room))
    }

    /// Returns the number of tokens for the summaries in a context that is used once. `others` is the cost of the
    /// messages that are not summarized. The summaries get the rest of the room, but at least a fixed part of the room,
    /// and what those without ranks need to be whole.
    pub(crate) fn filling(self, others: u64, room: u64) -> u64 {
        let left = room.saturating_sub(others);
        self.whole
            .min(left.max(filled_part(room)).max(self.written))
    }

    /// Returns a smaller number of tokens for the summaries, at most `left`. Used if the latest group needs some of the
    /// tokens of [`share`](Self::share). `None` if not even the headlines fit.
    ///
    /// `left` is rounded down to a [level](level), so that the summaries stay the same while the size of the latest
    /// group varies.
    pub(crate) fn smaller_share(self, left: u64) -> Option<u64> {
        let share = self.whole.min(level(left).max(self.headlines));
        (share <= left).then_some(share)
    }
}

/// Rounds `tokens` down to a level. Levels do not depend on the context, so a smaller room never has a larger level.
/// Levels are close together for small contexts, in which every line counts. They are far apart for large contexts, for
/// which a stable prompt cache is more important.
fn level(tokens: u64) -> u64 {
    let step = match tokens {
        ..2_048 => 32,
        2_048..4_096 => 64,
        4_096..8_192 => 1_024,
        _ => 2_048,
    };
    tokens - tokens % step
}

/// Growth of a summary by one form. A form is a length in which a summary can be shown, and growth leads to the next
/// longer form.
struct Growth {
    /// Whether the summary is shown whole or not at all. Such summaries come first.
    is_written: bool,
    /// Cost of the longer form in relation to the weight of the summary. Growths with a smaller share come first.
    share: f64,
    summary: usize,
    /// Index of the longer form, to which the summary grows.
    form: usize,
    tokens: u64,
}

/// Chooses the form (the selection of lines) in which each summary is shown, so that all summaries cost at most
/// `tokens` together. The summaries are given oldest first.
///
/// All summaries grow from their headlines at the same time, in proportion to their size and to the square root of the
/// number of their messages. Later summaries grow faster. Summaries without ranks come first, and grow to the whole
/// summary at once. The order of growth does not depend on `tokens`, so with more tokens no summary gets a shorter form.
///
/// If no summary without ranks is shown whole, the first of them is shown by its most current parts, if they fit.
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
    // So far, the cost of a form is the sum of its lines. If the rendered forms cost more, the last growths are undone
    // until they fit. If they cost less, further growths are added while they fit.
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
    let is_whole = |forms: &Forms<'_>, choice: &Choice| {
        forms.is_written && matches!(choice.shown, ChosenForm::Within(_))
    };
    let mut shown = summaries.iter().zip(&allotted);
    let is_any_whole = shown.any(|(forms, (choice, _))| is_whole(forms, choice));
    if let Some(first) = order
        .first()
        .filter(|growth| growth.is_written && !is_any_whole)
        && let Some(forms) = summaries.get(first.summary)
        && let Some(current) = allotted.get_mut(first.summary)
        && let left = tokens.saturating_sub(sum - current.1)
        && let Some(excerpt) = forms.excerpt(left, accounting)
    {
        *current = excerpt;
    }
    allotted.into_iter().map(|(choice, _)| choice).collect()
}

/// Returns the growths of all summaries, in the order in which they are applied.
fn growths(summaries: &[&Forms<'_>]) -> Vec<Growth> {
    let mut growths = Vec::new();
    let mut factor = 1.0_f64;
    for (summary, forms) in summaries.iter().enumerate().rev() {
        let whole = forms.tokens(forms.count() - 1).max(1) as f64;
        let size = whole * (forms.messages() as f64).sqrt();
        for form in 1..forms.count() {
            let (before, tokens) = (forms.tokens(form - 1), forms.tokens(form));
            growths.push(Growth {
                is_written: forms.is_written,
                share: tokens as f64 / size / factor,
                summary,
                form,
                tokens: tokens.saturating_sub(before),
            });
        }
        factor *= SHARE_OF_OLDER;
    }
    // The sort is stable. For equal shares, the later summary comes first, and within one summary the shorter form.
    growths.sort_by(|a, b| {
        let written_first = b.is_written.cmp(&a.is_written);
        written_first.then(a.share.total_cmp(&b.share))
    });
    growths
}
