//! Reasons for compactions.

/// Reason for a compaction.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionReason {
    /// A request of the user or the caller.
    #[default]
    Manual,
    /// A threshold was crossed.
    Threshold,
    /// A provider refused a context as too long. The call is repeated afterwards.
    Overflow,
}
