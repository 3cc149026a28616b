//! Chunks in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use memory_search::segment::Chunk;

use crate::error::{Error, ErrorKind, Result};
use crate::segments::IndexStore;

/// Bytes of chunks that are kept.
const MOST_BYTES: usize = 32 << 20;

/// Segments whose keys are kept.
const MOST_SEGMENTS: usize = 4_096;

/// Keys of segments, and chunks that were read. Segments never change, so that nothing in it gets stale.
#[derive(Debug, Default)]
pub(super) struct ChunkCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    keys: HashMap<u64, Arc<[Vec<u8>]>>,
    chunks: HashMap<(u64, usize), Arc<[u8]>>,
    bytes: usize,
}

impl ChunkCache {
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys of a segment's chunks.
    pub(super) async fn keys(
        &self,
        index: &dyn IndexStore,
        segment: u64,
    ) -> Result<Arc<[Vec<u8>]>> {
        if let Some(keys) = self.with(|inner| inner.keys.get(&segment).cloned()) {
            return Ok(keys);
        }
        let keys: Arc<[Vec<u8>]> = index.index_keys(segment).await?.into();
        if keys.is_empty() {
            return Err(replaced(segment));
        }
        self.with(|inner| {
            if inner.keys.len() >= MOST_SEGMENTS {
                inner.keys.clear();
            }
            inner.keys.insert(segment, Arc::clone(&keys));
        });
        Ok(keys)
    }

    /// The chunks that may hold keys from `key` on that begin with it, or `key` alone.
    pub(super) async fn chunks(
        &self,
        index: &dyn IndexStore,
        segment: u64,
        key: &[u8],
        is_prefix: bool,
    ) -> Result<Vec<Arc<[u8]>>> {
        let keys = self.keys(index, segment).await?;
        let words = keys.partition_point(|key| memory_search::segment::is_records(key));
        let first = keys
            .partition_point(|other| other.as_slice() <= key)
            .saturating_sub(1);
        let end = match is_prefix {
            true => keys.partition_point(|other| other.as_slice() <= key || other.starts_with(key)),
            false => first + 1,
        };
        let numbers = first.max(words)..end.min(keys.len());
        self.numbered(index, segment, &keys, numbers).await
    }

    /// The chunks with the segment's records.
    pub(super) async fn records(
        &self,
        index: &dyn IndexStore,
        segment: u64,
    ) -> Result<Vec<Arc<[u8]>>> {
        let keys = self.keys(index, segment).await?;
        let end = keys.partition_point(|key| memory_search::segment::is_records(key));
        self.numbered(index, segment, &keys, 0..end).await
    }

    async fn numbered(
        &self,
        index: &dyn IndexStore,
        segment: u64,
        keys: &[Vec<u8>],
        numbers: std::ops::Range<usize>,
    ) -> Result<Vec<Arc<[u8]>>> {
        let mut found: Vec<Option<Arc<[u8]>>> = self.with(|inner| {
            let chunk = |number| inner.chunks.get(&(segment, number)).cloned();
            numbers.clone().map(chunk).collect()
        });
        let missing: Vec<Vec<u8>> = keys
            .get(numbers.clone())
            .unwrap_or_default()
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
            .map(|(key, _)| key.clone())
            .collect();
        let mut read: Vec<Chunk> = Vec::new();
        for keys in missing.chunks(256) {
            read.extend(index.index_chunks(segment, keys).await?);
        }
        if read.len() != missing.len() {
            return Err(replaced(segment));
        }
        let mut read = read.into_iter();
        self.with(|inner| {
            for (number, slot) in numbers.zip(&mut found) {
                if slot.is_none() {
                    let Some(chunk) = read.next() else { break };
                    let data: Arc<[u8]> = chunk.data.into();
                    inner.keep((segment, number), &data);
                    *slot = Some(data);
                }
            }
        });
        Ok(found.into_iter().flatten().collect())
    }
}

/// The error for a segment that is there no more: others stand in its place.
fn replaced(segment: u64) -> Error {
    let message = format!("segment {segment} of the search index was replaced: search again");
    Error::new(ErrorKind::Stale, message)
}

impl Inner {
    fn keep(&mut self, at: (u64, usize), data: &Arc<[u8]>) {
        if self.bytes + data.len() > MOST_BYTES {
            self.chunks.clear();
            self.bytes = 0;
        }
        if data.len() <= MOST_BYTES {
            self.bytes += data.len();
            self.chunks.insert(at, Arc::clone(data));
        }
    }
}
