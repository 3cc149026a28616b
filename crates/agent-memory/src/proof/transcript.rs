//! Comparison of stored sessions with a transcript.

use std::collections::BTreeMap;

use memory_model::{EntryKind, LogEntry, Message, Seq};
use memory_store::implementors::KnownEntry;
use memory_store::{LogRead, Violation, ViolationKind};
use message_formats::Transcript;

use crate::error::Result;
use crate::error::unreadable;
use crate::import::known_past;
use crate::memory::Memory;
use crate::session::Session;

/// Maximum number of entries that are looked up at once.
const BATCH: usize = 256;

/// Result of comparing stored sessions with a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptCheck {
    /// Number of sessions in the transcript.
    pub sessions: u64,
    /// Number of entries in the transcript, including notes.
    pub entries: u64,
    /// Differences that were found.
    pub violations: Vec<Violation>,
}

/// Checks that every entry of a transcript is stored unchanged and in order, except that outputs that were saved in files may be
/// stored later. An entry is found in the session to which
/// [`Memory::import`] would add it. Does not write to the store.
///
/// # Errors
/// `Store` if the store fails, and `Invalid` if the transcript cannot be read back.
pub async fn check_transcript(memory: &Memory, transcript: &Transcript) -> Result<TranscriptCheck> {
    let mut check = TranscriptCheck::default();
    for placed in memory.place(transcript).await?.logs {
        let log = &*placed.log;
        let key = &log.key;
        check.sessions += 1;
        check.entries += log.len() as u64;
        let mut add = |kind, message: String| check.violations.push(Violation::new(kind, message));
        let Some(session) = memory.find_session(key.clone()).await? else {
            let hint = match log.named {
                true => "",
                false => ", and names no session: give the one to compare it with",
            };
            let message = format!(
                "{key}: the session is missing: the transcript has {} entries of it{hint}",
                log.len()
            );
            add(ViolationKind::SessionMissing, message);
            continue;
        };
        let left_out = known_past(&session, log).await?;
        let places = (0..log.len()).filter(|at| Some(*at) != left_out);
        let places: Vec<usize> = places.collect();
        let (mut last, mut missing) = (Seq::NONE, Vec::new());
        for places in places.chunks(BATCH) {
            let mut read = Vec::new();
            for at in places {
                let entry = log.entry(*at).map_err(|error| unreadable(log, &error))?;
                read.extend(entry);
            }
            let ids = read.iter().map(|message| message.external_id.clone());
            let ids: Vec<String> = ids.map(Option::unwrap_or_default).collect();
            let positions = memory.inner.store.find(session.id(), &ids).await?;
            let stored = session.entries_at(positions.iter().flatten()).await?;
            for ((message, id), position) in read.iter().zip(ids).zip(positions) {
                let Some((position, stored)) = position.and_then(|at| Some((at, stored.get(&at)?)))
                else {
                    missing.push(id);
                    continue;
                };
                if !is_same(message, stored)? {
                    let message =
                        format!("{key}: entry {position} differs from {id} of the transcript");
                    add(ViolationKind::EntryChanged, message);
                }
                if is_saved_output(message) {
                    continue;
                }
                if position <= last {
                    let message = format!(
                        "{key}: entry {position} comes before entry {last}, but the transcript has {id} after it"
                    );
                    add(ViolationKind::EntryMisplaced, message);
                }
                last = last.max(position);
            }
        }
        if let (Some(first), Some(end)) = (missing.first(), missing.last()) {
            let message = match missing.len() {
                1 => format!("{key}: {first} of the transcript is not stored"),
                many => format!(
                    "{key}: {many} entries of the transcript are not stored, from {first} to {end}"
                ),
            };
            add(ViolationKind::EntryMissing, message);
        }
    }
    Ok(check)
}

/// Returns whether a message is an output that the agent's program saved in a file. If the file was not there at the first
/// import, the output is stored later than the messages behind it.
fn is_saved_output(message: &Message) -> bool {
    let id = message.external_id.as_deref();
    message.kind == EntryKind::Note && id.is_some_and(|id| id.ends_with("/output"))
}

/// Returns whether a message of a transcript is the stored one. Compares the hash, which stays when words are erased.
fn is_same(message: &Message, stored: &LogEntry) -> Result<bool> {
    let known = KnownEntry {
        seq: stored.seq,
        hash: stored.hash,
        created_at: stored.created_at,
        clocked: false,
    };
    let body = message.body()?;
    Ok(known.is_duplicate_of(message, false, message.hash(&body), &body))
}

impl Session {
    /// Reads the entries at some positions.
    async fn entries_at(
        &self,
        positions: impl Iterator<Item = &Seq>,
    ) -> Result<BTreeMap<Seq, LogEntry>> {
        let mut found = BTreeMap::new();
        let mut rest = LogRead::at(positions.copied());
        while let Some(read) = rest {
            let page = self.memory().inner.store.read(self.id(), &read).await?;
            found.extend(page.items.into_iter().map(|entry| (entry.seq, entry)));
            rest = page.next.map(|range| LogRead { range, ..read });
        }
        Ok(found)
    }
}
