//! The trait of a store that keeps the segments of a search index.

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
}

impl IndexedKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            IndexedKind::Messages => "messages",
            IndexedKind::Summaries => "summaries",
        }
    }
}

/// A stored segment of a search index, without its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSegment {
    /// Number of the segment in its store. It is never reused.
    pub id: u64,
    /// Kind of the texts that the segment indexes.
    pub kind: IndexedKind,
    /// In a segment of messages, the first indexed position of the own log, inclusive. In a segment of summaries, the
    /// number of the first indexed summary, counted from 1 in the order of creation.
    pub first: u32,
    /// In a segment of messages, the last indexed position, inclusive. In a segment of summaries, the number of the
    /// last indexed summary.
    pub last: u32,
    /// Number of indexed messages without notes, or of indexed summaries.
    pub documents: u32,
    /// Name of the segment's format, followed by checksums of its row and its chunks.
    pub format: String,
}

/// State of the search index of a conversation's own log and summaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexState {
    /// Segments of the index, by kind and then by position. Segments of one kind follow each other without a gap.
    pub segments: Vec<IndexSegment>,
    /// Number of erasures in the log and among the summaries. The store refuses a segment that was made before the
    /// latest erasure.
    pub erasures: u64,
}

impl IndexState {
    /// Returns the segments of one kind, by position.
    pub fn of(&self, kind: IndexedKind) -> impl DoubleEndedIterator<Item = &IndexSegment> {
        self.segments.iter().filter(move |one| one.kind == kind)
    }

    /// Returns whether a store in this state accepts a segment: see [`IndexStore::put_index_segment`]. `own_first` is
    /// the first position of the conversation's own log.
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

    /// Returns the state after the store accepts a segment and gives it the number `id`.
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

/// Data of a conversation that a search by an index reads first.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSnapshot {
    /// The conversation. It is read before the other fields.
    pub conversation: Conversation,
    /// Index segments of messages and summaries of each conversation in [`Conversation::segments`], in that order: see
    /// [`IndexState::segments`].
    pub logs: Vec<Vec<IndexSegment>>,
    /// Id of the last summary that the conversation itself made; `None` if it made none. It is read after the other
    /// fields.
    pub last_summary: Option<SummaryId>,
}

/// A part of a segment of a search index. Its key identifies it within the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Smallest key in the chunk. The keys of a segment's chunks rise strictly.
    pub key: Vec<u8>,
    /// Content of the chunk, in the format of the segment.
    pub data: Vec<u8>,
}

/// A segment of a search index to be stored.
#[derive(Debug, Clone)]
pub struct NewIndexSegment<'a> {
    /// Kind of the texts that the segment indexes.
    pub kind: IndexedKind,
    /// In a segment of messages, the first indexed position of the own log, inclusive. In a segment of summaries, the
    /// number of the first indexed summary, counted from 1 in the order of creation.
    pub first: u32,
    /// In a segment of messages, the last indexed position, inclusive. In a segment of summaries, the number of the
    /// last indexed summary.
    pub last: u32,
    /// Number of indexed messages without notes, or of indexed summaries.
    pub documents: u32,
    /// Name of the segment's format, followed by checksums of its row and its chunks.
    pub format: &'a str,
    /// Chunks of the segment, by rising key.
    pub chunks: &'a [Chunk],
    /// Value of [`IndexState::erasures`] before the indexed texts were read.
    pub erasures: u64,
    /// Numbers of the stored segments that the new one replaces; empty if it follows the last segment of its kind.
    pub replaces: &'a [u64],
}

/// A store that keeps the segments of a search index.
///
/// Segments can be rebuilt from messages and summaries at any time, and a store need not preserve them. An erasure
/// removes, in the same transaction, every segment that contains erased words and all later segments.
#[async_trait]
pub trait IndexStore: Send + Sync + fmt::Debug {
    /// Reads everything that a search by an index needs first, in one request.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_snapshot(&self, conversation: ConversationId) -> Result<IndexSnapshot>;

    /// Returns the segments of a conversation's own log and summaries, and the number of erasures against which a new
    /// segment is checked.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn index_state(&self, conversation: ConversationId) -> Result<IndexState>;

    /// Returns the keys of a segment's chunks, in rising order; empty if the segment was replaced meanwhile.
    async fn index_keys(&self, segment: u64) -> Result<Vec<Vec<u8>>>;

    /// Reads the chunks of a segment with these keys, by rising key; all chunks if `keys` is `None`. Returns fewer if
    /// the segment was replaced meanwhile.
    async fn index_chunks(&self, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<Vec<Chunk>>;

    /// Stores a segment. Returns the state with it. Returns `None`, and does not store the segment, if another segment
    /// is already in its place, if it does not follow the last segment of its kind, if a segment that it replaces no
    /// longer exists, or if words were erased since its texts were read.
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
