//! Pointers into the log, which compaction items and the ids of responses carry.
//!
//! The first line of a compaction item's text is a pointer. Anybody can read the text behind it, and the server finds
//! the messages that the text replaced.

use std::collections::HashMap;

use agent_memory::model::{Hash, LogEntry};
use agent_memory::{Message, Part, Role, Seq, SeqRange, Session};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::output::without_markers;

/// Markers of text that agent-memory gave to an agent. Readers of transcripts keep such text as a note.
const BEGIN: &str = "<agent-memory> ";
const END: &str = "\n</agent-memory>";

/// Prefix of the ids of responses.
const RESPONSE: &str = "resp_";

/// A range of messages from the first on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pointer {
    pub(super) session: String,
    first: u32,
    pub(super) last: u32,
    /// Hash over the hashes of these messages, in order.
    chain: Hash,
}

impl Pointer {
    pub(super) fn new(session: &Session, last: Seq, chain: Hash) -> Self {
        Self {
            session: session.key().to_string(),
            first: Seq::FIRST.0,
            last: last.0,
            chain,
        }
    }

    /// Returns the text of a compaction item.
    pub(super) fn mark(&self, text: &str) -> Result<String, serde_json::Error> {
        // No letters of a key can end the line or the marker.
        let header = serde_json::to_string(self)?.replace('<', "\\u003c");
        let text = without_markers(text);
        Ok(format!("{BEGIN}{header}\n{}{END}", text.trim_end()))
    }

    /// Returns the pointer and the text of an item that [`mark`](Self::mark) made.
    pub(super) fn of_item(item: &Value) -> Option<(Self, &str)> {
        let kind = item.get("type")?.as_str()?;
        if !["compaction", "compaction_summary", "context_compaction"].contains(&kind) {
            return None;
        }
        let (header, text) = item.get("encrypted_content")?.as_str()?.split_once('\n')?;
        let pointer = serde_json::from_str(header.strip_prefix(BEGIN)?).ok()?;
        Some((pointer, text.strip_suffix(END).unwrap_or(text)))
    }

    /// Returns the id of a response, from which [`of_response`](Self::of_response) reads the pointer.
    pub(super) fn response(&self) -> Result<String, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        Ok(format!("{RESPONSE}{}", URL_SAFE_NO_PAD.encode(text)))
    }

    pub(super) fn of_response(id: &str) -> Option<Self> {
        let text = URL_SAFE_NO_PAD.decode(id.strip_prefix(RESPONSE)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Returns whether the pointer names these messages.
    pub(super) fn names(&self, beginning: &Beginning) -> bool {
        self.first == Seq::FIRST.0 && self.chain == beginning.chain
    }
}

/// The beginning of a session's log.
#[derive(Default)]
pub(super) struct Beginning {
    pub(super) chain: Hash,
    /// The last entry.
    pub(super) last: Option<LogEntry>,
    /// Number of messages with each content.
    known: HashMap<Hash, usize>,
}

impl Beginning {
    /// Reads the entries up to a position. Their contents are counted if `compared` is true.
    pub(super) async fn read(
        session: &Session,
        last: Seq,
        compared: bool,
    ) -> Result<Self, agent_memory::Error> {
        let mut beginning = Self::default();
        beginning
            .read_on(session, Seq::FIRST, last, compared)
            .await?;
        Ok(beginning)
    }

    /// Returns the hash over the entries up to a position, of which this beginning is a part.
    pub(super) async fn chain_to(
        mut self,
        session: &Session,
        last: Seq,
    ) -> Result<Hash, agent_memory::Error> {
        let first = self
            .last
            .as_ref()
            .map_or(Seq::FIRST, |last| last.seq.next());
        self.read_on(session, first, last, false).await?;
        Ok(self.chain)
    }

    async fn read_on(
        &mut self,
        session: &Session,
        first: Seq,
        last: Seq,
        compared: bool,
    ) -> Result<(), agent_memory::Error> {
        let mut rest = SeqRange::new(first, last);
        while let Some(range) = rest {
            let page = session.entries_in(range).await?;
            rest = page.next;
            for entry in page.items {
                self.chain = self.chain.chain(entry.hash);
                if compared {
                    *self.known.entry(likeness(&entry.message)).or_default() += 1;
                }
                self.last = Some(entry);
            }
        }
        Ok(())
    }

    /// Keeps the messages that the beginning does not have.
    pub(super) fn unknown(&mut self, messages: Vec<Message>) -> Vec<Message> {
        let is_new = |message: &Message| match self.known.get_mut(&likeness(message)) {
            Some(count @ 1..) => {
                *count -= 1;
                false
            }
            _ => true,
        };
        messages.into_iter().filter(is_new).collect()
    }
}

/// Returns the hash of a message's role and parts.
pub(super) fn content(message: &Message) -> Hash {
    hash(message.role, &message.parts)
}

/// Returns a hash that is the same for two readings of a message. A transcript may have the arguments of a call as a
/// text, and more facts about a result.
fn likeness(message: &Message) -> Hash {
    let named = |part: &Part| match part {
        Part::ToolCall { id, .. } => json!({"call": id}),
        Part::ToolResult { call_id, .. } => json!({"result": call_id}),
        part => json!(part),
    };
    let parts: Vec<Value> = message.parts.iter().map(named).collect();
    hash(message.role, &parts)
}

fn hash(role: Role, parts: &impl Serialize) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(role.as_str());
    hasher.update([0]);
    hasher.update(serde_json::to_vec(parts).unwrap_or_default());
    Hash(hasher.finalize().into())
}
