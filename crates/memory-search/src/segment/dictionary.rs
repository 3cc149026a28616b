//! Sorted keys with their entries, in chunks.

use super::bytes::{Reader, damaged, put, put_bytes};
use super::postings::{Entry, PostingList};
use super::{Chunk, word_of};
use crate::error::Result;

/// Size at which a chunk is completed, in bytes.
const CHUNK_BYTES: usize = 8 * 1024;

/// Writes entries in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct DictionaryWriter {
    chunks: Vec<Chunk>,
    open: Option<Chunk>,
    /// The key that was written last.
    before: Vec<u8>,
}

impl DictionaryWriter {
    pub(super) fn push(&mut self, key: &[u8], list: &PostingList) {
        let chunk = self.open.get_or_insert_with(|| Chunk {
            key: key.to_vec(),
            data: Vec::new(),
        });
        let shared = match chunk.data.is_empty() {
            true => 0,
            false => common(&self.before, key),
        };
        put(&mut chunk.data, shared as u64);
        put_bytes(&mut chunk.data, key.get(shared..).unwrap_or_default());
        put(&mut chunk.data, u64::from(list.count));
        put(&mut chunk.data, u64::from(list.last));
        match word_of(key) {
            Some(_) => put_bytes(&mut chunk.data, &list.bytes),
            None => put_bytes(&mut chunk.data, &list.bare()),
        }
        self.before.clear();
        self.before.extend_from_slice(key);
        if chunk.data.len() >= CHUNK_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        self.chunks.extend(self.open.take());
    }

    pub(super) fn finish(mut self) -> Vec<Chunk> {
        self.close();
        self.chunks
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Reads the next entry. Returns the number of bytes that its key shares with the previous key, the rest of its key,
/// and its value.
#[inline]
fn next<'b>(reader: &mut Reader<'b>) -> Result<(usize, &'b [u8], Entry<'b>)> {
    let (shared, suffix) = (reader.small()? as usize, reader.bytes()?);
    let entry = Entry {
        count: reader.small()?,
        last: reader.small()?,
        bytes: reader.bytes()?,
    };
    Ok((shared, suffix, entry))
}

/// Reads the entries of a chunk one after the other.
#[derive(Debug)]
pub(super) struct Entries<'b> {
    reader: Reader<'b>,
    key: Vec<u8>,
}

impl<'b> Entries<'b> {
    pub(super) fn new(data: &'b [u8]) -> Self {
        Self {
            reader: Reader::new(data),
            key: Vec::new(),
        }
    }

    /// Returns the key of the entry that was read last.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn next(&mut self) -> Result<Option<Entry<'b>>> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        let (shared, suffix, entry) = next(&mut self.reader)?;
        extend(&mut self.key, shared, suffix)?;
        Ok(Some(entry))
    }
}

/// Turns the previous key into the next one.
fn extend(key: &mut Vec<u8>, shared: usize, suffix: &[u8]) -> Result<()> {
    if shared > key.len() {
        return Err(damaged());
    }
    key.truncate(shared);
    key.extend_from_slice(suffix);
    Ok(())
}

/// Returns the entry of a key, from the chunk that may contain it. `None` if the chunk does not contain the key.
///
/// # Errors
/// `Corrupt` for bytes that are not a valid chunk.
pub(crate) fn find<'b>(chunk: &'b [u8], key: &[u8]) -> Result<Option<Entry<'b>>> {
    let mut reader = Reader::new(chunk);
    // Number of bytes that the previous key, which is less, shares with the wanted key.
    let mut alike = 0;
    while !reader.is_empty() {
        let (shared, suffix, entry) = next(&mut reader)?;
        // A key that shares more bytes with the previous key than the wanted key does is also less than the wanted key.
        // A key that shares fewer is greater.
        if shared > alike {
            continue;
        }
        if shared < alike {
            return Ok(None);
        }
        let wanted = key.get(alike..).unwrap_or_default();
        let more = common(suffix, wanted);
        alike += more;
        match suffix.get(more..).cmp(&wanted.get(more..)) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => return Ok(Some(entry)),
            std::cmp::Ordering::Greater => return Ok(None),
        }
    }
    Ok(None)
}

/// Calls `f` with each key of a chunk that has this prefix, and with the entry of the key. `f` returns the maximum
/// number of bytes that the following keys may share with this key. Entries with keys that share more are skipped.
///
/// # Errors
/// The errors of [`find`].
pub(crate) fn with_prefix<'b>(
    chunk: &'b [u8],
    prefix: &[u8],
    f: &mut dyn FnMut(&[u8], Entry<'b>) -> usize,
) -> Result<()> {
    let mut reader = Reader::new(chunk);
    let (mut key, mut most) = (Vec::new(), usize::MAX);
    while !reader.is_empty() {
        let (shared, suffix, entry) = next(&mut reader)?;
        // This key shares its beginning with the key that `f` got, and is skipped.
        if shared > most {
            continue;
        }
        extend(&mut key, shared, suffix)?;
        most = usize::MAX;
        if key.starts_with(prefix) {
            most = f(&key, entry);
        } else if key.as_slice() > prefix {
            return Ok(());
        }
    }
    Ok(())
}
