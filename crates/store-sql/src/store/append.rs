//! Appending entries to a log.

use std::collections::BTreeMap;

use memory_model::{ConversationId, EntryKind, Hash, Seq, SessionKey};
use memory_store::implementors::{KnownEntry, check_append, conversation_hash};
use memory_store::{
    Append, Appended, Conversation, EntryOutcome, Error, ErrorKind, NewEntry, Origin, Result,
};

use super::SqlStore;
use super::known_facts::KnownFacts;
use super::packing::{Ready, Waiting, stored};
use super::pages::batched;
use crate::executor::{Database, Executor};
use crate::pack::Facts;
use crate::prepared::Prepared;
use crate::row::Values as _;
use crate::{conversation as sql, message};

/// The longest log: positions must leave room for "one after the last".
const MAX_SEQ: u32 = u32::MAX - 1;

impl<D: Database> SqlStore<D> {
    pub(super) async fn append_entries(
        &self,
        id: ConversationId,
        append: &Append,
    ) -> Result<Appended> {
        // Bytes and hashes first: they take the longest and need no lock.
        let bodies = hashed_bodies(&append.entries)?;

        let mut writer = self.database.write().await?;
        let mut tx = self.database.begin(&mut writer).await?;
        let on = &mut tx;
        let info = self.get(on, id).await?;
        check_append(&info, append)?;
        let ids: Vec<&str> = append
            .entries
            .iter()
            .filter_map(|entry| entry.message.external_id.as_deref())
            .collect();
        let mut growth = Growth::new(&info, visible(on, &info, &ids).await?);
        for (entry, (hash, body)) in append.entries.iter().zip(bodies) {
            growth.add(entry, hash, body)?;
        }
        if growth.rows.is_empty() {
            return Ok(growth.appended());
        }
        let (facts, is_new) = self.facts_for(on, &info, &append.entries).await?;
        let new_facts = facts.clone().filter(|_| is_new);
        if let Some(facts) = &new_facts {
            on.run(&message::insert_facts(id.0, facts)?).await?;
        }
        let rows = std::mem::take(&mut growth.rows);
        insert_rows(on, id, rows, facts.as_ref()).await?;
        let chain = growth.chain;
        let appended = growth.appended();
        let erasures = Some(info.erasures);
        let after = Conversation {
            head: appended.head,
            tokens: appended.tokens,
            chain,
            updated_at: append.now,
            ..info
        };
        let record = conversation_hash(&after);
        on.run(&sql::set_chain(id.0, chain, append.now, record))
            .await?;
        self.database.commit(tx).await?;
        if new_facts.is_some() {
            let known = KnownFacts {
                facts: new_facts,
                erasures,
                appended: Vec::new(),
            };
            self.remember_facts(id, known);
        }
        Ok(appended)
    }
}

/// The bytes of entries, each with the hash of its message.
fn hashed_bodies(entries: &[NewEntry]) -> Result<Vec<(Hash, Vec<u8>)>> {
    let hashed = |entry: &NewEntry| {
        let body = entry.message.body().map_err(|source| {
            Error::new(ErrorKind::Invalid, "a message cannot be written as JSON")
                .with_source(source)
        })?;
        Ok((entry.message.hash(&body), body))
    };
    entries.iter().map(hashed).collect()
}

/// A log while entries are added to it.
struct Growth<'a> {
    key: &'a SessionKey,
    head: Seq,
    tokens: u64,
    chain: Hash,
    /// Visible entries by external id.
    seen: BTreeMap<String, KnownEntry>,
    outcomes: Vec<EntryOutcome>,
    /// New entries, which wait to be packed.
    rows: Vec<Waiting<'a>>,
}

