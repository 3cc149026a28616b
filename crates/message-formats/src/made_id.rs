//! External ids of records that have none, made from their text and their place.

use std::collections::BTreeSet;
use std::fmt;

use memory_model::Message;

/// Prefix of the ids of words from Claude Code's queue, because the queue's records have no ids.
pub(crate) const QUEUED: &str = "queued-";

/// Returns whether an external id was made from a record's text.
/// [`SessionBuilder::push`](crate::SessionBuilder::push) makes such ids for records without an id.
pub fn is_made_id(id: &str) -> bool {
    id.strip_prefix(QUEUED).is_some_and(is_hash) || MadeId::parse(id).is_some()
}

/// External id of a record without an id, made from the record's text and its place: `h-`, 16 hex digits of the text's
/// hash, `-`, and a number. [`SessionBuilder::push`](crate::SessionBuilder::push) numbers equal records of a source from 1.
///
/// A session may have the records of several sources. An id of a record that is not of the first one ends with `+` and a
/// hash of its [`source`](Self::source), so that it differs from the ids of equal records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadeId<'a> {
    /// Hash of the record's text.
    pub hash: &'a str,
    /// Number of the record: its ordinal among equal records or, if the id names the source, its ordinal among the
    /// messages of the source.
    pub number: u64,
    /// 16 hex digits of a hash over the messages that the source had when the record was imported.
    pub source: Option<&'a str>,
}

impl<'a> MadeId<'a> {
    /// Creates the id of a record in the first source of a session.
    pub fn new(hash: &'a str, number: u64) -> Self {
        let source = None;
        Self {
            hash,
            number,
            source,
        }
    }

    /// Parses an external id. Returns `None` if it was not made from a record's text and place.
    pub fn parse(id: &'a str) -> Option<Self> {
        let (hash, place) = id.strip_prefix("h-")?.split_once('-')?;
        let (number, source) = match place.split_once('+') {
            Some((number, source)) => (number, Some(source)),
            None => (place, None),
        };
        let is_made = is_hash(hash)
            && source.is_none_or(is_hash)
            && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_made)?;
        Some(Self {
            hash,
            number,
            source,
        })
    }
}

impl fmt::Display for MadeId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h-{}-{}", self.hash, self.number)?;
        match self.source {
            Some(source) => write!(f, "+{source}"),
            None => Ok(()),
        }
    }
}

/// Returns whether a message has neither an id nor a time. `given` are the made ids that its source gives.
pub(crate) fn is_by_place(message: &Message, given: &BTreeSet<String>) -> bool {
    let id = message.external_id.as_ref();
    let made = id.filter(|id| MadeId::parse(id).is_some() && !given.contains(*id));
    made.is_some() && !message.created_at.is_known()
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
