//! The search that reads an index in segments.

use std::fmt;
use std::ops::{ControlFlow, Deref};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memory_model::conventions::is_memory_tool;
use memory_model::{ConversationId, LogEntry, Seq, SeqRange, SummaryId};
use memory_store::{Conversation, IndexSegment, IndexStore, Store};

use super::base::Base;
use super::cache::{ChunkCache, Handle};
use super::candidates::{both, either, numbers};
use super::reading::Reading;
use super::visible::Visible;
use crate::embedding::Embedder;
use crate::log_calls::{LogCalls, read_conversation};
use crate::matching::{HitCollector, Matcher, Position, RankedCursor, is_one_of, search_auto};
use crate::segment::{Need, last_summary};
use crate::{Error, ErrorKind, Hit, HitOrder, Hits, Query, Result, Search, SearchMode};

/// Maximum number of attempts of a search. An attempt fails if index segments are merged meanwhile. After the last one,
/// the search reads all messages directly.
const ATTEMPTS: usize = 4;

/// Maximum number of candidate messages that are read at once.
const BATCH: usize = 64;

/// A search over the conversations of a store. It reads the search index that the store keeps. Messages that are not
/// indexed yet are read directly.
///
/// The hits, their scores and their order do not depend on the index. A search never writes. It ignores damaged parts
/// of the index, and [`Hits::index_damaged`] reports them. Call [`extend_index`](crate::extend_index) regularly to keep
/// the number of unindexed messages small. The search reads all messages directly if the store keeps no index, or if a
/// ranking includes echoes (see [`Query::echoes`]).
///
/// Hits are ranked in the mode `Prose`, and in the mode `Words` with the order `Relevance`. Otherwise all scores are 0.
/// In the other modes, the order `Relevance` is the same as `Oldest`.
///
/// The store is borrowed or shared: `SegmentSearch::new(&store)`, `SegmentSearch::new(Arc::clone(&store))`.
///
/// Clones share a cache of index data of at most about 32 MB. They also share the data of the last four rankings. The
/// messages of a conversation are one ranking, its summaries another. The data of one ranking are its records, up to
/// about 60 MB of words, and up to 1 MB of unindexed texts. An answer to a question with many common words takes more
/// memory for a short time.
#[derive(Debug, Clone)]
pub struct SegmentSearch<S> {
    store: S,
    uses_index: bool,
    embedder: Option<Arc<dyn Embedder>>,
    cache: Arc<ChunkCache>,
    bases: Arc<Mutex<Vec<Base>>>,
}

impl<S: Deref<Target: Store>> SegmentSearch<S> {
    /// Creates a search over the conversations of a store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            uses_index: true,
            embedder: None,
            cache: Arc::default(),
            bases: Arc::default(),
        }
    }

    /// Creates a search that reads all messages directly, even if the store keeps an index.
    pub fn without_index(store: S) -> Self {
        Self {
            uses_index: false,
            ..Self::new(store)
        }
    }

    /// Sets an embedder. In the mode `Prose`, messages with nearly the question's meaning then rank higher. If the
    /// embedder is not available, the search ranks by words alone.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    async fn answer(
        &self,
        conversation: ConversationId,
        query: &Query,
        matcher: &Matcher<'_>,
    ) -> Result<Hits> {
        let mut attempts = 0;
        while attempts < ATTEMPTS
            && let Some(index) = self.store.index().filter(|_| self.uses_index)
        {
            let distrusted = self.cache.distrusted();
            let read = Visible::read(index, &self.cache, conversation).await;
            let answer = match read {
                Ok((info, visible)) => {
                    let is_damaged = visible.is_damaged;
                    let visible = match needs_all(query, matcher)? {
                        true => Visible::default(),
                        false => visible,
                    };
                    let answer = self.asking(Some(index), info, visible, query, matcher);
                    answer.answer().await.map(|answer| Hits {
                        index_damaged: is_damaged,
                        ..answer
                    })
                }
                Err(error) => Err(error.into()),
            };
            match answer {
                // Each of these attempts finds one more segment that is not trusted.
                Err(error) if is_replaced(&error) && self.cache.distrusted() > distrusted => {}
                Err(error) if is_replaced(&error) => attempts += 1,
                answer => return answer,
            }
        }
        let info = read_conversation(&*self.store, conversation).await?;
        let asking = self.asking(None, info, Visible::default(), query, matcher);
        asking.answer().await
    }

    fn asking<'a>(
        &'a self,
        index: Option<&'a dyn IndexStore>,
        info: Conversation,
        visible: Visible,
        query: &'a Query,
        matcher: &'a Matcher<'a>,
    ) -> Asking<'a, S::Target> {
        Asking {
            store: &*self.store,
            embedder: self.embedder.as_deref(),
            bases: &self.bases,
            handle: Handle {
                index,
                cache: &self.cache,
            },
            info,
            visible,
            query,
            matcher,
        }
    }
}

