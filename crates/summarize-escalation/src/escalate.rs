//! Runs a ladder: tries its tiers in order.

use extractive_summarizer::{ExtractiveSummarizer, cut_to_tokens};
use model_client::{Failure, Stop};

use crate::criteria::Scores;
use crate::error::{Error, ErrorKind};
use crate::gate::{measure, measure_terms, missing};
use crate::ladder::Ladder;
use crate::outcome::LadderOutcome;
use crate::prompt;
use crate::recipe::recipe;
use crate::refusal::{Reason, Refusal};
use crate::request::{Style, SummaryRequest};
use crate::rules::{OnEmpty, OnError};
use crate::summarizer::{OmittedSource, Summarizer, SummarizerResponse};
use crate::tier::Tier;

/// Returns a summary of the request's source that the ladder accepts. The methods of summarizing (tiers) of the ladder
/// are tried in order until one result is accepted. The tier `extractive` uses a default [`ExtractiveSummarizer`]; to
/// choose another, see [`escalate_with`].
///
/// # Errors
/// The errors of [`escalate_with`].
pub async fn escalate(
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    request: &SummaryRequest<'_>,
) -> Result<LadderOutcome, Error> {
    escalate_with(summarizer, &ExtractiveSummarizer::new(), ladder, request).await
}

/// Returns a summary of the request's source that the ladder accepts. The methods of summarizing (tiers) of the ladder
/// are tried in order until one result is accepted. The tiers `normal` and `aggressive` use `summarizer`, and the tier
/// `extractive` uses `extractive`.
///
/// Each tier is tried at most once. A provisional `summarizer` writes without a model, so the styles make no
/// difference. If the ladder has the tier `extractive`, such a summarizer is tried only at that tier, in place of
/// `extractive`.
///
/// Dropping the future cancels the work.
///
/// # Errors
/// [`ErrorKind::NoSource`] if the source is empty, and [`ErrorKind::InvalidLadder`] if the ladder is invalid, both
/// before any call. [`ErrorKind::Provider`] or [`ErrorKind::Empty`] if the summarizer fails or returns no text, and the
/// ladder stops then. [`ErrorKind::CannotShrink`] if the source is so short that no summary can be shorter.
/// [`ErrorKind::Exhausted`] if the results of all tiers were refused and no tier cuts.
pub async fn escalate_with(
    summarizer: &dyn Summarizer,
    extractive: &dyn Summarizer,
    ladder: &Ladder,
    request: &SummaryRequest<'_>,
) -> Result<LadderOutcome, Error> {
    ladder.validate()?;
    if request.source.is_empty() {
        return Err(Error::new(
            ErrorKind::NoSource,
            "the source is empty: give at least one message or summary",
        ));
    }
    let mut climb = Climb::new(ladder, request);
    if climb.most == 0 {
        return Err(climb.cannot_shrink());
    }
    let offline = summarizer.provisional() && ladder.tiers.contains(&Tier::Extractive);
    let extractive = if offline { summarizer } else { extractive };
    let mut model_down = offline;
    for &tier in &ladder.tiers {
        let step = match tier {
            Tier::Normal | Tier::Aggressive if model_down => continue,
            Tier::Normal => climb.ask(summarizer, tier, Style::Normal).await?,
            Tier::Aggressive => climb.ask(summarizer, tier, Style::Aggressive).await?,
            Tier::Extractive => climb.ask(extractive, tier, Style::Normal).await?,
            Tier::Cut => climb.cut(),
        };
        match step {
            TierResult::Accepted(outcome) => return Ok(*outcome),
            TierResult::Refused => {}
            TierResult::Offline => model_down = true,
        }
    }
    Err(if ladder.tiers.contains(&Tier::Cut) {
        climb.cannot_shrink()
    } else {
        climb.exhausted()
    })
}

/// Result of trying one tier.
enum TierResult {
    Accepted(Box<LadderOutcome>),
    Refused,
    /// The summary was refused, and later tiers must not use a model.
    Offline,
}

