//! Facts of conversations: texts that the entries of a conversation have in common, against which they are compressed.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use memory_model::ConversationId;
use memory_store::{Conversation, NewEntry, Result};

use super::SqlStore;
use super::known_facts::KnownFacts;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::message;
use crate::pack::Facts;
use crate::row::Columns as _;

/// Number of appended entries with metadata after which a store looks for facts of a conversation: texts that the
/// metadata of its entries have in common.
const FACTS_FROM: usize = 8;
/// Maximum number of entries of one append with metadata that are searched for common texts.
const FACTS_UP_TO: usize = 64;
/// Maximum number of conversations with facts (dictionaries of common texts) that are kept in memory. The facts of one
/// conversation take about 100 kB in memory.
const FACTS_CACHE: usize = 64;

impl<D: Database> SqlStore<D> {
    fn known_facts(&self) -> MutexGuard<'_, BTreeMap<ConversationId, KnownFacts>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remembered_facts(&self, id: ConversationId) -> Option<Facts> {
        self.known_facts().get(&id)?.facts.clone()
    }

    pub(super) fn remember_facts(&self, id: ConversationId, known: KnownFacts) {
        let mut cache = self.known_facts();
        if cache.len() >= FACTS_CACHE && !cache.contains_key(&id) {
            cache.clear();
        }
        cache.insert(id, known);
    }

    /// Reads the facts of a conversation (the texts with which its entries are compressed) from the database.
    pub(super) async fn facts_of(
        &self,
        on: &mut impl Executor,
        family: Family,
        id: ConversationId,
    ) -> Result<Option<Facts>> {
        let Some(row) = on.first(&message::facts(family, id.0)).await? else {
            return Ok(None);
        };
        let (text, revision) = (row.text(0)?, row.int(1)?);
        let known = self.remembered_facts(id);
        match known.filter(|known| known.revision() == revision && known.text() == text) {
            Some(known) => Ok(Some(known)),
            None => Facts::new(text, revision).map(Some),
        }
    }

    /// Returns the facts (common texts that serve as a dictionary) with which to compress the entries that a
    /// transaction appends, and whether the facts are new and must be stored. The transaction must have read `info`,
    /// because another process may have erased words after the facts were looked up.
    pub(super) async fn facts_for(
        &self,
        on: &mut impl Executor,
        family: Family,
        info: &Conversation,
        entries: &[NewEntry],
    ) -> Result<(Option<Facts>, bool)> {
        let metas: Vec<&str> = entries
            .iter()
            .filter_map(|entry| Some(entry.message.meta.as_ref()?.as_str()))
            .take(FACTS_UP_TO)
            .collect();
        if metas.is_empty() {
            return Ok((None, false));
        }
        let erasures = Some(info.erasures);
        let is_known = |known: &KnownFacts| known.erasures == erasures;
        if !self.known_facts().get(&info.id).is_some_and(is_known) {
            let known = KnownFacts {
                facts: self.facts_of(on, family, info.id).await?,
                erasures,
                appended: Vec::new(),
            };
            self.remember_facts(info.id, known);
        }
        let appended = {
            let mut cache = self.known_facts();
            let known = cache.entry(info.id).or_default();
            if let Some(facts) = &known.facts {
                return Ok((Some(facts.clone()), false));
            }
            known.appended.extend(metas.into_iter().map(str::to_owned));
            if known.appended.len() < FACTS_FROM {
                return Ok((None, false));
            }
            // The next search for facts comes after the same number of entries again.
            std::mem::take(&mut known.appended)
        };
        // Another writer may have stored facts meanwhile.
        if let Some(found) = self.facts_of(on, family, info.id).await? {
            return Ok((Some(found), false));
        }
        let facts = Facts::common(appended.iter().map(String::as_str))
            .map(|text| Facts::new(text, 0))
            .transpose()?;
        let new = facts.is_some();
        Ok((facts, new))
    }
}
