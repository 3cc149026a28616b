#![doc = include_str!("../README.md")]

mod blocks;
mod claude;
mod detect;
mod error;
mod jsonl;
mod lines;
mod pi;
mod raw;
mod read;
mod session;
#[cfg(feature = "testing")]
pub mod testing;

use std::collections::BTreeMap;
use std::fmt;

use memory_model::{EntryKind, Message, SessionKey};

pub use detect::detect;
pub use error::{Error, ErrorKind};
pub use read::{read, read_file};

/// A format of transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Claude Code's session files.
    ClaudeCode,
    /// pi's session files, linear (version 1) or a tree (version 3).
    Pi,
    /// Plain JSON lines: the export format, or as little as `{"role":"user","content":"…"}`.
    Jsonl,
}

impl Format {
    /// The format's name: `claude-code`, `pi` or `jsonl`.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Pi => "pi",
            Format::Jsonl => "jsonl",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How to read a transcript.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// What errors call the source; default "the transcript". [`read_file`] takes the path.
    pub name: String,
    /// The session of plain JSON lines that name none; default: `jsonl-` and 16 hex digits of the
    /// first line's SHA-256.
    pub session: Option<String>,
    /// Lines of more bytes than this are counted as `too_long` and passed over; default 256 MiB.
    /// It bounds the memory that a line takes, and a source without end: reading stops in a line
    /// that is four times as long, and in a source whose format does not show in this many bytes.
    pub max_line_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            name: "the transcript".to_owned(),
            session: None,
            max_line_bytes: 256 << 20,
        }
    }
}

impl ReadOptions {
    /// Sets what errors call the source.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the session of plain JSON lines that name none.
    pub fn with_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the longest line that is read, in bytes.
    pub fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }
}

/// What a transcript holds.
///
/// Reading is stable while a source grows: what is read of its first n lines is, session by
/// session, the beginning of what is read of all of it, ids included.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Transcript {
    /// The format that was found.
    pub format: Format,
    /// The conversations in file order, the file's first root conversation first. Empty when no
    /// line yet says which session it belongs to.
    pub sessions: Vec<SessionLog>,
    /// Number of lines that did not become messages, by kind: a line type that is no part of a
    /// conversation (`progress`, `file-history-snapshot`, `queue-operation`), or `invalid_json`,
    /// `invalid_utf8`, `too_long`, `not_an_object`, `incomplete` (a last line still being
    /// written), `no_session` (lines of a source that does not yet say whose they are),
    /// `unknown_role` (a plain line whose role is missing or none of ours; a note keeps it).
    pub skipped: BTreeMap<String, u64>,
    /// Which lines may have been part of the conversation and did not become messages: the first
    /// 100.
    pub warnings: Vec<Warning>,
    /// How many lines the source has, empty ones left out.
    pub lines: u64,
}

impl Transcript {
    /// Whether lines that may have been part of the conversation did not become messages.
    pub fn lost_any(&self) -> bool {
        self.skipped
            .keys()
            .any(|kind| !claude::NOISE.contains(&kind.as_str()))
    }
}

/// A line that did not become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The line, counted from 1.
    pub line: u64,
    /// The kind under which [`Transcript::skipped`] counts it.
    pub kind: String,
}

/// One conversation of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLog {
    /// The session, from the transcript's content.
    pub key: SessionKey,
    /// How the conversation began.
    pub origin: Origin,
    /// Messages and notes in order, each with an external id that is unique in the conversation.
    pub messages: Vec<Message>,
    /// How many lines were there before, under the same id and with the same content.
    pub duplicates: u64,
}

impl SessionLog {
    /// How many of the entries are notes.
    pub fn notes(&self) -> usize {
        let notes = self.messages.iter();
        notes
            .filter(|message| message.kind == EntryKind::Note)
            .count()
    }
}

/// How a conversation began.
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
