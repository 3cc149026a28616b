//! The user's running request, which stays unchanged until the next request.

use std::sync::Arc;

use compaction_plan::Room;
use memory_model::{EntryKind, LogEntry, Part, Role, Seq};

use crate::policy::DagPolicy;

/// Returns whether an entry is a user's request: a user's message with text and without a tool result.
pub(crate) fn is_request(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { text } if !text.is_empty());
    let is_result = |part: &Part| matches!(part, Part::ToolResult { .. });
    entry.kind == EntryKind::Message
        && entry.role == Role::User
        && entry.parts.iter().any(is_text)
        && !entry.parts.iter().any(is_result)
}

/// Position of the user's running request, as found in the last entries of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRule {
    place: RequestPosition,
    /// Maximum cost of a protected request, in tokens, including the messages that must not be separated from it.
    max_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    /// The request needs no protection: it is in the fresh tail, or the policy protects no requests.
    Elsewhere,
    /// The request is at this position.
    At(Seq),
    /// The entries that were read contain no request. The request is the last possible one before them, if there is
    /// any.
    Earlier,
}

impl RequestRule {
    /// Finds the running request among `newest`, the last entries of the log. `tail` is the position at which the fresh
    /// tail begins.
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

    /// Returns whether a message at this position may be the running request.
    pub(crate) fn looks_at(&self, seq: Seq) -> bool {
        match self.place {
            RequestPosition::Elsewhere => false,
            RequestPosition::At(place) => seq == place,
            RequestPosition::Earlier => true,
        }
    }

    /// Returns whether messages of this cost stay unchanged if they contain the request.
    pub(crate) fn protects(&self, tokens: u64) -> bool {
        tokens <= self.max_tokens
    }
}

/// A message that may be the running request, and all items after it. The message is the running request if no later
/// candidate follows.
#[derive(Debug)]
pub(crate) struct Held<T>(pub(crate) Vec<T>);

impl<T> Held<T> {
    /// Keeps a candidate and all items after it. Passes items before the first candidate to `hand_on`. A later
    /// candidate passes the kept items to `hand_on`, because they are then ordinary messages.
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
