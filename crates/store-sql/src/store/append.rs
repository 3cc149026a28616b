//! Appending entries to a log.

use std::collections::BTreeMap;

use memory_model::ConversationId;
use memory_store::implementors::{
    Growth, KnownEntry, check_append, conversation_hash, hashed_bodies,
};
use memory_store::{Append, Appended, Conversation, Origin, Result};

use super::SqlStore;
use super::known_facts::KnownFacts;
use super::packing::{Ready, Waiting, stored};
use super::pages::batched;
use crate::executor::{Database, Executor};
use crate::family::Family;
use crate::pack::Facts;
use crate::prepared::Prepared;
use crate::row::Values as _;
use crate::{conversation as sql, message};

impl<D: Database> SqlStore<D> {
    pub(super) async fn append_entries(
        &self,
        id: ConversationId,
        append: &Append,
    ) -> Result<Appended> {
        // Bytes and hashes are computed first, because they take the longest and need no lock.
        let bodies = hashed_bodies(&append.entries)?;

        let mut writer = self.database.write().await?;
        let (mut tx, family) = self.begin_in(&mut writer, id).await?;
        let on = &mut tx;
        let info = self.get(on, id).await?;
        check_append(&info, append)?;
        let ids: Vec<&str> = append
            .entries
            .iter()
            .filter_map(|entry| entry.message.external_id.as_deref())
            .collect();
        let seen = visible(on, family, &info, &ids).await?;
        let mut growth = Growth::new(info, seen);
        let mut rows = Vec::new();
        for (entry, (hash, body)) in append.entries.iter().zip(bodies) {
            if let Some(placed) = growth.add(entry, hash, &body)? {
                rows.push(Waiting {
                    entry,
                    placed,
                    hash,
                    body,
                });
            }
        }
        if rows.is_empty() {
            return Ok(growth.appended());
        }
        let grown = &mut growth.conversation;
        grown.updated_at = append.now;
        let (facts, is_new) = self.facts_for(on, family, grown, &append.entries).await?;
        let new_facts = facts.clone().filter(|_| is_new);
        if let Some(facts) = &new_facts {
            on.run(&message::insert_facts(family, id.0, facts)?).await?;
        }
        insert_rows(on, family, id, rows, facts.as_ref()).await?;
        let (erasures, record) = (Some(grown.erasures), conversation_hash(grown));
        on.run(&sql::set_chain(
            family,
            id.0,
            grown.chain,
            append.now,
            record,
        ))
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
        Ok(growth.appended())
    }
}

/// Packs entries and inserts their rows. The next entries are packed while the database writes the previous rows.
async fn insert_rows(
    on: &mut impl Executor,
    family: Family,
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
        let rows = stored(on, family, ready).await?;
        let insert = Prepared::insert(family, rows.len())?;
        let mut values = values_for(on);
        values.reserve(rows.len() * message::COLUMNS);
        for row in rows {
            message::put_row(&mut values, family, id.0, row)?;
        }
        let (done, then) = futures::join!(on.run_prepared(insert, values), async { next() });
        done?;
        packed = then;
    }
    Ok(())
}

/// Returns the stored entries with the given external ids, by id. Looks in the log of the conversation and in the log
/// that it inherits from its parent.
pub(super) async fn visible(
    on: &mut impl Executor,
    family: Family,
    info: &Conversation,
    ids: &[&str],
) -> Result<BTreeMap<String, KnownEntry>> {
    let mut found: BTreeMap<String, KnownEntry> = BTreeMap::new();
    let fork = matches!(info.origin, Origin::Fork { .. });
    for batch in batched(ids) {
        let mut values = values_for(on);
        let look_up = match fork {
            true => {
                message::put_seen_ids(&mut values, family, info.id.0, &batch)?;
                Prepared::by_external_seen(family, batch.len())?
            }
            false => {
                message::put_ids(&mut values, family, info.id.0, &batch)?;
                Prepared::by_external(family, batch.len())?
            }
        };
        for row in on.all_prepared(look_up, values).await? {
            let (id, known) = message::found(&row)?;
            // If several entries have the same external id, the earliest is kept.
            let entry = found.entry(id).or_insert(known);
            if known.seq < entry.seq {
                *entry = known;
            }
        }
    }
    Ok(found)
}

/// Returns an empty collection of values for a prepared SQL statement of this executor.
pub(super) fn values_for<E: Executor>(_: &E) -> E::Values {
    E::Values::default()
}
