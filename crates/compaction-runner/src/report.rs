//! Counts of requested summaries that the model did not write, with the causes.

use std::fmt;

use serde::{Deserialize, Serialize};
use summarize_escalation::{FailureKind, Reason, Refusal, Tier};

/// Number of summaries of a run that the model did not write, with the causes.
///
/// Counts only summaries that were requested from a model. For a summarizer without a model all numbers are 0.
/// `Display` writes one line for a log or a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelReport {
    /// Number of summaries requested from a model. Includes summaries for which a draft of an earlier run was used.
    pub asked: u64,
    /// Number of requested summaries that were written without the model, as an extract or a shortened text.
    pub without_model: u64,
    /// Number of requested summaries that were not written because the model failed.
    pub not_made: u64,
    /// Causes of the summaries in `without_model` and `not_made`, the most frequent one first. Their numbers add up to
    /// `without_model + not_made`.
    pub causes: Vec<CauseCount>,
}

/// Reason why the model did not write summaries, with the number of these summaries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CauseCount {
    /// Number of summaries that the model did not write for this reason.
    pub summaries: u64,
    /// The reason, with the message of its last occurrence.
    #[serde(flatten)]
    pub cause: Cause,
}

/// Reason why the model did not write a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cause {
    /// Kind of the reason. Either a failure of the provider (`auth`, `timed_out`, …; `failed` if the kind is not
    /// known), or the rule by which the answer was refused: `empty_answer`, `answer_too_long`, `declined`, `filtered`,
    /// `cut_off`, `not_shorter`, `gate` or `other`.
    pub kind: String,
    /// Names of the quality rules (the gate) by which the answer was refused. Empty if the kind is not `gate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Message of the provider or of the rule.
    pub message: String,
    /// Advice to the user, as an imperative sentence.
    pub advice: String,
    /// Whether the failure does not pass by itself, although others of its kind may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lasting: bool,
}

impl Cause {
    /// Returns whether the source was too long for the model to read.
    pub fn is_too_long(&self) -> bool {
        self.kind == FailureKind::TooLong.as_str()
    }

    /// Returns the reason why the last model tier was refused. `None` if no model tier was refused. A failure of the
    /// model takes precedence over the refusal of a guard to call it again.
    pub(crate) fn of(refused: &[Refusal]) -> Option<Self> {
        let by_model = |refusal: &&Refusal| matches!(refusal.tier, Tier::Normal | Tier::Aggressive);
        let causes = refused.iter().filter(by_model);
        let causes = causes.map(|refusal| Self::of_reason(&refusal.reason));
        let causes: Vec<Self> = causes.collect();
        let asked = causes.iter().rev().find(|cause| cause.was_asked());
        asked.or(causes.last()).cloned()
    }

    /// Returns whether a model was called; false if a guard refused the call.
    pub fn was_asked(&self) -> bool {
        self.kind != FailureKind::BreakerOpen.as_str() && !self.is_limit()
    }

    /// Returns whether the failure may pass by itself, so that the model may write the summary later.
    pub(crate) fn may_pass(&self) -> bool {
        let kind = serde_json::from_value::<FailureKind>(self.kind.clone().into());
        kind.is_ok_and(FailureKind::may_pass) && !self.is_lasting
    }

    /// Returns whether a limit on calls or tokens was reached.
    pub(crate) fn is_limit(&self) -> bool {
        self.kind == FailureKind::SpendLimit.as_str()
    }

    /// Returns the reason why a source stays unchanged. `None` if the source is too short for any summary, which is no
    /// failure of the model.
    pub(crate) fn of_unmade(refused: &[Refusal]) -> Option<Self> {
        let fault = |refusal: &&Refusal| !matches!(refusal.reason, Reason::NotShorter { .. });
        let refused: Vec<Refusal> = refused.iter().filter(fault).cloned().collect();
        Self::of(&refused)
    }

    /// Returns the reason of a failure that ended the ladder.
    pub(crate) fn of_error(error: &summarize_escalation::Error, message: String) -> Self {
        use summarize_escalation::ErrorKind;
        match (error.failure(), error.kind()) {
            (Some(failure), _) => Self {
                is_lasting: failure.is_lasting(),
                ..Self::of_failure(failure.kind(), &failure.to_string())
            },
            (None, ErrorKind::Empty) => Self::of_reason(&Reason::Empty),
            (None, ErrorKind::TooLong) => Self::of_failure(FailureKind::TooLong, &message),
            (None, _) => Self::unknown(message),
        }
    }

    fn of_failure(kind: FailureKind, message: &str) -> Self {
        let advice = kind.advice();
        let message = message.strip_suffix(advice).unwrap_or(message);
        Self {
            kind: kind.as_str().to_owned(),
            rules: Vec::new(),
            message: message.trim_end_matches([':', ' ']).to_owned(),
            advice: advice.to_owned(),
            is_lasting: false,
        }
    }

    pub(crate) fn unknown(message: String) -> Self {
        Self {
            kind: "failed".to_owned(),
            rules: Vec::new(),
            message,
            advice: "check the provider".to_owned(),
            is_lasting: false,
        }
    }

