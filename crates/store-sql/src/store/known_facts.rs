//! A store's memory of conversations' facts.

use crate::pack::Facts;

/// Remembered facts of a conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFacts {
    /// The facts; `None` if the conversation had none.
    pub(super) facts: Option<Facts>,
    /// Number of the conversation's erasures when the facts were looked up, from the same transaction. Only an erasure
    /// changes facts.
    pub(super) erasures: Option<u64>,
    /// Without facts: the meta appended since.
    pub(super) appended: Vec<String>,
}
