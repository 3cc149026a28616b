//! Facts (texts with which entries are compressed) that a store keeps in memory.

use crate::pack::Facts;

/// Facts of a conversation that a store keeps in memory. Facts are texts that the metadata of its entries have in
/// common, and with which entries are compressed.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFacts {
    /// The facts. `None` if the conversation had no facts when they were looked up.
    pub(super) facts: Option<Facts>,
    /// Number of the conversation's erasures when the facts were looked up, read in the same transaction. Only an
    /// erasure changes facts. `None` if the number is unknown.
    pub(super) erasures: Option<u64>,
    /// Metadata that were appended since the lookup, if the conversation has no facts.
    pub(super) appended: Vec<String>,
}