    fn of_reason(reason: &Reason) -> Self {
        let mut rules = Vec::new();
        let (kind, advice) = match reason {
            Reason::Failed {
                failure,
                message,
                is_lasting,
            } => {
                let failure = failure.map(|kind| Self::of_failure(kind, message));
                return Self {
                    is_lasting: *is_lasting,
                    ..failure.unwrap_or_else(|| Self::unknown(message.clone()))
                };
            }
            Reason::Empty => ("empty_answer", "try again, or take another model"),
            Reason::TooLong { .. } => ("answer_too_long", "take another model"),
            Reason::Refused => ("declined", "take another model for this text"),
            Reason::Filtered => ("filtered", "take another model for this text"),
            Reason::CutOff => ("cut_off", "take another model, or a larger window"),
            Reason::NotShorter { .. } => ("not_shorter", "take another model"),
            Reason::Gate { failures, .. } => {
                let names = failures.iter().map(|failure| failure.rule().to_owned());
                rules.extend(names);
                (
                    "gate",
                    "take a better model, or relax the rules of the gate",
                )
            }
            _ => ("other", "take another model"),
        };
        Self {
            kind: kind.to_owned(),
            rules,
            message: reason.to_string(),
            advice: advice.to_owned(),
            is_lasting: false,
        }
    }

    /// Returns whether two reasons are counted together.
    fn same(&self, other: &Self) -> bool {
        (&self.kind, &self.rules) == (&other.kind, &other.rules)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rules.as_slice() {
            [] => write!(f, "{} ({})", self.kind, self.message),
            rules => {
                let (rule, names) = (if rules.len() == 1 { "rule" } else { "rules" }, rules);
                let names = names.join("` and `");
                write!(f, "refused by {rule} `{names}` ({})", self.message)
            }
        }
    }
}

impl ModelReport {
    /// Returns whether the model wrote every requested summary.
    pub fn is_ok(&self) -> bool {
        self.without_model == 0 && self.not_made == 0
    }

    /// Returns the advice for the most frequent reason. `None` if there is no reason. Refusals by an open circuit
    /// breaker are considered only if there is no other reason.
    pub fn advice(&self) -> Option<&str> {
        let guard = |count: &&CauseCount| count.cause.kind == FailureKind::BreakerOpen.as_str();
        let first = self.causes.iter().find(|count| !guard(count));
        first
            .or(self.causes.first())
            .map(|count| count.cause.advice.as_str())
    }

    /// Adds the numbers and causes of another report.
    pub fn merge(&mut self, other: &Self) {
        self.asked += other.asked;
        self.without_model += other.without_model;
        self.not_made += other.not_made;
        for count in &other.causes {
            self.count(&count.cause, count.summaries);
        }
    }

    /// Counts a summary that was written. `without_model` is the reason if the model did not write it.
    pub(crate) fn written(&mut self, without_model: Option<&Cause>) {
        self.asked += 1;
        if let Some(cause) = without_model {
            self.without_model += 1;
            self.count(cause, 1);
        }
    }

    /// Counts a summary that was not written.
    pub(crate) fn unmade(&mut self, cause: &Cause) {
        self.asked += 1;
        self.not_made += 1;
        self.count(cause, 1);
    }

    /// Returns the report for a redo, which discards summaries without a model. Summaries that were not requested
    /// because of a limit do not count.
    pub(crate) fn for_redo(mut self) -> Self {
        self.not_made += std::mem::take(&mut self.without_model);
        let limited = self.causes.iter().filter(|count| count.cause.is_limit());
        let limited: u64 = limited.map(|count| count.summaries).sum();
        self.asked = self.asked.saturating_sub(limited);
        self.not_made = self.not_made.saturating_sub(limited);
        self.causes.retain(|count| !count.cause.is_limit());
        self
    }

    fn count(&mut self, cause: &Cause, summaries: u64) {
        match self.causes.iter_mut().find(|count| count.cause.same(cause)) {
            Some(count) => {
                count.summaries += summaries;
                count.cause = cause.clone();
            }
            None => self.causes.push(CauseCount {
                summaries,
                cause: cause.clone(),
            }),
        }
        // The sort is stable: of equally frequent causes, the first that occurred comes first.
        self.causes
            .sort_by_key(|count| std::cmp::Reverse(count.summaries));
    }
}

impl fmt::Display for ModelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = match self.asked {
            1 => "1 summary".to_owned(),
            asked => format!("{asked} summaries"),
        };
        let was = |count: u64| if count == 1 { "was" } else { "were" };
        let mut parts = Vec::new();
        if self.without_model > 0 {
            let count = self.without_model;
            parts.push(format!(
                "{count} of {asked} {} written without the model",
                was(count)
            ));
        }
        if self.not_made > 0 {
            parts.push(format!(
                "{} of {asked} {} not made",
                self.not_made,
                was(self.not_made)
            ));
        }
        if parts.is_empty() {
            return write!(f, "the model wrote all of {asked}");
        }
        f.write_str(&parts.join(", "))?;
        for (index, count) in self.causes.iter().enumerate() {
            let before = if index == 0 { ": " } else { ", " };
            write!(f, "{before}{} × {}", count.summaries, count.cause)?;
        }
        Ok(())
    }
}
