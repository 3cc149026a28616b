//! Rules of a ladder for a summarizer that fails or returns no text.

use serde::{Deserialize, Serialize};

/// Rule of a ladder for a summarizer that fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// Ends the ladder with an error.
    Fail,
    /// Tries the next tier.
    NextTier,
    /// Tries the next tier that needs no model. The default: a provider that just failed is not called again for the
    /// same summary.
    #[default]
    Offline,
}

/// Rule of a ladder for a summarizer that returns a blank text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnEmpty {
    /// Ends the ladder with an error.
    Fail,
    /// Tries the next tier. The default.
    #[default]
    NextTier,
}
