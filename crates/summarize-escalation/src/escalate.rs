use std::fmt;

use memory_model::{JobKind, Recipe};
use serde::Serialize;

use crate::cut::{cut_like_anna, cut_to_tokens};
use crate::{
    CutRule, Error, ErrorKind, Extractive, Ladder, OnEmpty, OnError, OnGrowth, Style, Summarizer,
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
    /// [`recipe`] foretells; an extract in its place has the extract's own, so that it never
    /// stands in for the real summary in a cache.
    pub recipe: Recipe,
    /// How long it was to be, in tokens.
    pub target_tokens: u64,
    /// What its source cost, in tokens.
    pub tokens_in: u64,
    /// What it costs, in tokens, without what rendering adds.
    pub tokens_out: u64,
    /// How often a summarizer was called: at most once a tier.
    pub calls: u32,
    /// Which tiers were tried before, and why they were refused.
    pub refused: Vec<Refusal>,
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
            Reason::Failed { message } => f.write_str(message),
            Reason::Empty => f.write_str("nothing was returned"),
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
/// [`ErrorKind::Provider`] and [`ErrorKind::Empty`] when the ladder says to stop there;
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
        most: match ladder.on_growth {
            OnGrowth::Accept => u64::MAX,
            OnGrowth::NextTier => request
                .source_tokens()
                .saturating_sub(request.overhead_tokens)
                .saturating_sub(1),
        },
        request,
        written: None,
        refused: Vec::new(),
        calls: 0,
    };
    if climb.most == 0 {
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
            Step::Accepted(outcome) => return Ok(outcome),
            Step::Refused => {}
            Step::Failed => model_down |= ladder.on_error == OnError::Offline,
        }
    }
    Err(if ladder.tiers.contains(&Tier::Cut) {
        climb.cannot_shrink()
    } else {
        climb.exhausted()
    })
}

enum Step {
    Accepted(Outcome),
    Refused,
    Failed,
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
}

struct Written {
    text: String,
    summarizer: String,
    model: Option<String>,
    provisional: bool,
}

impl Climb<'_> {
    async fn ask(
        &mut self,
        writer: &dyn Summarizer,
        tier: Tier,
        style: Style,
    ) -> Result<Step, Error> {
        let mut request = self.request.with_style(style);
        if tier == Tier::Extractive {
            // An extract is as long as it is asked to be.
            request.target_tokens = request.target_tokens.min(self.most);
        }
        self.calls += 1;
        let answer = match writer.summarize(&request).await {
            Ok(answer) => answer,
            Err(error) => {
                if self.ladder.on_error == OnError::Fail {
                    return Err(error);
                }
                let message = error.chain();
                self.refuse(tier, Reason::Failed { message });
                return Ok(Step::Failed);
            }
        };
        let empty = answer.text.trim().is_empty();
        if empty && self.ladder.on_empty == OnEmpty::Fail {
            return Err(Error::new(
                ErrorKind::Empty,
                format!(
                    "summarizer {} returned nothing for messages {}: check the model",
                    writer.id(),
                    self.range(),
                ),
            ));
        }
        let model = answer.model.or_else(|| writer.model().map(str::to_owned));
        let written = Written {
            text: answer.text,
            summarizer: writer.id().to_owned(),
            model,
            provisional: writer.provisional(),
        };
        if empty && self.ladder.on_empty == OnEmpty::NextTier {
            self.refuse(tier, Reason::Empty);
            return Ok(Step::Refused);
        }
        let tokens = self.request.estimator.text(&written.text);
        if tokens > self.limit {
            let limit = self.limit;
            self.refuse(tier, Reason::TooLong { tokens, limit });
            self.written = Some(written);
            return Ok(Step::Refused);
        }
        if tokens > self.most {
            let reason = Reason::NotShorter {
                tokens: tokens.saturating_add(self.request.overhead_tokens),
                source_tokens: self.request.source_tokens(),
            };
            self.refuse(tier, reason);
            self.written = Some(written);
            return Ok(Step::Refused);
        }
        Ok(Step::Accepted(self.outcome(written, tier, tokens)))
    }

    /// The last tier: what was written, or else the source, cut to the target.
    fn cut(&mut self) -> Option<Outcome> {
        let mut written = self.written.take().unwrap_or_else(|| Written {
            text: prompt::plain(self.request.source),
            summarizer: SOURCE_CUT.to_owned(),
            model: None,
            provisional: true,
        });
        let target = self.request.target_tokens;
        written.text = match self.ladder.cut {
            CutRule::Anna => {
                let text = cut_like_anna(&written.text, target);
                let tokens = self.request.estimator.text(&text);
                if tokens > self.most {
                    let reason = Reason::NotShorter {
                        tokens: tokens.saturating_add(self.request.overhead_tokens),
                        source_tokens: self.request.source_tokens(),
                    };
                    self.refuse(Tier::Cut, reason);
                    return None;
                }
                text
            }
            CutRule::Tokens => {
                let room = target.min(self.most);
                let cut = cut_to_tokens(&written.text, room, self.request.estimator);
                let Some(text) = cut else {
                    self.refuse(Tier::Cut, Reason::Empty);
                    return None;
                };
                text
            }
        };
        let tokens = self.request.estimator.text(&written.text);
        Some(self.outcome(written, Tier::Cut, tokens))
    }

    fn refuse(&mut self, tier: Tier, reason: Reason) {
        self.refused.push(Refusal { tier, reason });
    }

    fn outcome(&mut self, written: Written, tier: Tier, tokens_out: u64) -> Outcome {
        Outcome {
            recipe: recipe(&written.summarizer, self.ladder, &self.request),
            text: written.text,
            tier,
            summarizer: written.summarizer,
            model: written.model,
            provisional: written.provisional,
            target_tokens: self.request.target_tokens,
            tokens_in: self.request.source_tokens(),
            tokens_out,
            calls: self.calls,
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
    }

    fn refusals(&self) -> String {
        if self.refused.is_empty() {
            return String::new();
        }
        let list: Vec<String> = self.refused.iter().map(Refusal::to_string).collect();
        format!(" ({})", list.join("; "))
    }
}
