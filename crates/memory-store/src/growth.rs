//! Rules for appending entries to a log, shared by all stores.

use std::collections::BTreeMap;

use memory_model::{EntryKind, Hash, Seq};

use crate::error::{Error, ErrorKind, Result};
use crate::record::KnownEntry;
use crate::types::{Appended, Conversation, EntryOutcome, NewEntry};

/// Last position of the longest log. One more position must fit the type, as an end after the last entry.
const MAX_SEQ: Seq = Seq(u32::MAX - 1);

/// Returns the hash of each entry's message, and the bytes to store. Does not use a store, so that no lock is held
/// meanwhile.
///
/// # Errors
/// `Invalid` if a message cannot be written as JSON.
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

/// State of a log while entries are appended: its last position, cost, chain hash and known external ids.
#[derive(Debug)]
pub struct Growth {
    /// The conversation whose log grows. Its head, tokens and chain include the entries added so far.
    pub conversation: Conversation,
    /// Visible entries, by external id. Includes the entries added so far.
    seen: BTreeMap<String, KnownEntry>,
    outcomes: Vec<EntryOutcome>,
}

/// Position, cost and running sum of an entry that was added to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Position of the entry: see [`memory_model::LogEntry::seq`].
    pub seq: Seq,
    /// Cost of the entry, in tokens. 0 for a note. See [`memory_model::LogEntry::tokens`].
    pub tokens: u64,
    /// Cost of all entries up to and including this entry, in tokens. See [`memory_model::LogEntry::running`].
    pub running: u64,
}

impl Growth {
    /// Creates the state of a log before an append. `seen` contains the entries that have the same external id as an
    /// entry to append, by their external ids. They are entries of the conversation itself or of the log that it
    /// inherits from its parent.
    pub fn new(conversation: Conversation, seen: BTreeMap<String, KnownEntry>) -> Self {
        Self {
            conversation,
            seen,
            outcomes: Vec::new(),
        }
    }

    /// Adds an entry and returns its place in the log. `hash` is the hash of its message, and `body` are the bytes of
    /// its message. If the conversation or the log that it inherits from its parent already has an entry with the same
    /// external id, returns `None` and adds no entry.
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

    /// Returns the result of the append: the outcome of each entry, the last position of the log and its cost.
    pub fn appended(self) -> Appended {
        Appended {
            outcomes: self.outcomes,
            head: self.conversation.head,
            tokens: self.conversation.tokens,
        }
    }
}
