//! The trait of a store that keeps the segments of a search index.

use std::fmt;

use async_trait::async_trait;
use memory_model::{ConversationId, SummaryId};

use crate::error::Result;
use crate::types::Conversation;

/// Source of a segment of a search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexedKind {
    /// Messages of a conversation's own log.
    Messages,
    /// Summaries that a conversation made, in the order of creation.
    Summaries,
}

impl IndexedKind {
    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            IndexedKind::Messages => "messages",
            IndexedKind::Summaries => "summaries",
        }
    }
}

/// A segment, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSegment {
    /// The store's number for it. It is never reused.
    pub id: u64,
    /// Source of the segment.
    pub kind: IndexedKind,
    /// The first position, inclusive; of summaries, the number of the first one, from 1.
    pub first: u32,
    /// The last position or number, inclusive.
    pub last: u32,
    /// Number of messages, notes left out, or of summaries.
    pub documents: u32,
    /// Name of its format, followed by checksums of its row and its chunks.
    pub format: String,
}

/// The segments of a conversation's own log and summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexState {
    /// The segments, by kind and then by position. Segments of one kind follow each other without a gap.
    pub segments: Vec<IndexSegment>,
    /// Number of erasures in the log and among the summaries. A segment made before an erasure is refused after it.
    pub erasures: u64,
}

impl IndexState {
    /// The segments of one kind, by position.
    pub fn of(&self, kind: IndexedKind) -> impl DoubleEndedIterator<Item = &IndexSegment> {
        self.segments.iter().filter(move |one| one.kind == kind)
    }

    /// Whether a store in this state accepts a segment: see [`IndexStore::put_index_segment`]. `own_first` is the first
    /// position of the conversation's own log.
    pub fn takes(&self, new: &NewIndexSegment<'_>, own_first: u32) -> bool {
        if new.erasures != self.erasures || new.last < new.first {
            return false;
        }
        let replaced: Vec<&IndexSegment> = self
            .of(new.kind)
            .filter(|one| new.replaces.contains(&one.id))
            .collect();
        match (replaced.first(), replaced.last()) {
            (Some(first), Some(last)) => {
                replaced.len() == new.replaces.len()
                    && (first.first, last.last) == (new.first, new.last)
            }
            _ => {
                let begin = match new.kind {
                    IndexedKind::Messages => own_first,
                    IndexedKind::Summaries => 1,
                };
                let next = self
                    .of(new.kind)
                    .next_back()
                    .map_or(begin, |last| last.last + 1);
                new.replaces.is_empty() && new.first == next
            }
        }
    }

    /// Returns the state with an accepted segment, which the store keeps by the number `id`.
    pub fn with(mut self, new: &NewIndexSegment<'_>, id: u64) -> Self {
        self.segments.retain(|one| !new.replaces.contains(&one.id));
        let place = |one: &IndexSegment| (one.kind.as_str(), one.first);
        let segment = IndexSegment {
            id,
            kind: new.kind,
            first: new.first,
            last: new.last,
            documents: new.documents,
            format: new.format.to_owned(),
        };
        let at = self
            .segments
            .partition_point(|one| place(one) < place(&segment));
        self.segments.insert(at, segment);
        self
    }
}

/// Data that a search by an index reads first.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSnapshot {
    /// The conversation. It was read before the rest.
    pub conversation: Conversation,
    /// For each of [`Conversation::segments`] the index segments of that source, as [`IndexState::segments`].
    pub logs: Vec<Vec<IndexSegment>>,
    /// The last summary that the conversation itself made; read last.
    pub last_summary: Option<SummaryId>,
}

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Smallest key in it. The keys of a segment rise strictly.
    pub key: Vec<u8>,
    /// The bytes.
    pub data: Vec<u8>,
}

/// A segment to be kept.
#[derive(Debug, Clone)]
pub struct NewIndexSegment<'a> {
    /// Source of the segment.
    pub kind: IndexedKind,
    /// The first position or number, inclusive.
    pub first: u32,
    /// The last position or number, inclusive.
    pub last: u32,
    /// Number of messages, notes left out, or of summaries.
    pub documents: u32,
    /// Name of its format, followed by checksums of its row and its chunks.
    pub format: &'a str,
    /// Content.
    pub chunks: &'a [Chunk],
    /// Number of erasures in [`IndexState`] before the messages were read.
    pub erasures: u64,
    /// Segments that it replaces; empty if it follows all others.
    pub replaces: &'a [u64],
}

/// A store that keeps the segments of a search index.
///
/// Segments can be rebuilt from messages and summaries at any time, and a store need not preserve them. An erasure
/// removes every segment that contains erased words, and all later ones, in the same transaction.
#[async_trait]
pub trait IndexStore: Send + Sync + fmt::Debug {
    /// Reads the start of a search in one request.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_snapshot(&self, conversation: ConversationId) -> Result<IndexSnapshot>;

    /// Returns the segments of a conversation's own log and summaries, with the number of erasures that a new segment
    /// is checked against.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_state(&self, conversation: ConversationId) -> Result<IndexState>;

    /// Returns the keys of a segment's chunks, rising; empty if the segment was replaced meanwhile.
    async fn index_keys(&self, segment: u64) -> Result<Vec<Vec<u8>>>;

    /// Reads the chunks of a segment with these keys, or all of them, by key; fewer if the segment was replaced meanwhile.
    async fn index_chunks(&self, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<Vec<Chunk>>;

    /// Keeps a segment. Returns the state with it, or `None` if it is not kept: another one is there, it does not
    /// follow the last one of its kind, a segment that it replaces no longer exists, or entries were erased since.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn put_index_segment(
        &self,
        conversation: ConversationId,
        segment: &NewIndexSegment<'_>,
    ) -> Result<Option<IndexState>>;

    /// Removes all segments of a conversation.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn drop_index(&self, conversation: ConversationId) -> Result<()>;
}
