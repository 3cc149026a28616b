//! Leaving out lines of a summary: a model names them, or their ranks decide.

use std::collections::BTreeSet;

use extractive_summarizer::{Source, SummarySource};
use model_client::{Failure, Stop};
use token_estimate::TokenEstimator;

use crate::error::{Error, ErrorKind};
use crate::ladder::Ladder;
use crate::line_list::{numbered, read_numbers};
use crate::outcome::LadderOutcome;
use crate::recipe::recipe;
use crate::refusal::{Reason, Refusal};
use crate::request::{Style, SummaryRequest};
use crate::rules::OnError;
use crate::summarizer::Summarizer;
use crate::tier::Tier;

/// Id of the writer of a summary whose lines went by their ranks.
const BY_RANK: &str = "lines-by-rank@1";

/// Leaves out lines of the request's source, one summary; all others stay to the letter. A line that is marked critical
/// stays whatever a model answers. Where a model leaves more than the request's limit, and where none answers, ranks decide
/// down to the target. One line stays in any case.
///
/// # Errors
/// [`ErrorKind::NoSource`] where the source is not one summary; [`ErrorKind::CannotShrink`] where nothing is left out,
/// because the model named nothing or answered something else;
/// [`ErrorKind::Provider`] and [`ErrorKind::Exhausted`] where the model failed and the ladder has no extract.
pub(crate) async fn drop_lines(
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    request: &SummaryRequest<'_>,
) -> Result<LadderOutcome, Error> {
    let [Source::Summary(summary)] = request.source else {
        return Err(Error::new(
            ErrorKind::NoSource,
            "dropping lines needs exactly one summary as its source: give one summary",
        ));
    };
    let mut asked = SummaryRequest {
        style: Style::Normal,
        ..*request
    };
    if asked.target_tokens == 0 {
        let rule = ladder.target_rule(asked.kind());
        asked.target_tokens = rule.target(asked.source_tokens());
    }
    let most = Some(asked.max_tokens).filter(|most| *most > 0);
    asked.target_tokens = asked.target_tokens.min(most.unwrap_or(u64::MAX));
    let mut run = Run {
        ladder,
        request,
        lines: Lines::new(summary, request.estimator),
        target: asked.target_tokens,
        calls: 0,
        model_calls: 0,
        refused: Vec::new(),
    };
    if summarizer.provisional() {
        return run.by_rank();
    }
    run.calls = 1;
    match summarizer.summarize(&asked).await {
        Ok(answer) => {
            run.model_calls = answer.calls;
            let complete = answer.stop == Stop::Complete;
            let chosen = complete.then(|| read_numbers(&answer.text, run.lines.count()));
            let Some(chosen) = chosen.flatten() else {
                return Err(run.nothing_dropped(Reason::NoChoice));
            };
            run.lines.drop_named(&chosen);
            if most.is_some_and(|most| run.lines.tokens() > most) {
                run.lines.drop_by_rank(run.target);
            }
            let model = answer
                .model
                .or_else(|| summarizer.model().map(str::to_owned));
            run.outcome(summarizer.id(), Tier::Normal, model)
        }
        Err(error) => {
            run.model_calls = error.calls();
            if ladder.on_error == OnError::Fail {
                return Err(error);
            }
            let failure = error.failure();
            let message = failure.map_or_else(|| error.chain(), ToString::to_string);
            let failure = failure.map(Failure::kind);
            run.refuse(Reason::Failed { failure, message });
            match ladder.tiers.contains(&Tier::Extractive) {
                true => run.by_rank(),
                false => Err(run.error(ErrorKind::Exhausted)),
            }
        }
    }
}

/// The state of one request.
struct Run<'a> {
    ladder: &'a Ladder,
    request: &'a SummaryRequest<'a>,
    lines: Lines<'a>,
    target: u64,
    calls: u32,
    model_calls: u32,
    refused: Vec<Refusal>,
}

impl Run<'_> {
    /// Leaves out lines by their ranks, without a model.
    fn by_rank(mut self) -> Result<LadderOutcome, Error> {
        self.lines.drop_by_rank(self.target);
        self.calls += 1;
        self.outcome(BY_RANK, Tier::Extractive, None)
    }

    fn outcome(
        mut self,
        writer: &str,
        tier: Tier,
        model: Option<String>,
    ) -> Result<LadderOutcome, Error> {
        let text = self.lines.text();
        let tokens_out = self.request.estimator.text(&text);
        let (tokens, source_tokens) = (
            tokens_out.saturating_add(self.request.overhead_tokens),
            self.request.source_tokens(),
        );
        if tokens >= source_tokens || self.lines.all_stay() {
            return Err(self.nothing_dropped(Reason::NotShorter {
                tokens,
                source_tokens,
            }));
        }
        Ok(LadderOutcome {
            recipe: recipe(writer, self.ladder, self.request),
            text,
            ranks: self.lines.ranks(),
            tier,
            summarizer: writer.to_owned(),
            model,
            provisional: tier == Tier::Extractive,
            target_tokens: self.target,
            tokens_in: source_tokens,
            tokens_out,
            calls: self.calls,
            model_calls: self.model_calls,
            left_out: None,
            scores: None,
            refused: self.refused,
        })
    }

    fn refuse(&mut self, reason: Reason) {
        let tier = Tier::Normal;
        self.refused.push(Refusal { tier, reason });
    }

    fn nothing_dropped(&mut self, reason: Reason) -> Error {
        self.refuse(reason);
        self.error(ErrorKind::CannotShrink)
    }

    fn error(&self, kind: ErrorKind) -> Error {
        let range = self.request.range();
        let range = range.map_or_else(String::new, |range| range.to_string());
        let told: Vec<String> = self
            .refused
            .iter()
            .map(|one| one.reason.to_string())
            .collect();
        let text = format!(
            "no line of the summary of messages {range} was left out ({}): leave it as it is",
            told.join("; ")
        );
        Error::new(kind, text).with_refused(self.refused.clone())
    }
}

