//! Methods of the reference store.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use memory_model::{
    ConversationId, Hash, LogEntry, RawJson, Recipe, Seq, SeqRange, Span, SpanStart, Summary,
    SummaryId, Timestamp, ViewName, ViewVersion, spans_of,
};

use super::{InMemoryStore, MAX_CONVERSATIONS, Record, ViewRecord};
use crate::checks::check_append;
use crate::erasure::{Erase, Erased, Erasures};
use crate::error::{Error, ErrorKind, Result};
use crate::growth::{Growth, hashed_bodies};
use crate::inherit::created;
use crate::publish::check_one_view;
use crate::segments::IndexStore;
use crate::store::Store;
use crate::types::{
    Append, Appended, Claim, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
    Fence, JobKey, LeaseUpdate, LogRead, NewConversation, Order, Origin, Owner, Page, Publication,
    Publish, Published, Snapshot, State, ViewInfo,
};
use crate::vector_store::VectorStore;

#[async_trait]
impl Store for InMemoryStore {
    async fn open(&self, new: &NewConversation) -> Result<Conversation> {
        let mut inner = self.lock();
        if let Some(found) = inner.keys.get(&new.key) {
            return Ok(inner.get(*found)?.info.clone());
        }
        let id = u32::try_from(inner.conversations.len() + 1)
            .ok()
            .filter(|id| *id <= MAX_CONVERSATIONS)
            .map(ConversationId)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Limit,
                    "the store has the maximum number of conversations: open another",
                )
            })?;
        let parent = new.origin.parent().map(|parent| inner.get(parent));
        let parent = parent.transpose()?;
        let mut info = created(new, id, parent.map(|parent| &parent.info))?;
        let mut views = BTreeMap::new();
        if let (Origin::Fork { at, .. }, Some(parent)) = (&new.origin, parent) {
            info.tokens = inner.running_at(parent, *at);
            views = inner.inherited(parent, *at, new.now)?;
        }
        inner.keys.insert(new.key.clone(), id);
        inner.conversations.push(Record {
            info: info.clone(),
            log: Vec::new(),
            external: BTreeMap::new(),
            clocked: BTreeSet::new(),
            views,
            summaries: Vec::new(),
            summary_index: BTreeMap::new(),
            jobs: BTreeMap::new(),
            fences: 0,
            states: BTreeMap::new(),
            erasures: Vec::new(),
            erased_summaries: BTreeSet::new(),
            index: Vec::new(),
            vectors: BTreeMap::new(),
        });
        Ok(info)
    }

    async fn conversation(&self, which: &ConversationRef) -> Result<Option<Conversation>> {
        let inner = self.lock();
        let found = match which {
            ConversationRef::Id(id) => inner.get(*id).ok(),
            ConversationRef::Key(key) => inner.keys.get(key).and_then(|id| inner.get(*id).ok()),
        };
        Ok(found.map(|record| record.info.clone()))
    }

    async fn list(
        &self,
        filter: &ConversationFilter,
        after: Option<ConversationId>,
        limit: usize,
    ) -> Result<Page<Conversation, ConversationId>> {
        let inner = self.lock();
        let left = inner
            .conversations
            .iter()
            .map(|record| &record.info)
            .filter(|info| after.is_none_or(|after| info.id > after))
            .filter(|info| filter.archived || !info.archived)
            .filter(|info| filter.family.is_none_or(|family| info.family == family));
        Ok(page(left, limit, |info| info.id))
    }

    async fn update(
        &self,
        conversation: ConversationId,
        patch: &ConversationPatch,
        now: Timestamp,
    ) -> Result<Conversation> {
        let mut inner = self.lock();
        let info = &mut inner.get_mut(conversation)?.info;
        if let Some(title) = &patch.title {
            info.title = Some(title.clone());
        }
        if let Some(archived) = patch.archived {
            info.archived = archived;
        }
        if let Some(meta) = &patch.meta {
            info.meta = Some(meta.clone());
        }
        info.updated_at = now;
        Ok(info.clone())
    }

    async fn append(&self, conversation: ConversationId, append: &Append) -> Result<Appended> {
        let bodies = hashed_bodies(&append.entries)?;
        let mut inner = self.lock();
        let record = inner.get(conversation)?;
        check_append(&record.info, append)?;
        let ids = append
            .entries
            .iter()
            .filter_map(|entry| entry.message.external_id.as_deref());
        let seen = ids.filter_map(|id| Some((id.to_owned(), inner.find(record, id)?)));
        let mut growth = Growth::new(record.info.clone(), seen.collect());
        let mut fresh = Vec::new();
        for (entry, (hash, body)) in append.entries.iter().zip(bodies) {
            if let Some(placed) = growth.add(entry, hash, &body)? {
                fresh.push((entry, placed, hash));
            }
        }
        let record = inner.get_mut(conversation)?;
        record.info = growth.conversation.clone();
        if !fresh.is_empty() {
            record.info.updated_at = append.now;
        }
        for (entry, placed, hash) in fresh {
            if let Some(id) = &entry.message.external_id {
                record.external.insert(id.clone(), placed.seq);
            }
            if entry.clocked {
                record.clocked.insert(placed.seq);
            }
            record.log.push(LogEntry {
                seq: placed.seq,
                message: entry.message.clone(),
                tokens: placed.tokens,
                running: placed.running,
                hash,
            });
        }
        Ok(growth.appended())
    }

    async fn read(&self, conversation: ConversationId, read: &LogRead) -> Result<Page<LogEntry>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        let Some(range) = SeqRange::new(read.range.first, read.range.last.min(record.info.head))
        else {
            return Ok(Page::complete(Vec::new()));
        };
        let all = range.first.0..=range.last.0;
        let only = read.only_in(range).map(|only| only.iter().map(|seq| seq.0));
        let seqs: Box<dyn Iterator<Item = u32> + Send> = match (read.order, only) {
            (Order::OldestFirst, None) => Box::new(all),
            (Order::NewestFirst, None) => Box::new(all.rev()),
            (Order::OldestFirst, Some(only)) => Box::new(only),
            (Order::NewestFirst, Some(only)) => Box::new(only.rev()),
        };
        let mut items: Vec<LogEntry> = Vec::new();
        let mut bytes = 0u64;
        for seq in seqs {
            if items.len() >= read.max_rows.max(1) || (!items.is_empty() && bytes >= read.max_bytes)
            {
                break;
            }
            let Some(entry) = inner.entry(record, Seq(seq)) else {
                break;
            };
            bytes += entry.message.body().map_or(0, |body| body.len() as u64);
            items.push(entry.clone());
        }
        let next = items.last().and_then(|last| read.rest_of(range, last.seq));
        Ok(Page { items, next })
    }

    async fn running(&self, conversation: ConversationId, at: &[Seq]) -> Result<Vec<u64>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        Ok(at
            .iter()
            .map(|seq| inner.running_at(record, *seq))
            .collect())
    }

    async fn seq_at(&self, conversation: ConversationId, running: u64) -> Result<Option<Seq>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        // Binary search for the first position in [low, high) with a large enough running sum.
        let (mut low, mut high) = (Seq::FIRST, record.info.head.next());
        while low < high {
            let middle = Seq(low.0 + (high.0 - low.0) / 2);
            match inner.running_at(record, middle) >= running {
                true => high = middle,
                false => low = middle.next(),
            }
        }
        Ok((low <= record.info.head).then_some(low))
    }

    async fn find(&self, conversation: ConversationId, ids: &[String]) -> Result<Vec<Option<Seq>>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        Ok(ids
            .iter()
            .map(|id| inner.find(record, id).map(|entry| entry.seq))
            .collect())
    }

    async fn snapshot(&self, conversation: ConversationId, view: &ViewName) -> Result<Snapshot> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        let found = record.views.get(view);
        Ok(Snapshot {
            conversation,
            head: record.info.head,
            log_tokens: record.info.tokens,
            view: view.clone(),
            version: found.map_or(ViewVersion(0), ViewRecord::version),
            saved: found.map_or(0, |view| view.saved),
            spans: found.map_or(1, |view| view.rows.len() as u64),
            erasures: record.info.erasures,
        })
    }

    async fn views(&self, conversation: ConversationId) -> Result<Vec<ViewInfo>> {
        let inner = self.lock();
        let views = &inner.get(conversation)?.views;
        Ok(views
            .iter()
            .map(|(name, view)| ViewInfo {
                name: name.clone(),
                version: view.version(),
                spans: view.rows.len() as u64,
                saved: view.saved,
                chain: view.chain(),
            })
            .collect())
    }

    async fn spans(
        &self,
        snapshot: &Snapshot,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<Page<Span>> {
        let inner = self.lock();
        let record = inner.get(snapshot.conversation)?;
        let view = record.views.get(&snapshot.view);
        if snapshot.version > view.map_or(ViewVersion(0), ViewRecord::version) {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "view {} of {} has no version {} yet",
                    snapshot.view, record.info.key, snapshot.version
                ),
            ));
        }
        let rows = match view {
            Some(view) => view.rows_at(snapshot.version),
            None => Cow::Owned(vec![SpanStart::FIRST]),
        };
        // The rows of the spans that overlap the range begin with the row that covers the first position of the range.
        let from = rows.partition_point(|row| row.first <= range.first).max(1) - 1;
        let to = rows
            .partition_point(|row| row.first <= range.last)
            .max(from);
        let limit = limit.max(1);
        let more = to - from > limit;
        let (from, to) = match (more, order) {
            (false, _) => (from, to),
            (true, Order::OldestFirst) => (from, from + limit),
            (true, Order::NewestFirst) => (to - limit, to),
        };
        let end = rows.get(to).map(|row| row.first.prev());
        let mut items = spans_of(rows.get(from..to).unwrap_or_default(), end);
        if order == Order::NewestFirst {
            items.reverse();
        }
        let next = match items.last() {
            Some(last) if more => match order {
                Order::OldestFirst => last
                    .range
                    .last
                    .and_then(|last| SeqRange::new(last.next(), range.last)),
                Order::NewestFirst => SeqRange::new(range.first, last.range.first.prev()),
            },
            _ => None,
        };
        Ok(Page { items, next })
    }

    async fn publish_all(
        &self,
        conversation: ConversationId,
        publishes: &[Publish],
    ) -> Result<Vec<Result<Published>>> {
        let mut inner = self.lock();
        inner.get(conversation)?;
        check_one_view(publishes)?;
        let publish = |publish| inner.publish(conversation, publish);
        Ok(publishes.iter().map(publish).collect())
    }

    async fn publications(
        &self,
        conversation: ConversationId,
        view: &ViewName,
        after: ViewVersion,
        limit: usize,
    ) -> Result<Page<Publication, ViewVersion>> {
        let inner = self.lock();
        let found = inner.get(conversation)?.views.get(view);
        let left = found
            .into_iter()
            .flat_map(|view| &view.publications)
            .skip_while(|publication| publication.version <= after);
        Ok(page(left, limit, |publication| publication.version))
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        ids: &[SummaryId],
    ) -> Result<Vec<Option<Summary>>> {
        let inner = self.lock();
        let lineage = inner.lineage(inner.get(conversation)?);
        Ok(ids
            .iter()
            .map(|id| inner.summary(&lineage, id).cloned())
            .collect())
    }

    async fn summary_log(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        let lineage = inner.lineage(record);
        let mut left = inner.summaries(&lineage);
        if let Some(id) = after
            && !left.any(|summary| summary.id == *id)
        {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("{} has no summary {id}", record.info.key),
            ));
        }
        Ok(page(left, limit, |summary| summary.id.clone()))
    }

    async fn own_summaries(
        &self,
        conversation: ConversationId,
        after: Option<&SummaryId>,
        limit: usize,
    ) -> Result<Page<Summary, SummaryId>> {
        let inner = self.lock();
        let record = inner.get(conversation)?;
        let from = match after {
            None => 0,
            Some(id) => match record.summary_index.get(id) {
                Some(index) => index + 1,
                None => {
                    return Err(Error::new(
                        ErrorKind::NotFound,
                        format!("{} has no summary {id} of its own", record.info.key),
                    ));
                }
            },
        };
        let left = record.summaries.iter().skip(from);
        Ok(page(left, limit, |summary| summary.id.clone()))
    }

    async fn parents(
        &self,
        conversation: ConversationId,
        summary: &SummaryId,
    ) -> Result<Vec<SummaryId>> {
        let inner = self.lock();
        let lineage = inner.lineage(inner.get(conversation)?);
        Ok(inner
            .summaries(&lineage)
            .filter(|s| {
                let mut below = s.children.iter().chain(&s.sources);
                below.any(|one| one.summary() == Some(summary))
            })
            .map(|s| s.id.clone())
            .collect())
    }

    async fn summaries_by_source(
        &self,
        conversation: ConversationId,
        sources: &[(Hash, Recipe)],
    ) -> Result<Vec<Option<Summary>>> {
        let inner = self.lock();
        let lineage = inner.lineage(inner.get(conversation)?);
        let newest = |(source, recipe): &(Hash, Recipe)| {
            lineage.iter().find_map(|scope| {
                let record = inner.get(scope.conversation).ok()?;
                let own = &record.summaries;
                let gone = |s: &Summary| record.erased_summaries.contains(&s.id);
                let made =
                    |s: &&Summary| s.source_hash == *source && s.recipe == *recipe && !gone(s);
                let seen = |s: &&Summary| made(s) && scope.sees(s.range);
                own.iter().rev().find(seen).cloned()
            })
        };
        Ok(sources.iter().map(newest).collect())
    }

    async fn claim_all(
        &self,
        conversation: ConversationId,
        keys: &[JobKey],
        owner: &Owner,
        ttl: Duration,
        erasures: u64,
    ) -> Result<Vec<Claim>> {
        let mut inner = self.lock();
        let record = inner.get_mut(conversation)?;
        if record.info.erasures != erasures {
            return Ok(vec![Claim::Outdated; keys.len()]);
        }
        let now = self.clock.now();
        let until = now.saturating_add(ttl);
        let claim = |key| record.claim(key, owner, now, until);
        Ok(keys.iter().map(claim).collect())
    }

    async fn settle_all(&self, settled: &[(Fence, LeaseUpdate)]) -> Result<Vec<Result<()>>> {
        let mut inner = self.lock();
        let now = self.clock.now();
        let settle = |(fence, outcome): &(Fence, LeaseUpdate)| {
            inner
                .get_mut(fence.conversation)?
                .settle(fence, outcome, now)
        };
        Ok(settled.iter().map(settle).collect())
    }

    async fn state(&self, conversation: ConversationId, key: &str) -> Result<Option<State>> {
        let inner = self.lock();
        Ok(inner.get(conversation)?.states.get(key).cloned())
    }

    async fn put_state(
        &self,
        conversation: ConversationId,
        key: &str,
        revision: u64,
        value: Option<&RawJson>,
    ) -> Result<u64> {
        let mut inner = self.lock();
        let states = &mut inner.get_mut(conversation)?.states;
        let found = states.get(key).map_or(0, |state| state.revision);
        if found != revision {
            return Err(Error::new(
                ErrorKind::Stale,
                format!("{key} has revision {found}, not {revision}: read it again"),
            ));
        }
        match value {
            Some(value) => {
                let state = State {
                    value: value.clone(),
                    revision: revision + 1,
                };
                states.insert(key.to_owned(), state);
                Ok(revision + 1)
            }
            None => {
                states.remove(key);
                Ok(0)
            }
        }
    }

    async fn erase(&self, conversation: ConversationId, erase: &Erase) -> Result<Erased> {
        self.lock().erase(conversation, erase)
    }

    async fn erasures(&self, conversation: ConversationId) -> Result<Erasures> {
        self.lock().erasures(conversation)
    }

    fn vector_store(&self) -> Option<&dyn VectorStore> {
        Some(self)
    }

    fn index(&self) -> Option<&dyn IndexStore> {
        Some(self)
    }
}

/// Returns a page of the first `limit` items, with the start of the next page if more items are left.
fn page<'a, T: Clone + 'a, C>(
    mut left: impl Iterator<Item = &'a T>,
    limit: usize,
    cursor: impl Fn(&T) -> C,
) -> Page<T, C> {
    let items: Vec<T> = left.by_ref().take(limit.max(1)).cloned().collect();
    let next = match left.next() {
        Some(_) => items.last().map(cursor),
        None => None,
    };
    Page { items, next }
}
