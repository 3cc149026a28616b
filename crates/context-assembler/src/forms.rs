//! Forms of a summary. A form of a ranked summary consists of the lines with at least a given rank, so a longer form has
//! all lines of a shorter one. A line that ends with `…` continues in the whole summary, but not in the form. A summary
//! without ranks is written as a whole: it is shown whole, or a remark stands in its place.

use memory_model::{Accounting, Summary};

use crate::accounting::cost;
use crate::blocks::Block;
use crate::choose::{Choice, ChosenForm, ShortForm};
use crate::context::ContextMessage;
use crate::degrade::total;
use crate::excerpt::{Part, most_current};
use crate::marks::escape_summary;
use crate::render::render_summary_form;

/// Maximum cost of the headline of an extract without ranks, in tokens. The headline consists of the first lines, but at
/// least of one line.
const HEADLINE_TOKENS: u64 = 60;

/// Returns whether each line of a summary stands for itself, so that a context may show some of its lines: in an extract,
/// and in a text with ranks. Ranks that only fall from line to line do not count, since they say nothing but the place of
/// a line. Other summaries are shown whole.
pub fn is_ranked(summary: &Summary) -> bool {
    let ranks = summary.body.ranks();
    summary.provisional || ranks.is_some_and(|ranks| !ranks.is_sorted_by(|a, b| a >= b))
}

/// Beginning of a line that continues the line before it.
const CONTINUES: &str = "  ";
/// Mark at the end of a line whose continuation is left out.
const LEFT_OUT: &str = " …";

/// The forms (selections of lines) in which a context can show a summary, from the headline to the whole summary.
pub(crate) struct Forms<'a> {
    /// Index of the block with the summary.
    pub(crate) index: usize,
    summary: &'a Summary,
    lines: Vec<SummaryLine<'a>>,
    /// Cost of each short form, in tokens, the headline first. The cost of the headline is exact, the costs of the
    /// others are the sums of the costs of their lines. Empty if the summary has no short form. Without ranks the only
    /// short form is a remark in place of the text.
    short: Vec<u64>,
    /// The first short form, which was rendered to count it. `None` if the summary contains messages.
    first: Option<ShortForm>,
    /// Whether the summary is shown whole or not at all, because its lines have no ranks.
    pub(crate) is_written: bool,
    /// Cost of the whole summary, in tokens.
    whole: u64,
    /// The assistant's acknowledgement, which follows each form. `None` if there is none.
    acknowledgement: Option<ContextMessage>,
}

/// A line of a summary, with the shortest form that contains it.
struct SummaryLine<'a> {
    text: &'a str,
    /// Cost of the line, in tokens.
    tokens: u64,
    /// Index of the shortest form that contains the line.
    form: usize,
}

impl<'a> Forms<'a> {
    /// Creates the forms in which the summary of a block can be shown: selections of its lines, up to the whole
    /// summary. Counts the cost of each line once. `index` is the index of the block.
    pub(crate) fn of(
        index: usize,
        summary: &'a Summary,
        block: &Block<'_>,
        accounting: &dyn Accounting,
    ) -> Self {
        let acknowledgement = block.acknowledgement().cloned();
        Self::new(index, summary, (block.tokens, acknowledgement), accounting)
    }

    fn new(
        index: usize,
        summary: &'a Summary,
        (whole, acknowledgement): (u64, Option<ContextMessage>),
        accounting: &dyn Accounting,
    ) -> Self {
        let mut forms = Self {
            index,
            summary,
            lines: Vec::new(),
            short: Vec::new(),
            first: None,
            is_written: summary.messages.is_none() && !is_ranked(summary),
            whole,
            acknowledgement,
        };
        if summary.messages.is_some() {
            return forms;
        }
        if forms.is_written {
            let remark = forms.rendered("", 0, whole, accounting);
            forms
                .short
                .extend((remark.tokens < whole).then_some(remark.tokens));
            forms.first = Some(remark);
            return forms;
        }
        forms.lines = lines(summary, accounting);
        let headline = forms.short_form(0, accounting);
        forms.short = forms.short_costs(headline.tokens, accounting);
        forms.first = Some(headline);
        forms
    }

    /// Returns the number of messages that the summary covers, at least one.
    pub(crate) fn messages(&self) -> u64 {
        self.summary.range.len().max(1)
    }

