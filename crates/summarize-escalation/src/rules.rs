//! The rules of a ladder for the results of its tiers.

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
    /// Accepts it: the messages then have an empty summary.
    Accept,
    /// Makes no summary.
    Fail,
    /// Goes on with the next tier. The default.
    #[default]
    NextTier,
}

/// Action when a summary is within its limit, but costs as much as its source or more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGrowth {
    /// Accepts it.
    Accept,
    /// Goes on with the next tier. The default.
    #[default]
    NextTier,
}

/// Action when the summarizer declines, in its text or by its provider's word, or the
/// provider's filter withholds what it wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnRefusal {
    /// Accepts its text as a summary.
    Accept,
    /// Makes no summary.
    Fail,
    /// Goes on with the next tier. The default: what is asked in another style may be done.
    #[default]
    NextTier,
    /// Goes on with the next tier that needs no model.
    Offline,
}

/// Action when the provider stopped the answer at its limit of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCutOff {
    /// Accepts it.
    Accept,
    /// Goes on with the next tier. The default: a summary without its end hides that it has none.
    #[default]
    NextTier,
}

/// Action when a summary fails the [`Gate`](crate::Gate).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnGate {
    /// Accepts it; its scores say what it lacks.
    Accept,
    /// Goes on with the next tier. The default.
    #[default]
    NextTier,
}

/// Rules for a tier's result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Rules {
    /// Rule for a summarizer that fails.
    pub on_error: OnError,
    /// Rule for an empty summary.
    pub on_empty: OnEmpty,
    /// Rule for a summary that is not shorter than its source.
    pub on_growth: OnGrowth,
    /// Rule for a summarizer that declines.
    pub on_refusal: OnRefusal,
    /// Rule for a summary that the provider cut off.
    pub on_cut_off: OnCutOff,
    /// Rule for a summary that fails the gate.
    pub on_gate: OnGate,
}
