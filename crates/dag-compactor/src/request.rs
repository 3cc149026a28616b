//! The user's running request, which stays as it is until the next one comes.

use std::sync::Arc;

use compaction_plan::Room;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq};

use crate::policy::DagPolicy;

/// Whether an entry is a message with which a user opens a turn: it has text and no tool result.
pub(crate) fn is_request(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { text } if !text.is_empty());
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    entry.kind == EntryKind::Message
        && entry.role == Role::User
        && entry.parts.iter().any(is_text)
        && !entry.parts.iter().any(is_result)
}

/// Which message is the running request, as far as the newest entries tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRule {
    place: Place,
    /// Maximum cost of an atom that is protected for the request in it, in tokens.
    max_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the fresh tail, or requests are not protected.
    Elsewhere,
    /// At this position.
    At(Seq),
    /// Before the entries that were looked at, if anywhere: the newest message that looks like one.
    Earlier,
}

impl RequestRule {
    /// The rule of a pass whose fresh tail begins at `tail`.
    pub(crate) fn new(
        policy: &DagPolicy,
        room: Option<Room>,
        newest: &[Arc<LogEntry>],
        tail: Seq,
    ) -> Self {
        let found = newest.iter().rev().find(|entry| is_request(entry));
        let place = match found.map(|entry| entry.seq) {
            _ if !policy.keep_request => Place::Elsewhere,
            Some(seq) if seq >= tail => Place::Elsewhere,
            Some(seq) => Place::At(seq),
            None => Place::Earlier,
        };
        let whole = room.map(|room| room.tokens);
        Self {
            place,
            max_tokens: whole
                .or(policy.max_source_tokens)
                .map_or(u64::MAX, |whole| whole / 4),
        }
    }

    /// Whether a message at this position may be the request.
    pub(crate) fn looks_at(&self, seq: Seq) -> bool {
        match self.place {
            Place::Elsewhere => false,
            Place::At(place) => seq == place,
            Place::Earlier => true,
        }
    }

    /// Whether an atom of this cost stays as it is because it holds the request.
    pub(crate) fn protects(&self, tokens: u64) -> bool {
        tokens <= self.max_tokens
    }
}

/// What may be the running request, and everything behind it. Whether it is the newest request is known only when a
/// newer one comes, or nothing more.
#[derive(Debug)]
pub(crate) struct Held<T>(pub(crate) Vec<T>);

impl<T> Held<T> {
    /// Holds what may be the request and what follows it. Hands on everything else, and what was held once a newer
    /// one comes: that is ordinary messages.
    pub(crate) fn take(&mut self, item: T, may_be_request: bool, mut hand_on: impl FnMut(T)) {
        if may_be_request {
            self.0.drain(..).for_each(&mut hand_on);
        }
        match may_be_request || !self.0.is_empty() {
            true => self.0.push(item),
            false => hand_on(item),
        }
    }
}