impl<'a> Growth<'a> {
    fn new(info: &'a Conversation, seen: BTreeMap<String, KnownEntry>) -> Self {
        Self {
            key: &info.key,
            head: info.head,
            tokens: info.tokens,
            chain: info.chain,
            seen,
            outcomes: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds an entry, unless its external id is visible.
    fn add(&mut self, entry: &'a NewEntry, hash: Hash, body: Vec<u8>) -> Result<()> {
        let message = &entry.message;
        let external_id = message.external_id.as_deref();
        if let Some(known) = external_id.and_then(|id| self.seen.get(id)) {
            let told = known.is_duplicate_of(message, entry.clocked, hash, &body);
            self.outcomes.push(match told {
                true => EntryOutcome::Duplicate(known.seq),
                false => EntryOutcome::Conflict(known.seq),
            });
            return Ok(());
        }
        if self.head.0 >= MAX_SEQ {
            let key = self.key;
            let message = format!("the log of {key} is full: fork it at its head to go on");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.head = self.head.next();
        let tokens = match message.kind {
            EntryKind::Note => 0,
            EntryKind::Message => entry.tokens,
        };
        self.tokens = self.tokens.saturating_add(tokens);
        self.chain = self.chain.chain(hash);
        if let Some(id) = external_id {
            let known = KnownEntry {
                seq: self.head,
                hash,
                created_at: message.created_at,
                clocked: entry.clocked,
            };
            self.seen.insert(id.to_owned(), known);
        }
        self.outcomes.push(EntryOutcome::Inserted(self.head));
        self.rows.push(Waiting {
            seq: self.head,
            message,
            clocked: entry.clocked,
            tokens,
            running: self.tokens,
            hash,
            body,
        });
        Ok(())
    }

    fn appended(self) -> Appended {
        Appended {
            outcomes: self.outcomes,
            head: self.head,
            tokens: self.tokens,
        }
    }
}

/// Packs rows and inserts them. Packing goes on while the database writes what was packed before: a driver waits
/// elsewhere.
async fn insert_rows(
    on: &mut impl Executor,
    id: ConversationId,
    rows: Vec<Waiting<'_>>,
    facts: Option<&Facts>,
) -> Result<()> {
    let mut batches = message::batches(rows.len());
    let mut rows = rows.into_iter();
    let mut next = || {
        let size = batches.next().map(|batch| batch.len());
        size.map(|size| {
            let batch = rows.by_ref().take(size);
            batch.map(|row| row.pack(facts)).collect()
        })
    };
    let mut packed: Option<Vec<Ready<'_>>> = next();
    while let Some(ready) = packed {
        let rows = stored(on, ready).await?;
        let insert = Prepared::insert(rows.len())?;
        let mut values = values_for(on);
        values.reserve(rows.len() * message::COLUMNS);
        for row in rows {
            message::put_row(&mut values, id.0, row)?;
        }
        let (done, then) = futures::join!(on.run_prepared(insert, values), async { next() });
        done?;
        packed = then;
    }
    Ok(())
}

/// The visible entries with the given external ids.
pub(super) async fn visible(
    on: &mut impl Executor,
    info: &Conversation,
    ids: &[&str],
) -> Result<BTreeMap<String, KnownEntry>> {
    let mut found: BTreeMap<String, KnownEntry> = BTreeMap::new();
    let fork = matches!(info.origin, Origin::Fork { .. });
    for batch in batched(ids) {
        let mut values = values_for(on);
        let look_up = match fork {
            true => {
                message::put_seen_ids(&mut values, info.id.0, &batch)?;
                Prepared::by_external_seen(batch.len())?
            }
            false => {
                message::put_ids(&mut values, info.id.0, &batch)?;
                Prepared::by_external(batch.len())?
            }
        };
        for row in on.all_prepared(look_up, values).await? {
            let (id, known) = message::found(&row)?;
            // Of several the earliest.
            let entry = found.entry(id).or_insert(known);
            if known.seq < entry.seq {
                *entry = known;
            }
        }
    }
    Ok(found)
}

/// An empty list of values for a prepared statement.
fn values_for<E: Executor>(_: &E) -> E::Values {
    E::Values::default()
}
