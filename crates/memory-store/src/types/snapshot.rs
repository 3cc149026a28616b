//! The state of a conversation and of one of its views at one time.

use memory_model::{ConversationId, Hash, Seq, ViewName, ViewVersion};

/// An immutable state of a conversation and of one of its views. Later appends and publishes do not change the state.
/// Only an erasure does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Number of the conversation in its store.
    pub conversation: ConversationId,
    /// Last position of the log in this state.
    pub head: Seq,
    /// Cost of all messages of the log in this state, in tokens. Includes the messages that a fork inherits from its
    /// parent.
    pub log_tokens: u64,
    /// Name of the view: the compacted form of the log, which consists of spans.
    pub view: ViewName,
    /// Version of the view (the compacted log). 0 for a view that was never published.
    pub version: ViewVersion,
    /// Tokens that the view (the compacted log) saves: the cost of all messages minus the cost of the view's spans.
    /// Negative if the spans cost more.
    pub saved: i64,
    /// Number of spans in the view (the compacted log).
    pub spans: u64,
    /// Number of erasures of words of the conversation, in this state: see
    /// [`Conversation::erasures`](super::Conversation::erasures).
    pub erasures: u64,
}

impl Snapshot {
    /// Returns the cost of all spans of the view (the compacted log), in tokens.
    pub fn tokens(&self) -> u64 {
        let saved = i128::from(self.saved);
        u64::try_from(i128::from(self.log_tokens) - saved).unwrap_or(0)
    }
}

/// Description of a view that was published at least once: its name, version, and sizes, without its spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Name of the view (the compacted log).
    pub name: ViewName,
    /// Current version of the view.
    pub version: ViewVersion,
    /// Number of spans in the view (the compacted log).
    pub spans: u64,
    /// Tokens that the view (the compacted log) saves: the cost of all messages minus the cost of the view's spans. See
    /// [`Snapshot::saved`].
    pub saved: i64,
    /// Chain hash over all publications of the view (the compacted log). [`Hash::ZERO`] at version 0.
    pub chain: Hash,
}