/// Decision about the text of one tier.
enum Verdict {
    Accept,
    Refuse(Reason),
    /// Refuses the text, but keeps it so that the last tier can cut it.
    Keep(Reason),
    Stop(Error),
}

/// Summarizer id of a summary that is the source itself, cut to length.
const SOURCE_CUT: &str = "source-cut@1";

/// State of one run of a ladder.
struct Climb<'a> {
    ladder: &'a Ladder,
    request: SummaryRequest<'a>,
    /// Maximum cost of an accepted text, in tokens: the target length × the ladder's tolerance, but at most the
    /// request's maximum.
    limit: u64,
    /// Maximum cost of a text that is still shorter than its source, in tokens.
    most: u64,
    /// Last text that was refused for its length, which the tier `cut` may shorten.
    kept: Option<Written>,
    refused: Vec<Refusal>,
    calls: u32,
    model_calls: u32,
}

/// A text of one tier, with the summarizer and the model that wrote it.
struct Written {
    text: String,
    ranks: Option<Vec<u8>>,
    stop: Stop,
    summarizer: String,
    model: Option<String>,
    provisional: bool,
    left_out: Option<OmittedSource>,
    refused: Option<Reason>,
}

impl Written {
    fn new(answer: SummarizerResponse, writer: &dyn Summarizer) -> Self {
        Self {
            model: answer.model.or_else(|| writer.model().map(str::to_owned)),
            text: answer.text,
            ranks: answer.ranks,
            stop: answer.stop,
            summarizer: writer.id().to_owned(),
            provisional: writer.provisional(),
            left_out: answer.left_out,
            refused: answer.refused,
        }
    }

    /// Returns the source as plain text, which the tier `cut` shortens.
    fn source(request: &SummaryRequest<'_>) -> Self {
        Self {
            text: prompt::plain(request.source, request.conventions),
            ranks: None,
            stop: Stop::Complete,
            summarizer: SOURCE_CUT.to_owned(),
            model: None,
            provisional: true,
            left_out: None,
            refused: None,
        }
    }
}

impl<'a> Climb<'a> {
    fn new(ladder: &'a Ladder, request: &SummaryRequest<'a>) -> Self {
        let mut request = *request;
        if request.target_tokens == 0 {
            let rule = ladder.target_rule(request.kind());
            request.target_tokens = rule.target(request.source_tokens());
        }
        if request.max_tokens > 0 {
            request.target_tokens = request.target_tokens.min(request.max_tokens);
        }
        let limit = ladder.accept.limit(request.target_tokens);
        Self {
            ladder,
            limit: match request.max_tokens {
                0 => limit,
                most => limit.min(most),
            },
            most: request
                .source_tokens()
                .saturating_sub(request.overhead_tokens)
                .saturating_sub(1),
            request,
            kept: None,
            refused: Vec::new(),
            calls: 0,
            model_calls: 0,
        }
    }

    /// Tries a tier that calls the summarizer `writer`.
    async fn ask(
        &mut self,
        writer: &dyn Summarizer,
        tier: Tier,
        style: Style,
    ) -> Result<TierResult, Error> {
        let before = self.refused.last().map(|refused| refused.reason.clone());
        let request = SummaryRequest {
            style,
            target_tokens: self.request.target_tokens.min(self.most),
            // A prompt names the most that is accepted.
            max_tokens: match self.request.max_tokens {
                0 => self.limit.min(self.most),
                most => most,
            },
            refused: before.as_ref(),
            gate: self.ladder.gate.as_ref(),
            ..self.request
        };
        let answer = match self.call(writer, &request).await {
            Ok(answer) => answer,
            Err(error) => return self.failed(tier, error),
        };
        let written = Written::new(answer, writer);
        let scores = self.scores(&written, &request);
        let tokens = self.request.estimator.text(&written.text);
        match self.judge(&written, scores.as_ref(), tokens, &request) {
            Verdict::Accept => {
                let outcome = self.outcome(written, tier, tokens, scores);
                Ok(TierResult::Accepted(Box::new(outcome)))
            }
            Verdict::Refuse(reason) => Ok(self.refuse(tier, reason)),
            Verdict::Keep(reason) => {
                self.keep(written, scores.as_ref());
                Ok(self.refuse(tier, reason))
            }
            Verdict::Stop(error) => Err(error),
        }
    }

