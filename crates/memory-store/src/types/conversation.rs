//! A stored conversation: its origin, its segments, its changes, and its small values.

use memory_model::{ConversationId, Hash, RawJson, Seq, SeqRange, SessionKey, Timestamp};
use serde::{Deserialize, Serialize};
use token_estimate::EstimatorId;

/// Relation of a conversation to the conversation from which it was forked or spawned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// A conversation without a parent.
    Root,
    /// A fork: shares its parent's log up to and including the position `at`, and continues with its own log.
    Fork {
        /// Conversation from which the fork was made.
        parent: ConversationId,
        /// Last shared position. `Seq(0)` if no position is shared.
        at: Seq,
    },
    /// A sub-agent: a conversation started by a tool call in its parent's log. It shares no positions with the parent.
    Spawn {
        /// Conversation that contains the tool call.
        parent: ConversationId,
        /// Position of the tool call in the parent's log. `Seq(0)` if unknown.
        at: Seq,
        /// Id of the tool call. `None` if unknown.
        call: Option<String>,
    },
}

impl Origin {
    /// Returns the parent of a forked or spawned conversation, or `None` for a root.
    pub fn parent(&self) -> Option<ConversationId> {
        match self {
            Origin::Root => None,
            Origin::Fork { parent, .. } | Origin::Spawn { parent, .. } => Some(*parent),
        }
    }
}

/// Arguments for opening a conversation. A new conversation is created with these values if no conversation has the
/// key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConversation {
    /// Name of the conversation, chosen by the caller. Unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or a spawned sub-agent, and its parent.
    pub origin: Origin,
    /// Estimator that counts all costs of the conversation, in tokens.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation.
    pub title: Option<String>,
    /// Metadata of the conversation, chosen by the caller, as a JSON object.
    pub meta: Option<RawJson>,
    /// Creation time, used if the conversation is created.
    pub now: Timestamp,
}

impl NewConversation {
    /// Creates the arguments for a root conversation without title or metadata.
    pub fn root(key: impl Into<SessionKey>, estimator: EstimatorId, now: Timestamp) -> Self {
        Self {
            key: key.into(),
            origin: Origin::Root,
            estimator,
            title: None,
            meta: None,
            now,
        }
    }
}

/// A range of a conversation's own log that is part of the log of the same conversation or of a fork. The whole log
/// that a fork reads is a list of segments: the ranges that it inherits from its ancestors, then its own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// First position of the range, inclusive.
    pub first: Seq,
    /// Last position of the range, inclusive. `None` for the conversation's own log, which grows.
    pub last: Option<Seq>,
    /// Conversation that owns the log.
    pub source: ConversationId,
}

impl Segment {
    /// Returns the range of the segment in a log that ends at position `head`. Returns `None` if the segment is empty.
    pub fn up_to(&self, head: Seq) -> Option<SeqRange> {
        SeqRange::new(self.first, self.last.unwrap_or(head))
    }
}

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Number of the conversation in its store.
    pub id: ConversationId,
    /// Name of the conversation, chosen by the caller. Unique in the store.
    pub key: SessionKey,
    /// Whether the conversation is a root, a fork or a spawned sub-agent, and its parent.
    pub origin: Origin,
    /// Root of the conversation's family: its oldest ancestor by forks and spawns, or the conversation itself if it has
    /// no parent.
    pub family: ConversationId,
    /// Segments of the log that the conversation reads, in order: the ranges that it inherits from its ancestors' logs,
    /// then its own log.
    pub segments: Vec<Segment>,
    /// Last position of the conversation's log. `Seq(0)` if the log is empty.
    pub head: Seq,
    /// Cost of all messages of the log, in tokens. Includes the messages that a fork inherits from its parent.
    pub tokens: u64,
    /// Hash over the hashes of all entries of the conversation's own log, in order. [`Hash::ZERO`] if the own log is
    /// empty.
    pub chain: Hash,
    /// Estimator that counts all costs of the conversation, in tokens.
    pub estimator: EstimatorId,
    /// Human-readable title of the conversation. `None` if it has no title.
    pub title: Option<String>,
    /// Whether the conversation is archived. Lists leave out archived conversations unless
    /// [`ConversationFilter::archived`] is set. Archived conversations can still be read and changed.
    pub archived: bool,
    /// Metadata of the conversation, chosen by the caller, as a JSON object.
    pub meta: Option<RawJson>,
    /// Time at which the conversation was created.
    pub created_at: Timestamp,
    /// Time of the last append, publish or change of the conversation.
    pub updated_at: Timestamp,
    /// Number of erasures of words of this conversation since it was created. Erasures in the part of the log that a
    /// fork inherits from its parent count. Note this number before you read words of the log, and compare it again
    /// before you use the words. If the number has risen, some of the words may be erased: read them again.
    pub erasures: u64,
}

impl Conversation {
    /// Returns the first position of the conversation's own log: in a fork the position after the last shared one, else
    /// 1.
    pub fn own_first(&self) -> Seq {
        match self.origin {
            Origin::Fork { at, .. } => at.next(),
            Origin::Root | Origin::Spawn { .. } => Seq::FIRST,
        }
    }

    /// Returns the range of the whole log, including the part that a fork inherits from its parent. `None` if the log
    /// is empty.
    pub fn range(&self) -> Option<SeqRange> {
        SeqRange::new(Seq::FIRST, self.head)
    }
}

/// Returns the segments of a conversation's log: for a fork, the parent's segments up to the last shared position, then
/// the conversation's own log.
pub(crate) fn segments_of(
    origin: &Origin,
    parent: Option<&Conversation>,
    own: ConversationId,
) -> Vec<Segment> {
    let (shared, at) = match (origin, parent) {
        (Origin::Fork { at, .. }, Some(parent)) => (parent.segments.as_slice(), *at),
        _ => (&[][..], Seq::NONE),
    };
    let mut segments: Vec<Segment> = shared
        .iter()
        .filter(|segment| segment.first <= at)
        .map(|segment| Segment {
            last: Some(segment.last.map_or(at, |last| last.min(at))),
            ..*segment
        })
        .collect();
    segments.push(Segment {
        first: at.next(),
        last: None,
        source: own,
    });
    segments
}

/// Reference to a conversation, by number or by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationRef {
    /// The conversation with this number in the store.
    Id(ConversationId),
    /// The conversation with this key, which the caller chose.
    Key(SessionKey),
}

/// Filter for listing conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationFilter {
    /// Whether archived conversations are included.
    pub archived: bool,
    /// Root of the only family to list: the root and all conversations forked or spawned from it. `None` lists all
    /// families.
    pub family: Option<ConversationId>,
}

/// Changes to a conversation's title, archive flag and metadata. A field that is `None` does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationPatch {
    /// New title of the conversation. `None` keeps the old title.
    pub title: Option<String>,
    /// Whether the conversation becomes archived. `None` keeps the flag.
    pub archived: Option<bool>,
    /// New metadata of the conversation, which replace all old metadata. `None` keeps the old metadata.
    pub meta: Option<RawJson>,
}

/// A small value that a conversation stores under a key, for example pins, notes or settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The value, as JSON.
    pub value: RawJson,
    /// Revision of the value: 1 for the first value, and one more after each change.
    pub revision: u64,
}
