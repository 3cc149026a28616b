//! What the entries of a conversation have in common, kept once.

use std::sync::PoisonError;

use memory_model::ConversationId;
use memory_store::{NewEntry, Result};

use super::SqlStore;
use super::known_facts::KnownFacts;
use crate::executor::{Database, Executor};
use crate::message;
use crate::pack::Facts;
use crate::row::Columns as _;

/// A conversation gets its facts once this many entries with meta were appended to it by one store.
const FACTS_FROM: usize = 8;
/// Maximum number of entries of an append that are looked at for facts.
const FACTS_UP_TO: usize = 64;
/// Number of conversations whose facts are remembered: each takes some 100 kB, ready to be used.
const FACTS_CACHE: usize = 64;

impl<D: Database> SqlStore<D> {
    pub(super) fn remembered_facts(&self, id: ConversationId) -> Option<Facts> {
        let cache = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(&id).cloned().and_then(KnownFacts::kept)
    }

    pub(super) fn remember_facts(&self, id: ConversationId, facts: Option<&Facts>) {
        let mut cache = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= FACTS_CACHE {
            cache.clear();
        }
        match facts {
            Some(facts) => {
                cache.insert(id, KnownFacts::Kept(facts.clone()));
            }
            None => {
                cache.entry(id).or_insert(KnownFacts::Missing(Vec::new()));
            }
        }
    }

    /// The facts of a conversation, from the database.
    pub(super) async fn facts_of(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
    ) -> Result<Option<Facts>> {
        let row = on.first(&message::facts(id.0)).await?;
        let facts = row.map(|row| Facts::new(row.text(0)?)).transpose()?;
        self.remember_facts(id, facts.as_ref());
        Ok(facts)
    }

    /// The facts to pack entries with, and whether they are new and must be kept.
    pub(super) async fn facts_for(
        &self,
        id: ConversationId,
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
        let unknown = {
            let cache = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
            !cache.contains_key(&id)
        };
        if unknown {
            let mut reader = self.database.read().await?;
            self.facts_of(&mut reader, id).await?;
        }
        let mut cache = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        match cache.get_mut(&id) {
            Some(KnownFacts::Kept(facts)) => Ok((Some(facts.clone()), false)),
            Some(KnownFacts::Missing(seen)) => {
                seen.extend(metas.into_iter().map(str::to_owned));
                if seen.len() < FACTS_FROM {
                    return Ok((None, false));
                }
                // Not asked again until as many more have come.
                let seen = std::mem::take(seen);
                let facts = Facts::common(seen.iter().map(String::as_str))
                    .map(Facts::new)
                    .transpose()?;
                let new = facts.is_some();
                Ok((facts, new))
            }
            None => Ok((None, false)),
        }
    }

    /// Keeps the facts of a conversation, unless it has some: those that it has then.
    pub(super) async fn keep_facts(
        &self,
        on: &mut impl Executor,
        id: ConversationId,
        facts: Option<Facts>,
    ) -> Result<Option<Facts>> {
        if let Some(found) = self.facts_of(on, id).await? {
            return Ok(Some(found));
        }
        if let Some(facts) = &facts {
            on.run(&message::insert_facts(id.0, facts)?).await?;
        }
        Ok(facts)
    }
}