#[async_trait]
impl<S> Search for SegmentSearch<S>
where
    S: Deref<Target: Store> + Send + Sync + fmt::Debug,
{
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits> {
        let (query, long) = query.bounded()?;
        let query = &*query;
        if query.mode == SearchMode::Auto {
            return search_auto(self, conversation, query).await;
        }
        let matcher = Matcher::new(query)?;
        let mut answer = self.answer(conversation, query, &matcher).await?;
        answer.fallback = long.or(matcher.fallback().cloned());
        Ok(answer)
    }
}

/// Returns whether a ranking must read all messages, because an index does not help. This is so if echoes (calls and
/// results of memory tools) are searched, because their words are not indexed. It is also so for the messages after a
/// stopped ranking, because most of them are not indexed.
fn needs_all(query: &Query, matcher: &Matcher<'_>) -> Result<bool> {
    if !matcher.ranks(query.order) {
        return Ok(false);
    }
    let cursor = query.cursor.as_deref().map(RankedCursor::from_cursor);
    let is_behind = |cursor: RankedCursor| cursor.state.first > Seq::FIRST;
    Ok(cursor.transpose()?.is_some_and(is_behind)
        || query.scope.has_messages() && matcher.searches_echoes())
}

/// Returns whether a segment was replaced while it was read.
fn is_replaced(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<memory_store::Error>());
    source.is_some_and(|source| source.kind() == memory_store::ErrorKind::Stale)
}

/// A query that is being answered, with the part of the index that the conversation sees.
pub(super) struct Asking<'a, T: ?Sized> {
    pub(super) store: &'a T,
    pub(super) embedder: Option<&'a dyn Embedder>,
    pub(super) bases: &'a Mutex<Vec<Base>>,
    pub(super) handle: Handle<'a>,
    pub(super) info: Conversation,
    pub(super) visible: Visible,
    pub(super) query: &'a Query,
    pub(super) matcher: &'a Matcher<'a>,
}

