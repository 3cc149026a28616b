//! Entries of a conversation, as read from a source.

use std::borrow::Cow;

use memory_model::{EntryKind, Message};

/// What is known of an entry of a conversation without reading its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryHead<'a> {
    /// External id.
    pub id: Option<&'a str>,
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Whether earlier versions passed the record over.
    pub passed_over: bool,
    /// Whether the record has neither an id nor a time. Only its place in the source tells it from an equal record, so
    /// its external id was made from its text and place: see [`MadeId`](crate::MadeId).
    pub by_place: bool,
}

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadEntry<'a> {
    /// The message or note.
    pub message: Cow<'a, Message>,
    /// The earlier reading of its record, if this version reads the record differently.
    pub earlier: Option<Cow<'a, EarlierReading>>,
}

/// Reading of a record by earlier versions of a format, if this version reads the record differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlierReading {
    /// Another message or note, under the same external id.
    Entry(Box<Message>),
    /// No entry: the record was passed over.
    PassedOver,
}
