//! Hashes over stored records that have no hash otherwise, so that a change made outside of the store is detected.
//! Messages, views and texts of summaries have their own hashes.

use memory_model::{
    ConversationId, FieldHasher, Hash, Message, RawJson, Seq, SessionKey, Summary, Timestamp,
    ViewName,
};

use crate::types::{Conversation, Origin};

/// Returns the hash over the stored record of a conversation: all fields of [`Conversation`] except its segments and
/// its number of erasures.
pub fn conversation_hash(conversation: &Conversation) -> Hash {
    let mut hasher = FieldHasher::new("agent-memory conversation 1");
    hasher.number(i64::from(conversation.id.0));
    hasher.bytes(conversation.key.as_str().as_bytes());
    let (kind, at, call) = match &conversation.origin {
        Origin::Root => ("root", None, None),
        Origin::Fork { at, .. } => ("fork", Some(*at), None),
        Origin::Spawn { at, call, .. } => ("spawn", Some(*at), call.as_deref()),
    };
    hasher.bytes(kind.as_bytes());
    let parent = conversation.origin.parent();
    hasher.number(parent.map_or(-1, |parent| i64::from(parent.0)));
    hasher.number(at.map_or(-1, |at| i64::from(at.0)));
    hasher.optional(call);
    hasher.number(i64::from(conversation.family.0));
    hasher.number(i64::from(conversation.head.0));
    hasher.number(i64::try_from(conversation.tokens).unwrap_or(i64::MAX));
    hasher.hash(conversation.chain);
    hasher.bytes(conversation.estimator.as_str().as_bytes());
    hasher.optional(conversation.title.as_deref());
    hasher.number(i64::from(conversation.archived));
    hasher.optional(conversation.meta.as_ref().map(RawJson::as_str));
    hasher.number(conversation.created_at.0);
    hasher.number(conversation.updated_at.0);
    hasher.finish()
}

/// Returns the hash over the session keys of a family after one more member is added. A family is a root conversation
/// with all conversations forked or spawned from it. `before` is the hash before this member, and [`Hash::ZERO`] for
/// the first member. Members are added in the order of their numbers.
pub fn family_hash(before: Hash, member: ConversationId, key: &SessionKey) -> Hash {
    let mut hasher = FieldHasher::new("agent-memory family 1");
    hasher.hash(before);
    hasher.number(i64::from(member.0));
    hasher.bytes(key.as_str().as_bytes());
    hasher.finish()
}

/// Returns the hash over the names of a conversation's views, or [`Hash::ZERO`] if there are no names. The names must
/// be sorted.
pub fn views_hash<'a>(names: impl IntoIterator<Item = &'a ViewName>) -> Hash {
    let mut hasher = FieldHasher::new("agent-memory views 1");
    let mut any = false;
    for name in names {
        any = true;
        hasher.bytes(name.as_str().as_bytes());
    }
    match any {
        true => hasher.finish(),
        false => Hash::ZERO,
    }
}

/// Returns the hash over the stored record of a summary: over the summary's own hash and the fields that the summary's
/// own hash does not cover.
pub fn summary_record_hash(summary: &Summary) -> Hash {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut hasher = FieldHasher::new("agent-memory summary record 1");
    hasher.hash(summary.hash);
    hasher.number(i64::from(summary.provisional));
    hasher.bytes(summary.tier.as_bytes());
    hasher.optional(summary.model.as_deref());
    hasher.number(number(summary.tokens));
    hasher.bytes(summary.rendering.as_str().as_bytes());
    hasher.number(number(summary.source_tokens));
    hasher.number(summary.created_at.0);
    hasher.number(summary.earliest_at.0);
    hasher.number(summary.latest_at.0);
    hasher.optional(summary.meta.as_ref().map(RawJson::as_str));
    hasher.finish()
}

/// Position, hash and time of a stored entry, found by its external id. The entry is in the own log of a conversation,
/// or in the log that it inherits from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownEntry {
    /// Position of the entry.
    pub seq: Seq,
    /// Hash of the entry's message.
    pub hash: Hash,
    /// Time of the entry's message.
    pub created_at: Timestamp,
    /// Whether the entry's time was set from the clock: see [`NewEntry::clocked`](crate::NewEntry::clocked).
    pub clocked: bool,
}

impl KnownEntry {
    /// Returns whether `message`, with this hash and these bytes, is equal to the message of this entry. Times are
    /// compared only if the caller gave a time for both messages. `clocked` is
    /// [`NewEntry::clocked`](crate::NewEntry::clocked) of the message.
    pub fn is_duplicate_of(
        &self,
        message: &Message,
        clocked: bool,
        hash: Hash,
        body: &[u8],
    ) -> bool {
        if hash == self.hash {
            return true;
        }
        let missing = |time: Timestamp, clocked: bool| clocked || time == Timestamp::default();
        if !missing(message.created_at, clocked) && !missing(self.created_at, self.clocked) {
            return false;
        }
        let mut retold = message.clone();
        retold.created_at = self.created_at;
        retold.hash(body) == self.hash
    }
}
