//! Segments: each is the index of a section of a conversation.
//!
//! A segment is built once from messages or from summaries, and never changes. Neighbouring segments are
//! [merged](merge()) into larger ones. A segment is a list of [chunks](Chunk) in the order of their keys, so a store
//! handles only keys and bytes. A segment contains
//!
//! - a [record](crate::ranking::Record) of each message: its position, role, time, and the properties that a ranking
//!   needs;
//! - each run of three characters in lower case, with the pairs of messages that contain it. The runs are taken from
//!   the text as written and from its composed Unicode form;
//! - each length of the longest stretch without white space, from 16 characters on, with its messages;
//! - each tool, with the messages that call it or contain its result;
//! - each word, with the messages that contain it, the number of occurrences, and their positions.
//!
//! For echoes, the calls and results of memory tools ([`CallNames`](crate::calls::CallNames)), a segment lists only the
//! tools. Their words and runs are left out. The runs, stretches and words select a superset of the matching messages:
//! every message that a [`Matcher`](crate::matching::Matcher) accepts satisfies its [`Need`].

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

/// First byte of the keys of records.
const RECORDS: u8 = b'd';
/// First byte of the keys of runs of three characters.
const GRAMS: u8 = b'g';
/// First byte of the keys of stretches without white space.
const UNBROKEN: u8 = b'r';
/// First byte of the keys of tools.
const TOOLS: u8 = b't';
/// First byte of the keys of words.
const WORDS: u8 = b'w';

/// All data of one segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentData {
    /// Number of documents in the segment: messages, or summaries.
    pub documents: u32,
    /// Chunks of the segment, in the order of their keys.
    pub chunks: Vec<Chunk>,
}

/// Returns the key of an entry in a section. It is also the prefix of the keys of all entries that begin with `text`.
fn key_of(section: u8, text: &str) -> Vec<u8> {
    [&[section], text.as_bytes()].concat()
}

/// Returns the key of a word. It is also the prefix of the keys of all words that begin with `term`.
pub(crate) fn word_key(term: &str) -> Vec<u8> {
    key_of(WORDS, term)
}

/// Returns the word in a key. For the beginning of a key: its whole characters. `None` for a key of another section.
pub(crate) fn word_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[WORDS]).map(whole_text)
}

/// Returns the prefix of the keys of all stretches without white space.
pub(crate) fn unbroken_prefix() -> Vec<u8> {
    vec![UNBROKEN]
}

/// Returns the length in a key of stretches without white space, in characters. The value 255 stands for any length of
/// at least 255 characters. Returns `None` for a key of another section.
pub(crate) fn unbroken_of(key: &[u8]) -> Option<u8> {
    match key {
        [UNBROKEN, chars] => Some(*chars),
        _ => None,
    }
}

/// Returns the key of a tool. It is also the prefix of the keys of all tools that begin with `name`.
pub(crate) fn tool_key(name: &str) -> Vec<u8> {
    key_of(TOOLS, name)
}

/// Returns the tool in a key. `None` for a key of another section.
pub(crate) fn tool_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[TOOLS]).map(whole_text)
}

/// Returns the key of a run of characters. It is also the prefix of the keys of all runs that begin with `gram`.
pub(crate) fn gram_key(gram: &str) -> Vec<u8> {
    key_of(GRAMS, gram)
}

/// Returns the run of characters in a key. For the beginning of a key: its whole characters. `None` for a key of
/// another section.
pub(crate) fn gram_of(key: &[u8]) -> Option<&str> {
    key.strip_prefix(&[GRAMS]).map(whole_text)
}

/// Returns the text of some bytes, without a character that is cut off at the end.
fn whole_text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Returns whether the chunk with this key contains records.
pub(crate) fn is_records(key: &[u8]) -> bool {
    key.first() == Some(&RECORDS)
}

#[cfg(test)]
mod tests;
