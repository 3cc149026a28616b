//! How a log grows: the rule of appending, which every store follows.

use std::collections::BTreeMap;

use memory_model::{EntryKind, Hash, Seq};

use crate::error::{Error, ErrorKind, Result};
use crate::record::KnownEntry;
use crate::types::{Appended, Conversation, EntryOutcome, NewEntry};

/// The longest log: positions must leave room for "one after the last".
const MAX_SEQ: Seq = Seq(u32::MAX - 1);

/// Returns the bytes to store of each entry, with the hash of its message. Works without a store, so no lock is held.
///
/// # Errors
/// `Invalid` if a message cannot be written.
pub fn hashed_bodies(entries: &[NewEntry]) -> Result<Vec<(Hash, Vec<u8>)>> {
    let hashed = |entry: &NewEntry| {
        let body = entry.message.body().map_err(|source| {
            Error::new(ErrorKind::Invalid, "a message cannot be written as JSON")
                .with_source(source)
        })?;
        Ok((entry.message.hash(&body), body))
    };
    entries.iter().map(hashed).collect()
}

/// Head, tokens, chain and known external ids of a log while entries are appended to it.
#[derive(Debug)]
pub struct Growth {
    /// The conversation with the head, tokens and chain of its log after the entries that were added so far.
    pub conversation: Conversation,
    /// Visible entries by external id.
    seen: BTreeMap<String, KnownEntry>,
    outcomes: Vec<EntryOutcome>,
}

/// Position, cost and running sum that an entry got in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Position of the entry: see [`memory_model::LogEntry::seq`].
    pub seq: Seq,
    /// Cost of the entry, in tokens: see [`memory_model::LogEntry::tokens`].
    pub tokens: u64,
    /// Cost of all entries through this one, in tokens: see [`memory_model::LogEntry::running`].
    pub running: u64,
}

impl Growth {
    /// Creates the state before an append. `seen` are the visible entries that have an external id of an entry to
    /// append.
    pub fn new(conversation: Conversation, seen: BTreeMap<String, KnownEntry>) -> Self {
        Self {
            conversation,
            seen,
            outcomes: Vec::new(),
        }
    }

    /// Adds an entry; `hash` is the hash of its message, `body` are its bytes. Returns `None`, and does not add the
    /// entry, if an entry with its external id is already visible.
    ///
    /// # Errors
    /// `Limit` if the log is full.
    pub fn add(&mut self, entry: &NewEntry, hash: Hash, body: &[u8]) -> Result<Option<Placed>> {
        let message = &entry.message;
        let external_id = message.external_id.as_deref();
        if let Some(known) = external_id.and_then(|id| self.seen.get(id)) {
            let told = known.is_duplicate_of(message, entry.clocked, hash, body);
            self.outcomes.push(match told {
                true => EntryOutcome::Duplicate(known.seq),
                false => EntryOutcome::Conflict(known.seq),
            });
            return Ok(None);
        }
        let log = &mut self.conversation;
        if log.head >= MAX_SEQ {
            let key = &log.key;
            let message = format!("the log of {key} is full: fork it at its head to continue");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let tokens = match message.kind {
            EntryKind::Note => 0,
            EntryKind::Message => entry.tokens,
        };
        log.head = log.head.next();
        log.tokens = log.tokens.saturating_add(tokens);
        log.chain = log.chain.chain(hash);
        if let Some(id) = external_id {
            let known = KnownEntry {
                seq: log.head,
                hash,
                created_at: message.created_at,
                clocked: entry.clocked,
            };
            self.seen.insert(id.to_owned(), known);
        }
        self.outcomes.push(EntryOutcome::Inserted(log.head));
        Ok(Some(Placed {
            seq: log.head,
            tokens,
            running: log.tokens,
        }))
    }

    /// Returns the result of the append: the outcome of each entry, and the log's head and tokens.
    pub fn appended(self) -> Appended {
        Appended {
            outcomes: self.outcomes,
            head: self.conversation.head,
            tokens: self.conversation.tokens,
        }
    }
}
