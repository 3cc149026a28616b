//! Typed ids and positions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines a string newtype with the traits every id needs.
macro_rules! string_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a string as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

string_id! {
    /// The caller's name of a conversation, such as `telegram:42` or a transcript's session id.
    SessionKey
}
string_id! {
    /// Names a summary: `sum_` and 16 hex digits of the summary's hash.
    SummaryId
}
string_id! {
    /// Names one view of a conversation: `dag`, `handoff`, `blocks`, or a name of the caller's.
    ViewName
}
string_id! {
    /// Names a trim policy and its version, such as `tool-output-lines/50@1`.
    ///
    /// A trim policy is a pure function of one message, so the name is all that a view stores.
    TrimPolicyId
}

/// A store's number for a conversation: small, positive, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConversationId(pub u32);

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often a view was published: 0 for a view that was never compacted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ViewVersion(pub u64);

impl ViewVersion {
    /// The version that the next publish gets.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for ViewVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message's position in its conversation's log: dense, from 1.
///
/// `Seq(0)` is no message; it is the head of an empty log.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u32);

impl Seq {
    /// The head of an empty log.
    pub const NONE: Seq = Seq(0);
    /// The first message of every log.
    pub const FIRST: Seq = Seq(1);

    /// The position after this one.
    pub fn next(self) -> Self {
        Seq(self.0.saturating_add(1))
    }

    /// The position before this one; `Seq(0)` stays `Seq(0)`.
    pub fn prev(self) -> Self {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A non-empty stretch of a log; both ends are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeqRange {
    /// First position, inclusive.
    pub first: Seq,
    /// Last position, inclusive; never less than `first`.
    pub last: Seq,
}

impl SeqRange {
    /// The range from `first` to `last`, both inclusive; `None` when it would be empty or start
    /// before the first message.
    pub fn new(first: Seq, last: Seq) -> Option<Self> {
        (first >= Seq::FIRST && first <= last).then_some(Self { first, last })
    }

    /// The range that holds one position.
    pub fn single(seq: Seq) -> Self {
        Self {
            first: seq,
            last: seq,
        }
    }

    /// How many positions the range holds; at least 1.
    pub fn len(&self) -> u64 {
        u64::from(self.last.0.saturating_sub(self.first.0)) + 1
    }

    /// Always false: a range holds at least one position.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether `seq` lies in the range.
    pub fn contains(&self, seq: Seq) -> bool {
        self.first <= seq && seq <= self.last
    }

    /// Whether `other` lies wholly in the range.
    pub fn covers(&self, other: &SeqRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// The positions that both ranges hold.
    pub fn intersect(&self, other: &SeqRange) -> Option<SeqRange> {
        SeqRange::new(self.first.max(other.first), self.last.min(other.last))
    }
}

impl fmt::Display for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}
