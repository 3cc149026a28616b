//! Search index segments in the reference store.

use async_trait::async_trait;
use memory_model::ConversationId;

use super::{InMemoryStore, Inner, Record};
use crate::error::Result;
use crate::segments::{
    Chunk, IndexSegment, IndexSnapshot, IndexState, IndexStore, IndexedKind, NewIndexSegment,
};

impl Record {
    /// Removes the index segments of a kind that end at or after `first`.
    pub(super) fn forget_index(&mut self, kind: IndexedKind, first: u32) {
        self.index
            .retain(|(one, _)| one.kind != kind || one.last < first);
    }

    fn index_state(&self) -> IndexState {
        let mut segments: Vec<IndexSegment> =
            self.index.iter().map(|(one, _)| one.clone()).collect();
        segments.sort_by_key(|one| (one.kind.as_str(), one.first));
        IndexState {
            segments,
            erasures: (self.erasures.len() + self.erased_summaries.len()) as u64
                + self.info.erasures,
        }
    }
}

impl Inner {
    fn put_index_segment(
        &mut self,
        conversation: ConversationId,
        new: &NewIndexSegment<'_>,
    ) -> Result<Option<IndexState>> {
        let record = self.get(conversation)?;
        let (state, own_first) = (record.index_state(), record.info.own_first().0);
        if !state.takes(new, own_first) {
            return Ok(None);
        }
        self.index_segments += 1;
        let id = self.index_segments;
        let state = state.with(new, id);
        let record = self.get_mut(conversation)?;
        record
            .index
            .retain(|(one, _)| !new.replaces.contains(&one.id));
        let kept = state.segments.iter().find(|one| one.id == id).cloned();
        record
            .index
            .extend(kept.map(|kept| (kept, new.chunks.to_vec())));
        Ok(Some(state))
    }

    fn chunks_of(&self, segment: u64) -> &[Chunk] {
        let all = self.conversations.iter().flat_map(|record| &record.index);
        let mut found = all.filter(|(one, _)| one.id == segment);
        found.next().map_or(&[], |(_, chunks)| chunks)
    }
}

#[async_trait]
impl IndexStore for InMemoryStore {
    async fn index_snapshot(&self, conversation: ConversationId) -> Result<IndexSnapshot> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        let mut logs = Vec::new();
        for part in &record.info.segments {
            logs.push(inner.get(part.source)?.index_state().segments);
        }
        Ok(IndexSnapshot {
            conversation: record.info.clone(),
            logs,
            last_summary: record.summaries.last().map(|last| last.id.clone()),
        })
    }

    async fn index_state(&self, conversation: ConversationId) -> Result<IndexState> {
        Ok(self.lock().get(conversation)?.index_state())
    }

    async fn index_keys(&self, segment: u64) -> Result<Vec<Vec<u8>>> {
        let inner = self.lock();
        let chunks = inner.chunks_of(segment).iter();
        Ok(chunks.map(|chunk| chunk.key.clone()).collect())
    }

    async fn index_chunks(&self, segment: u64, keys: Option<&[Vec<u8>]>) -> Result<Vec<Chunk>> {
        let inner = self.lock();
        let chunks = inner.chunks_of(segment);
        let Some(keys) = keys else {
            return Ok(chunks.to_vec());
        };
        let chunk = |key: &Vec<u8>| {
            let at = chunks.binary_search_by(|chunk| chunk.key.cmp(key)).ok()?;
            chunks.get(at).cloned()
        };
        Ok(keys.iter().filter_map(chunk).collect())
    }

    async fn put_index_segment(
        &self,
        conversation: ConversationId,
        segment: &NewIndexSegment<'_>,
    ) -> Result<Option<IndexState>> {
        self.lock().put_index_segment(conversation, segment)
    }

    async fn drop_index(&self, conversation: ConversationId) -> Result<()> {
        self.lock().get_mut(conversation)?.index.clear();
        Ok(())
    }
}
