//! An append of entries to a log, and its outcome.

use memory_model::{Message, Seq, Timestamp};
use token_estimate::{EstimatorId, TokenEstimator};

/// Condition on the end of the log before an append.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AppendAt {
    /// The log may end at any position.
    #[default]
    Any,
    /// The log must end at this position. Otherwise the append fails with `HeadMoved`.
    Head(Seq),
}

/// A message to append, with its cost in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// The message or note to append.
    pub message: Message,
    /// Cost of the message in tokens, as the append's estimator counts it. 0 for a note.
    pub tokens: u64,
    /// Whether `message.created_at` was set from the clock because the caller gave no time. If an entry with the same
    /// external id is already stored, a time from the clock, or the time 0, is not compared with the stored time.
    pub clocked: bool,
}

impl NewEntry {
    /// Creates an entry from a message with the caller's time, or with no time, and its cost in tokens.
    pub fn new(message: Message, tokens: u64) -> Self {
        Self {
            message,
            tokens,
            clocked: false,
        }
    }
}

/// Arguments for appending entries, all in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Position at which the log must end before the append.
    pub at: AppendAt,
    /// Estimator that counted the costs of the entries. It must be the conversation's estimator.
    pub estimator: EstimatorId,
    /// Entries to append, in order.
    pub entries: Vec<NewEntry>,
    /// Time of the append, recorded as the time of the conversation's last change.
    pub now: Timestamp,
}

impl Append {
    /// Creates an append of messages to the end of the log. The estimator counts the costs. `now` is the time of the
    /// append.
    pub fn messages(
        messages: impl IntoIterator<Item = Message>,
        estimator: &dyn TokenEstimator,
        now: Timestamp,
    ) -> Self {
        let entries = messages.into_iter().map(|message| {
            let tokens = estimator.message(&message);
            NewEntry::new(message, tokens)
        });
        Self {
            at: AppendAt::Any,
            estimator: estimator.id(),
            entries: entries.collect(),
            now,
        }
    }
}

/// Outcome of appending one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryOutcome {
    /// The entry was stored at this position.
    Inserted(Seq),
    /// The conversation already has an equal entry with the same external id at this position, possibly inherited from
    /// its parent. The stored entry does not change, and the new entry is not stored. Times are compared only if the
    /// caller gave a time for both entries.
    Duplicate(Seq),
    /// The conversation already has a different entry with the same external id at this position, possibly inherited
    /// from its parent. The new entry is not stored.
    Conflict(Seq),
}

/// Result of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Outcome of each entry, in the order of the entries.
    pub outcomes: Vec<EntryOutcome>,
    /// Last position of the log after the append.
    pub head: Seq,
    /// Cost of all messages of the log after the append, in tokens. Includes the messages that a fork inherits from its
    /// parent.
    pub tokens: u64,
}
