//! Typed ids and positions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Defines an id type that wraps a string, with the traits that every id needs.
macro_rules! string_id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Creates the id or name from its text, unchanged.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the id or name as text.
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
    /// Name that the calling program gives a conversation, such as `telegram:42` or a transcript's session id.
    SessionKey
}
impl SessionKey {
    /// Beginning of the keys of sessions that the memory itself keeps, such as the notes of a model. No source of
    /// messages may name such a session.
    pub const RESERVED: &'static str = "agent-memory:";

    /// Returns whether the key begins with [`RESERVED`](Self::RESERVED).
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(Self::RESERVED)
    }
}

string_id! {
    /// Id of a summary: `sum_` and 16 hex digits of the summary's hash.
    SummaryId
}
string_id! {
    /// Name of a view, which determines the form of each message in a context: `dag`, `handoff`, `blocks`, or any name
    /// that the caller chooses.
    ViewName
}
string_id! {
    /// Name and version of a trim policy, such as `tool-output-lines/50@1`.
    ///
    /// A trim policy shortens a message by a fixed rule. A view stores only the name, because the result depends on the
    /// name and the message alone.
    TrimPolicyId
}
string_id! {
    /// Name and version of the form in which a context shows summaries, such as `summary-xml@3`.
    ///
    /// The cost of a summary depends on this form, so a summary records both.
    RenderingId
}

/// Number of a conversation in its store: positive and never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConversationId(pub u32);

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Version of a view: the number of times that its spans were replaced. 0 for a view that was never compacted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ViewVersion(pub u64);

impl ViewVersion {
    /// Returns the version after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for ViewVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Position of a message in the log of its conversation. Positions begin at 1 and have no gaps.
///
/// `Seq(0)` is the position before the first message. No message has it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u32);

impl Seq {
    /// Position before the first message. It is also the last position of an empty log.
    pub const NONE: Seq = Seq(0);
    /// Position of the first message of every log.
    pub const FIRST: Seq = Seq(1);

    /// Returns the position after this one; the largest position stays the same.
    pub fn next(self) -> Self {
        Seq(self.0.saturating_add(1))
    }

    /// Returns the position before this one; `Seq(0)` stays `Seq(0)`.
    pub fn prev(self) -> Self {
        Seq(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names an entry of a log: by its position, or by the external id that its source gave it. A [`Seq`] and a text convert
/// into a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryRef {
    /// Position in the log.
    Position(Seq),
    /// External id: see [`Message::external_id`](crate::Message::external_id).
    External(String),
}

impl From<Seq> for EntryRef {
    fn from(seq: Seq) -> Self {
        Self::Position(seq)
    }
}

impl From<&str> for EntryRef {
    fn from(id: &str) -> Self {
        Self::External(id.to_owned())
    }
}

impl From<String> for EntryRef {
    fn from(id: String) -> Self {
        Self::External(id)
    }
}

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(seq) => seq.fmt(f),
            Self::External(id) => f.pad(id),
        }
    }
}

/// A range of positions in a log, both ends inclusive. It holds at least one position, and its first position is at
/// least 1. Constructors and serde refuse any other range, and the ends cannot be changed.
///
/// `range.first` and `range.last` are the ends: the range dereferences to [`RangeEnds`].
///
/// ```
/// use memory_model::{Seq, SeqRange};
///
/// let range = SeqRange::new(Seq(3), Seq(5)).unwrap();
/// assert_eq!((range.first, range.last, range.len()), (Seq(3), Seq(5), 3));
/// assert_eq!(SeqRange::new(Seq(5), Seq(3)), None);
/// assert!(serde_json::from_str::<SeqRange>(r#"{"first":5,"last":3}"#).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "RangeEnds", into = "RangeEnds")]
pub struct SeqRange(RangeEnds);

/// First and last position of a [`SeqRange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RangeEnds {
    /// First position of the range, inclusive.
    pub first: Seq,
    /// Last position of the range, inclusive.
    pub last: Seq,
}

impl std::ops::Deref for SeqRange {
    type Target = RangeEnds;

    fn deref(&self) -> &RangeEnds {
        &self.0
    }
}

impl From<SeqRange> for RangeEnds {
    fn from(range: SeqRange) -> Self {
        range.0
    }
}

impl TryFrom<RangeEnds> for SeqRange {
    type Error = String;

    fn try_from(ends: RangeEnds) -> Result<Self, String> {
        let RangeEnds { first, last } = ends;
        Self::new(first, last).ok_or_else(|| {
            format!("{first} to {last} is not a range of messages: it is empty or begins before 1")
        })
    }
}

impl SeqRange {
    /// Returns the range from `first` to `last`, both inclusive; `None` if it would be empty or begin
    /// before the first message.
    pub fn new(first: Seq, last: Seq) -> Option<Self> {
        (first >= Seq::FIRST && first <= last).then_some(Self(RangeEnds { first, last }))
    }

    /// Returns the range that holds only this position. `Seq(0)`, which is no position of a message, gives the range of
    /// position 1.
    pub fn single(seq: Seq) -> Self {
        let seq = seq.max(Seq::FIRST);
        Self(RangeEnds {
            first: seq,
            last: seq,
        })
    }

    /// Returns the number of positions in the range; at least 1.
    pub fn len(&self) -> u64 {
        u64::from(self.last.0.saturating_sub(self.first.0)) + 1
    }

    /// Always returns false, because a range holds at least one position.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns whether `seq` lies in the range.
    pub fn contains(&self, seq: Seq) -> bool {
        self.first <= seq && seq <= self.last
    }

    /// Returns whether `other` lies wholly in the range.
    pub fn covers(&self, other: &SeqRange) -> bool {
        self.first <= other.first && other.last <= self.last
    }

    /// Returns the positions that are in both ranges; `None` if there are none.
    pub fn intersect(&self, other: &SeqRange) -> Option<SeqRange> {
        SeqRange::new(self.first.max(other.first), self.last.min(other.last))
    }
}

impl fmt::Display for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_ranges_are_refused_by_constructors_and_serde() {
        for (first, last) in [(0, 0), (0, 3), (4, 3)] {
            assert_eq!(SeqRange::new(Seq(first), Seq(last)), None);
            let json = format!(r#"{{"first":{first},"last":{last}}}"#);
            let error = serde_json::from_str::<SeqRange>(&json).unwrap_err();
            assert!(
                error.to_string().contains("is not a range of messages"),
                "{error}"
            );
        }
        let range = SeqRange::new(Seq(2), Seq(4)).unwrap();
        let json = serde_json::to_string(&range).unwrap();
        assert_eq!(json, r#"{"first":2,"last":4}"#);
        assert_eq!(serde_json::from_str::<SeqRange>(&json).unwrap(), range);
        assert_eq!(SeqRange::single(Seq(0)), SeqRange::single(Seq(1)));
    }
}
