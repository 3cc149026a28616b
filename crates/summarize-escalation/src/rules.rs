//! The rules of a ladder for a summarizer that fails or writes nothing.

use serde::{Deserialize, Serialize};

/// Action when the summarizer fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// Makes no summary.
    Fail,
    /// Goes on with the next tier.
    NextTier,
    /// Goes on with the next tier that needs no model. The default: a provider that just failed is
    /// not asked again for the same summary.
    #[default]
    Offline,
}

/// Action when the summarizer returns nothing but white space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnEmpty {
    /// Makes no summary.
    Fail,
    /// Goes on with the next tier. The default.
    #[default]
    NextTier,
}
