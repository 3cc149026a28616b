//! The search index that a store keeps.

use std::sync::PoisonError;

use memory_search::{
    IndexCheck, IndexProgress, check_index, extend_index, mend_index, rebuild_index,
};

use crate::error::Result;
use crate::session::Session;

/// Messages after which the index is extended.
const STEP: u32 = 16;

/// Messages, and summaries, that are indexed at most while others are ingested or published. More are left for the next
/// time.
const MOST_AT_ONCE: u64 = 1_024;

impl Session {
    /// Indexes all messages and summaries that are not indexed yet, except for the last few: fewer than 16 messages,
    /// and one summary at most. A damaged index is removed first, and built anew.
    ///
    /// Ingesting and compacting index as they go along, some at a time; this method finishes the index, such as in a
    /// database that was written without one. Searches are complete without it: they read the rest unindexed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn index(&self) -> Result<IndexProgress> {
        let store = &*self.memory().inner.store;
        mend_index(store, self.id()).await?;
        Ok(extend_index(store, self.id(), u64::MAX).await?)
    }

    /// Removes the session's search index and makes it anew, such as after
    /// [`check_index`](Self::check_index) found damage.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn rebuild_index(&self) -> Result<IndexProgress> {
        let store = &*self.memory().inner.store;
        Ok(rebuild_index(store, self.id()).await?)
    }

    /// Returns the number of segments of the session's search index, and of the messages and summaries in
    /// them. What a fork shares with its parent is in the parent's index.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn index_size(&self) -> Result<(u64, u64)> {
        let Some(index) = self.memory().inner.store.index() else {
            return Ok((0, 0));
        };
        let segments = index.index_state(self.id()).await?.segments;
        let documents = segments.iter().map(|one| u64::from(one.documents));
        Ok((segments.len() as u64, documents.sum()))
    }

    /// Holds the session's search index against what its messages and summaries say. What a fork shares
    /// with its parent is in the parent's index.
    ///
    /// # Errors
    /// When the store fails. Damage is no error: it is returned.
    pub async fn check_index(&self) -> Result<IndexCheck> {
        let store = &*self.memory().inner.store;
        Ok(check_index(store, self.id()).await?)
    }

    /// Extends the index where the log has grown past a step.
    pub(crate) async fn index_after(&self, before: u32, head: u32) {
        if before / STEP != head / STEP {
            self.extend_index().await;
        }
    }

    /// Extends the index where a compaction published summaries.
    pub(crate) async fn index_summaries(&self, published: u64) {
        if published > 0 {
            self.extend_index().await;
        }
    }

    /// Extends the index. A failure holds nothing up, because the search reads what is not indexed:
    /// [`Memory::close`](crate::Memory::close) returns it.
    async fn extend_index(&self) {
        let inner = &self.memory().inner;
        if !inner.keeps_index {
            return;
        }
        let extended = extend_index(&*inner.store, self.id(), MOST_AT_ONCE).await;
        if let Err(error) = extended {
            tracing::warn!(session = %self.key(), %error, "the search index was not extended");
            let failed = inner.not_indexed.lock();
            failed
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(error);
        }
    }
}
