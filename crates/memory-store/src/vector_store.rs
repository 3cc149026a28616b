//! The trait of a store that keeps the vectors of messages.

use std::fmt;

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};

use crate::error::Result;
use crate::vector::Vector;

/// A message's position and its vector; `None` for an entry that has none: a note, an erased message, or
/// a text of which the embedder knows nothing.
pub type PlacedVector = (Seq, Option<Vector>);

/// How far the vectors of a conversation's own log reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorState {
    /// The last position that vectors of this embedder were kept for; [`Seq::NONE`] when for none.
    /// Before it only what was erased since has none.
    pub last: Seq,
    /// Number of erasures in the own log.
    pub erasures: u64,
}

/// Vectors to be kept.
#[derive(Debug, Clone)]
pub struct NewVectors<'a> {
    /// Id of the embedder.
    pub embedder: &'a str,
    /// The vectors of consecutive positions of the own log.
    pub vectors: &'a [PlacedVector],
    /// What [`VectorStore::vector_state`] told before the messages were read.
    pub state: VectorState,
}

impl NewVectors<'_> {
    /// Whether a store in this state keeps the vectors: they follow those that are kept, and nothing was
    /// erased meanwhile. `own_first` is the first position of the conversation's own log, `head` its last.
    pub fn fit(&self, state: VectorState, own_first: Seq, head: Seq) -> bool {
        let begin = own_first.max(state.last.next());
        let mut places = self.vectors.iter().map(|(seq, _)| seq.0).zip(begin.0..);
        state == self.state && places.all(|(seq, next)| seq == next && seq <= head.0)
    }
}

/// A store that keeps a vector of each message, for each embedder.
///
/// They can be made again from the messages at any time, and are no part of what a store promises to
/// keep. An erasure removes the vectors of what it erases in the same transaction.
#[async_trait]
pub trait VectorStore: Send + Sync + fmt::Debug {
    /// How far the vectors of a conversation's own log reach.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist.
    async fn vector_state(
        &self,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState>;

    /// The vectors that are kept of a range of a conversation's own log, in its order.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist; `Corrupt` when a vector has not `dimension`
    /// components.
    async fn vectors(
        &self,
        conversation: ConversationId,
        embedder: &str,
        dimension: usize,
        range: SeqRange,
    ) -> Result<Vec<PlacedVector>>;

    /// Keeps vectors of a conversation's own log. Returns whether they were kept: they are not where they
    /// do not [fit](NewVectors::fit).
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist.
    async fn put_vectors(
        &self,
        conversation: ConversationId,
        vectors: &NewVectors<'_>,
    ) -> Result<bool>;

    /// The ids of the embedders that a conversation's own log has vectors of, in their order.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist.
    async fn embedders(&self, conversation: ConversationId) -> Result<Vec<String>>;

    /// Removes the vectors of a conversation's own log that an embedder made.
    ///
    /// # Errors
    /// `NotFound` when the conversation does not exist.
    async fn drop_vectors(&self, conversation: ConversationId, embedder: &str) -> Result<()>;
}
