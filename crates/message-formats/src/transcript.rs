//! The conversations of a source.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use memory_model::{EntryKind, Message, RawJson, SessionKey, Timestamp};

use crate::entry::EntryHead;
use crate::made_id::is_by_place;
use crate::overflow::Overflowed;
use crate::report::Report;

/// The conversations of a source, and the report on their reading.
///
/// Reading is stable while a source grows. Each session that is read from the first n lines is the beginning of the
/// same session as it is read from all lines, ids included.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Transcript {
    /// Name of the format, such as `claude-code`.
    pub format: String,
    /// Conversations in file order. The file's first root conversation comes first. The list is empty if no line names
    /// its session yet.
    pub sessions: Vec<SessionLog>,
    /// Counts of the records that did not become messages.
    pub report: Report,
}

impl Transcript {
    /// Creates a transcript of conversations that a program collected with
    /// [`SessionBuilder`](crate::SessionBuilder).
    pub fn new(format: impl Into<String>, sessions: Vec<SessionLog>) -> Self {
        Self {
            format: format.into(),
            sessions,
            report: Report::default(),
        }
    }
}

/// One conversation of a transcript, as [`SessionBuilder`](crate::SessionBuilder) makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLog {
    /// Key of the session, taken from the transcript's content.
    pub key: SessionKey,
    /// Origin of the conversation.
    pub origin: Origin,
    /// Messages and notes in order. Each has an external id that is unique in the conversation.
    ///
    /// With [`ReadOptions::with_overflow`](crate::ReadOptions::with_overflow), the list has only the first messages of
    /// a large source. [`heads`](Self::heads) and [`entry`](Self::entry) show all.
    pub messages: Vec<Message>,
    /// Messages behind those in `messages`, in a temporary file.
    pub(crate) overflowed: Overflowed,
    /// Number of lines that repeat an earlier line with the same id and content.
    pub duplicates: u64,
    /// Summaries in the source, in order. Their entries are also in `messages`, mostly as notes.
    pub summaries: Vec<SourceSummary>,
    /// Whether the source names the session.
    ///
    /// Otherwise the key is made from the first record. Another source that begins with the same record then has the
    /// same key.
    pub named: bool,
    /// Keys that the source would have if its first record were written with other white space, escapes or order of
    /// keys, as the common libraries write it. Empty if the source names the session.
    pub other_keys: Vec<SessionKey>,
    /// Whether entries name the entry that they follow.
    ///
    /// A source that leaves the course of a stored session is then another branch of that session.
    pub linked: bool,
    /// Whether this is the branch in use: the source was last written to this one of the conversation and its forks.
    pub in_use: bool,
    /// External id of the entry after which records that are appended to the source may be read alone: see
    /// [`Formats::read_appended`](crate::Formats::read_appended). `None` if they refer to more than that entry.
    pub last: Option<String>,
    /// Sessions that the source names later, for example after a resume. Each has the external id of its first entry,
    /// and its key.
    pub later_keys: Vec<(String, SessionKey)>,
    /// Session whose file this one was copied from before it continued on its own. Both files begin with the same entries.
    pub copied_from: Option<SessionKey>,
    /// Session under the name of which this fork continues, once it is the branch [in use](Self::in_use): its agent continues this
    /// branch under the name of that session.
    pub stands_for: Option<SessionKey>,
    /// Time since which the source is in this state, if it tells. An older state changes no branch in use.
    pub since: Option<Timestamp>,
    /// Whether the source has all entries of the branch in use. An entry of an earlier state that it lacks was taken
    /// back, even if nothing follows.
    pub whole: bool,
    /// Whether this fork is a session of its own, even if no entry of another branch follows the one that it begins
    /// behind. A store then keeps the same sessions for any order in which the files of a conversation are imported.
    pub is_separate: bool,
    /// External ids that the source gives, although they have the form of [`MadeId`](crate::MadeId).
    pub(crate) given: BTreeSet<String>,
}

/// A summary that the writing program shows in the place of older entries.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceSummary {
    /// External id of the entry with the summary.
    pub entry: String,
    /// Text of the summary. It is not blank.
    pub text: String,
    /// Entries that the summary replaces.
    pub scope: SourceScope,
    /// Further data that the program keeps with the text, such as lists of files.
    pub details: Option<RawJson>,
}

/// Entries that a summary of a transcript replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceScope {
    /// The entries of the same conversation that come before the first kept one.
    Before {
        /// External id of the first kept entry. If the source does not name one, the summary replaces all entries
        /// before its own.
        kept_from: Option<String>,
    },
    /// The entries of a branch that was left, from the last entry that both branches share.
    Branch {
        /// External id of the branch's last entry, or `None` if the source does not name it.
        left_at: Option<String>,
    },
}

impl SessionLog {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.messages.len() + self.overflowed.len()
    }

    /// Returns whether the conversation has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what is known of an entry without reading its message.
    pub fn head(&self, at: usize) -> Option<EntryHead<'_>> {
        let Some(message) = self.messages.get(at) else {
            return self.overflowed.head(at - self.messages.len());
        };
        Some(EntryHead {
            id: message.external_id.as_deref(),
            kind: message.kind,
            by_place: is_by_place(message, &self.given),
        })
    }

    /// Returns what is known of all entries, in order.
    pub fn heads(&self) -> impl DoubleEndedIterator<Item = EntryHead<'_>> + ExactSizeIterator {
        (0..self.len()).map(|at| {
            self.head(at).unwrap_or(EntryHead {
                id: None,
                kind: EntryKind::Note,
                by_place: false,
            })
        })
    }

    /// Returns an entry, or `None` if there is none at this place.
    ///
    /// # Errors
    /// Fails if the temporary file with the messages of a large source cannot be read.
    pub fn entry(&self, at: usize) -> io::Result<Option<Cow<'_, Message>>> {
        let Some(message) = self.messages.get(at) else {
            let found = self.overflowed.read(at - self.messages.len())?;
            return Ok(found.map(Cow::Owned));
        };
        Ok(Some(Cow::Borrowed(message)))
    }

    /// Adds an entry of another conversation of the same source.
    pub fn push_entry(&mut self, log: &Self, at: usize) {
        let Some(message) = log.messages.get(at) else {
            return self
                .overflowed
                .adopt(&log.overflowed, at - log.messages.len());
        };
        if self.overflowed.len() > 0 {
            let by_place = is_by_place(message, &log.given);
            return self.overflowed.push(message, by_place);
        }
        if let Some(id) = message
            .external_id
            .as_ref()
            .filter(|id| log.given.contains(*id))
        {
            self.given.insert(id.clone());
        }
        self.messages.push(message.clone());
    }

    /// Returns the number of notes among the entries.
    pub fn notes(&self) -> usize {
        self.heads()
            .filter(|head| head.kind == EntryKind::Note)
            .count()
    }
}

/// Origin of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The conversation has no parent.
    Root,
    /// The conversation is another course of a conversation: it shares the parent's entries up to one of them.
    Fork {
        /// Conversation with the shared entries.
        parent: SessionKey,
        /// External id of the last shared entry, or `None` if no entry is shared.
        after: Option<String>,
    },
    /// The conversation is a sub-agent's, and shares no entries.
    Spawn {
        /// Conversation that started the sub-agent. This transcript may lack it, as a sub-agent's own file does.
        parent: SessionKey,
        /// Id of the tool call that started the sub-agent, if it was found.
        call: Option<String>,
        /// External id of the parent's entry with the call.
        after: Option<String>,
    },
}