    /// Calls the summarizer `writer`, and counts the call and its model calls.
    async fn call(
        &mut self,
        writer: &dyn Summarizer,
        request: &SummaryRequest<'_>,
    ) -> Result<SummarizerResponse, Error> {
        self.calls += 1;
        let answer = writer.summarize(request).await;
        let calls = match &answer {
            Ok(answer) => answer.calls,
            Err(error) => error.calls(),
        };
        if !writer.provisional() {
            self.model_calls = self.model_calls.saturating_add(calls);
        }
        answer
    }

    /// Handles the error of a summarizer by the ladder's rule: refuses the summary of the tier, or returns the error.
    fn failed(&mut self, tier: Tier, error: Error) -> Result<TierResult, Error> {
        let rule = self.ladder.on_error;
        if rule == OnError::Fail {
            return Err(error);
        }
        let failure = error.failure();
        let message = failure.map_or_else(|| error.chain(), ToString::to_string);
        let reason = Reason::Failed {
            failure: failure.map(Failure::kind),
            message,
            is_lasting: failure.is_some_and(Failure::is_lasting),
        };
        let step = self.refuse(tier, reason);
        Ok(match rule {
            OnError::Offline => TierResult::Offline,
            _ => step,
        })
    }

    /// Decides whether a text of `tokens` tokens is accepted, refused, kept to be cut, or ends the ladder.
    fn judge(
        &self,
        written: &Written,
        scores: Option<&Scores>,
        tokens: u64,
        request: &SummaryRequest<'_>,
    ) -> Verdict {
        if let Some(reason) = &written.refused {
            return Verdict::Refuse(reason.clone());
        }
        let refused = match written.stop {
            Stop::Filtered => Some(Reason::Filtered),
            Stop::Refused => Some(Reason::Refused),
            _ => scores
                .filter(|scores| scores.refusal)
                .map(|_| Reason::Refused),
        };
        if let Some(reason) = refused.filter(|_| !written.provisional) {
            return Verdict::Refuse(reason);
        }
        let limit = self.limit;
        if written.stop == Stop::CutOff {
            // An incomplete text that is too long is kept, because the last tier would cut it in any case.
            return match tokens > limit {
                true => Verdict::Keep(Reason::CutOff),
                false => Verdict::Refuse(Reason::CutOff),
            };
        }
        if written.text.trim().is_empty() {
            return match self.ladder.on_empty {
                OnEmpty::Fail => Verdict::Stop(self.empty(written)),
                OnEmpty::NextTier => Verdict::Refuse(Reason::Empty),
            };
        }
        if tokens > limit {
            return Verdict::Keep(Reason::TooLong { tokens, limit });
        }
        if tokens > self.most {
            return Verdict::Keep(self.not_shorter(tokens));
        }
        self.pass_gate(written, scores, request)
    }

    /// Decides by the gate whether a text of acceptable length is accepted.
    fn pass_gate(
        &self,
        written: &Written,
        scores: Option<&Scores>,
        request: &SummaryRequest<'_>,
    ) -> Verdict {
        let (Some(gate), Some(scores)) = (&self.ladder.gate, scores) else {
            return Verdict::Accept;
        };
        let failures = gate.failures(scores);
        if failures.is_empty() || written.provisional {
            return Verdict::Accept;
        }
        Verdict::Refuse(Reason::Gate {
            missing: missing(&written.text, request, gate, &failures),
            failures,
            scores: Box::new(scores.clone()),
        })
    }

    fn not_shorter(&self, tokens: u64) -> Reason {
        Reason::NotShorter {
            tokens: tokens.saturating_add(self.request.overhead_tokens),
            source_tokens: self.request.source_tokens(),
        }
    }

