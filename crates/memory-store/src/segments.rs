//! The trait of a store that keeps search indexes. An index consists of segments, each over a range of messages or
//! summaries.

use std::fmt;

use async_trait::async_trait;
use memory_model::{ConversationId, SummaryId};

use crate::error::Result;
use crate::types::Conversation;

/// Kind of the texts in a segment of a search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexedKind {
    /// Messages of a conversation's own log.
    Messages,
    /// Summaries that a conversation made, in the order of creation.
    Summaries,
    /// State of a conversation after the last message of the segment, read from its own messages and from the ones that it shares
    /// with a parent. A search reads no segment of this kind.
    States,
}

impl IndexedKind {
    /// Returns the name of the kind, as in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            IndexedKind::Messages => "messages",
            IndexedKind::Summaries => "summaries",
            IndexedKind::States => "states",
        }
    }
}

/// A stored segment of a search index: the index over one range of messages or summaries. The content, the chunks, is
/// read separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSegment {
    /// Number of the segment in its store. It is never reused.
    pub id: u64,
    /// Kind of the texts that the segment indexes.
    pub kind: IndexedKind,
    /// In a segment of messages or of a state, the first position of the conversation's own log, inclusive. In a segment of
    /// summaries, the number of the first indexed summary, counted from 1 in the order of creation.
    pub first: u32,
    /// In a segment of messages or of a state, the last position, inclusive. In a segment of summaries, the number of the
    /// last indexed summary.
    pub last: u32,
    /// Number of indexed texts. In a segment of messages, the number of messages, without notes (entries that are never
    /// sent to a model). In a segment of summaries, the number of summaries. In a segment of a state, 0.
    pub documents: u32,
    /// Name of the format of the segment's chunks, followed by checksums of the segment's other fields and of its
    /// chunks.
    pub format: String,
}

/// State of the search index over a conversation's own log and summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexState {
    /// Segments of the index, sorted by kind and then by position. The segments of one kind leave no gap between them.
    pub segments: Vec<IndexSegment>,
    /// Number of erasures of entries of the own log, plus erasures of entries that the conversation sees, plus the number of
    /// erased own summaries. It only rises. The store refuses a new
    /// segment if this number has changed since the indexed texts were read.
    pub erasures: u64,
}

impl IndexState {
    /// Returns the segments of one kind, sorted by position.
    pub fn of(&self, kind: IndexedKind) -> impl DoubleEndedIterator<Item = &IndexSegment> {
        self.segments.iter().filter(move |one| one.kind == kind)
    }

    /// Returns whether a store in this state accepts a new segment: see [`IndexStore::put_index_segment`]. `own_first`
    /// is the first position of the conversation's own log.
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
                    IndexedKind::Messages | IndexedKind::States => own_first,
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

    /// Returns the state after the store accepts a new segment and gives it the number `id`.
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

/// Data of a conversation that a search reads first: the conversation and the list of its index segments.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSnapshot {
    /// The conversation. The store reads it before the other fields.
    pub conversation: Conversation,
    /// Index segments for each item of [`Conversation::segments`], in that order. Each item has the segments of
    /// messages and summaries of the conversation that owns the log: see [`IndexState::segments`].
    pub logs: Vec<Vec<IndexSegment>>,
    /// Id of the latest summary that the conversation itself made, or `None` if it made none. The store reads it after
    /// the other fields.
    pub last_summary: Option<SummaryId>,
}

/// A piece of a segment of a search index, stored under a key that is unique in the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Smallest index key in the chunk. The keys of a segment's chunks rise strictly.
    pub key: Vec<u8>,
    /// Content of the chunk, in the segment's format.
    pub data: Vec<u8>,
}

/// A new segment of a search index, to be stored: the index over one range of messages or summaries.
#[derive(Debug, Clone)]
pub struct NewIndexSegment<'a> {
    /// Kind of the texts that the segment indexes.
    pub kind: IndexedKind,
    /// In a segment of messages or of a state, the first position of the conversation's own log, inclusive. In a segment of
    /// summaries, the number of the first indexed summary, counted from 1 in the order of creation.
    pub first: u32,
    /// In a segment of messages or of a state, the last position, inclusive. In a segment of summaries, the number of the
    /// last indexed summary.
    pub last: u32,
    /// Number of indexed texts. In a segment of messages, the number of messages, without notes (entries that are never
    /// sent to a model). In a segment of summaries, the number of summaries. In a segment of a state, 0.
    pub documents: u32,
    /// Name of the format of the segment's chunks, followed by checksums of the segment's other fields and of its
    /// chunks.
    pub format: &'a str,
    /// Chunks of the segment, with rising keys.
    pub chunks: &'a [Chunk],
    /// Value of [`IndexState::erasures`] before the indexed texts were read.
    pub erasures: u64,
    /// Ids of the stored segments that the new segment replaces. Empty if the new segment follows the last segment of
    /// its kind.
    pub replaces: &'a [u64],
}

/// A store that keeps search indexes. The index of a conversation consists of segments, each over a range of messages
/// or summaries.
///
/// Segments can be rebuilt from messages and summaries at any time, so a store need not preserve them. An erasure
/// removes, in the same transaction, every segment that contains erased words and all later segments.
#[async_trait]
pub trait IndexStore: Send + Sync + fmt::Debug {
    /// Reads everything that a search needs first, in one request: the conversation and the list of its index segments.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_snapshot(&self, conversation: ConversationId) -> Result<IndexSnapshot>;

    /// Returns the index segments over a conversation's own log and summaries, and the number of erasures. Pass that
    /// number back in [`NewIndexSegment::erasures`] when you store a segment.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_state(&self, conversation: ConversationId) -> Result<IndexState>;

    /// Returns the keys of the chunks of the segment with this id, in rising order. Empty if the segment no longer
    /// exists.
    async fn index_keys(&self, segment: u64) -> Result<Vec<Vec<u8>>>;

    /// Reads the chunks with these keys of the segment with this id, sorted by key. Reads all chunks if `keys` is
    /// `None`. Chunks are missing from the answer if the segment no longer exists.
    async fn index_chunks(&self, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<Vec<Chunk>>;

    /// Stores a segment, and returns the state of the index with the new segment. Returns `None` and stores no data in
    /// these cases:
    /// - another segment already covers the same place,
    /// - the new segment replaces no segment and does not follow the last segment of its kind,
    /// - a segment to replace no longer exists,
    /// - words were erased after the indexed texts were read.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn put_index_segment(
        &self,
        conversation: ConversationId,
        segment: &NewIndexSegment<'_>,
    ) -> Result<Option<IndexState>>;

    /// Removes all segments of a conversation's search index.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn drop_index(&self, conversation: ConversationId) -> Result<()>;
}
