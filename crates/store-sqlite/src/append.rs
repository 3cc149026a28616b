//! Opening and extending conversations.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memory_model::{ConversationId, EntryKind, Hash, Seq, Timestamp};
use memory_store::{
    Append, AppendAt, Appended, Conversation, ConversationFilter, ConversationPatch,
    ConversationRef, EntryOutcome, Error, ErrorKind, KnownEntry, NewConversation, Origin, Page,
    Result, Segment, conversation_hash, family_hash, fork_segments,
};
use sea_query::SqliteQueryBuilder;
use sqlx::Arguments as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use store_sql::{Columns as _, Text, conversation as sql, message};

use crate::bytes::{Ready, Waiting, stored};
use crate::db::On;
use crate::{SqliteStore, batched, no_conversation};

/// The longest log: positions must leave room for "one after the last".
const MAX_SEQ: u32 = u32::MAX - 1;
/// Numbers above this would not fit into a row's key.
const MAX_CONVERSATION: i64 = i32::MAX as i64;

/// A text for each of the sizes in [`message::BATCHES`].
type Texts = [Option<Text>; 3];

static INSERTS: LazyLock<Texts> = LazyLock::new(|| {
    message::BATCHES.map(|size| Some(Text::new(&message::insert(size).ok()?, SqliteQueryBuilder)))
});
static LOOK_UPS: LazyLock<Texts> = LazyLock::new(|| {
    message::BATCHES.map(|size| Some(Text::new(&message::by_external(size), SqliteQueryBuilder)))
});

static LOOK_UPS_SEEN: LazyLock<Texts> = LazyLock::new(|| {
    message::BATCHES.map(|size| {
        Some(Text::new(
            &message::by_external_seen(size),
            SqliteQueryBuilder,
        ))
    })
});

