//! The conversations of a source.

use memory_model::{EntryKind, Message, SessionKey};

use crate::Report;

/// Everything that was read from a source.
///
/// Reading is stable while a source grows: what is read from its first n lines is, session by
/// session, the beginning of what is read from all of it, ids included.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Transcript {
    /// Name of the format, such as `claude-code`.
    pub format: String,
    /// The conversations in file order, the file's first root conversation first. Empty when no
    /// line yet says which session it belongs to.
    pub sessions: Vec<SessionLog>,
    /// Records that did not become messages.
    pub report: Report,
}

/// One conversation of a transcript. [`SessionBuilder`](crate::SessionBuilder) makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLog {
    /// The session's key, taken from the transcript's content.
    pub key: SessionKey,
    /// Origin of the conversation.
    pub origin: Origin,
    /// Messages and notes in order, each with an external id that is unique in the conversation.
    pub messages: Vec<Message>,
    /// Number of lines that repeat an earlier line with the same id and content.
    pub duplicates: u64,
}

impl SessionLog {
    /// Returns the number of notes among the entries.
    pub fn notes(&self) -> usize {
        let notes = self.messages.iter();
        notes
            .filter(|message| message.kind == EntryKind::Note)
            .count()
    }
}

/// Origin of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// On its own.
    Root,
    /// As another course of a conversation: it shares the parent's entries up to a point.
    Fork {
        /// The conversation it shares.
        parent: SessionKey,
        /// External id of the last shared entry; `None` when nothing is shared.
        after: Option<String>,
    },
    /// As a sub-agent's conversation, which shares nothing.
    Spawn {
        /// The conversation that started it. It may be missing in this transcript (a sub-agent's
        /// own file).
        parent: SessionKey,
        /// Id of the tool call that started it, where one was found.
        call: Option<String>,
        /// External id of the parent's entry that holds the call.
        after: Option<String>,
    },
}