impl<T: Store + ?Sized> Asking<'_, T> {
    async fn answer(self) -> Result<Hits> {
        let how = match self.visible.messages.is_empty() && self.visible.summaries.is_empty() {
            true => "-scan",
            false => "-index",
        };
        if self.matcher.ranks(self.query.order) {
            return self.ranked(how).await;
        }
        let name = format!("{}{how}", self.matcher.mode().as_str());
        Ok(self.by_position().await?.finish(name, self.query.scope))
    }

    /// Answers a query with hits in the order of the log.
    async fn by_position(&self) -> Result<HitCollector> {
        let position = self.query.cursor.as_deref().map(Position::from_cursor);
        let (after, after_summary) = match position.transpose()? {
            None => (None, None),
            Some(Position::Message(seq)) => (Some(seq), None),
            Some(Position::Summary(id)) => (None, Some(id)),
        };
        let need = self.matcher.need();
        let mut hits = HitCollector::new(self.query.limit);
        let mut flow = ControlFlow::Continue(());
        if self.query.scope.has_messages() && after_summary.is_none() {
            flow = self.messages(&need, after, &mut hits).await?;
        }
        if self.query.scope.has_summaries() && flow.is_continue() {
            let found = self.summaries(&need).await?;
            show_summaries(found, self.query, after_summary, &mut hits)?;
        }
        Ok(hits)
    }

    /// Returns the ids of the summaries in the order of their creation, each with its hit if it matches. Without a
    /// cursor, summaries that do not match are left out.
    async fn summaries(&self, need: &Need) -> Result<Vec<(SummaryId, Option<Hit>)>> {
        let (handle, has_cursor) = (&self.handle, self.query.cursor.is_some());
        let mut found = Vec::new();
        for segment in &self.visible.summaries {
            let candidates = handle.candidates(segment, need).await?;
            let numbers = numbers(candidates, segment.documents);
            if numbers.is_empty() && !has_cursor {
                continue;
            }
            let records = handle.records(segment).await?;
            let (mut all, mut wanted) = (Vec::new(), Vec::new());
            for (number, record) in (0_u32..).zip(&records) {
                let Some(summary) = &record.summary else {
                    continue;
                };
                let may_match = numbers.binary_search(&number).is_ok()
                    && self.matcher.admits_over(summary.range, summary.times);
                if may_match {
                    wanted.push(summary.id.clone());
                }
                if may_match || has_cursor {
                    all.push((summary.id.clone(), may_match));
                }
            }
            let read = self.store.summaries(self.info.id, &wanted).await?;
            let mut read = read.into_iter();
            for (id, may_match) in all {
                let summary = may_match.then(|| read.next().flatten()).flatten();
                found.push((id, summary.and_then(|one| self.matcher.summary(&one))));
            }
        }
        let mut after = None;
        if let Some(last) = self.visible.summaries.last()
            && let Some(chunk) = handle.record_chunks(last).await?.last()
        {
            after = last_summary(chunk)?;
        }
        while self.visible.last_summary.as_ref() != Some(&after) {
            let page = self.store.summary_log(self.info.id, after.as_ref(), 256);
            let page = page.await?;
            for summary in page.items {
                let hit = self.matcher.summary(&summary);
                if hit.is_some() || has_cursor {
                    found.push((summary.id, hit));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        Ok(found)
    }

    /// Finds messages, in the order of the query.
    async fn messages(
        &self,
        need: &Need,
        after: Option<Seq>,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        let newest_first = self.query.order == HitOrder::Newest;
        let mut range = self.info.range();
        if let Some(wanted) = &self.query.range {
            range = range.and_then(|range| range.intersect(wanted));
        }
        if let Some(after) = after {
            range = range.and_then(|range| match newest_first {
                true => SeqRange::new(range.first, range.last.min(after.prev())),
                false => SeqRange::new(range.first.max(after.next()), range.last),
            });
        }
        let Some(range) = range else {
            return Ok(ControlFlow::Continue(()));
        };
        // First the parts that segments cover, and then the part that is not indexed.
        let segments = self.visible.messages.iter().map(|one| {
            let known = SeqRange::new(Seq(one.segment.first), one.last);
            (Some(&one.segment), known)
        });
        let unindexed = SeqRange::new(self.visible.indexed.next(), range.last);
        let parts = segments.chain([(None, unindexed)]);
        let seen = |part: Option<SeqRange>| part?.intersect(&range);
        let mut parts: Vec<(Option<&IndexSegment>, SeqRange)> = parts
            .filter_map(|(segment, part)| Some((segment, seen(part)?)))
            .collect();
        if newest_first {
            parts.reverse();
        }
        // Reads as many candidates as are likely to fill the answer, and more if few of them match. The last few
        // candidates of a part are read with the next part.
        let wanted = |hits: &HitCollector, least| hits.room().saturating_add(1).clamp(least, BATCH);
        let (mut least, mut batch) = (1, wanted(hits, 1));
        let mut candidates = Vec::new();
        for (at, (segment, seen)) in parts.iter().enumerate() {
            let found = match segment {
                Some(segment) => self.candidates(segment, need, *seen).await?,
                None => self.each_of_few(*seen),
            };
            let is_last = found.is_none() || at + 1 == parts.len();
            candidates.extend(found.iter().flatten());
            let mut rest = candidates.as_slice();
            while rest.len() >= batch || is_last && !rest.is_empty() {
                let (now, later) = rest.split_at(batch.min(rest.len()));
                rest = later;
                let reading = Reading::new(self.store, self.info.id, now.iter().copied());
                if self.read(reading, hits).await?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                least = BATCH.min(least * 8);
                batch = wanted(hits, least);
            }
            candidates = rest.to_vec();
            if found.is_none() {
                let reading = Reading::all(self.store, self.info.id, *seen);
                if self.read(reading, hits).await?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds the hits among some messages, in the query's order.
    async fn read(
        &self,
        mut reading: Reading<'_, T>,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        if self.query.order == HitOrder::Newest {
            reading = reading.newest_first();
        }
        while let Some(entry) = reading.next().await? {
            if self.see(&entry, &mut reading.calls, hits).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds a message if it is a hit. Returns `Break` if the answer is full or the time is over.
    async fn see(
        &self,
        entry: &LogEntry,
        calls: &mut LogCalls<'_, T>,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        if let Some(hit) = calls.hit(self.matcher, entry).await?
            && hits.push(hit).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        Ok(match self.query.is_over() {
            true => hits.stop_behind(Position::Message(entry.seq)),
            false => ControlFlow::Continue(()),
        })
    }

    /// Returns the positions of a range that is not indexed, in the query's order. `None` if there are many.
    fn each_of_few(&self, range: SeqRange) -> Option<Vec<Seq>> {
        let is_few = range.len() <= BATCH as u64;
        is_few.then(|| self.ordered((range.first.0..=range.last.0).map(Seq).collect()))
    }

    /// Puts ascending positions into the query's order.
    fn ordered(&self, mut seqs: Vec<Seq>) -> Vec<Seq> {
        if self.query.order == HitOrder::Newest {
            seqs.reverse();
        }
        seqs
    }

    /// Returns the messages of a segment that may match and that are in a range, in the query's order. `None` if all
    /// may match.
    async fn candidates(
        &self,
        segment: &IndexSegment,
        need: &Need,
        range: SeqRange,
    ) -> Result<Option<Vec<Seq>>> {
        let (handle, tools) = (&self.handle, self.matcher.tools());
        let mut found = handle.candidates(segment, need).await?;
        if found.is_none() && tools.is_empty() {
            return Ok(None);
        }
        if self.matcher.searches_echoes() {
            // The words of echoes are not indexed.
            found = either(found, Some(handle.using(segment, &is_memory_tool).await?));
        }
        if !tools.is_empty() {
            let is_wanted = |name: &str| is_one_of(name, tools);
            found = both(found, Some(handle.using(segment, &is_wanted).await?));
        }
        let numbers = numbers(found, segment.documents);
        let mut seqs = handle.positions(segment, &numbers).await?;
        seqs.retain(|seq| range.contains(*seq));
        Ok(Some(self.ordered(seqs)))
    }
}

impl Handle<'_> {
    /// Returns the positions of some documents of a segment, given by their numbers.
    async fn positions(&self, segment: &IndexSegment, numbers: &[u32]) -> Result<Vec<Seq>> {
        let numbers = numbers.iter();
        if segment.last - segment.first + 1 == segment.documents {
            return Ok(numbers.map(|at| Seq(segment.first + at)).collect());
        }
        // There are notes between the messages.
        let records = self.records(segment).await?;
        let seq = |number: &u32| records.get(*number as usize).map(|record| record.seq);
        Ok(numbers.filter_map(seq).collect())
    }
}

/// Adds the found summaries in the query's order, after the summary of the cursor.
fn show_summaries(
    mut found: Vec<(SummaryId, Option<Hit>)>,
    query: &Query,
    cursor: Option<SummaryId>,
    hits: &mut HitCollector,
) -> Result<()> {
    if query.order == HitOrder::Newest {
        found.reverse();
    }
    if let Some(cursor) = cursor {
        let at = found.iter().position(|(id, _)| *id == cursor);
        let at = at.ok_or_else(|| {
            let message = format!(
                "the cursor names {cursor}, which the conversation does not have: search without it"
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        found.drain(..=at);
    }
    for hit in found.into_iter().filter_map(|(_, hit)| hit) {
        if hits.push(hit).is_break() {
            break;
        }
    }
    Ok(())
}
