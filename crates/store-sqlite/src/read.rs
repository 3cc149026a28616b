//! Reading logs and summaries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use memory_model::{ConversationId, Hash, LogEntry, Recipe, Seq, SeqRange, Summary, SummaryId};
use memory_store::{
    Conversation, Error, ErrorKind, LogRead, Order, Page, Result, SummaryScope, rest_of,
};
use sqlx::sqlite::SqliteRow;
use store_sql::Columns as _;
use store_sql::{message, summary as sql};

use crate::append::{one_more, page, visible};
use crate::db::On;
use crate::publish::known_summaries;
use crate::{SqliteStore, batched};

/// Rows with more packed bytes are read one by one, so that what is read ahead stays small.
const LARGEST: i64 = 32 << 10;

impl SqliteStore {
    pub(crate) async fn read_log(
        &self,
        id: ConversationId,
        read: &LogRead,
    ) -> Result<Page<LogEntry>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let info = self.get(&mut on, id).await?;
        let Some(range) = SeqRange::new(read.range.first, read.range.last.min(info.head)) else {
            return Ok(Page::complete(Vec::new()));
        };
        let mut segments = info.segments;
        let order = match read.order {
            Order::OldestFirst => sea_query::Order::Asc,
            Order::NewestFirst => {
                segments.reverse();
                sea_query::Order::Desc
            }
        };
        let max_rows = read.max_rows.max(1);
        let mut items: Vec<LogEntry> = Vec::new();
        let mut bytes = 0u64;
        let mut flow = ControlFlow::Continue(());
        for segment in segments {
            let own = SeqRange::new(segment.first, segment.last.unwrap_or(info.head));
            let Some(part) = own.and_then(|own| range.intersect(&own)) else {
                continue;
            };
            let limit = u64::try_from(max_rows - items.len())
                .unwrap_or(u64::MAX)
                .min(1 << 32);
            let statement = message::range(segment.source.0, part, order.clone(), limit, LARGEST);
            let (rows_before, bytes_before) = (items.len(), bytes);
            let mut facts = self.remembered_facts(segment.source);
            let mut looked = false;
            // The bytes of each row, and which rows came without them.
            let (mut sizes, mut large) = (Vec::new(), Vec::new());
            loop {
                let mut lacking = false;
                flow = on
                    .each(&statement, |row| {
                        lacking = facts.is_none() && !looked && message::needs_facts(row)?;
                        if lacking {
                            return Ok(ControlFlow::Break(()));
                        }
                        let (entry, size) = message::entry(row, facts.as_ref())?;
                        let packed = message::size(row)?;
                        let size = if packed > LARGEST {
                            large.push(items.len());
                            // Not more than what it will be.
                            u64::try_from(packed).unwrap_or(0)
                        } else {
                            size
                        };
                        sizes.push(size);
                        bytes = bytes.saturating_add(size);
                        items.push(entry);
                        Ok(match items.len() >= max_rows || bytes >= read.max_bytes {
                            true => ControlFlow::Break(()),
                            false => ControlFlow::Continue(()),
                        })
                    })
                    .await?;
                if !lacking {
                    break;
                }
                // Once for a conversation: from then on they are remembered.
                items.truncate(rows_before);
                (bytes, sizes, large) = (bytes_before, Vec::new(), Vec::new());
                facts = self.facts_of(&mut on, segment.source).await?;
                looked = true;
            }
            if !large.is_empty() {
                bytes = bytes_before;
                for (at, size) in (rows_before..).zip(sizes) {
                    let Some(item) = items.get_mut(at) else { break };
                    let mut size = size;
                    if large.binary_search(&at).is_ok() {
                        let one = SeqRange::single(item.seq);
                        let whole =
                            message::range(segment.source.0, one, order.clone(), 1, i64::MAX);
                        if let Some(row) = on.first(&whole).await? {
                            (*item, size) = message::entry(&row, facts.as_ref())?;
                        }
                    }
                    bytes = bytes.saturating_add(size);
                    if bytes >= read.max_bytes {
                        items.truncate(at + 1);
                        flow = ControlFlow::Break(());
                        break;
                    }
                }
            }
            if flow.is_break() {
                break;
            }
        }
        let next = match (flow, items.last()) {
            (ControlFlow::Break(()), Some(last)) => rest_of(range, read.order, last.seq),
            _ => None,
        };
        Ok(Page { items, next })
    }

    /// Running sums at positions of a conversation, in their order.
    pub(crate) async fn running_at(
        &self,
        on: &mut On<'_>,
        info: &Conversation,
        at: &[Seq],
    ) -> Result<Vec<u64>> {
        let key = |seq: Seq| {
            let segment = info
                .segments
                .iter()
                .find(|s| s.first <= seq && s.last.is_none_or(|last| seq <= last))?;
            Some(store_sql::packed(segment.source.0, seq.0))
        };
        // What the conversation's own row tells needs no other.
        let inside = |seq: Seq| seq > Seq::NONE && seq < info.head;
        let mut keys: Vec<i64> = at
            .iter()
            .filter(|seq| inside(**seq))
            .filter_map(|seq| key(*seq))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut sums = BTreeMap::new();
        for batch in batched(&keys) {
            for row in on.all(&message::running(&batch)).await? {
                sums.insert(
                    row.int(0)?,
                    store_sql::to_count("running tokens", row.int(1)?)?,
                );
            }
        }
        Ok(at
            .iter()
            .map(|seq| match *seq {
                Seq::NONE => 0,
                seq if seq >= info.head => info.tokens,
                seq => key(seq)
                    .and_then(|key| sums.get(&key))
                    .copied()
                    .unwrap_or(0),
            })
            .collect())
    }

    pub(crate) async fn running_sums(&self, id: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let info = self.get(&mut on, id).await?;
        self.running_at(&mut on, &info, at).await
    }

    pub(crate) async fn position_of(
        &self,
        id: ConversationId,
        running: u64,
    ) -> Result<Option<Seq>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let info = self.get(&mut on, id).await?;
        if info.head == Seq::NONE || running > info.tokens {
            return Ok(None);
        }
        // The segment that holds the position, by the sums at the ends of the segments.
        let (mut low, mut high) = (0, info.segments.len().saturating_sub(1));
        while low < high {
            let middle = low + (high - low) / 2;
            let end = info.segments.get(middle).and_then(|segment| segment.last);
            let sums = self
                .running_at(&mut on, &info, &[end.unwrap_or(info.head)])
                .await?;
            match sums.first().is_some_and(|sum| *sum >= running) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let Some(segment) = info.segments.get(low) else {
            return Ok(None);
        };
        let Some(range) = SeqRange::new(segment.first, segment.last.unwrap_or(info.head)) else {
            return Ok(None);
        };
        let found = on
            .first(&message::seq_at(segment.source.0, range, running)?)
            .await?;
        found.map(|row| store_sql::to_seq(row.int(0)?)).transpose()
    }

    pub(crate) async fn find_external(
        &self,
        id: ConversationId,
        ids: &[String],
    ) -> Result<Vec<Option<Seq>>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let info = self.get(&mut on, id).await?;
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let found = visible(&mut on, &info, &asked).await?;
        Ok(ids
            .iter()
            .map(|id| found.get(id).map(|known| known.seq))
            .collect())
    }

    /// Summaries from their rows, with their children.
    async fn with_children(&self, on: &mut On<'_>, rows: &[SqliteRow]) -> Result<Vec<Summary>> {
        let mut found: Vec<sql::SummaryRow> =
            rows.iter().map(sql::summary).collect::<Result<_>>()?;
        let keys: Vec<i64> = found.iter().map(|row| row.id).collect();
        let mut children = BTreeMap::<i64, Vec<_>>::new();
        for batch in batched(&keys) {
            for row in on.all(&sql::children(&batch)).await? {
                let (parent, child) = sql::child(&row)?;
                children.entry(parent).or_default().push(child);
            }
        }
        for row in &mut found {
            row.summary.children = children.remove(&row.id).unwrap_or_default();
        }
        Ok(found.into_iter().map(|row| row.summary).collect())
    }

    pub(crate) async fn summaries_by_id(
        &self,
        id: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        self.lineage(&mut on, id).await?;
        let asked: Vec<&str> = ids.iter().map(SummaryId::as_str).collect();
        let found = self.summaries_seen(&mut on, id, &asked).await?;
        Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
    }

    /// The summaries with these ids, with their children; of several with one id the nearest.
    pub(crate) async fn summaries_seen(
        &self,
        on: &mut On<'_>,
        conversation: ConversationId,
        asked: &[&str],
    ) -> Result<BTreeMap<SummaryId, Summary>> {
        let mut found: BTreeMap<SummaryId, Summary> = BTreeMap::new();
        for batch in batched(asked) {
            let rows = on.all(&sql::by_ids(conversation.0, &batch)).await?;
            for summary in self.with_children(on, &rows).await? {
                found.entry(summary.id.clone()).or_insert(summary);
            }
        }
        Ok(found)
    }

    pub(crate) async fn own_summaries_in_order(
        &self,
        id: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        self.lineage(&mut on, id).await?;
        let after = match after {
            None => None,
            Some(after) => match on.first(&sql::key(id.0, after)).await? {
                Some(row) => Some(row.int(0)?),
                None => {
                    return Err(Error::new(
                        ErrorKind::NotFound,
                        format!("conversation {id} has no summary {after} of its own"),
                    ));
                }
            },
        };
        let rows = on
            .all(&sql::log(
                SummaryScope::own(id),
                &[],
                after,
                one_more(limit),
            ))
            .await?;
        let found = self.with_children(&mut on, &rows).await?;
        Ok(page(found, limit, |summary: &Summary| summary.id.clone()))
    }

    pub(crate) async fn summaries_in_order(
        &self,
        id: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let lineage = self.lineage(&mut on, id).await?.scope();
        // Where in the lineage the last page ended, and the key of the summary there.
        let (mut index, mut after) = match after {
            None => (lineage.len(), None),
            Some(after) => {
                let known = known_summaries(&mut on, id, &[after.as_str()]).await?;
                match known.into_values().next() {
                    Some(known) => (known.level + 1, Some(known.id)),
                    None => {
                        return Err(Error::new(
                            ErrorKind::NotFound,
                            format!("conversation {id} has no summary {after}"),
                        ));
                    }
                }
            }
        };
        let wanted = one_more(limit);
        let mut found = Vec::new();
        // Ancestors first.
        while let Some((scope, nearer)) =
            lineage.get(..index).and_then(<[SummaryScope]>::split_last)
        {
            let missing = wanted.saturating_sub(found.len() as u64);
            if missing == 0 {
                break;
            }
            let rows = on.all(&sql::log(*scope, nearer, after, missing)).await?;
            found.extend(self.with_children(&mut on, &rows).await?);
            (index, after) = (nearer.len(), None);
        }
        Ok(page(found, limit, |summary: &Summary| summary.id.clone()))
    }

    pub(crate) async fn parents_of(
        &self,
        id: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        let lineage = self.lineage(&mut on, id).await?.scope();
        let mut found: Vec<SummaryId> = Vec::new();
        for (index, scope) in lineage.iter().enumerate().rev() {
            // A parent's child is its conversation's own, or an ancestor's.
            for child in lineage.get(index..).unwrap_or_default() {
                let statement = sql::parents(*scope, child.conversation.0, summary);
                for row in on.all(&statement).await? {
                    let id = SummaryId::new(row.text(0)?);
                    // Its place is that of the nearest.
                    found.retain(|other| *other != id);
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    pub(crate) async fn newest_by_source(
        &self,
        id: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        let mut reader = self.db.read().await?;
        let mut on = reader.on();
        self.lineage(&mut on, id).await?;
        let recipes: BTreeSet<&str> = sources.iter().map(|(_, recipe)| recipe.as_str()).collect();
        let recipes: Vec<&str> = recipes.into_iter().collect();
        let hashes: Vec<Hash> = sources.iter().map(|(source, _)| *source).collect();
        let mut found: BTreeMap<(Hash, Recipe), Summary> = BTreeMap::new();
        for recipes in batched(&recipes) {
            for hashes in batched(&hashes) {
                let rows = on.all(&sql::by_sources(id.0, &hashes, &recipes)).await?;
                for summary in self.with_children(&mut on, &rows).await? {
                    let key = (summary.source_hash, summary.recipe.clone());
                    found.entry(key).or_insert(summary);
                }
            }
        }
        Ok(sources.iter().map(|key| found.get(key).cloned()).collect())
    }
}
