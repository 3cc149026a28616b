//! What a store remembers of conversations' facts.

use crate::pack::Facts;

/// What a store knows of a conversation's facts.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFacts {
    /// The facts; `None` when the conversation had none.
    pub(super) facts: Option<Facts>,
    /// How many erasures the conversation had when they were looked up in the same transaction. Only an erasure
    /// changes facts.
    pub(super) erasures: Option<u64>,
    /// Without facts: the meta that were appended since.
    pub(super) appended: Vec<String>,
}
