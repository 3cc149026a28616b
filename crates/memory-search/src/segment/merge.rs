//! Merges segments into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::dictionary::{DictionaryWriter, Entries};
use super::grams::GROUP;
use super::postings::{Entry, PostingList};
use super::record::{records, write};
use super::{GRAMS, SegmentData, is_records};
use crate::error::Result;
use crate::ranking::Record;

/// Reads the entries of a segment, chunk after chunk.
struct Source<'s> {
    chunks: std::slice::Iter<'s, super::Chunk>,
    entries: Entries<'s>,
    /// The current entry. Its key is in the heap.
    entry: Option<Entry<'s>>,
    /// Number of documents in the segments before this one.
    documents: u32,
}

impl<'s> Source<'s> {
    /// Reads the next entry, and returns its key. `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            self.entry = self.entries.next()?;
            if self.entry.is_some() {
                return Ok(Some(self.entries.key().to_vec()));
            }
            match self.chunks.find(|chunk| !is_records(&chunk.key)) {
                Some(chunk) => self.entries = Entries::new(&chunk.data),
                None => return Ok(None),
            }
        }
    }
}

/// Merges neighbouring segments. The result is the same as a segment that is built from all their documents. The number
/// of documents in each segment except the last must be a multiple of [`GROUP`].
///
/// # Errors
/// `Corrupt` for bytes that are not a valid segment.
pub(crate) fn merge(parts: &[SegmentData]) -> Result<SegmentData> {
    let mut all: Vec<Record> = Vec::new();
    let (mut sources, mut heap) = (Vec::new(), BinaryHeap::new());
    let mut documents = 0;
    for (at, part) in parts.iter().enumerate() {
        for chunk in part.chunks.iter().filter(|chunk| is_records(&chunk.key)) {
            all.extend(records(&chunk.data)?);
        }
        let mut source = Source {
            chunks: part.chunks.iter(),
            entries: Entries::new(&[]),
            entry: None,
            documents,
        };
        heap.extend(source.next()?.map(|key| Reverse((key, at))));
        sources.push(source);
        documents += part.documents;
    }
    let mut writer = DictionaryWriter::default();
    let mut open: Option<(Vec<u8>, PostingList)> = None;
    while let Some(Reverse((key, at))) = heap.pop() {
        if let Some((before, list)) = open.take_if(|(before, _)| *before != key) {
            writer.push(&before, &list);
        }
        let Some(source) = sources.get_mut(at) else {
            continue;
        };
        let Some(entry) = source.entry.take() else {
            continue;
        };
        let offset = match key.first() {
            Some(&GRAMS) => source.documents / GROUP,
            _ => source.documents,
        };
        let (_, list) = open.get_or_insert_with(|| (key.clone(), PostingList::default()));
        list.append(&entry, offset)?;
        heap.extend(source.next()?.map(|key| Reverse((key, at))));
    }
    if let Some((key, list)) = open {
        writer.push(&key, &list);
    }
    let mut chunks = write(&all);
    chunks.extend(writer.finish());
    Ok(SegmentData { documents, chunks })
}
