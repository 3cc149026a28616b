//! Entries of a conversation, as read from a source.

use memory_model::EntryKind;

/// What is known of an entry of a conversation without reading its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryHead<'a> {
    /// External id.
    pub id: Option<&'a str>,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Whether the record has neither an id nor a time. Only its place in the source tells it from an equal record, so
    /// its external id was made from its text and place: see [`MadeId`](crate::MadeId).
    pub by_place: bool,
}
