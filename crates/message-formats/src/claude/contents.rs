//! Contents of messages that are not in memory.

use std::hash::{DefaultHasher, Hash as _, Hasher};
use std::io;

use memory_model::{EntryKind, Message, Part, Role};

/// Hashes of the parts of messages, by which a message with a part can be found.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Hash of each part, in the order of the messages.
    parts: Vec<u64>,
    /// Number of parts up to the end of each message.
    ends: Vec<u32>,
}

impl Contents {
    /// Adds the parts of a message. Notes are never searched for, so they have none.
    pub(super) fn push(&mut self, message: &Message) {
        if message.kind == EntryKind::Message {
            let parts = message.parts.iter();
            self.parts
                .extend(parts.map(|part| hash(message.role, part)));
        }
        self.ends.push(self.parts.len() as u32);
    }

    /// Returns the messages that may have the same role and parts as a message, latest first.
    pub(super) fn with_all_of(&self, message: &Message) -> impl Iterator<Item = usize> {
        let parts = message.parts.iter();
        let wanted: Vec<u64> = parts.map(|part| hash(message.role, part)).collect();
        let has_all = move |at: &usize| self.of(*at) == wanted;
        (0..self.ends.len()).rev().filter(has_all)
    }

    /// Returns the messages that may have a role and a part.
    pub(super) fn with(&self, role: Role, part: &Part) -> impl Iterator<Item = usize> {
        let wanted = hash(role, part);
        let has = move |at: &usize| self.of(*at).contains(&wanted);
        (0..self.ends.len()).filter(has)
    }

    fn of(&self, at: usize) -> &[u64] {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.parts.get(start..end(at)).unwrap_or_default()
    }
}

/// Returns the hash of a message's content and time.
pub(super) fn whole_hash(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.created_at.0.hash(&mut hasher);
    for part in &message.parts {
        hash(message.role, part).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns the hash of a part. Calls and results with the same id have the same hash.
fn hash(role: Role, part: &Part) -> u64 {
    let mut hasher = Hashed(DefaultHasher::new());
    (role as u8).hash(&mut hasher.0);
    match part {
        Part::ToolCall { id, .. } => ("call", id).hash(&mut hasher.0),
        Part::ToolResult { call_id, .. } => ("result", call_id).hash(&mut hasher.0),
        Part::Text { text } => text.hash(&mut hasher.0),
        // Hashing does not fail.
        other => drop(serde_json::to_writer(&mut hasher, other)),
    }
    hasher.0.finish()
}

struct Hashed(DefaultHasher);

impl io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
