//! The conversations of a source.

use std::collections::BTreeMap;

use memory_model::{EntryKind, Message, RawJson, SessionKey};

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
    /// Summaries that the source holds, in order. Their entries are among `messages` too, mostly as notes.
    pub summaries: Vec<SourceSummary>,
    /// Whether the source names the session. Otherwise the key is made from its first record, and another source that begins
    /// with the same record has the same key.
    pub named: bool,
    /// Whether entries say which entry they follow. Then a source that leaves the course of a stored session is another
    /// branch of it.
    pub linked: bool,
    /// Whether this is the branch in use: of a conversation and its forks, the one that the source was last written to.
    pub in_use: bool,
    /// Other sessions that the source names further on, as it does after a resume: external id of the first entry of each, and
    /// its key.
    pub later_keys: Vec<(String, SessionKey)>,
    /// Session whose file this one was copied from before it continued on its own. Both files begin with the same entries.
    pub copied_from: Option<SessionKey>,
    /// Earlier readings of entries that this version reads otherwise, by external id. A store that holds such an entry
    /// has it already.
    pub earlier: BTreeMap<String, EarlierReading>,
}

/// Reading of a record by earlier versions of a format, if this version reads it otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EarlierReading {
    /// Another message or note, under the same external id.
    Entry(Box<Message>),
    /// Nothing: the record was passed over.
    PassedOver,
}

/// A summary that the program which wrote a transcript shows in the place of older entries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceSummary {
    /// External id of the entry that holds it.
    pub entry: String,
    /// Its text, not blank.
    pub text: String,
    /// What it stands for.
    pub scope: SourceScope,
    /// What the program keeps beside the text, such as lists of files.
    pub details: Option<RawJson>,
}

/// What a summary of a transcript stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceScope {
    /// The entries before one that is kept, in its own conversation.
    Before {
        /// External id of the first entry that is kept. `None` where the source does not say: everything before
        /// the entry that holds the summary.
        kept_from: Option<String>,
    },
    /// What a branch did that was left, behind the entry that both share.
    Branch {
        /// External id of the last entry of that branch; `None` where the source does not say.
        left_at: Option<String>,
    },
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
