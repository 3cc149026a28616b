//! Amount of reasoning of a model before its answer.

use serde::Serialize;

/// Amount of reasoning that a request asks for. Models that do not reason reject this setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// The model does not reason. This is suitable for summaries.
    None,
    /// The model reasons as little as it can.
    Minimal,
    /// The model reasons less than usual.
    Low,
    /// The model reasons as much as usual.
    Medium,
    /// The model reasons more than usual.
    High,
}

impl ReasoningEffort {
    /// Returns the level for providers that know only low, medium and high; `None` for no reasoning.
    pub(super) fn level(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Minimal | Self::Low => Some("low"),
            Self::Medium => Some("medium"),
            Self::High => Some("high"),
        }
    }
}
