//! A cache of index chunks in memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use memory_store::{Chunk, Error, ErrorKind, IndexSegment, IndexStore};

use super::seal::Seal;
use crate::error::Result;
use crate::segment::is_records;

/// Maximum size of the chunks in the cache, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// Maximum number of segments with chunk keys in the cache.
const MOST_SEGMENTS: usize = 4_096;

/// The keys of a segment's chunks, in ascending order.
#[derive(Debug)]
pub(super) struct ChunkKeys {
    all: Vec<Vec<u8>>,
    /// The first eight bytes of each key. They are adjacent in memory, because reading keys takes most of the time of a
    /// look-up.
    beginnings: Vec<u64>,
}

impl ChunkKeys {
    fn new(keys: Vec<Vec<u8>>) -> Self {
        Self {
            beginnings: keys.iter().map(|key| beginning(key)).collect(),
            all: keys,
        }
    }

    /// Returns the number of the chunk that may contain a key. `None` if no chunk does.
    fn chunk_of(&self, key: &[u8]) -> Option<usize> {
        let wanted = beginning(key);
        let first = self.beginnings.partition_point(|other| *other < wanted);
        let same = self.beginnings.get(first..).unwrap_or_default();
        let same = same.partition_point(|other| *other == wanted);
        let same = self.all.get(first..first + same).unwrap_or_default();
        let upto = same.partition_point(|other| other.as_slice() <= key);
        let last = (first + upto).checked_sub(1)?;
        // The records come before all words and runs of characters.
        let chunk = self.all.get(last)?;
        (!is_records(chunk)).then_some(last)
    }
}

/// Returns the first eight bytes of a key as a number, padded with zeros. Ascending numbers mean ascending keys.
fn beginning(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

/// Id and seal (checksums) of a segment. Two segments with different seals are different.
type Sealed = (u64, Seal);

/// A cache of chunk keys and chunks. Segments never change, so the cache is never out of date. Keys and chunks with a
/// wrong checksum are not kept. Their segment is no longer trusted, and a search reads the messages directly.
#[derive(Debug, Default)]
pub(super) struct ChunkCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    keys: HashMap<Sealed, Arc<ChunkKeys>>,
    chunks: HashMap<(Sealed, usize), Arc<[u8]>>,
    bytes: usize,
    /// Segments with a missing chunk. They were probably replaced by other segments, unless a later search reads them
    /// again.
    absent: HashSet<Sealed>,
    damaged: HashSet<Sealed>,
}

impl ChunkCache {
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether a segment has a seal and no known damage.
    pub(super) fn trusts(&self, segment: &IndexSegment) -> bool {
        let sealed = Seal::of(segment).map(|seal| (segment.id, seal));
        sealed.is_some_and(|sealed| self.with(|inner| !inner.damaged.contains(&sealed)))
    }

    /// Returns the number of segments that are not trusted.
    pub(super) fn distrusted(&self) -> usize {
        self.with(|inner| inner.damaged.len())
    }

    /// Records that a segment cannot be read, and returns the error that makes the search start again. The segment is
    /// no longer trusted if it is damaged, or if a chunk was already missing in an earlier attempt, because then no
    /// other segment has replaced it.
    fn unreadable(&self, sealed: Sealed, is_damaged: bool) -> Error {
        self.with(|inner| {
            if inner.absent.len() + inner.damaged.len() >= MOST_SEGMENTS {
                inner.absent.clear();
                inner.damaged.clear();
            }
            if is_damaged || !inner.absent.insert(sealed) {
                inner.damaged.insert(sealed);
            }
        });
        let message = format!(
            "segment {} of the search index was replaced: search again",
            sealed.0
        );
        Error::new(ErrorKind::Stale, message)
    }
}

/// The index that a search reads, with its cache.
#[derive(Debug)]
pub(super) struct Handle<'s> {
    /// The index. `None` for a search without an index, which sees no segment.
    pub(super) index: Option<&'s dyn IndexStore>,
    pub(super) cache: &'s ChunkCache,
}

