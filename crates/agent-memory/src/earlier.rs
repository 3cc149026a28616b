//! Import of records that earlier versions of the format readers read differently. The stored entries stay, and are not
//! reported as conflicts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Message, Seq};
use memory_store::EntryOutcome;
use message_formats::EarlierReading;

use crate::error::Result;
use crate::ingest::IngestReport;
use crate::session::Session;

/// Returns whether earlier versions read no entry from the record of this message.
pub(crate) fn was_passed_over(
    message: &Message,
    earlier: &BTreeMap<String, EarlierReading>,
) -> bool {
    let id = message.external_id.as_ref();
    matches!(
        id.and_then(|id| earlier.get(id)),
        Some(EarlierReading::PassedOver)
    )
}

impl Session {
    /// Appends the messages of a transcript. `earlier` has the different readings of earlier versions, by external id.
    /// If `head` is given, the log must still end there. Returns a report, and `false` if another append changed the
    /// end of the log, so that the report does not cover all messages.
    pub(crate) async fn ingest_log(
        &self,
        messages: &[Message],
        earlier: &BTreeMap<String, EarlierReading>,
        head: Option<Seq>,
    ) -> Result<(IngestReport, bool)> {
        let messages = self.without_passed_over(messages, earlier).await?;
        let (mut report, is_all) = self.ingest_import(&messages, head).await?;
        let (mut places, mut again) = (Vec::new(), Vec::new());
        for (place, (message, outcome)) in messages.iter().zip(&report.outcomes).enumerate() {
            let was = message.external_id.as_ref().and_then(|id| earlier.get(id));
            if let (EntryOutcome::Conflict(_), Some(EarlierReading::Entry(entry))) = (outcome, was)
            {
                places.push(place);
                again.push((**entry).clone());
            }
        }
        // All these entries have external ids that are already stored, so that no entry is added.
        let (known, _) = self.ingest_import(&again, None).await?;
        for (place, outcome) in places.into_iter().zip(known.outcomes) {
            if let Some(slot) = report.outcomes.get_mut(place) {
                *slot = outcome;
            }
        }
        Ok((report, is_all))
    }

    /// Returns the messages without those that earlier versions did not read and that can no longer be inserted. A
    /// message can no longer be inserted if the next entry is already stored or, without a next entry, if the previous
    /// entry is stored. Other messages that earlier versions did not read do not count as next or previous entries.
    pub(crate) async fn without_passed_over<'a>(
        &self,
        messages: &'a [Message],
        earlier: &BTreeMap<String, EarlierReading>,
    ) -> Result<Cow<'a, [Message]>> {
        let was_passed_over = |message: &Message| was_passed_over(message, earlier);
        if !messages.iter().any(was_passed_over) {
            return Ok(Cow::Borrowed(messages));
        }
        let mut gone = BTreeSet::new();
        for (place, message) in messages.iter().enumerate() {
            if !was_passed_over(message) || self.holds(message).await? {
                continue;
            }
            let (before, behind) = messages.split_at(place);
            let mut others = behind.iter().filter(|message| !was_passed_over(message));
            let neighbour = match others.next() {
                Some(next) => Some(next),
                None => before.iter().rfind(|message| !was_passed_over(message)),
            };
            if let Some(neighbour) = neighbour
                && self.holds(neighbour).await?
            {
                gone.insert(place);
            }
        }
        let kept = messages.iter().enumerate();
        let kept = kept.filter(|(place, _)| !gone.contains(place));
        Ok(Cow::Owned(
            kept.map(|(_, message)| message.clone()).collect(),
        ))
    }

    /// Returns whether an entry with the message's external id is stored.
    async fn holds(&self, message: &Message) -> Result<bool> {
        match &message.external_id {
            Some(id) => Ok(self.position(id).await?.is_some()),
            None => Ok(false),
        }
    }
}
