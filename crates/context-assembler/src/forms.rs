//! Forms of a summary: its lines of at least a rank. A longer form has every line of a shorter one.

use memory_model::{Accounting, Summary};

use crate::accounting::cost;
use crate::choose::{Choice, ShortForm, Shown};
use crate::marks::escape_summary;
use crate::render::render_summary_form;

/// Cost of the first lines that are the headline of a summary without ranks, in tokens.
const HEADLINE_TOKENS: u64 = 60;

/// The forms of a summary, from the headline to the whole summary.
pub(crate) struct Forms<'a> {
    /// Index of the summary's block.
    pub(crate) index: usize,
    summary: &'a Summary,
    lines: Vec<Line<'a>>,
    /// Cost of each short form, in tokens, the headline first. That of the headline is exact, and the others
    /// are added up from their lines. Empty where the summary is only shown whole.
    short: Vec<u64>,
    /// Cost of the whole summary, in tokens.
    whole: u64,
}

/// A line of a summary.
struct Line<'a> {
    text: &'a str,
    /// Cost, in tokens.
    tokens: u64,
    /// Index of the shortest form that has the line.
    form: usize,
}

impl<'a> Forms<'a> {
    /// The forms of a summary that costs `whole` tokens. Counts each line once.
    pub(crate) fn new(
        index: usize,
        summary: &'a Summary,
        whole: u64,
        accounting: &dyn Accounting,
    ) -> Self {
        let mut forms = Self {
            index,
            summary,
            lines: Vec::new(),
            short: Vec::new(),
            whole,
        };
        if summary.messages.is_some() {
            return forms;
        }
        forms.lines = lines(summary, accounting);
        forms.short = forms.short_costs(accounting);
        forms
    }

    /// Number of messages that the summary covers; at least one.
    pub(crate) fn messages(&self) -> u64 {
        self.summary.range.len().max(1)
    }

    /// Number of forms.
    pub(crate) fn count(&self) -> usize {
        self.short.len() + 1
    }

    /// Cost of a form, in tokens: exact for the headline and the whole summary.
    pub(crate) fn tokens(&self, form: usize) -> u64 {
        self.short.get(form).copied().unwrap_or(self.whole)
    }

    /// The summary in a form, with its cost in tokens.
    pub(crate) fn choice(&self, form: usize, accounting: &dyn Accounting) -> (Choice, u64) {
        if form >= self.short.len() {
            return (Choice::whole(self.index), self.whole);
        }
        let form = self.short_form(form, accounting);
        let tokens = form.message.tokens;
        (Choice::one(self.index, Shown::Form(form)), tokens)
    }

    /// Costs of the short forms that cost less than the whole summary, in tokens.
    fn short_costs(&self, accounting: &dyn Accounting) -> Vec<u64> {
        let last = self.lines.iter().map(|line| line.form).max().unwrap_or(0);
        let mut added = vec![0_u64; last + 1];
        for line in &self.lines {
            if let Some(added) = added.get_mut(line.form) {
                *added = added.saturating_add(line.tokens);
            }
        }
        let headline = self.short_form(0, accounting).message.tokens;
        // Costs of lines do not add up to the cost of their text.
        let all = self.short_form(last, accounting).message.tokens;
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
        let lines = self.lines.iter().filter(|line| line.form <= form);
        let texts: Vec<&str> = lines.map(|line| line.text).collect();
        let (lines, of_lines) = (texts.len(), self.lines.len());
        let mut message = render_summary_form(self.summary, &texts.join("\n"), (lines, of_lines));
        message.tokens = cost(accounting, &message);
        ShortForm {
            message,
            lines,
            of_lines,
        }
    }
}

/// The lines of a summary, with their costs and forms. Where the lines have no ranks, earlier lines are in
/// shorter forms.
fn lines<'a>(summary: &'a Summary, accounting: &dyn Accounting) -> Vec<Line<'a>> {
    let line = |text| Line {
        text,
        tokens: accounting.text(&escape_summary(text)).saturating_add(1),
        form: 0,
    };
    let mut lines: Vec<Line<'a>> = summary.text().split('\n').map(line).collect();
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
