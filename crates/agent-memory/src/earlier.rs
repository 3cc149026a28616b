//! Import of records that earlier versions of the format readers read differently. The stored entries stay, and are not
//! reported as conflicts.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memory_store::EntryOutcome;
use message_formats::{EarlierReading, EntryHead, SessionLog};

use crate::error::Result;
use crate::error::unreadable;
use crate::ingest::IngestReport;
use crate::placement::PlacedLog;
use crate::session::Session;

/// Maximum number of imported messages that are appended in one transaction.
const BATCH: usize = 256;

impl Session {
    /// Appends the entries of a transcript, in transactions of [`BATCH`] messages. `left_out` is the index of an entry
    /// that is not appended. If the placement has a head, the log must still end there. Returns a report, and `false` if
    /// another append changed the end of the log, so that the report does not cover all messages.
    pub(crate) async fn ingest_log(
        &self,
        placed: &PlacedLog<'_>,
        left_out: Option<usize>,
    ) -> Result<(IngestReport, bool)> {
        let (log, mut head) = (&*placed.log, placed.head);
        let by_place = &placed.by_place;
        let mut gone = self.passed_over(log, left_out).await?;
        gone.extend(left_out);
        gone.extend((0..log.len()).filter(|at| by_place.has(*at)));
        let mut places = (0..log.len()).filter(|at| !gone.contains(at));
        let mut all = IngestReport::default();
        let known = by_place.known.values().chain(by_place.rewritten.values());
        let known = known.copied();
        all.outcomes.extend(known.map(EntryOutcome::Duplicate));
        loop {
            let (mut messages, mut earlier) = (Vec::new(), Vec::new());
            for at in places.by_ref().take(BATCH) {
                let entry = log.entry(at).map_err(|error| unreadable(log, &error))?;
                if let Some(entry) = entry {
                    let mut message = entry.message.into_owned();
                    message.external_id = placed.id(at).map(str::to_owned);
                    messages.push(message);
                    earlier.push(entry.earlier);
                }
            }
            if messages.is_empty() {
                return Ok((all, true));
            }
            let Some(mut appended) = self.ingest_import(messages, head).await? else {
                return Ok((all, false));
            };
            head = head.map(|_| appended.head);
            let (mut slots, mut again) = (Vec::new(), Vec::new());
            for (slot, was) in appended.outcomes.iter_mut().zip(earlier) {
                if let (EntryOutcome::Conflict(_), Some(EarlierReading::Entry(entry))) =
                    (&slot, was.map(Cow::into_owned))
                {
                    slots.push(slot);
                    again.push(*entry);
                }
            }
            if !again.is_empty() {
                // All these entries have external ids that are already stored, so that no entry is added.
                let known = self.ingest_import(again, None).await?.unwrap_or_default();
                for (slot, outcome) in slots.into_iter().zip(known.outcomes) {
                    *slot = outcome;
                }
            }
            all.outcomes.extend(appended.outcomes);
            all.head = appended.head;
        }
    }

    /// Returns the indices of the entries that earlier versions did not read and that can no longer be inserted. An
    /// entry can no longer be inserted if the next entry is already stored or, without a next entry, if the previous
    /// entry is stored. Other entries that earlier versions did not read do not count as next or previous entries, and
    /// neither does the entry `left_out`.
    pub(crate) async fn passed_over(
        &self,
        log: &SessionLog,
        left_out: Option<usize>,
    ) -> Result<BTreeSet<usize>> {
        let mut gone = BTreeSet::new();
        let is_other = |at: &usize| {
            let head = log.head(*at).filter(|head| !head.passed_over);
            head.is_some() && Some(*at) != left_out
        };
        for (at, head) in log.heads().enumerate() {
            if !head.passed_over || Some(at) == left_out || self.holds(head).await? {
                continue;
            }
            let next = (at + 1..log.len()).find(is_other);
            let neighbour = next.or_else(|| (0..at).rfind(is_other));
            if let Some(neighbour) = neighbour.and_then(|at| log.head(at))
                && self.holds(neighbour).await?
            {
                gone.insert(at);
            }
        }
        Ok(gone)
    }

    /// Returns whether an entry with this external id is stored.
    async fn holds(&self, head: EntryHead<'_>) -> Result<bool> {
        match head.id {
            Some(id) => Ok(self.position(id).await?.is_some()),
            None => Ok(false),
        }
    }
}
