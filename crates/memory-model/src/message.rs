//! Messages: the entries of a log.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use token_estimate::Role;

use crate::hash::{FieldHasher, Hash};
use crate::ids::Seq;
use crate::json::RawJson;
use crate::part::{MAX_PART_DEPTH, Part, nest_too_deeply};
use crate::time::Timestamp;

/// Whether a log entry is part of the conversation or only of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A message: it may be sent to a model.
    Message,
    /// A note (a model change, a label, a rival's compaction summary): kept and exported, never
    /// sent to a model as a message, and it costs no tokens.
    Note,
}

impl EntryKind {
    /// The kind's name as the export format writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Message => "message",
            EntryKind::Note => "note",
        }
    }

    /// Reads a kind's name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "message" => Some(EntryKind::Message),
            "note" => Some(EntryKind::Note),
            _ => None,
        }
    }
}

/// Which turn of which agent loop a message belongs to, where the host knows (phi-core's turn id).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnId {
    /// The loop's name.
    pub loop_id: String,
    /// The turn's index in its loop.
    pub turn: u32,
}

/// A message, or a note, as it was said: what the log keeps verbatim.
///
/// Once stored it has a position, a cost and a hash: see [`LogEntry`].
///
/// ```
/// use memory_model::Message;
///
/// let entry = Message::user("Deploy only after the tests are green.");
/// assert_eq!(entry.text(), "Deploy only after the tests are green.");
/// ```
///
/// Any self-describing format can hold a message; times are in microseconds. The export format is
/// another one: see [`LogEntry::to_export`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Message or note; a message when it is missing.
    #[serde(default = "message_kind")]
    pub kind: EntryKind,
    /// Who speaks.
    pub role: Role,
    /// The source's own id of the line: the key that makes importing twice harmless. `None`
    /// stores the entry unconditionally.
    #[serde(default)]
    pub external_id: Option<String>,
    /// The model response that the line belongs to; lines of one response share it and are joined
    /// when grouped and rendered.
    #[serde(default)]
    pub response: Option<String>,
    /// The participant's name.
    #[serde(default)]
    pub name: Option<String>,
    /// The agent loop and turn, where the host knows them.
    #[serde(default)]
    pub turn: Option<TurnId>,
    /// When it was said. Times need not rise.
    #[serde(default)]
    pub created_at: Timestamp,
    /// The content.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Facts of the source that are not content, as a JSON object: model, usage, stop reason.
    #[serde(default)]
    pub meta: Option<RawJson>,
}

fn message_kind() -> EntryKind {
    EntryKind::Message
}

impl Message {
    /// A user's text.
    pub fn user(text: impl Into<String>) -> Message {
        Message::new(Role::User, vec![Part::text(text)])
    }

    /// The model's text.
    pub fn assistant(text: impl Into<String>) -> Message {
        Message::new(Role::Assistant, vec![Part::text(text)])
    }

    /// An instruction to the model.
    pub fn system(text: impl Into<String>) -> Message {
        Message::new(Role::System, vec![Part::text(text)])
    }

    /// A tool call by the model.
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

    /// The text that a tool returned.
    pub fn tool_result(call_id: impl Into<String>, text: impl Into<String>) -> Message {
        let part = Part::ToolResult {
            call_id: call_id.into(),
            content: crate::part::ResultContent::Text(text.into()),
            is_error: None,
        };
        Message::new(Role::Tool, vec![part])
    }
}

impl Message {
    /// A message of `parts`; all else is empty and the time is 0 until set.
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

    /// A note.
    pub fn note(role: Role, parts: Vec<Part>) -> Self {
        Self {
            kind: EntryKind::Note,
            ..Self::new(role, parts)
        }
    }

    /// Sets the source's id of the line.
    pub fn with_external_id(mut self, id: impl Into<String>) -> Self {
        self.external_id = Some(id.into());
        self
    }

    /// Sets the model response that the line belongs to.
    pub fn with_response(mut self, response: impl Into<String>) -> Self {
        self.response = Some(response.into());
        self
    }

    /// Sets the participant's name.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the agent loop and the turn.
    pub fn with_turn(mut self, loop_id: impl Into<String>, turn: u32) -> Self {
        self.turn = Some(TurnId {
            loop_id: loop_id.into(),
            turn,
        });
        self
    }

    /// Sets the time.
    pub fn with_created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Sets the source's facts that are not content.
    pub fn with_meta(mut self, meta: RawJson) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The message's text parts, joined by newlines.
    pub fn text(&self) -> String {
        join_texts(&self.parts)
    }

    /// The bytes that are stored: the parts as a JSON list.
    ///
    /// # Errors
    /// When the parts nest deeper than [`crate::MAX_PART_DEPTH`]: they would not read back the same.
    pub fn body(&self) -> Result<Vec<u8>, serde_json::Error> {
        if self.nests_too_deeply() {
            return Err(serde::ser::Error::custom(format!(
                "the message's parts nest deeper than {MAX_PART_DEPTH} levels: write the inner \
                 results as text"
            )));
        }
        serde_json::to_vec(&self.parts)
    }

    /// Whether the parts nest deeper than [`crate::MAX_PART_DEPTH`]. Only parts that a program made
    /// itself can; a log does not take them.
    pub fn nests_too_deeply(&self) -> bool {
        nest_too_deeply(&self.parts)
    }

    /// The message's hash: SHA-256 of its stored bytes and of every field beside them.
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

/// A stored log entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Position in the log.
    pub seq: Seq,
    /// What was stored.
    pub message: Message,
    /// Cost in tokens by the conversation's estimator; 0 for a note.
    pub tokens: u64,
    /// Sum of `tokens` from the first entry through this one.
    pub running: u64,
    /// Hash over the stored bytes.
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

    /// The entry as the export format writes it: one JSON object.
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
            created_at: self.created_at.to_string(),
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
    created_at: String,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawJson>,
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
