//! Reasons for compactions.

/// Reason for a compaction.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionReason {
    /// The user or the caller requested the compaction.
    #[default]
    Manual,
    /// The used part of the window crossed a threshold.
    Threshold,
    /// A provider refused a request as too long. The caller repeats the request after the compaction.
    Overflow,
}
