//! Why a compaction is run.

/// Why a compaction is run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionReason {
    /// Somebody asked for it.
    #[default]
    Manual,
    /// A threshold was crossed.
    Threshold,
    /// A provider refused a context as too long. The call is tried again afterwards.
    Overflow,
}
