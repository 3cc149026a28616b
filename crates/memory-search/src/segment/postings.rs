//! Lists of places (numbers of documents or groups), stored as differences or, if that is shorter, as a bitmap.

use std::borrow::Cow;

use super::bytes::{Reader, damaged, put};
use crate::error::Result;

/// The value of a key in a segment: a list of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'b> {
    /// For a word: number of documents that are ranked by the word. For any other key: number of places.
    pub count: u32,
    /// The last place.
    pub(super) last: u32,
    /// The encoded places.
    pub(super) bytes: &'b [u8],
}

impl Entry<'_> {
    /// Returns the bytes if they are a bitmap with one bit for each place up to the last. `None` if they are
    /// differences, which take at least one byte for each place.
    fn bitmap(&self) -> Result<Option<&[u8]>> {
        let (bytes, count) = (self.bytes.len(), self.count as usize);
        match bytes < count {
            true if count > bytes * 8 => Err(damaged()),
            true => Ok(Some(self.bytes)),
            false => Ok(None),
        }
    }
}

/// A document that contains a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordPosting {
    /// Number of the document in its segment, from 0.
    pub place: u32,
    /// Number of occurrences of the word in the document. 0 if the word occurs only in the raw text of arguments, which
    /// is not ranked.
    pub count: u32,
}

/// A list of places that is being written.
#[derive(Debug, Default, Clone)]
pub(super) struct PostingList {
    /// The count as in [`Entry::count`].
    pub(super) count: u32,
    pub(super) last: u32,
    pub(super) bytes: Vec<u8>,
    is_begun: bool,
}

impl PostingList {
    /// Adds a place after all others.
    pub(super) fn push_place(&mut self, place: u32) {
        self.push_gap(place);
        self.count += 1;
    }

    fn push_gap(&mut self, place: u32) {
        let gap = match self.is_begun {
            true => place.saturating_sub(self.last),
            false => place,
        };
        put(&mut self.bytes, u64::from(gap));
        self.last = place;
        self.is_begun = true;
    }

    /// Adds a document with a word: the number of occurrences, and their positions among the document's words without
    /// stop words.
    pub(super) fn push_word(&mut self, place: u32, count: u32, positions: &[u32]) {
        self.push_gap(place);
        self.count += u32::from(count > 0);
        let has_positions = !positions.is_empty();
        put(
            &mut self.bytes,
            u64::from(count) << 1 | u64::from(has_positions),
        );
        if has_positions {
            put(&mut self.bytes, positions.len() as u64);
            let mut before = 0;
            for position in positions {
                put(&mut self.bytes, u64::from(position.saturating_sub(before)));
                before = *position;
            }
        }
    }

    /// Adds the places of another list, each increased by `offset`.
    pub(super) fn append(&mut self, other: &Entry<'_>, offset: u32) -> Result<()> {
        if other.bitmap()?.is_some() {
            let places = groups(other)?.into_iter();
            places.for_each(|place| self.push_place(place.saturating_add(offset)));
            return Ok(());
        }
        let mut reader = Reader::new(other.bytes);
        if reader.is_empty() {
            return Ok(());
        }
        let first = reader.small()?.saturating_add(offset);
        self.push_gap(first);
        self.bytes.extend_from_slice(reader.rest());
        self.last = other.last.saturating_add(offset);
        self.count += other.count;
        Ok(())
    }

    /// Returns the bytes of a list that contains only places, such as the list of a run of characters.
    pub(super) fn bare(&self) -> Cow<'_, [u8]> {
        let bytes = self.last as usize / 8 + 1;
        if bytes >= self.count as usize {
            return Cow::Borrowed(&self.bytes);
        }
        let mut bitmap = vec![0; bytes];
        let (mut reader, mut at) = (Reader::new(&self.bytes), 0);
        while let Ok(gap) = reader.small() {
            at = gap.saturating_add(at);
            if let Some(byte) = bitmap.get_mut(at as usize / 8) {
                *byte |= 1 << (at % 8);
            }
        }
        Cow::Owned(bitmap)
    }
}

/// Returns the places of an entry without counts, in ascending order: the groups of a run of characters, or the
/// documents of a tool or of a stretch without white space.
///
/// # Errors
/// `Corrupt` for bytes that are not a valid list.
pub(crate) fn groups(entry: &Entry<'_>) -> Result<Vec<u32>> {
    if let Some(bitmap) = entry.bitmap()? {
        let mut places = Vec::with_capacity(entry.count as usize);
        for (first, byte) in (0_u32..).step_by(8).zip(bitmap) {
            let mut bits = *byte;
            while bits != 0 {
                places.push(first + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        return Ok(places);
    }
    let mut reader = Reader::new(entry.bytes);
    let (mut groups, mut at) = (Vec::new(), 0_u32);
    while !reader.is_empty() {
        at = at.saturating_add(reader.small()?);
        groups.push(at);
    }
    Ok(groups)
}

/// Removes the groups that do not contain a run of characters. `kept` must be in ascending order.
///
/// # Errors
/// The errors of [`groups`].
pub(crate) fn retain_groups(entry: &Entry<'_>, kept: &mut Vec<u32>) -> Result<()> {
    if let Some(bitmap) = entry.bitmap()? {
        kept.retain(|group| {
            let byte = bitmap.get(*group as usize / 8);
            byte.is_some_and(|byte| byte >> (group % 8) & 1 == 1)
        });
        return Ok(());
    }
    let having = groups(entry)?;
    kept.retain(|group| having.binary_search(group).is_ok());
    Ok(())
}

/// Returns the documents that contain a word, in ascending order. Includes documents that are not ranked by the word.
///
/// # Errors
/// The errors of [`groups`].
pub(crate) fn places(entry: &Entry<'_>) -> Result<Vec<u32>> {
    let mut places = Vec::with_capacity(entry.count as usize);
    words(entry, &mut |posting, _| places.push(posting.place))?;
    Ok(places)
}

/// Calls `f` with each document that contains a word, in ascending order, and with the positions of the word among the
/// document's words without stop words.
///
/// # Errors
/// The errors of [`groups`].
pub(crate) fn words(entry: &Entry<'_>, f: &mut dyn FnMut(WordPosting, &[u32])) -> Result<()> {
    let mut reader = Reader::new(entry.bytes);
    let (mut place, mut positions) = (0_u32, Vec::new());
    while !reader.is_empty() {
        place = place.saturating_add(reader.small()?);
        let count = reader.small()?;
        positions.clear();
        if count & 1 == 1 {
            let mut position = 0_u32;
            for _ in 0..reader.small()? {
                position = position.saturating_add(reader.small()?);
                positions.push(position);
            }
        }
        let posting = WordPosting {
            place,
            count: count >> 1,
        };
        f(posting, &positions);
    }
    Ok(())
}
