use std::fmt;

use memory_model::{JobKind, RawJson, Recipe};
use serde::Serialize;

use crate::cut::{cut_like_anna, cut_to_tokens};
use crate::gate::{GateFailure, Scores, measure};
use crate::{
    CutRule, Error, ErrorKind, Extractive, Failure, FailureKind, Ladder, LeftOut, OnCutOff,
    OnEmpty, OnError, OnGate, OnGrowth, OnRefusal, Purpose, Stop, Style, Summarizer,
    SummaryRequest, Tier, prompt,
};

/// A summary that was accepted, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The summary.
    pub text: String,
    /// The tier that produced it.
    pub tier: Tier,
    /// The id of the summarizer that wrote it.
    pub summarizer: String,
    /// The model that wrote it, if one did.
    pub model: Option<String>,
    /// To be redone when a model is available.
    pub provisional: bool,
    /// How it was made. When the summarizer that was asked wrote it, this is the recipe that
    /// [`recipe`] foretells; an extract or a cut in its place has its own, so that it never stands
    /// in for the real summary in a cache.
    pub recipe: Recipe,
    /// How long it was to be, in tokens.
    pub target_tokens: u64,
    /// What its source cost, in tokens.
    pub tokens_in: u64,
    /// What it costs, in tokens, without what rendering adds.
    pub tokens_out: u64,
    /// How often a summarizer was called: at most once a tier.
    pub calls: u32,
    /// How often a model was called: more often than a summarizer where the source was too long
    /// for one call, or a call was made again.
    pub model_calls: u32,
    /// What of the source the summary does not speak of, where the source was too long and the
    /// policy says so.
    pub left_out: Option<LeftOut>,
    /// What was measured of it; `None` when the ladder has no gate.
    pub scores: Option<Scores>,
    /// Which tiers were tried before, and why they were refused.
    pub refused: Vec<Refusal>,
}

/// What is kept of an outcome beside its text.
#[derive(Serialize)]
struct Meta<'a> {
    target_tokens: u64,
    tokens_in: u64,
    tokens_out: u64,
    model_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<&'a Scores>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    refused: &'a [Refusal],
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

impl Outcome {
    /// How the summary came about, as a JSON object to keep with it: `target_tokens`, `tokens_in`,
    /// `tokens_out`, `model_calls`, and where there are any `scores`, `refused` and `left_out`.
    pub fn meta(&self) -> Option<RawJson> {
        let meta = Meta {
            target_tokens: self.target_tokens,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            model_calls: self.model_calls,
            scores: self.scores.as_ref(),
            refused: &self.refused,
            left_out: self.left_out,
        };
        RawJson::from_value(&meta).ok()
    }
}

/// A tier that was tried, and why its result was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The tier.
    pub tier: Tier,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tier, self.reason)
    }
}

/// Why a tier's result was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The summarizer failed.
    Failed {
        /// The kind of the provider's failure, where it is known.
        failure: Option<FailureKind>,
        /// What it said.
        message: String,
    },
    /// There was nothing but white space.
    Empty,
    /// It was too long for its target.
    TooLong {
        /// What it cost, in tokens.
        tokens: u64,
        /// The largest accepted cost, in tokens.
        limit: u64,
    },
    /// The summarizer declined.
    Refused,
    /// The provider's content filter withheld it.
    Filtered,
    /// The provider's limit of tokens cut it off.
    CutOff,
    /// It failed the gate.
    Gate {
        /// By what.
        failures: Vec<GateFailure>,
        /// What was measured.
        scores: Box<Scores>,
    },
    /// It was not shorter than its source.
    NotShorter {
        /// What it cost, in tokens, with what rendering adds.
        tokens: u64,
        /// What the source cost, in tokens.
        source_tokens: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Failed { message, .. } => f.write_str(message),
            Reason::Empty => f.write_str("nothing was returned"),
            Reason::Refused => f.write_str("the summarizer declined"),
            Reason::Filtered => f.write_str("the provider's content filter withheld it"),
            Reason::CutOff => f.write_str("the provider cut it off"),
            Reason::Gate { failures, .. } => {
                let told: Vec<String> = failures.iter().map(GateFailure::to_string).collect();
                f.write_str(&told.join(", "))
            }
            Reason::TooLong { tokens, limit } => {
                write!(f, "{tokens} tokens where {limit} are accepted")
            }
            Reason::NotShorter {
                tokens,
                source_tokens,
            } => write!(f, "{tokens} tokens for a source of {source_tokens}"),
        }
    }
}