    /// Returns the number of forms (lengths) in which the summary can be shown, including the whole summary.
    pub(crate) fn count(&self) -> usize {
        self.short.len() + 1
    }

    /// Returns the cost of a form (a selection of the summary's lines), in tokens. Form 0 is the headline. The cost is
    /// exact for the headline and the whole summary.
    pub(crate) fn tokens(&self, form: usize) -> u64 {
        self.short.get(form).copied().unwrap_or(self.whole)
    }

    /// Returns the summary in a form (a selection of its lines), and its exact cost in tokens.
    pub(crate) fn choice(&self, form: usize, accounting: &dyn Accounting) -> (Choice, u64) {
        if form >= self.short.len() {
            return (Choice::whole(self.index), self.whole);
        }
        self.chosen(match &self.first {
            Some(first) if form == 0 => first.clone(),
            _ => self.short_form(form, accounting),
        })
    }

    /// Returns the choice of a form (a selection of the summary's lines), and its cost in tokens.
    fn chosen(&self, form: ShortForm) -> (Choice, u64) {
        let tokens = form.tokens;
        (Choice::one(self.index, ChosenForm::Form(form)), tokens)
    }

    /// Returns the parts of the summary that are most current, each whole, and their exact cost: at most `tokens` tokens.
    /// `None` if no part fits.
    pub(crate) fn excerpt(
        &self,
        tokens: u64,
        accounting: &dyn Accounting,
    ) -> Option<(Choice, u64)> {
        let text: Vec<&str> = self.summary.text().split('\n').collect();
        let cost = |lines: &str| accounting.text(&escape_summary(lines)).saturating_add(2);
        let of = |part: &Part| text.get(part.lines.clone()).unwrap_or_default().join("\n");
        let title = |part: &Part| Some(text.get(part.title.clone()?)?.join("\n"));
        // The short form of a written summary is the remark alone.
        let mut left = tokens.saturating_sub(self.tokens(0));
        let mut parts: Vec<Part> = Vec::new();
        let all = most_current(&text);
        let of_parts = all.len();
        for part in all {
            let is_titled = parts.iter().any(|shown| shown.title == part.title);
            let title = title(&part).filter(|_| !is_titled);
            let cost = cost(&of(&part)).saturating_add(title.map_or(0, |title| cost(&title)));
            if let Some(rest) = left.checked_sub(cost) {
                left = rest;
                parts.push(part);
            }
        }
        while !parts.is_empty() {
            let mut shown: Vec<usize> = Vec::new();
            for part in &parts {
                shown.extend(part.lines.clone());
                shown.extend(part.title.clone().into_iter().flatten());
            }
            shown.sort_unstable();
            shown.dedup();
            let mut excerpt = String::new();
            let mut before = None;
            for at in &shown {
                let gap = match before {
                    Some(before) if before + 1 < *at => "\n\n",
                    Some(_) => "\n",
                    None => "",
                };
                excerpt.push_str(gap);
                excerpt.push_str(text.get(*at).copied().unwrap_or_default());
                before = Some(*at);
            }
            // The whole form also names the summaries below, so the whole text may fit where that form does not.
            let (lines, rest) = if parts.len() == of_parts {
                (text.len(), 0)
            } else {
                let said = accounting.text(&escape_summary(&excerpt));
                (shown.len(), self.whole.saturating_sub(said))
            };
            let form = self.rendered(&excerpt, lines, rest, accounting);
            if form.tokens <= tokens {
                return Some(self.chosen(form));
            }
            parts.pop();
        }
        None
    }

    /// Returns the costs of the short forms (selections of lines) that cost less than the whole summary, in tokens.
    fn short_costs(&self, headline: u64, accounting: &dyn Accounting) -> Vec<u64> {
        let last = self.lines.iter().map(|line| line.form).max().unwrap_or(0);
        let mut added = vec![0_u64; last + 1];
        for line in &self.lines {
            if let Some(added) = added.get_mut(line.form) {
                *added = added.saturating_add(line.tokens);
            }
        }
        // The cost of a text is not exactly the sum of the costs of its lines.
        let all = self.short_form(last, accounting).tokens;
        let text = all.saturating_sub(headline);
        let lines = added.iter().skip(1).copied().fold(0, u64::saturating_add);
        let mut sum = 0_u64;
        let costs = added.iter().skip(1).map(|tokens| {
            sum = sum.saturating_add(*tokens);
            let share = u128::from(sum) * u128::from(text) / u128::from(lines.max(1));
            headline.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        });
        let costs = std::iter::once(headline).chain(costs);
        costs.take_while(|tokens| *tokens < self.whole).collect()
    }

