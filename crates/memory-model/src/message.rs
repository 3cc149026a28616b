//! Messages: the entries of a log.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use token_estimate::Role;

use crate::hash::{FieldHasher, Hash};
use crate::ids::Seq;
use crate::json::RawJson;
use crate::part::{MAX_PART_DEPTH, Part, have_same_values, nest_too_deeply};
use crate::time::Timestamp;

/// Kind of a log entry: message or note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A message: it may be sent to a model.
    Message,
    /// A note: a model change, a label, or a compaction summary of another program. It is kept and exported, but never
    /// sent to a model, and it costs 0 tokens.
    Note,
}

impl EntryKind {
    /// Returns the name of the kind in the export format.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Message => "message",
            EntryKind::Note => "note",
        }
    }

    /// Parses the name of a kind in the export format; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "message" => Some(EntryKind::Message),
            "note" => Some(EntryKind::Note),
            _ => None,
        }
    }
}

/// Turn to which a message belongs: the agent loop, and the number of the turn in the loop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnId {
    /// Name of the agent loop.
    pub loop_id: String,
    /// Index of the turn in the agent loop.
    pub turn: u32,
}

/// A message of a conversation, or a note about the conversation. A log keeps both verbatim.
///
/// A stored message is a [`LogEntry`], which adds a position, a cost and a hash.
///
/// ```
/// use memory_model::Message;
///
/// let entry = Message::user("Deploy only after the tests are green.");
/// assert_eq!(entry.text(), "Deploy only after the tests are green.");
/// ```
///
/// Any self-describing serde format can hold a message; times are in microseconds. The export format is different: see
/// [`LogEntry::to_export`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Whether this is a message or a note; serde reads a missing kind as a message.
    #[serde(default = "message_kind")]
    pub kind: EntryKind,
    /// Author of the message.
    pub role: Role,
    /// Id of the message in its source, such as the id of a transcript's line. A store ignores a second entry with the
    /// same id. An entry with `None` is always stored.
    #[serde(default)]
    pub external_id: Option<String>,
    /// Id of the model response to which the message belongs. Grouping and rendering join the messages with the same
    /// id.
    #[serde(default)]
    pub response: Option<String>,
    /// Name of the participant who wrote the message.
    #[serde(default)]
    pub name: Option<String>,
    /// Agent loop and turn of the message; `None` if they are unknown.
    #[serde(default)]
    pub turn: Option<TurnId>,
    /// Time of the message. A later message may have an earlier time.
    #[serde(default)]
    pub created_at: Timestamp,
    /// Content of the message: its parts, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Facts about the message that are not content, as a JSON object of its source: model, usage, stop reason.
    #[serde(default)]
    pub meta: Option<RawJson>,
}

fn message_kind() -> EntryKind {
    EntryKind::Message
}

/// Creates a user message with one text.
impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::user(text)
    }
}

/// Creates a user message with one text.
impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::user(text)
    }
}

impl Message {
    /// Creates a user message with one text.
    pub fn user(text: impl Into<String>) -> Message {
        Message::new(Role::User, vec![Part::text(text)])
    }

    /// Creates an assistant message with one text.
    pub fn assistant(text: impl Into<String>) -> Message {
        Message::new(Role::Assistant, vec![Part::text(text)])
    }

    /// Creates a system message with one text.
    ///
    /// A log treats a system message like any other message: a compaction summarizes it when it is old. Instructions at
    /// the beginning of every request do not belong in a log. Pass them to the session instead (`OpenSession::system`
    /// of `agent-memory`), which never shortens or summarizes them.
    pub fn system(text: impl Into<String>) -> Message {
        Message::new(Role::System, vec![Part::text(text)])
    }

    /// Creates an assistant message with one tool call.
    pub fn tool_call(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: RawJson,
    ) -> Message {
        let part = Part::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
        };
        Message::new(Role::Assistant, vec![part])
    }

    /// Creates a tool message with the result of the tool call `call_id`.
    pub fn tool_result(call_id: impl Into<String>, text: impl Into<String>) -> Message {
        result(call_id.into(), text.into(), None)
    }

    /// Creates a tool message with an error as the result of the tool call `call_id`.
    pub fn failed_result(call_id: impl Into<String>, text: impl Into<String>) -> Message {
        result(call_id.into(), text.into(), Some(true))
    }
}

