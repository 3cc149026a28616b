//! What is kept once: payloads that messages share, and the facts that a conversation's entries have in common.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use memory_model::{ConversationId, Hash, Message, Seq};
use memory_store::{NewEntry, Result, Violation, ViolationKind};
use store_sql::Columns as _;
use store_sql::message::{self, NewRow};
use store_sql::pack::{self, Facts, Packed};

use crate::db::On;
use crate::{SqliteStore, batched};

/// A conversation gets its facts once this many entries with meta were appended to it by one store.
const FACTS_FROM: usize = 8;
/// So many entries of an append are looked at for facts.
const FACTS_UP_TO: usize = 64;
/// How many conversations' facts are remembered: each takes some 100 kB, ready to be used.
const FACTS_CACHE: usize = 64;
/// How many payloads are checked at a time.
const PAGE: u64 = 16;

/// An entry that waits to be packed.
pub(crate) struct Waiting<'a> {
    pub(crate) seq: Seq,
    pub(crate) message: &'a Message,
    pub(crate) clocked: bool,
    pub(crate) tokens: u64,
    pub(crate) running: u64,
    pub(crate) hash: Hash,
    pub(crate) body: Vec<u8>,
}

/// An entry that waits to be stored.
pub(crate) struct Ready<'a> {
    row: NewRow<'a>,
    /// What is stored beside it.
    cut: Option<(Hash, Vec<u8>)>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn pack(self, facts: Option<&Facts>) -> Ready<'a> {
        let meta = self.message.meta.as_ref().map(|meta| meta.as_str());
        // Facts come from meta and help with meta.
        let facts = facts.filter(|_| meta.is_some());
        let mut packed: Packed = pack::pack(self.body, meta, facts);
        let cut = packed.cut.take().map(|cut| (pack::payload_hash(&cut), cut));
        let row = NewRow {
            seq: self.seq,
            message: self.message,
            clocked: self.clocked,
            tokens: self.tokens,
            running: self.running,
            hash: self.hash,
            packed,
            payload: None,
        };
        Ready { row, cut }
    }
}

/// Stores the payloads of entries that are not stored yet: rows that refer to them.
pub(crate) async fn stored<'a>(on: &mut On<'_>, ready: Vec<Ready<'a>>) -> Result<Vec<NewRow<'a>>> {
    let mut hashes: Vec<Hash> = ready
        .iter()
        .filter_map(|r| Some(r.cut.as_ref()?.0))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let mut known: BTreeMap<Hash, i64> = BTreeMap::new();
    for batch in batched(&hashes) {
        for row in on.all(&message::payloads(&batch)).await? {
            known.insert(store_sql::to_hash("payload", &row.bytes(0)?)?, row.int(1)?);
        }
    }
    let mut rows = Vec::with_capacity(ready.len());
    for Ready { mut row, cut } in ready {
        if let Some((hash, cut)) = cut {
            row.payload = match known.get(&hash) {
                Some(id) => Some(*id),
                None => {
                    let (codec, data) = pack::pack_payload(&cut);
                    let insert = message::insert_payload(hash, codec, data.into_owned())?;
                    let id = on.first(&insert).await?.map(|row| row.int(0)).transpose()?;
                    known.extend(id.map(|id| (hash, id)));
                    id
                }
            };
        }
        rows.push(row);
    }
    Ok(rows)
}

/// What a store knows of a conversation's facts.
#[derive(Clone, Debug)]
pub(crate) enum KnownFacts {
    /// They never change.
    Kept(Facts),
    /// It had none when this was looked up. The meta that were appended since.
    Missing(Vec<String>),
}

impl KnownFacts {
    fn kept(self) -> Option<Facts> {
        match self {
            Self::Kept(facts) => Some(facts),
            Self::Missing(_) => None,
        }
    }
}

impl SqliteStore {
    pub(crate) fn remembered_facts(&self, id: ConversationId) -> Option<Facts> {
        let cache = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(&id).cloned().and_then(KnownFacts::kept)
    }

    pub(crate) fn remember_facts(&self, id: ConversationId, facts: Option<&Facts>) {
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
    pub(crate) async fn facts_of(
        &self,
        on: &mut On<'_>,
        id: ConversationId,
    ) -> Result<Option<Facts>> {
        let row = on.first(&message::facts(id.0)).await?;
        let facts = row.map(|row| Facts::new(row.text(0)?)).transpose()?;
        self.remember_facts(id, facts.as_ref());
        Ok(facts)
    }

    /// The facts to pack entries with, and whether they are new and must be kept.
    pub(crate) async fn facts_for(
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
            let mut reader = self.db.read().await?;
            self.facts_of(&mut reader.on(), id).await?;
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
    pub(crate) async fn keep_facts(
        &self,
        on: &mut On<'_>,
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

/// Looks whether every payload is what its hash says.
pub(crate) async fn check_payloads(on: &mut On<'_>, found: &mut Vec<Violation>) -> Result<()> {
    let mut after = 0;
    loop {
        let rows = on.all(&message::payload_log(after, PAGE)).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.int(0)?;
        for row in rows {
            let hash = row.bytes(1)?;
            let data = pack::unpack_payload(row.int(2)?, row.bytes(3)?);
            if !data.is_ok_and(|data| pack::payload_hash(&data).0 == *hash) {
                found.push(Violation::new(
                    ViolationKind::EntryChanged,
                    format!(
                        "the payload {} is not what was stored: restore a backup",
                        row.int(0)?
                    ),
                ));
            }
        }
    }
}
