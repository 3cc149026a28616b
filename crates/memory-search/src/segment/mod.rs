//! Segments: the index of a stretch of a conversation.
//!
//! A segment is made once from messages, or from summaries, and never changed; neighbouring segments are
//! [merged](merge()) into larger ones. It is a list of [chunks](Chunk) in the order of their keys, so that a
//! store needs to know no more than keys and bytes. It holds
//!
//! - a [record](crate::ranking::Record) of each message: its position, role, time, and the properties that a ranking
//!   needs;
//! - each run of three characters in lower case, with the pairs of messages that have it, of a text as it is written
//!   and in its composed form;
//! - each length of the longest stretch without white space, from 16 characters on, with the messages that have one;
//! - each tool, with the messages that call it or have its result;
//! - each word, with the messages that have it, how often, and at which positions.
//!
//! Echoes ([`CallNames`](crate::calls::CallNames)) are known by their tools alone: their words and runs are left out.
//! The runs, stretches and words of a segment select a superset for a [`Matcher`](crate::matching::Matcher): every
//! message that matches is among the messages that [`Need`] leaves.

mod build;
mod bytes;
mod dictionary;
mod grams;
mod merge;
mod need;
mod postings;
mod record;
mod unbroken;

use memory_store::Chunk;

pub(crate) use build::variants;
pub(crate) use build::{FORMAT, SegmentBuilder};
pub(crate) use dictionary::{find, with_prefix};
pub(crate) use grams::GROUP;
pub(crate) use merge::merge;
pub(crate) use need::char_set;
pub(crate) use need::{CharSet, Need};
pub(crate) use postings::{Entry, groups, places, retain_groups, words};
pub(crate) use record::{last_summary, records};

/// Section of the records.
const RECORDS: u8 = b'd';
/// Section of the runs of three characters.
const GRAMS: u8 = b'g';
/// Section of the stretches without white space.
const UNBROKEN: u8 = b'r';
/// Section of the tools.
const TOOLS: u8 = b't';
/// Section of the words.
const WORDS: u8 = b'w';

/// A whole segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentData {
    /// Number of documents in the segment: messages, or summaries.
    pub documents: u32,
    /// Chunks of the segment, in the order of their keys.
    pub chunks: Vec<Chunk>,
}

/// The key of an entry of a section, and the beginning of the keys of all entries with this beginning.
fn key_of(section: u8, text: &str) -> Vec<u8> {
    [&[section], text.as_bytes()].concat()
}

/// The key of a word's entry, and the beginning of the keys of all words with this beginning.
pub(crate) fn word_key(term: &str) -> Vec<u8> {
    key_of(WORDS, term)
}

/// The word of an entry's key, or the whole characters of the beginning of one; `None` for another entry's.
pub(crate) fn word_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[WORDS]).map(whole_text)
}

/// The key of all stretches without white space.
pub(crate) fn unbroken_prefix() -> Vec<u8> {
    vec![UNBROKEN]
}

/// The length, in characters, of the stretches without white space that an entry lists; 255 for any length from 255 on.
/// `None` for an entry of another section.
pub(crate) fn unbroken_of(key: &[u8]) -> Option<u8> {
    match key {
        [UNBROKEN, chars] => Some(*chars),
        _ => None,
    }
}

/// The key of a tool's entry, and the beginning of the keys of all tools with this beginning.
pub(crate) fn tool_key(name: &str) -> Vec<u8> {
    key_of(TOOLS, name)
}

/// The tool of an entry's key; `None` for another entry's.
pub(crate) fn tool_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[TOOLS]).map(whole_text)
}

/// The key of the entry of a run of characters, and the beginning of the keys of all runs with this beginning.
pub(crate) fn gram_key(gram: &str) -> Vec<u8> {
    key_of(GRAMS, gram)
}

/// The run of characters of an entry's key, or the whole characters of the beginning of one; `None` for another
/// entry's.
pub(crate) fn gram_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[GRAMS]).map(whole_text)
}

/// A text, without a character that is cut off at its end.
fn whole_text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Whether a chunk of this key holds records.
pub(crate) fn is_records(key: &[u8]) -> bool {
    key.first() == Some(&RECORDS)
}

#[cfg(test)]
mod tests;
