//! Refusals of summaries that tiers (methods of a ladder) wrote.

use std::fmt;

use model_client::FailureKind;
use serde::Serialize;

use crate::criteria::{GateFailure, Scores};
use crate::tier::Tier;

/// A tier (method) of a ladder whose summary was refused, and the reason for the refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// Tier that wrote the refused summary.
    pub tier: Tier,
    /// Reason for which the summary was refused.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.tier, self.reason)
    }
}

/// Reason for which the summary of a tier (method of a ladder) was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The summarizer returned an error.
    Failed {
        /// Kind of the provider's failure; `None` if it is not known.
        failure: Option<FailureKind>,
        /// Text of the summarizer's error.
        message: String,
        /// Whether the failure does not pass by itself, although others of its kind may.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_lasting: bool,
    },
    /// The summary was blank.
    Empty,
    /// The summary was too long for its target.
    TooLong {
        /// Cost of the summary, in tokens.
        tokens: u64,
        /// Maximum accepted cost, in tokens.
        limit: u64,
    },
    /// The model declined to write a summary.
    Refused,
    /// The provider's content filter withheld the summary.
    Filtered,
    /// The summary ended early because it reached the provider's output limit.
    CutOff,
    /// The summary failed checks of the [`Gate`](crate::Gate).
    Gate {
        /// Checks that the summary fails.
        failures: Vec<GateFailure>,
        /// Measurements of the summary.
        scores: Box<Scores>,
        /// Most important terms that the summary lacks, if it was refused for these, so that the next answer can name
        /// them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// The summary was not shorter than its source.
    NotShorter {
        /// Cost of the summary, in tokens, including the tokens that rendering adds.
        tokens: u64,
        /// Cost of the source, in tokens.
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
                write!(f, "{tokens} tokens, but at most {limit} are accepted")
            }
            Reason::NotShorter {
                tokens,
                source_tokens,
            } => write!(f, "{tokens} tokens for a source of {source_tokens}"),
        }
    }
}