impl Handle<'_> {
    fn index(&self) -> Result<&dyn IndexStore> {
        let none = || Error::new(ErrorKind::Corrupt, "the store keeps no search index");
        Ok(self.index.ok_or_else(none)?)
    }

    /// Returns the keys of a segment's chunks.
    async fn keys(&self, segment: &IndexSegment) -> Result<(Sealed, Arc<ChunkKeys>)> {
        let Some(seal) = Seal::of(segment) else {
            let message = format!(
                "segment {} of the search index has no seal: index again",
                segment.id
            );
            return Err(Error::new(ErrorKind::Corrupt, message).into());
        };
        let sealed = (segment.id, seal);
        if let Some(keys) = self.cache.with(|inner| inner.keys.get(&sealed).cloned()) {
            return Ok((sealed, keys));
        }
        let keys = self.index()?.index_keys(segment.id).await?;
        if keys.is_empty() || !seal.has_keys(&keys) {
            return Err(self.cache.unreadable(sealed, !keys.is_empty()).into());
        }
        let keys = Arc::new(ChunkKeys::new(keys));
        self.cache.with(|inner| {
            if inner.keys.len() >= MOST_SEGMENTS {
                inner.keys.clear();
            }
            inner.keys.insert(sealed, Arc::clone(&keys));
        });
        Ok((sealed, keys))
    }

    /// Returns the chunks that may contain keys with this `prefix`, and that the filter `may_hold` accepts. The filter
    /// gets the first key of a chunk, and the beginning that all its keys have in common. `None` if there are more than
    /// `most` chunks.
    pub(super) async fn chunks_among(
        &self,
        segment: &IndexSegment,
        prefix: &[u8],
        may_hold: &(dyn Fn(&[u8], &[u8]) -> bool + Sync),
        most: usize,
    ) -> Result<Option<Vec<Arc<[u8]>>>> {
        let (segment, keys) = self.keys(segment).await?;
        let first = keys.chunk_of(prefix);
        let begin = keys.all.partition_point(|other| other.as_slice() <= prefix);
        let end = keys
            .all
            .partition_point(|other| other.as_slice() <= prefix || other.starts_with(prefix));
        // All keys between two chunk keys with a common beginning have the same beginning.
        let between = |number: &usize| {
            let two = keys.all.get(*number).zip(keys.all.get(number + 1));
            let Some((from, upto)) = two.filter(|_| number + 1 < end) else {
                return true;
            };
            let alike = from.iter().zip(upto).take_while(|(a, b)| a == b).count();
            may_hold(from, from.get(..alike).unwrap_or_default())
        };
        let numbers = first.into_iter().chain(begin..end);
        let numbers: Vec<usize> = numbers.filter(between).collect();
        if numbers.len() > most {
            return Ok(None);
        }
        let chunks = self.numbered(segment, &keys.all, &numbers, true);
        Ok(Some(chunks.await?))
    }

    /// Returns, for each key, the chunk that may contain it. If `is_kept` is `true`, the cache keeps these chunks.
    pub(super) async fn chunks_of(
        &self,
        segment: &IndexSegment,
        wanted: &[Vec<u8>],
        is_kept: bool,
    ) -> Result<Vec<Option<Arc<[u8]>>>> {
        let (segment, keys) = self.keys(segment).await?;
        let places: Vec<Option<usize>> = wanted.iter().map(|key| keys.chunk_of(key)).collect();
        let mut numbers: Vec<usize> = places.iter().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let chunks = self.numbered(segment, &keys.all, &numbers, is_kept).await?;
        let chunk = |number: usize| {
            let at = numbers.binary_search(&number).ok()?;
            chunks.get(at).cloned()
        };
        Ok(places
            .into_iter()
            .map(|place| place.and_then(chunk))
            .collect())
    }

    /// Returns the chunks with the segment's records.
    pub(super) async fn record_chunks(&self, segment: &IndexSegment) -> Result<Vec<Arc<[u8]>>> {
        let (segment, keys) = self.keys(segment).await?;
        let end = keys.all.partition_point(|key| is_records(key));
        let numbers: Vec<usize> = (0..end).collect();
        self.numbered(segment, &keys.all, &numbers, true).await
    }

    /// Returns chunks by their numbers, which must be in ascending order.
    async fn numbered(
        &self,
        segment: Sealed,
        keys: &[Vec<u8>],
        numbers: &[usize],
        is_kept: bool,
    ) -> Result<Vec<Arc<[u8]>>> {
        let mut found: Vec<Option<Arc<[u8]>>> = self.cache.with(|inner| {
            let chunk = |number: &usize| inner.chunks.get(&(segment, *number)).cloned();
            numbers.iter().map(chunk).collect()
        });
        let missing = numbers.iter().zip(&found);
        let missing = missing.filter(|(_, found)| found.is_none());
        let missing: Vec<Vec<u8>> = missing
            .filter_map(|(number, _)| keys.get(*number).cloned())
            .collect();
        let mut read: Vec<Chunk> = Vec::new();
        for keys in missing.chunks(256) {
            read.extend(self.index()?.index_chunks(segment.0, Some(keys)).await?);
        }
        if read.len() != missing.len() {
            return Err(self.cache.unreadable(segment, false).into());
        }
        if read.is_empty() {
            return Ok(found.into_iter().flatten().collect());
        }
        let opened = missing.iter().zip(read);
        let opened = opened.map(|(key, chunk)| segment.1.opened(key, chunk.data));
        let Some(read) = opened.collect::<Option<Vec<Vec<u8>>>>() else {
            return Err(self.cache.unreadable(segment, true).into());
        };
        let mut read = read.into_iter();
        self.cache.with(|inner| {
            for (number, slot) in numbers.iter().zip(&mut found) {
                if slot.is_none() {
                    let Some(data) = read.next() else { break };
                    let data: Arc<[u8]> = data.into();
                    if is_kept {
                        inner.keep((segment, *number), &data);
                    }
                    *slot = Some(data);
                }
            }
        });
        Ok(found.into_iter().flatten().collect())
    }
}

impl Inner {
    fn keep(&mut self, at: (Sealed, usize), data: &Arc<[u8]>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the same result as a look at all keys.
    #[test]
    fn chunks_are_found_by_their_keys() {
        let rng = &mut fastrand::Rng::with_seed(5);
        let key = |rng: &mut fastrand::Rng| {
            let mut key = vec![b"dgw"[rng.usize(..3)]];
            let length = [0, 2, 6, 7, 8, 12][rng.usize(..6)];
            key.extend((0..length).map(|_| [0, b'a', b'b', 255][rng.usize(..4)]));
            key
        };
        for _ in 0..300 {
            let mut all: Vec<Vec<u8>> = (0..rng.usize(1..200)).map(|_| key(rng)).collect();
            all.sort_unstable();
            all.dedup();
            let keys = ChunkKeys::new(all.clone());
            for _ in 0..50 {
                let wanted = key(rng);
                let last = all.iter().rposition(|other| *other <= wanted);
                let last = last.filter(|last| !all[*last].starts_with(b"d"));
                assert_eq!(keys.chunk_of(&wanted), last, "{wanted:?} among {all:?}");
            }
        }
    }
}