/// The lines of a summary, and which of them stay.
struct Lines<'a> {
    estimator: &'a dyn TokenEstimator,
    lines: Vec<&'a str>,
    /// Rank of each line, where ranks are known.
    ranks: Option<&'a [u8]>,
    stays: Vec<bool>,
    /// Positions of the lines that have a number, in order.
    numbered: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(summary: &SummarySource<'a>, estimator: &'a dyn TokenEstimator) -> Self {
        let lines: Vec<&str> = summary.text.split('\n').collect();
        Self {
            estimator,
            stays: vec![true; lines.len()],
            ranks: summary.ranks.filter(|ranks| ranks.len() == lines.len()),
            numbered: numbered(summary.text).map(|(at, _)| at).collect(),
            lines,
        }
    }

    /// Number of the lines that have a number.
    fn count(&self) -> usize {
        self.numbered.len()
    }

    fn all_stay(&self) -> bool {
        self.stays.iter().all(|stays| *stays)
    }

    /// Leaves out the lines with these numbers that are not critical.
    fn drop_named(&mut self, numbers: &BTreeSet<usize>) {
        for number in numbers {
            let at = number.checked_sub(1).and_then(|at| self.numbered.get(at));
            let Some(at) = at.copied() else { continue };
            if self.relevance(at) < CRITICAL
                && let Some(stays) = self.stays.get_mut(at)
            {
                *stays = false;
            }
        }
    }

    /// Leaves out lines until the text costs at most `tokens`, or one numbered line is left: the least relevant first, of
    /// these those of the lowest rank, and of these the latest.
    fn drop_by_rank(&mut self, tokens: u64) {
        let is_left = |at: &usize| self.stays.get(*at).copied().unwrap_or_default();
        let mut order: Vec<usize> = self.numbered.iter().copied().filter(is_left).collect();
        let rank = |at: usize| self.ranks.and_then(|ranks| ranks.get(at)).copied();
        order.sort_by_key(|at| (self.relevance(*at), rank(*at), std::cmp::Reverse(*at)));
        // The fewest that have to go. The cost falls with each.
        let (mut fewest, mut most) = (0, order.len().saturating_sub(1));
        while fewest < most {
            let middle = fewest.midpoint(most);
            let text = self.text_without(order.get(..middle).unwrap_or_default());
            match self.estimator.text(&text) <= tokens {
                true => most = middle,
                false => fewest = middle + 1,
            }
        }
        for at in order.iter().take(fewest) {
            if let Some(stays) = self.stays.get_mut(*at) {
                *stays = false;
            }
        }
    }

    /// The relevance that a line names in brackets; that of medium where it names none.
    fn relevance(&self, at: usize) -> u8 {
        let line = self.lines.get(at).copied().unwrap_or_default();
        let names = line.split('[').skip(1).filter_map(|rest| {
            let (name, _) = rest.split_once(']')?;
            RELEVANCE
                .iter()
                .position(|known| name.trim().eq_ignore_ascii_case(known))
        });
        names.map(|found| found as u8).next().unwrap_or(MEDIUM)
    }

    fn text(&self) -> String {
        self.text_without(&[])
    }

    /// Cost of the lines that stay, in tokens.
    fn tokens(&self) -> u64 {
        self.estimator.text(&self.text())
    }

    /// The lines that stay, but for some.
    fn text_without(&self, gone: &[usize]) -> String {
        let gone: BTreeSet<&usize> = gone.iter().collect();
        let lines = self.lines.iter().zip(&self.stays).enumerate();
        let kept = lines.filter(|(at, (_, stays))| **stays && !gone.contains(at));
        let kept: Vec<&str> = kept.map(|(_, (line, _))| *line).collect();
        kept.join("\n")
    }

    /// The ranks of the lines that stay.
    fn ranks(&self) -> Option<Vec<u8>> {
        let ranks = self.ranks?.iter().zip(&self.stays);
        Some(
            ranks
                .filter(|(_, stays)| **stays)
                .map(|(rank, _)| *rank)
                .collect(),
        )
    }
}

/// The words by which a line says how much later work depends on it.
const RELEVANCE: [&str; 4] = ["low", "medium", "high", "critical"];
const MEDIUM: u8 = 1;
const CRITICAL: u8 = 3;