    fn short_form(&self, form: usize, accounting: &dyn Accounting) -> ShortForm {
        let mut text = String::new();
        let (mut lines, mut is_marked) = (0, true);
        for line in &self.lines {
            if line.form <= form {
                if lines > 0 {
                    text.push('\n');
                }
                text.push_str(line.text);
                lines += 1;
                is_marked = false;
            } else if line.text.starts_with(CONTINUES) && !is_marked {
                text.push_str(LEFT_OUT);
                is_marked = true;
            } else if !line.text.starts_with(CONTINUES) {
                // The beginning of this line is left out, so the lines that continue it are left out too.
                is_marked = true;
            }
        }
        self.rendered(&text, lines, 0, accounting)
    }

    /// Renders a form with this text, the number of its lines, and the number of tokens that are left out.
    fn rendered(
        &self,
        text: &str,
        lines: usize,
        omitted: u64,
        accounting: &dyn Accounting,
    ) -> ShortForm {
        let of_lines = self.summary.text().split('\n').count();
        let mut message = render_summary_form(self.summary, text, (lines, of_lines), omitted);
        message.tokens = cost(accounting, &message);
        let mut messages = vec![message];
        messages.extend(self.acknowledgement.clone());
        ShortForm {
            tokens: total(&messages),
            messages,
            lines,
            of_lines,
        }
    }
}

/// Returns the lines of a ranked summary, each with its cost and the shortest form that contains it. If the lines have
/// equal ranks, the first lines are in the shortest forms.
fn lines<'a>(summary: &'a Summary, accounting: &dyn Accounting) -> Vec<SummaryLine<'a>> {
    let line = |text| SummaryLine {
        text,
        tokens: accounting.text(&escape_summary(text)).saturating_add(1),
        form: 0,
    };
    let mut lines: Vec<SummaryLine<'a>> = summary.text().split('\n').map(line).collect();
    if let Some(ranks) = summary.body.ranks() {
        let mut distinct = ranks.to_vec();
        distinct.sort_unstable_by(|a, b| b.cmp(a));
        distinct.dedup();
        for (line, rank) in lines.iter_mut().zip(ranks) {
            line.form = distinct.partition_point(|higher| higher > rank);
        }
        return lines;
    }
    let (mut sum, mut form) = (0_u64, 0);
    for (at, line) in lines.iter_mut().enumerate() {
        sum = sum.saturating_add(line.tokens);
        form += usize::from(at > 0 && sum > HEADLINE_TOKENS);
        line.form = form;
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memory_model::{Hash, Part, Recipe, Seq, SeqRange, SummaryBody};
    use token_estimate::HeuristicEstimator;

    use super::*;
    use crate::accounting::ContextAccounting;

    #[test]
    fn a_line_that_is_not_continued_says_so() {
        let text = "[1] User: red\n  green\n  blue\n[2] Assistant: yes\n  no\n[3] User: go\n  on";
        let body = SummaryBody::from_parts(text.to_owned(), Some(vec![9, 1, 9, 1, 1, 9, 9])).ok();
        let range = SeqRange::new(Seq(1), Seq(3)).unwrap_or(SeqRange::single(Seq(1)));
        let recipe = Recipe::new("test");
        let summary = Summary::new(
            range,
            0,
            Vec::new(),
            Hash::ZERO,
            recipe,
            body.unwrap_or_default(),
        );
        let accounting = ContextAccounting::new(Arc::new(HeuristicEstimator::Bytes4));
        let forms = Forms::new(0, &summary, (1_000, None), &accounting);
        let form = forms.short_form(0, &accounting);
        let [Part::Text { text }] = &*form.messages[0].parts else {
            panic!("no text");
        };
        let shown: Vec<&str> = text.lines().skip(1).collect();
        let lines = [
            "[1] User: red …",
            "  blue",
            "[3] User: go",
            "  on",
            "</summary>",
        ];
        assert_eq!(shown, lines);
    }
}
