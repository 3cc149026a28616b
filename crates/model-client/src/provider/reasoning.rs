//! Amount of reasoning before an answer.

use serde::Serialize;

/// Amount of reasoning that a request asks for. Only models that reason accept it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// The model does not reason. Suits summaries.
    None,
    /// The least reasoning that the model supports.
    Minimal,
    /// Less reasoning than usual.
    Low,
    /// The usual amount of reasoning.
    Medium,
    /// More reasoning than usual.
    High,
}
