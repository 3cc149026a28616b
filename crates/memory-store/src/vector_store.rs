//! The trait of a store that keeps vectors (embeddings) of messages.

use std::fmt;

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};

use crate::error::Result;
use crate::vector::Vector;

/// Position of an entry in a log, with the entry's vector. The vector is `None` for a note, an erased message, or a
/// text for which the embedder returned no vector.
pub type PlacedVector = (Seq, Option<Vector>);

/// State of the vectors that one embedder made for a conversation's own log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorState {
    /// Last position for which the store has a result of the embedder: a vector, or the record that the entry has no
    /// vector. [`Seq::NONE`] if there is no result. Among the earlier entries, only erased ones may lack a result.
    pub last: Seq,
    /// Number of erasures in the conversation's own log. If it rises, words were erased meanwhile.
    pub erasures: u64,
}

/// New vectors of one embedder, to be stored.
#[derive(Debug, Clone)]
pub struct NewVectors<'a> {
    /// Id of the embedder (the embedding model) that made the vectors.
    pub embedder: &'a str,
    /// Vectors of consecutive positions of the conversation's own log.
    pub vectors: &'a [PlacedVector],
    /// State that [`VectorStore::vector_state`] returned before the messages were read.
    pub state: VectorState,
}

impl NewVectors<'_> {
    /// Returns whether a store in the given state accepts the vectors: they begin directly after the stored vectors,
    /// and no entry was erased after the messages were read. `own_first` is the first position of the conversation's
    /// own log, and `head` is its last position.
    pub fn fit(&self, state: VectorState, own_first: Seq, head: Seq) -> bool {
        let begin = own_first.max(state.last.next());
        let mut places = self.vectors.iter().map(|(seq, _)| seq.0).zip(begin.0..);
        state == self.state && places.all(|(seq, next)| seq == next && seq <= head.0)
    }
}

/// A store that keeps a vector (embedding) of each message, for each embedder.
///
/// Vectors can be rebuilt from the messages at any time, so a store need not preserve them. An erasure removes the
/// vectors of the erased messages in the same transaction.
#[async_trait]
pub trait VectorStore: Send + Sync + fmt::Debug {
    /// Returns the state of the vectors that an embedder made for a conversation's own log.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn vector_state(
        &self,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState>;

    /// Returns the vectors that an embedder made for a range of a conversation's own log, sorted by position. Each
    /// vector has `dimension` components.
    ///
    /// # Errors
    /// - `NotFound` if the conversation does not exist.
    /// - `Corrupt` if a vector does not have `dimension` components.
    async fn vectors(
        &self,
        conversation: ConversationId,
        embedder: &str,
        dimension: usize,
        range: SeqRange,
    ) -> Result<Vec<PlacedVector>>;

    /// Stores vectors for a conversation's own log. Returns `false` and stores none if the vectors do not directly
    /// follow the stored ones, or if words were erased after the messages were read: see [`fit`](NewVectors::fit).
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn put_vectors(
        &self,
        conversation: ConversationId,
        vectors: &NewVectors<'_>,
    ) -> Result<bool>;

    /// Returns the ids of the embedders that have stored vectors for a conversation's own log, sorted.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn embedders(&self, conversation: ConversationId) -> Result<Vec<String>>;

    /// Removes all vectors that an embedder made for a conversation's own log.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn drop_vectors(&self, conversation: ConversationId, embedder: &str) -> Result<()>;
}
