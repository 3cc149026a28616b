//! The occurrences of a term.

use super::block::Entry;

/// Number of a term in a corpus.
pub(super) type TermId = u32;

/// A document or an episode that contains a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    /// Number of the document or episode.
    pub(super) place: u32,
    /// Number of occurrences of the term.
    pub(super) count: u32,
}

/// The occurrences of one term.
#[derive(Debug, Default)]
pub(super) struct Postings {
    pub(super) documents: Vec<Posting>,
    pub(super) episodes: Vec<Posting>,
    /// Positions of the term among the words without stop words of each document.
    pub(super) positions: Vec<u32>,
    /// For each document, the offset of its first position in `positions`.
    pub(super) starts: Vec<u32>,
    /// Number of further documents that contain the term, but are not in `documents`. `None` if unknown.
    pub(super) unread: Option<usize>,
    /// Whether the occurrences in all documents without words were [loaded](super::corpus::Corpus::load).
    pub(super) is_loaded: bool,
}

impl Postings {
    /// Returns the positions of the term in the document at index `at` of `documents`.
    pub(super) fn positions(&self, at: usize) -> &[u32] {
        let start = |at: usize| self.starts.get(at).map(|start| *start as usize);
        let from = start(at).unwrap_or(self.positions.len());
        let to = start(at + 1).unwrap_or(self.positions.len());
        self.positions.get(from..to).unwrap_or_default()
    }

    /// Frees unused memory. Returns the number of bytes in use.
    pub(super) fn shrink(&mut self) -> usize {
        self.documents.shrink_to_fit();
        self.episodes.shrink_to_fit();
        self.positions.shrink_to_fit();
        self.starts.shrink_to_fit();
        let postings = self.documents.len() + self.episodes.len();
        postings * size_of::<Posting>() + (self.positions.len() + self.starts.len()) * 4
    }

    /// Removes the documents from number `length` on.
    pub(super) fn truncate(&mut self, length: u32, entries: &[Entry]) {
        let kept = self.documents.partition_point(|one| one.place < length);
        for gone in self.documents.drain(kept..).rev() {
            let episode = entries.get(gone.place as usize).map(|entry| entry.episode);
            if let Some(last) = self.episodes.last_mut()
                && episode == Some(last.place)
            {
                last.count = last.count.saturating_sub(gone.count);
                if last.count == 0 {
                    self.episodes.pop();
                }
            }
        }
        if let Some(start) = self.starts.get(kept) {
            self.positions.truncate(*start as usize);
        }
        self.starts.truncate(kept);
    }

    /// Counts one more occurrence in a document. Documents must come in ascending order. Returns whether the document
    /// is new in the list.
    pub(super) fn raise(&mut self, place: u32, episode: u32) -> bool {
        let is_new = raise(&mut self.documents, place, 1);
        if is_new {
            self.starts.push(count(self.positions.len()));
        }
        raise(&mut self.episodes, episode, 1);
        is_new
    }
}

/// Adds `count` occurrences in a document or episode. Places must come in ascending order. Returns whether the place is
/// new in the list.
pub(super) fn raise(postings: &mut Vec<Posting>, place: u32, count: u32) -> bool {
    match postings.last_mut() {
        Some(last) if last.place == place => {
            last.count += count;
            false
        }
        _ => {
            postings.push(Posting { place, count });
            true
        }
    }
}

/// Converts a number of documents, terms or episodes. Four thousand million of them never fit in memory.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