fn of_size(texts: &'static Texts, size: usize) -> Result<&'static Text> {
    let mut sized = message::BATCHES.into_iter().zip(texts);
    let found = sized.find_map(|(of, text)| (of == size).then_some(text.as_ref())?);
    found.ok_or_else(|| {
        let message = format!("no statement takes {size} rows: this is a mistake in store-sqlite");
        Error::new(ErrorKind::Invalid, message)
    })
}

impl SqliteStore {
    /// A conversation by number, with its segments.
    pub(crate) async fn get(&self, on: &mut On<'_>, id: ConversationId) -> Result<Conversation> {
        self.look_up(on, &ConversationRef::Id(id))
            .await?
            .ok_or_else(|| no_conversation(id))
    }

    pub(crate) async fn look_up(
        &self,
        on: &mut On<'_>,
        which: &ConversationRef,
    ) -> Result<Option<Conversation>> {
        match on.first(&sql::find(which)).await? {
            Some(row) => Ok(Some(self.found(on, &row).await?)),
            None => Ok(None),
        }
    }

    /// The conversation of a row of [`sql::find`].
    pub(crate) async fn found(&self, on: &mut On<'_>, row: &SqliteRow) -> Result<Conversation> {
        let mut found = sql::conversation(row)?;
        found.segments = self.lineage_of(on, &found).await?.segments();
        Ok(found)
    }

    pub(crate) async fn open_conversation(&self, new: &NewConversation) -> Result<Conversation> {
        let which = ConversationRef::Key(new.key.clone());
        // The common case takes no write lock.
        let mut reader = self.db.read().await?;
        if let Some(found) = self.look_up(&mut reader.on(), &which).await? {
            return Ok(found);
        }
        drop(reader);
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        if let Some(found) = self.look_up(&mut on, &which).await? {
            return Ok(found);
        }
        let last = match on.first(&sql::last_number()).await? {
            Some(row) => row.opt_int(0)?.unwrap_or(0),
            None => 0,
        };
        if last >= MAX_CONVERSATION {
            let message = "the database is full of conversations: open another file";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let id = ConversationId(store_sql::to_u32("conversation", last + 1)?);
        let own = Segment {
            first: Seq::FIRST,
            last: None,
            source: id,
        };
        let mut inherits = None;
        let (tree, segments, head, tokens) = match &new.origin {
            Origin::Root => (id, vec![own], Seq::NONE, 0),
            Origin::Spawn { parent, .. } => (
                self.get(&mut on, *parent).await?.tree,
                vec![own],
                Seq::NONE,
                0,
            ),
            Origin::Fork { parent, at } => {
                let parent = self.get(&mut on, *parent).await?;
                if *at > parent.head {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        format!(
                            "cannot fork {} at {at}: its log ends at {}",
                            parent.key, parent.head
                        ),
                    ));
                }
                if parent.estimator != new.estimator {
                    return Err(mismatch(&parent, &new.estimator));
                }
                let tokens = self.running_at(&mut on, &parent, &[*at]).await?;
                let segments = fork_segments(&parent.segments, *at, id);
                let tree = parent.tree;
                inherits = Some((parent, *at));
                (tree, segments, *at, tokens.first().copied().unwrap_or(0))
            }
        };
        let conversation = Conversation {
            id,
            key: new.key.clone(),
            origin: new.origin.clone(),
            tree,
            segments,
            head,
            tokens,
            chain: Hash::ZERO,
            estimator: new.estimator.clone(),
            title: new.title.clone(),
            archived: false,
            meta: new.meta.clone(),
            created_at: new.now,
            updated_at: new.now,
        };
        let record = conversation_hash(&conversation);
        on.run(&sql::insert(id.0, tree.0, new, head, tokens, record)?)
            .await?;
        join_family(&mut on, &conversation).await?;
        if let Some((parent, at)) = inherits {
            self.inherit_views(&mut on, &parent, &conversation, at, new.now)
                .await?;
        }
        tx.commit().await?;
        Ok(conversation)
    }

    pub(crate) async fn list_conversations(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let rows = on.all(&sql::list(filter, after, one_more(limit))).await?;
        let found: Vec<Conversation> = rows.iter().map(sql::conversation).collect::<Result<_>>()?;
        let mut page = page(found, limit, |conversation: &Conversation| conversation.id);
        for found in &mut page.items {
            found.segments = self.lineage_of(&mut on, found).await?.segments();
        }
        Ok(page)
    }

    pub(crate) async fn patch(
        &self,
        id: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        tx.on().run(&sql::patch(id.0, patch, now)).await?;
        let found = self.get(&mut tx.on(), id).await?;
        let record = conversation_hash(&found);
        tx.on().run(&sql::set_record(id.0, record)).await?;
        tx.commit().await?;
        Ok(found)
    }

    pub(crate) async fn append_entries(
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

        let mut writer = self.db.write().await?;
        let mut tx = writer.begin().await?;
        let mut on = tx.on();
        let info = self.get(&mut on, id).await?;
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
        let mut seen = visible(&mut on, &info, &ids).await?;

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
            true => self.keep_facts(&mut on, id, facts).await?,
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
            let rows = stored(&mut on, ready).await?;
            let text = of_size(&INSERTS, rows.len())?;
            let mut values = SqliteArguments::default();
            values.reserve(rows.len() * message::COLUMNS, 0);
            for row in rows {
                message::put_row(&mut values, id.0, row)?;
            }
            let (done, then) = futures::join!(on.run_of(text, values), async { next() });
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
        tx.commit().await?;
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
pub(crate) async fn visible(
    on: &mut On<'_>,
    info: &Conversation,
    ids: &[&str],
) -> Result<BTreeMap<String, KnownEntry>> {
    let mut found: BTreeMap<String, KnownEntry> = BTreeMap::new();
    let fork = matches!(info.origin, Origin::Fork { .. });
    for batch in batched(ids) {
        let mut values = SqliteArguments::default();
        let texts = match fork {
            true => {
                message::put_seen_ids(&mut values, info.id.0, &batch)?;
                &LOOK_UPS_SEEN
            }
            false => {
                message::put_ids(&mut values, info.id.0, &batch)?;
                &LOOK_UPS
            }
        };
        for row in on.all_of(of_size(texts, batch.len())?, values).await? {
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

/// Adds a new conversation to its family's record.
async fn join_family(on: &mut On<'_>, new: &Conversation) -> Result<()> {
    if new.tree == new.id {
        let hash = family_hash(Hash::ZERO, new.id, &new.key);
        on.run(&sql::insert_family(new.tree.0, hash)?).await?;
        return Ok(());
    }
    let row = on.first(&sql::family(new.tree.0)).await?.ok_or_else(|| {
        let message = format!(
            "the family of conversation {} has no record: restore a backup",
            new.tree
        );
        Error::new(ErrorKind::Corrupt, message)
    })?;
    let before = store_sql::to_hash("family", &row.bytes(1)?)?;
    let hash = family_hash(before, new.id, &new.key);
    on.run(&sql::extend_family(new.tree.0, hash)).await?;
    Ok(())
}

fn mismatch(info: &Conversation, given: &impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::EstimatorMismatch,
        format!(
            "{} is counted with {}, not with {given}: recount first",
            info.key, info.estimator
        ),
    )
}

/// How many rows to ask for to know whether there are more than `limit`.
pub(crate) fn one_more(limit: usize) -> u64 {
    u32::try_from(limit.max(1)).map_or(u64::from(u32::MAX), |limit| u64::from(limit) + 1)
}

/// A page from one row more than the limit.
pub(crate) fn page<T, C>(mut items: Vec<T>, limit: usize, cursor: impl Fn(&T) -> C) -> Page<T, C> {
    let limit = limit.max(1);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = if more { items.last().map(cursor) } else { None };
    Page { items, next }
}