impl Message {
    /// Creates a message of `parts`; all other fields are empty, and the time is 0 (unknown).
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            kind: EntryKind::Message,
            role,
            external_id: None,
            response: None,
            name: None,
            turn: None,
            created_at: Timestamp::default(),
            parts,
            meta: None,
        }
    }

    /// Creates a note: kept in the log, never sent to a model.
    pub fn note(role: Role, parts: Vec<Part>) -> Self {
        Self {
            kind: EntryKind::Note,
            ..Self::new(role, parts)
        }
    }

    /// Sets the id of the message in its source.
    #[must_use]
    pub fn with_external_id(mut self, id: impl Into<String>) -> Self {
        self.external_id = Some(id.into());
        self
    }

    /// Sets the id of the model response to which the message belongs.
    #[must_use]
    pub fn with_response(mut self, response: impl Into<String>) -> Self {
        self.response = Some(response.into());
        self
    }

    /// Sets the name of the participant who wrote the message.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the agent loop and the turn to which the message belongs.
    #[must_use]
    pub fn with_turn(mut self, loop_id: impl Into<String>, turn: u32) -> Self {
        self.turn = Some(TurnId {
            loop_id: loop_id.into(),
            turn,
        });
        self
    }

    /// Sets the time of the message.
    #[must_use]
    pub fn with_created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Sets the metadata of the message: JSON that is not part of its content.
    #[must_use]
    pub fn with_meta(mut self, meta: RawJson) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Returns the text parts of the message, joined by newlines.
    pub fn text(&self) -> String {
        join_texts(&self.parts)
    }

    /// Returns the content in the form that a store keeps: the parts as a JSON list, in bytes.
    ///
    /// # Errors
    /// If the parts nest deeper than [`crate::MAX_PART_DEPTH`], because reading them would not give the same parts.
    pub fn body(&self) -> Result<Vec<u8>, serde_json::Error> {
        if self.nests_too_deeply() {
            return Err(serde::ser::Error::custom(format!(
                "the message's parts nest deeper than {MAX_PART_DEPTH} levels: write the inner \
                 results as text"
            )));
        }
        serde_json::to_vec(&self.parts)
    }

    /// Returns whether the parts nest deeper than [`crate::MAX_PART_DEPTH`]. Parsed parts never do, but a program can
    /// build such parts. A store refuses them.
    pub fn nests_too_deeply(&self) -> bool {
        nest_too_deeply(&self.parts)
    }

    /// Returns whether two messages have the same kind, role, names, turn and content. JSON in the content and in the
    /// metadata is compared by its value: see [`RawJson::has_same_value`]. External ids and times are not compared.
    pub fn has_same_values(&self, other: &Self) -> bool {
        let meta = match (&self.meta, &other.meta) {
            (Some(one), Some(other)) => one.has_same_value(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let names = |one: &Self| (one.response.clone(), one.name.clone(), one.turn.clone());
        self.kind == other.kind
            && self.role == other.role
            && meta
            && names(self) == names(other)
            && have_same_values(&self.parts, &other.parts)
    }

    /// Computes the hash of the message: SHA-256 over `body`, the bytes of [`Message::body`], and every other field.
    pub fn hash(&self, body: &[u8]) -> Hash {
        let mut hasher = FieldHasher::new("agent-memory message 1");
        hasher.bytes(self.kind.as_str().as_bytes());
        hasher.bytes(self.role.as_str().as_bytes());
        hasher.optional(self.external_id.as_deref());
        hasher.optional(self.response.as_deref());
        hasher.optional(self.name.as_deref());
        hasher.optional(self.turn.as_ref().map(|turn| turn.loop_id.as_str()));
        hasher.number(self.turn.as_ref().map_or(-1, |turn| i64::from(turn.turn)));
        hasher.number(self.created_at.0);
        hasher.optional(self.meta.as_ref().map(RawJson::as_str));
        hasher.bytes(body);
        hasher.finish()
    }
}

/// An entry of a log, as a store returns it: a message or note with its position, cost and hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Position of the entry in the log.
    pub seq: Seq,
    /// The message or note.
    pub message: Message,
    /// Cost of the message, counted by the conversation's estimator, in tokens; 0 for a note.
    pub tokens: u64,
    /// Sum of the costs of all entries from the first through this one, in tokens.
    pub running: u64,
    /// Hash of the message: see [`Message::hash`].
    pub hash: Hash,
}

impl std::ops::Deref for LogEntry {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl LogEntry {
    /// Calls `f` with every readable text of the entry; see [`Part::visit_texts`].
    pub fn visit_texts<'a>(&'a self, f: &mut dyn FnMut(Cow<'a, str>)) {
        for part in &self.message.parts {
            part.visit_texts(f);
        }
    }

    /// Returns the entry in the export format: one JSON object.
    pub fn to_export(&self) -> ExportEntry<'_> {
        ExportEntry {
            seq: self.seq,
            kind: self.kind,
            external_id: self.external_id.as_deref(),
            response: self.response.as_deref(),
            role: self.role,
            name: self.name.as_deref(),
            turn: self.turn.as_ref(),
            parts: &self.parts,
            created_at: self.created_at.known().map(|at| at.to_string()),
            tokens: self.tokens,
            meta: self.meta.as_ref(),
        }
    }
}

/// A log entry in the export format.
#[derive(Debug, Serialize)]
pub struct ExportEntry<'a> {
    seq: Seq,
    kind: EntryKind,
    external_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'a str>,
    role: Role,
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a TurnId>,
    parts: &'a [Part],
    /// `null` if the time is unknown.
    created_at: Option<String>,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawJson>,
}

fn result(call_id: String, text: String, is_error: Option<bool>) -> Message {
    let content = crate::part::ResultContent::Text(text);
    let part = Part::ToolResult {
        call_id,
        content,
        is_error,
    };
    Message::new(Role::Tool, vec![part])
}

fn join_texts(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}
