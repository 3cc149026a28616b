//! Erasure of words in the reference store.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{ConversationId, LogEntry, Message, Seq, SeqRange, SummaryBody};

use super::Inner;
use crate::erasure::{
    ERASED, Erase, Erased, ErasedRange, Erasure, Erasures, PREPARED, erased_parts, plan_erasure,
    summaries_to_erase,
};
use crate::error::Result;
use crate::segments::IndexedKind;
use crate::types::Conversation;

impl Inner {
    pub(super) fn erase(&mut self, id: ConversationId, erase: &Erase) -> Result<Erased> {
        let info = self.get(id)?.info.clone();
        let family: Vec<Conversation> = self
            .conversations
            .iter()
            .map(|record| &record.info)
            .filter(|other| other.family == info.family)
            .cloned()
            .collect();
        let mut erased = plan_erasure(&info, &family, erase)?;
        let mut made = BTreeMap::new();
        for seen in &erased.seen_by {
            let record = self.get(seen.conversation)?;
            made.insert(seen.conversation, record.summaries.clone());
            erased.drafts += record.jobs.len() as u64;
        }
        for log in &erased.logs {
            erased.entries += self.with_words(log.conversation, log.range)?;
        }
        erased.copies = self.copies(&erased.logs)?;
        let mut summaries = summaries_to_erase(&erased.seen_by, &made);
        summaries.retain(|(owner, id)| {
            let record = self.get(*owner);
            record.is_ok_and(|record| !record.erased_summaries.contains(id))
        });
        erased.summaries = summaries.len() as u64;
        if erase.dry_run {
            return Ok(erased);
        }
        for log in &erased.logs {
            let record = self.get_mut(log.conversation)?;
            record.forget_index(IndexedKind::Messages, log.range.first.0);
            record.forget_vectors(log.range);
            let erasure = Erasure::new(log.range, erase.now, erase.reason.clone());
            record.erasures.push(erasure);
            let own = record.log.iter_mut();
            for entry in own.filter(|entry| log.range.contains(entry.seq)) {
                entry.message = Message {
                    name: None,
                    meta: None,
                    parts: erased_parts(entry.tokens),
                    ..entry.message.clone()
                };
            }
        }
        for (owner, id) in summaries {
            let record = self.get_mut(owner)?;
            record.forget_index(IndexedKind::Summaries, 0);
            if let Some(index) = record.summary_index.get(&id)
                && let Some(summary) = record.summaries.get_mut(*index)
            {
                summary.body = SummaryBody::new(ERASED);
                summary.messages = None;
                summary.meta = None;
            }
            record.erased_summaries.insert(id);
        }
        for seen in &erased.seen_by {
            let record = self.get_mut(seen.conversation)?;
            record.jobs.clear();
            record.states.retain(|key, _| !key.starts_with(PREPARED));
            record.info.erasures += 1;
            // An erased tool call may come before the first own message of a fork, and the fork's index may contain it.
            for kind in [IndexedKind::Messages, IndexedKind::States] {
                record.forget_index(kind, seen.range.first.0);
            }
        }
        if erase.range.is_none() {
            let record = self.get_mut(id)?;
            record.states.clear();
            record.info.title = None;
            record.info.meta = None;
            record.info.archived = true;
            record.info.updated_at = erase.now;
        }
        Ok(erased)
    }

    /// Finds entries outside of the ranges `logs` that still have words and that have the same hash as an entry in
    /// these ranges. Returns one range for each log, from the first such entry to the last.
    fn copies(&self, logs: &[ErasedRange]) -> Result<Vec<ErasedRange>> {
        let is_named = |id: ConversationId, seq: Seq| {
            let mut logs = logs.iter();
            logs.any(|log| log.conversation == id && log.range.contains(seq))
        };
        let mut hashes = BTreeSet::new();
        for log in logs {
            let own = self.get(log.conversation)?.log.iter();
            let named = own.filter(|entry| log.range.contains(entry.seq));
            hashes.extend(named.map(|entry| entry.hash));
        }
        let mut copies = Vec::new();
        for record in &self.conversations {
            let gone = Erasures::new(record.erasures.clone(), BTreeSet::new());
            let is_copy = |entry: &&LogEntry| {
                let (id, seq) = (record.info.id, entry.seq);
                hashes.contains(&entry.hash) && !is_named(id, seq) && !gone.covers(seq)
            };
            let found: Vec<Seq> = record.log.iter().filter(is_copy).map(|e| e.seq).collect();
            if let (Some(first), Some(last)) = (found.first(), found.last())
                && let Some(range) = SeqRange::new(*first, *last)
            {
                copies.push(ErasedRange {
                    conversation: record.info.id,
                    key: record.info.key.clone(),
                    range,
                });
            }
        }
        Ok(copies)
    }

    /// Returns the number of entries in a range of a conversation's own log that still have words.
    fn with_words(&self, id: ConversationId, range: SeqRange) -> Result<u64> {
        let record = self.get(id)?;
        let gone = Erasures::new(record.erasures.clone(), BTreeSet::new());
        let own = record.log.iter();
        let left = own.filter(|entry| range.contains(entry.seq) && !gone.covers(entry.seq));
        Ok(left.count() as u64)
    }

    pub(super) fn erasures(&self, id: ConversationId) -> Result<Erasures> {
        let record = self.get(id)?;
        let mut entries = Vec::new();
        for segment in &record.info.segments {
            let Some(seen) = segment.up_to(record.info.head) else {
                continue;
            };
            for erasure in &self.get(segment.source)?.erasures {
                if let Some(range) = erasure.range.intersect(&seen) {
                    entries.push(Erasure {
                        range,
                        ..erasure.clone()
                    });
                }
            }
        }
        let lineage = self.lineage(record);
        let mut summaries = BTreeSet::new();
        for scope in &lineage {
            let owner = self.get(scope.conversation)?;
            let gone = owner.erased_summaries.iter();
            let seen = gone.filter(|id| {
                let summary = owner.summary(id);
                summary.is_some_and(|summary| scope.sees(summary.range))
            });
            summaries.extend(seen.cloned());
        }
        Ok(Erasures::new(entries, summaries))
    }
}
