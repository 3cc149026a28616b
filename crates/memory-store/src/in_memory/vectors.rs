//! Vectors of messages in the reference store.

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};

use super::{InMemoryStore, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::vector_store::{NewVectors, PlacedVector, VectorState, VectorStore};

impl Record {
    fn vector_state(&self, embedder: &str) -> VectorState {
        let kept = self
            .vectors
            .get(embedder)
            .and_then(|kept| kept.last_key_value());
        VectorState {
            last: kept.map_or(Seq::NONE, |(last, _)| *last),
            erasures: self.erasures.len() as u64,
        }
    }

    /// Removes the vectors of the entries in a range.
    pub(super) fn forget_vectors(&mut self, range: SeqRange) {
        for kept in self.vectors.values_mut() {
            kept.retain(|seq, _| !range.contains(*seq));
        }
    }
}

#[async_trait]
impl VectorStore for InMemoryStore {
    async fn vector_state(
        &self,
        conversation: ConversationId,
        embedder: &str,
    ) -> Result<VectorState> {
        Ok(self.lock().get(conversation)?.vector_state(embedder))
    }

    async fn vectors(
        &self,
        conversation: ConversationId,
        embedder: &str,
        dimension: usize,
        range: SeqRange,
    ) -> Result<Vec<PlacedVector>> {
        let inner = self.lock();
        let Some(kept) = inner.get(conversation)?.vectors.get(embedder) else {
            return Ok(Vec::new());
        };
        let kept = kept.range(range.first..=range.last);
        let vectors: Vec<PlacedVector> = kept.map(|(seq, vector)| (*seq, vector.clone())).collect();
        let mut flat = vectors.iter().filter_map(|(_, vector)| vector.as_ref());
        if flat.all(|vector| vector.dimension() == dimension) {
            return Ok(vectors);
        }
        let message = format!(
            "conversation {conversation}: a vector of {embedder:?} does not have {dimension} components: embed again"
        );
        Err(Error::new(ErrorKind::Corrupt, message))
    }

    async fn put_vectors(
        &self,
        conversation: ConversationId,
        vectors: &NewVectors<'_>,
    ) -> Result<bool> {
        let mut inner = self.lock();
        let record = inner.get_mut(conversation)?;
        let state = record.vector_state(vectors.embedder);
        if !vectors.fit(state, record.info.own_first(), record.info.head) {
            return Ok(false);
        }
        let kept = record.vectors.entry(vectors.embedder.to_owned());
        kept.or_default().extend(vectors.vectors.iter().cloned());
        Ok(true)
    }

    async fn embedders(&self, conversation: ConversationId) -> Result<Vec<String>> {
        let inner = self.lock();
        let kept = inner.get(conversation)?.vectors.iter();
        let kept = kept.filter(|(_, vectors)| !vectors.is_empty());
        Ok(kept.map(|(embedder, _)| embedder.clone()).collect())
    }

    async fn drop_vectors(&self, conversation: ConversationId, embedder: &str) -> Result<()> {
        self.lock().get_mut(conversation)?.vectors.remove(embedder);
        Ok(())
    }
}