    /// Keeps a summary that was too long, so that the last tier can cut it. Drops it if a model wrote it and it also
    /// fails the quality checks (the gate).
    fn keep(&mut self, written: Written, scores: Option<&Scores>) {
        let failed = match (&self.ladder.gate, scores) {
            (Some(gate), Some(scores)) => !gate.failures(scores).is_empty(),
            _ => false,
        };
        if !failed || written.provisional {
            self.kept = Some(written);
        }
    }

    /// Tries the tier `cut`: cuts the kept text to the target length, or the source if no text was kept.
    fn cut(&mut self) -> TierResult {
        let kept = self.kept.take();
        let mut written = kept.unwrap_or_else(|| Written::source(&self.request));
        let (target, estimator) = (self.request.target_tokens, self.request.estimator);
        let Some(text) = cut_to_tokens(&written.text, target.min(self.most), estimator) else {
            return self.refuse(Tier::Cut, Reason::Empty);
        };
        written.text = text;
        // The ranks are those of the uncut lines.
        written.ranks = None;
        // A cut text is no real summary, so it should be rewritten.
        written.provisional = true;
        let tokens = estimator.text(&written.text);
        let scores = self.scores(&written, &self.request);
        let outcome = self.outcome(written, Tier::Cut, tokens, scores);
        TierResult::Accepted(Box::new(outcome))
    }

    /// Measures a text; `None` if the ladder has no gate. Faults are looked for in texts that a model wrote.
    fn scores(&self, written: &Written, request: &SummaryRequest<'_>) -> Option<Scores> {
        let gate = self.ladder.gate.as_ref();
        gate.map(|_| match written.provisional {
            true => measure_terms(&written.text, request),
            false => measure(&written.text, request),
        })
    }

    fn refuse(&mut self, tier: Tier, reason: Reason) -> TierResult {
        self.refused.push(Refusal { tier, reason });
        TierResult::Refused
    }

    fn outcome(
        &mut self,
        written: Written,
        tier: Tier,
        tokens_out: u64,
        scores: Option<Scores>,
    ) -> LadderOutcome {
        let writer = match tier == Tier::Cut && written.summarizer != SOURCE_CUT {
            true => format!("{}+cut", written.summarizer),
            false => written.summarizer.clone(),
        };
        LadderOutcome {
            recipe: recipe(&writer, self.ladder, &self.request),
            text: written.text,
            ranks: written.ranks,
            tier,
            summarizer: written.summarizer,
            model: written.model,
            provisional: written.provisional,
            target_tokens: self.request.target_tokens,
            tokens_in: self.request.source_tokens(),
            tokens_out,
            calls: self.calls,
            model_calls: self.model_calls,
            left_out: written.left_out,
            scores,
            refused: std::mem::take(&mut self.refused),
        }
    }

    fn range(&self) -> String {
        self.request
            .range()
            .map_or_else(String::new, |range| range.to_string())
    }

    fn empty(&self, written: &Written) -> Error {
        let text = format!(
            "summarizer {} returned no text for messages {}: check the model",
            written.summarizer,
            self.range(),
        );
        Error::new(ErrorKind::Empty, text)
    }

    fn cannot_shrink(&self) -> Error {
        Error::new(
            ErrorKind::CannotShrink,
            format!(
                "messages {} cost {} tokens and are too short for a summary{}: leave them unchanged",
                self.range(),
                self.request.source_tokens(),
                self.refusals(),
            ),
        )
        .with_refused(self.refused.clone())
    }

    fn exhausted(&self) -> Error {
        Error::new(
            ErrorKind::Exhausted,
            format!(
                "no tier gave an acceptable summary of messages {}{}: add the tiers extractive or \
                 cut to the ladder",
                self.range(),
                self.refusals(),
            ),
        )
        .with_refused(self.refused.clone())
    }

    fn refusals(&self) -> String {
        if self.refused.is_empty() {
            return String::new();
        }
        let list: Vec<String> = self.refused.iter().map(Refusal::to_string).collect();
        format!(" ({})", list.join("; "))
    }
}
