//! Appending entries to a log.

use std::collections::BTreeMap;

use memory_model::{ConversationId, EntryKind};
use memory_store::{
    Append, AppendAt, Appended, Conversation, EntryOutcome, Error, ErrorKind, KnownEntry, Origin,
    Result, conversation_hash,
};

use super::SqlStore;
use super::conversations::mismatch;
use super::packing::{Ready, Waiting, stored};
use super::pages::batched;
use crate::executor::{Database, Executor};
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
        let mut bodies = Vec::with_capacity(append.entries.len());
        for entry in &append.entries {
            let body = entry.message.body().map_err(|source| {
                Error::new(ErrorKind::Invalid, "a message cannot be written as JSON")
                    .with_source(source)
            })?;
            bodies.push((entry.message.hash(&body), body));
        }
        let (facts, new_facts) = self.facts_for(id, &append.entries).await?;

        let mut writer = self.database.write().await?;
        let mut tx = self.database.begin(&mut writer).await?;
        let on = &mut tx;
        let info = self.get(on, id).await?;
        if let AppendAt::Head(head) = append.at
            && head != info.head
        {
            return Err(Error::new(
                ErrorKind::HeadMoved,
                format!(
                    "the log of {} ends at {}, not at {head}",
                    info.key, info.head
                ),
            ));
        }
        if info.estimator != append.estimator {
            return Err(mismatch(&info, &append.estimator));
        }
        let ids: Vec<&str> = append
            .entries
            .iter()
            .filter_map(|entry| entry.message.external_id.as_deref())
            .collect();
        let mut seen = visible(on, &info, &ids).await?;

        let (mut head, mut tokens, mut chain) = (info.head, info.tokens, info.chain);
        let mut outcomes = Vec::with_capacity(append.entries.len());
        let mut rows = Vec::with_capacity(append.entries.len());
        for (entry, (hash, body)) in append.entries.iter().zip(bodies) {
            let message = &entry.message;
            let earlier = message.external_id.as_deref().and_then(|id| seen.get(id));
            if let Some(known) = earlier {
                let told = known.is_told_again(message, entry.clocked, hash, &body);
                outcomes.push(match told {
                    true => EntryOutcome::Duplicate(known.seq),
                    false => EntryOutcome::Conflict(known.seq),
                });
                continue;
            }
            if head.0 >= MAX_SEQ {
                return Err(Error::new(
                    ErrorKind::Limit,
                    format!(
                        "the log of {} is full: fork it at its head to go on",
                        info.key
                    ),
                ));
            }
            head = head.next();
            let cost = if message.kind == EntryKind::Note {
                0
            } else {
                entry.tokens
            };
            tokens = tokens.saturating_add(cost);
            chain = chain.chain(hash);
            if let Some(id) = &message.external_id {
                let known = KnownEntry {
                    seq: head,
                    hash,
                    created_at: message.created_at,
                    clocked: entry.clocked,
                };
                seen.insert(id.clone(), known);
            }
            outcomes.push(EntryOutcome::Inserted(head));
            rows.push(Waiting {
                seq: head,
                message,
                clocked: entry.clocked,
                tokens: cost,
                running: tokens,
                hash,
                body,
            });
        }
        if rows.is_empty() {
            return Ok(Appended {
                outcomes,
                head,
                tokens,
            });
        }
        let facts = match new_facts {
            // Another writer may have been faster.
            true => self.keep_facts(on, id, facts).await?,
            false => facts,
        };
        let facts = facts.as_ref();
        // Packing goes on while the database writes what was packed before: the driver has a thread of its own.
        let mut batches = message::batches(rows.len());
        let mut rows = rows.into_iter();
        let mut next = || {
            let size = batches.next().map(|batch| batch.len());
            size.map(|size| {
                rows.by_ref()
                    .take(size)
                    .map(|row| row.pack(facts))
                    .collect()
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
        let after = Conversation {
            head,
            tokens,
            chain,
            updated_at: append.now,
            ..info
        };
        let record = conversation_hash(&after);
        on.run(&sql::set_chain(id.0, chain, append.now, record))
            .await?;
        self.database.commit(tx).await?;
        if new_facts && let Some(facts) = facts {
            self.remember_facts(id, Some(facts));
        }
        Ok(Appended {
            outcomes,
            head,
            tokens,
        })
    }
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
