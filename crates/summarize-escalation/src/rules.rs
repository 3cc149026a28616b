//! Rules of a ladder for a summarizer that fails or returns no text.

use serde::{Deserialize, Serialize};

/// Action when the summarizer fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// Stops without a summary.
    Fail,
    /// Continues with the next tier.
    NextTier,
    /// Continues with the next tier without a model. The default: a provider that just failed is not called again for
    /// the same summary.
    #[default]
    Offline,
}

/// Action when the summarizer returns a blank text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnEmpty {
    /// Stops without a summary.
    Fail,
    /// Continues with the next tier. The default.
    #[default]
    NextTier,
}
