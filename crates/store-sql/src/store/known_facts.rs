//! What a store remembers of conversations' facts.

use crate::pack::Facts;

/// What a store knows of a conversation's facts.
#[derive(Clone, Debug)]
pub(super) enum KnownFacts {
    /// They never change.
    Kept(Facts),
    /// It had none when this was looked up. The meta that were appended since.
    Missing(Vec<String>),
}

impl KnownFacts {
    pub(super) fn kept(self) -> Option<Facts> {
        match self {
            Self::Kept(facts) => Some(facts),
            Self::Missing(_) => None,
        }
    }
}
