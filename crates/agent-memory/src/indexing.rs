//! The search index that a store keeps.

use memory_model::ConversationId;
#[cfg(doc)]
use memory_search::Embedder;
use memory_search::{
    IndexCheck, IndexProgress, VectorProgress, check_index, extend_index, extend_vectors,
    mend_index, rebuild_index,
};
use memory_store::{FullStore, IndexedKind};

use crate::error::Result;
use crate::memory::Memory;
use crate::session::Session;

/// Number of new messages after which the index is extended.
const STEP: u32 = 16;

/// Maximum number of messages, and of summaries, that one ingest or compaction adds to the index. Later calls add the
/// rest.
const MOST_AT_ONCE: u64 = 1_024;

/// Access to the search index and the vectors of one session. If the session is a fork, the entries that it shares with
/// its parent are in the parent's index.
#[derive(Debug, Clone, Copy)]
pub struct SessionIndex<'a>(&'a Session);

/// Size of a session's search index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSize {
    /// Number of segments, the parts in which the index is stored.
    pub segments: u64,
    /// Number of messages and summaries in the index.
    pub documents: u64,
}

impl SessionIndex<'_> {
    /// Adds the messages and summaries that are not yet in the index, except for the last few: fewer than 16
    /// messages, and at most one summary. A damaged index is first removed and then built again. Also keeps the state of the
    /// summarized messages beside it.
    ///
    /// Ingesting and compacting also extend the index, by a limited number of entries at a time. Call this method to
    /// complete it, for example in a database that was written without an index. Searches find everything without it,
    /// because they read the entries that are not in the index.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn update(&self) -> Result<IndexProgress> {
        let (store, id) = self.store();
        mend_index(store, id).await?;
        let progress = extend_index(store, id, u64::MAX).await?;
        self.0.keep_state().await?;
        Ok(progress)
    }

    /// Removes the index and builds it again, for example after [`check`](Self::check) found damage.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn rebuild(&self) -> Result<IndexProgress> {
        let (store, id) = self.store();
        let progress = rebuild_index(store, id).await?;
        self.0.keep_state().await?;
        Ok(progress)
    }

    /// Returns the number of segments and entries in the index.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn size(&self) -> Result<IndexSize> {
        let (store, id) = self.store();
        let Some(index) = store.index() else {
            return Ok(IndexSize::default());
        };
        let state = index.index_state(id).await?;
        let kinds = [IndexedKind::Messages, IndexedKind::Summaries];
        let segments: Vec<_> = kinds.iter().flat_map(|kind| state.of(*kind)).collect();
        let documents = segments.iter().map(|one| u64::from(one.documents));
        Ok(IndexSize {
            segments: segments.len() as u64,
            documents: documents.sum(),
        })
    }

    /// Compares the index with the session's messages and summaries, and returns the differences.
    ///
    /// # Errors
    /// `Store` if the store fails. Damage to the index is not an error: it is part of the result.
    pub async fn check(&self) -> Result<IndexCheck> {
        let (store, id) = self.store();
        Ok(check_index(store, id).await?)
    }

    /// Embeds the messages that have no vector of the memory's embedder yet, and stores the vectors. These are all
    /// messages that the session sees, including those that it shares with a parent. Has no effect without an embedder.
    ///
    /// If the embedder [calls no model](Embedder::is_cheap), messages are already embedded when they are ingested.
    /// Otherwise call this method between turns. A message without a vector is found only by its words.
    ///
    /// # Errors
    /// An error if the embedder or the store fails. Vectors that were stored before are kept.
    pub async fn embed(&self) -> Result<VectorProgress> {
        let Some(embedder) = &self.0.memory().inner.embedder else {
            return Ok(VectorProgress::default());
        };
        let (store, id) = self.store();
        Ok(extend_vectors(store, id, &**embedder, u64::MAX).await?)
    }

    fn store(&self) -> (&dyn FullStore, ConversationId) {
        (&*self.0.memory().inner.store, self.0.id())
    }
}

impl Session {
    /// Returns access to the session's search index and vectors.
    pub fn index(&self) -> SessionIndex<'_> {
        SessionIndex(self)
    }

    /// Extends the index if the length of the log has passed a multiple of [`STEP`].
    pub(crate) async fn index_after(&self, before: u32, head: u32) {
        if before / STEP != head / STEP {
            self.extend_index().await;
        }
    }

    /// Extends the index if a compaction published summaries, and keeps the state of the conversation. A failure does not fail
    /// the caller, because a state can be read from the log.
    pub(crate) async fn index_summaries(&self, published: u64) {
        if published == 0 {
            return;
        }
        self.extend_index().await;
        if let Err(error) = self.keep_state().await {
            tracing::warn!(session = %self.key(), %error, "the state of the conversation was not kept");
        }
    }

    /// Extends the index. A failure does not fail the caller, because searches read the entries that are not in the
    /// index. [`Memory::close`](crate::Memory::close) tries it again.
    async fn extend_index(&self) {
        if self.memory().inner.keeps_index
            && let Err(error) = self.memory().extend_index(self.id()).await
        {
            tracing::warn!(session = %self.key(), %error, "the search index was not extended");
        }
    }
}

impl Memory {
    /// Extends the index of a session, and notes whether that failed.
    async fn extend_index(&self, id: ConversationId) -> memory_store::Result<()> {
        let extended = extend_index(&*self.inner.store, id, MOST_AT_ONCE).await;
        let mut failed = self.inner.not_indexed();
        match &extended {
            Ok(_) => failed.remove(&id),
            Err(_) => failed.insert(id),
        };
        extended.map(|_| ())
    }

    /// Extends the indexes that could not be extended before.
    pub(crate) async fn extend_failed_indexes(&self) -> memory_store::Result<()> {
        let failed = self.inner.not_indexed().clone();
        for id in failed {
            self.extend_index(id).await?;
        }
        Ok(())
    }
}
