//! The user's running request, which stays unchanged until the next request.

use std::sync::Arc;

use compaction_plan::Room;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq};

use crate::policy::DagPolicy;

/// Whether an entry is a user's message that opens a turn: it has text and no tool result.
pub(crate) fn is_request(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { text } if !text.is_empty());
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    entry.kind == EntryKind::Message
        && entry.role == Role::User
        && entry.parts.iter().any(is_text)
        && !entry.parts.iter().any(is_result)
}

/// Rule that finds the running request, from the last entries of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRule {
    place: RequestPosition,
    /// Maximum cost of an atom that is protected for the request in it, in tokens.
    max_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    /// The request is in the fresh tail, or requests are not protected.
    Elsewhere,
    /// The request is at this position.
    At(Seq),
    /// The request, if there is one, is before the entries that were read: the last message there that may be a
    /// request.
    Earlier,
}

impl RequestRule {
    /// Creates the rule of a pass with a fresh tail from `tail` on.
    pub(crate) fn new(
        policy: &DagPolicy,
        room: Option<Room>,
        newest: &[Arc<LogEntry>],
        tail: Seq,
    ) -> Self {
        let found = newest.iter().rev().find(|entry| is_request(entry));
        let place = match found.map(|entry| entry.seq) {
            _ if !policy.keep_request => RequestPosition::Elsewhere,
            Some(seq) if seq >= tail => RequestPosition::Elsewhere,
            Some(seq) => RequestPosition::At(seq),
            None => RequestPosition::Earlier,
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
            RequestPosition::Elsewhere => false,
            RequestPosition::At(place) => seq == place,
            RequestPosition::Earlier => true,
        }
    }

    /// Whether an atom of this cost stays unchanged because it holds the request.
    pub(crate) fn protects(&self, tokens: u64) -> bool {
        tokens <= self.max_tokens
    }
}

/// A message that may be the running request, with all items after it. It is the running request if no later candidate
/// follows.
#[derive(Debug)]
pub(crate) struct Held<T>(pub(crate) Vec<T>);

impl<T> Held<T> {
    /// Holds a candidate and the items after it. Hands on all other items. A later candidate hands on the held items,
    /// which are then ordinary messages.
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
