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
    /// Tries the next tier that needs no model. The default, because a provider that just failed should not be called
    /// again for the same summary.
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