/// The recipe of the summary that `summarizer` writes for this request under this ladder, known
/// before it is called: with the hash of the source it is the key of a cache.
///
/// One canonical line of everything that the text depends on besides its source: summarizer (its
/// id names model and prompts), ladder, kind and depth class, target, estimator, and hashes of the
/// instructions and the previous summary where there are any.
pub fn recipe(summarizer: &str, ladder: &Ladder, request: &SummaryRequest<'_>) -> Recipe {
    let kind = match (request.kind(), request.depth()) {
        (JobKind::Leaf, _) => "leaf",
        (JobKind::Condensed, 1) => "condensed-1",
        (JobKind::Condensed, _) => "condensed-2+",
    };
    let rule = ladder.target_rule(request.kind());
    let target = match request.target_tokens {
        0 => rule.to_string(),
        tokens if tokens == rule.target(request.source_tokens()) => rule.to_string(),
        tokens => tokens.to_string(),
    };
    let mut line = format!(
        "summarizer={summarizer} ladder={} kind={kind} target={target} estimator={}",
        ladder.id(),
        request.estimator.id().as_str(),
    );
    if request.purpose == Purpose::TurnPrefix {
        line.push_str(" purpose=turn-prefix");
    }
    if request.overhead_tokens > 0 {
        line.push_str(&format!(" overhead={}", request.overhead_tokens));
    }
    for (name, text) in [
        ("instructions", request.instructions),
        ("previous", request.previous),
    ] {
        if let Some(text) = text {
            let mut hasher = memory_model::FieldHasher::new("agent-memory recipe text 1");
            hasher.bytes(text.as_bytes());
            let hash = hasher.finish().to_string();
            line.push_str(&format!(" {name}={}", hash.get(..16).unwrap_or(&hash)));
        }
    }
    Recipe::new(line)
}

/// Climbs the ladder until a tier gives an acceptable summary of the request's source.
///
/// Each tier is tried at most once, so a summarizer is called at most once a tier. A summarizer
/// that is itself provisional takes the place of the extractive tier, where the ladder has one: it
/// is not asked in different styles for what it writes without a model.
///
/// Nothing waits and nothing is kept: dropping the future cancels the work.
///
/// # Errors
/// [`ErrorKind::NoSource`] and [`ErrorKind::InvalidLadder`] before anything is called;
/// [`ErrorKind::Provider`], [`ErrorKind::Empty`] and [`ErrorKind::Refused`] when the ladder says to
/// stop there;
/// [`ErrorKind::CannotShrink`] when the source is too short for anything shorter to say something;
/// [`ErrorKind::Exhausted`] when all tiers were refused and none is a cut.
pub async fn escalate(
    summarizer: &dyn Summarizer,
    ladder: &Ladder,
    request: &SummaryRequest<'_>,
) -> Result<Outcome, Error> {
    ladder.validate()?;
    if request.source.is_empty() {
        return Err(Error::new(
            ErrorKind::NoSource,
            "there is nothing to summarise: give at least one message or summary",
        ));
    }
    let mut request = *request;
    if request.target_tokens == 0 {
        let rule = ladder.target_rule(request.kind());
        request.target_tokens = rule.target(request.source_tokens());
    }
    let mut climb = Climb {
        ladder,
        limit: ladder.accept.limit(request.target_tokens),
        most: request
            .source_tokens()
            .saturating_sub(request.overhead_tokens)
            .saturating_sub(1),
        request,
        written: None,
        refused: Vec::new(),
        calls: 0,
        model_calls: 0,
    };
    if climb.most == 0 && ladder.tiers.iter().all(|tier| climb.must_shrink(*tier)) {
        return Err(climb.cannot_shrink());
    }
    let offline = summarizer.provisional() && ladder.tiers.contains(&Tier::Extractive);
    let mut model_down = false;
    for &tier in &ladder.tiers {
        let style = match tier {
            Tier::Normal | Tier::Aggressive if offline || model_down => continue,
            Tier::Normal => Style::Normal,
            Tier::Aggressive => Style::Aggressive,
            Tier::Extractive => Style::Normal,
            Tier::Cut => match climb.cut() {
                Some(outcome) => return Ok(outcome),
                None => continue,
            },
        };
        let extract = Extractive;
        let writer: &dyn Summarizer = match tier {
            Tier::Extractive if !offline => &extract,
            _ => summarizer,
        };
        match climb.ask(writer, tier, style).await? {
            Step::Accepted(outcome) => return Ok(*outcome),
            Step::Refused => {}
            Step::Offline => model_down = true,
        }
    }
    Err(if ladder.tiers.contains(&Tier::Cut) {
        climb.cannot_shrink()
    } else {
        climb.exhausted()
    })
}

