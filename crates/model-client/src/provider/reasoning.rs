//! Amount of reasoning before an answer.

use serde::Serialize;

/// Requested amount of reasoning. Only models that reason accept it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// No reasoning: koda's rule for summaries.
    None,
    /// The least that a model does.
    Minimal,
    /// Less than usual.
    Low,
    /// As much as usual.
    Medium,
    /// More than usual: pi's rule for summaries by models that reason.
    High,
}
