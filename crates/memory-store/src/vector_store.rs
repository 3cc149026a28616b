//! The trait of a store that keeps the vectors of messages.

use std::fmt;

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};

use crate::error::Result;
use crate::vector::Vector;

/// Position of an entry, with its vector; `None` for an entry without a vector: a note, an erased message, or a text
/// for which the embedder has no vector.
pub type PlacedVector = (Seq, Option<Vector>);

/// State of the stored vectors of a conversation's own log, for one embedder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorState {
    /// Last position with a stored vector of the embedder; [`Seq::NONE`] if there is none. Before it, only entries that
    /// were erased later lack a vector.
    pub last: Seq,
    /// Number of erasures in the conversation's own log.
    pub erasures: u64,
}

/// Vectors of one embedder to be stored.
#[derive(Debug, Clone)]
pub struct NewVectors<'a> {
    /// Id of the embedder that made the vectors.
    pub embedder: &'a str,
    /// Vectors of consecutive positions of the conversation's own log.
    pub vectors: &'a [PlacedVector],
    /// State that [`VectorStore::vector_state`] returned before the messages were read.
    pub state: VectorState,
}

impl NewVectors<'_> {
    /// Returns whether a store in this state accepts the vectors: they follow the stored ones, and no entry was erased
    /// meanwhile. `own_first` is the first position of the conversation's own log, `head` is its last.
    pub fn fit(&self, state: VectorState, own_first: Seq, head: Seq) -> bool {
        let begin = own_first.max(state.last.next());
        let mut places = self.vectors.iter().map(|(seq, _)| seq.0).zip(begin.0..);
        state == self.state && places.all(|(seq, next)| seq == next && seq <= head.0)
    }
}

/// A store that keeps a vector of each message, for each embedder.
///
/// Vectors can be rebuilt from the messages at any time, and a store need not preserve them. An erasure removes the
/// vectors of the erased messages in the same transaction.
#[async_trait]
pub trait VectorStore: Send + Sync + fmt::Debug {
    /// Returns the state of the vectors that an embedder made of a conversation's own log.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn vector_state(
        &self,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState>;

    /// Returns the stored vectors of a range of a conversation's own log, by position.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist; `Corrupt` if a vector does not have `dimension` components.
    async fn vectors(
        &self,
        conversation: ConversationId,
        embedder: &str,
        dimension: usize,
        range: SeqRange,
    ) -> Result<Vec<PlacedVector>>;

    /// Stores vectors of a conversation's own log. Returns whether they were accepted: see [`fit`](NewVectors::fit).
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn put_vectors(
        &self,
        conversation: ConversationId,
        vectors: &NewVectors<'_>,
    ) -> Result<bool>;

    /// Returns the ids of the embedders with stored vectors of a conversation's own log, sorted.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn embedders(&self, conversation: ConversationId) -> Result<Vec<String>>;

    /// Removes the vectors that an embedder made of a conversation's own log.
    ///
    /// # Errors
    /// `NotFound` if the conversation does not exist.
    async fn drop_vectors(&self, conversation: ConversationId, embedder: &str) -> Result<()>;
}