enum Step {
    Accepted(Box<Outcome>),
    Refused,
    /// Refused, and no model is to be asked again.
    Offline,
}

/// The id of the cut as a writer, when no tier before it wrote anything.
const SOURCE_CUT: &str = "source-cut@1";

/// The state of one climb.
struct Climb<'a> {
    ladder: &'a Ladder,
    request: SummaryRequest<'a>,
    /// The largest cost within the tolerance.
    limit: u64,
    /// The largest cost that is shorter than the source.
    most: u64,
    /// The last text that a tier wrote.
    written: Option<Written>,
    refused: Vec<Refusal>,
    calls: u32,
    model_calls: u32,
}

struct Written {
    text: String,
    summarizer: String,
    model: Option<String>,
    provisional: bool,
    left_out: Option<LeftOut>,
}

impl Climb<'_> {
    async fn ask(
        &mut self,
        writer: &dyn Summarizer,
        tier: Tier,
        style: Style,
    ) -> Result<Step, Error> {
        let rules = self.ladder.rules(tier);
        let mut request = self.request.with_style(style);
        if self.must_shrink(tier) && self.most == 0 {
            self.refuse(tier, self.not_shorter(1));
            return Ok(Step::Refused);
        }
        // No more is asked for than there is.
        let most = match self.must_shrink(tier) {
            true => self.most,
            false => self.request.source_tokens().max(1),
        };
        request.target_tokens = request.target_tokens.min(most);
        self.calls += 1;
        let answer = match writer.summarize(&request).await {
            Ok(answer) => answer,
            Err(error) => {
                if !writer.provisional() {
                    self.model_calls = self.model_calls.saturating_add(error.calls());
                }
                if rules.on_error == OnError::Fail {
                    return Err(error);
                }
                let failure = error.failure();
                let message = failure.map_or_else(|| error.chain(), ToString::to_string);
                let failure = failure.map(Failure::kind);
                self.refuse(tier, Reason::Failed { failure, message });
                return Ok(match rules.on_error {
                    OnError::Offline => Step::Offline,
                    _ => Step::Refused,
                });
            }
        };
        if !writer.provisional() {
            self.model_calls = self.model_calls.saturating_add(answer.calls);
        }
        let model = answer.model.or_else(|| writer.model().map(str::to_owned));
        let written = Written {
            text: answer.text,
            summarizer: writer.id().to_owned(),
            model,
            provisional: writer.provisional(),
            left_out: answer.left_out,
        };
        let scores = match &self.ladder.gate {
            Some(_) => Some(measure(&written.text, &request)),
            None => None,
        };
        let blank = written.text.trim().is_empty();
        let declined = match answer.stop {
            Stop::Filtered => Some(Reason::Filtered),
            Stop::Refused => Some(Reason::Refused),
            _ if scores.as_ref().is_some_and(|s| s.refusal) => Some(Reason::Refused),
            _ => None,
        };
        // Where there is no text there is none to accept.
        let accepted = rules.on_refusal == OnRefusal::Accept && !blank;
        if let Some(reason) = declined.filter(|_| !accepted && !written.provisional) {
            if rules.on_refusal == OnRefusal::Fail {
                let text = format!(
                    "summarizer {} gave no summary of messages {} ({reason}): look at what they ask \
                     of it, or take another model",
                    writer.id(),
                    self.range(),
                );
                return Err(Error::new(ErrorKind::Refused, text));
            }
            self.refuse(tier, reason);
            return Ok(match rules.on_refusal {
                OnRefusal::Offline => Step::Offline,
                _ => Step::Refused,
            });
        }
        let tokens = self.request.estimator.text(&written.text);
        if answer.stop == Stop::CutOff && (rules.on_cut_off == OnCutOff::NextTier || blank) {
            self.refuse(tier, Reason::CutOff);
            if tokens > self.limit {
                // Long enough that the last tier would have cut it anyway.
                self.keep(written, scores.as_ref());
            }
            return Ok(Step::Refused);
        }
        if blank {
            match rules.on_empty {
                OnEmpty::Accept => {}
                OnEmpty::Fail => {
                    let text = format!(
                        "summarizer {} returned nothing for messages {}: check the model",
                        writer.id(),
                        self.range(),
                    );
                    return Err(Error::new(ErrorKind::Empty, text));
                }
                OnEmpty::NextTier => {
                    self.refuse(tier, Reason::Empty);
                    return Ok(Step::Refused);
                }
            }
        }
        if tokens > self.limit {
            let limit = self.limit;
            self.refuse(tier, Reason::TooLong { tokens, limit });
            self.keep(written, scores.as_ref());
            return Ok(Step::Refused);
        }
        if tokens > self.most && rules.on_growth == OnGrowth::NextTier {
            self.refuse(tier, self.not_shorter(tokens));
            self.keep(written, scores.as_ref());
            return Ok(Step::Refused);
        }
        if let (Some(gate), Some(scores)) = (&self.ladder.gate, &scores)
            && rules.on_gate == OnGate::NextTier
            && !written.provisional
        {
            let failures = gate.failures(scores);
            if !failures.is_empty() {
                let scores = Box::new(scores.clone());
                self.refuse(tier, Reason::Gate { failures, scores });
                return Ok(Step::Refused);
            }
        }
        let outcome = self.outcome(written, tier, tokens, scores);
        Ok(Step::Accepted(Box::new(outcome)))
    }

    /// Whether a tier's result has to be shorter than the source.
    fn must_shrink(&self, tier: Tier) -> bool {
        self.ladder.rules(tier).on_growth == OnGrowth::NextTier
    }

    fn not_shorter(&self, tokens: u64) -> Reason {
        Reason::NotShorter {
            tokens: tokens.saturating_add(self.request.overhead_tokens),
            source_tokens: self.request.source_tokens(),
        }
    }

    /// Keeps a text that was too long, for the last tier to cut, unless it is worse than long.
    fn keep(&mut self, written: Written, scores: Option<&Scores>) {
        let failed = match (&self.ladder.gate, scores) {
            (Some(gate), Some(scores)) => !gate.failures(scores).is_empty(),
            _ => false,
        };
        if !failed || written.provisional {
            self.written = Some(written);
        }
    }

    /// The last tier: what was written, or else the source, cut to the target.
    fn cut(&mut self) -> Option<Outcome> {
        let mut written = self.written.take().unwrap_or_else(|| Written {
            text: prompt::plain(self.request.source),
            summarizer: SOURCE_CUT.to_owned(),
            model: None,
            provisional: true,
            left_out: None,
        });
        let target = self.request.target_tokens;
        let most = match self.must_shrink(Tier::Cut) {
            true => self.most,
            false => u64::MAX,
        };
        written.text = match self.ladder.cut {
            CutRule::Anna => {
                let text = cut_like_anna(&written.text, target);
                let tokens = self.request.estimator.text(&text);
                if tokens > most {
                    self.refuse(Tier::Cut, self.not_shorter(tokens));
                    return None;
                }
                text
            }
            CutRule::Tokens => {
                // A cut is no summary: it is to be redone.
                written.provisional = true;
                let cut = cut_to_tokens(&written.text, target.min(most), self.request.estimator);
                let Some(text) = cut else {
                    self.refuse(Tier::Cut, Reason::Empty);
                    return None;
                };
                text
            }
        };
        let tokens = self.request.estimator.text(&written.text);
        let gate = self.ladder.gate.as_ref();
        let scores = gate.map(|_| measure(&written.text, &self.request));
        Some(self.outcome(written, Tier::Cut, tokens, scores))
    }

    fn refuse(&mut self, tier: Tier, reason: Reason) {
        self.refused.push(Refusal { tier, reason });
    }

    fn outcome(
        &mut self,
        written: Written,
        tier: Tier,
        tokens_out: u64,
        scores: Option<Scores>,
    ) -> Outcome {
        let cut = tier == Tier::Cut && self.ladder.cut == CutRule::Tokens;
        let writer = match cut && written.summarizer != SOURCE_CUT {
            true => format!("{}+cut", written.summarizer),
            false => written.summarizer.clone(),
        };
        Outcome {
            recipe: recipe(&writer, self.ladder, &self.request),
            text: written.text,
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

    fn cannot_shrink(&self) -> Error {
        Error::new(
            ErrorKind::CannotShrink,
            format!(
                "messages {} cost {} tokens, and nothing shorter can be made of them{}: leave them \
                 as they are",
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
