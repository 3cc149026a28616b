//! The search by segments.

use std::fmt;
use std::ops::{ControlFlow, Deref};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use memory_model::conventions::is_memory_tool;
use memory_model::{ConversationId, LogEntry, Seq, SeqRange, SummaryId};
use memory_store::{Conversation, IndexSegment, IndexStore, LogRead, Store};

use super::base::Base;
use super::cache::ChunkCache;
use super::cache::Handle;
use super::candidates::Candidates;
use super::reading::Reading;
use super::visible::{Stretch, Visible};
use crate::embedding::Embedder;
use crate::log_calls::{LogCalls, read_conversation};
use crate::matching::{HitCollector, Matcher, Position, RankedCursor, is_one_of, search_auto};
use crate::segment::{Need, last_summary};
use crate::{Error, ErrorKind, Hit, HitOrder, Hits, Query, Result, Search, SearchMode};

/// How often a search begins anew because segments were merged meanwhile. Then it scans.
const ATTEMPTS: usize = 4;

/// Candidates that are read at once.
const BATCH: usize = 64;

/// A search over the conversations of any store. It reads the index that the store keeps, and the messages that are not
/// indexed yet.
///
/// Whatever the index holds, it answers with the same hits and scores in the same order. It never writes. Damaged parts of
/// the index are not used, and the answer says so. [`extend_index`](crate::extend_index) keeps the part that is not
/// indexed short. The messages of a store that keeps no index are all read, and so are those of a ranking that counts
/// echoes.
///
/// In the modes `Words` and `Prose` hits are ranked; in the others scores are 0, and the order by relevance is the oldest
/// first.
///
/// The store is borrowed or shared: `SegmentSearch::new(&store)`, `SegmentSearch::new(Arc::clone(&store))`.
///
/// Clones share what they read of the index: some 32 MB at most. They also keep what they know of the four rankings that
/// were asked last; a conversation's messages are one ranking, its summaries another. Each takes its records, up to
/// some 60 MB of words, and up to 1 MB of texts that are not indexed. While a question is answered that has many common
/// words, it takes more.
#[derive(Debug, Clone)]
pub struct SegmentSearch<S> {
    pub(super) store: S,
    uses_index: bool,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) cache: Arc<ChunkCache>,
    pub(super) bases: Arc<Mutex<Vec<Base>>>,
}

impl<S> SegmentSearch<S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    /// A search over the conversations of a store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            uses_index: true,
            embedder: None,
            cache: Arc::default(),
            bases: Arc::default(),
        }
    }

    /// A search that reads all messages, whatever index the store keeps.
    pub fn without_index(store: S) -> Self {
        Self {
            uses_index: false,
            ..Self::new(store)
        }
    }

    /// Sets an embedder: in the mode `Prose`, messages that mean nearly what is asked rank higher. While
    /// the embedder cannot be asked, words alone are ranked.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Answers a query whose hits come in the order of the log.
    async fn by_position(
        &self,
        handle: &Handle<'_>,
        info: &Conversation,
        visible: &Visible,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<HitCollector> {
        let position = query.cursor.as_ref().map(Position::from_cursor);
        let (after, after_summary) = match position.transpose()? {
            None => (None, None),
            Some(Position::Message(seq)) => (Some(seq), None),
            Some(Position::Summary(id)) => (None, Some(id)),
        };
        let need = matcher.need();
        let mut hits = HitCollector::new(query.limit);
        let mut flow = ControlFlow::Continue(());
        if query.scope.has_messages() && after_summary.is_none() {
            let messages = Messages {
                search: self,
                handle,
                info,
                query,
                matcher,
                need: &need,
            };
            flow = messages.find(visible, after, &mut hits).await?;
        }
        if query.scope.has_summaries() && flow.is_continue() {
            let found = self.summaries(handle, visible, query, matcher, &need);
            show_summaries(found.await?, query, after_summary, &mut hits)?;
        }
        Ok(hits)
    }

    /// The ids of the summaries, in the order in which they were made, each with its hit where it matches. Without a
    /// cursor those that do not match are left out.
    async fn summaries(
        &self,
        handle: &Handle<'_>,
        visible: &Visible,
        query: &Query,
        matcher: &Matcher,
        need: &Need,
    ) -> Result<Vec<(SummaryId, Option<Hit>)>> {
        let mut found = Vec::new();
        for segment in &visible.summaries {
            let candidates = handle.candidates(segment, need).await?;
            let numbers = candidates.numbers(segment.documents);
            if numbers.is_empty() && query.cursor.is_none() {
                continue;
            }
            let records = handle.records(segment).await?;
            let (mut all, mut wanted) = (Vec::new(), Vec::new());
            for (number, record) in (0_u32..).zip(&records) {
                let Some(summary) = &record.summary else {
                    continue;
                };
                let may_match = numbers.binary_search(&number).is_ok()
                    && matcher.admits_over(summary.range, summary.times);
                if may_match {
                    wanted.push(summary.id.clone());
                }
                if may_match || query.cursor.is_some() {
                    all.push((summary.id.clone(), may_match));
                }
            }
            let read = self.store.summaries(handle.conversation, &wanted).await?;
            let mut read = read.into_iter();
            for (id, may_match) in all {
                let summary = if may_match {
                    read.next().flatten()
                } else {
                    None
                };
                found.push((id, summary.and_then(|summary| matcher.summary(&summary))));
            }
        }
        let mut after = match visible.summaries.last() {
            Some(last) => handle.last_summary(last).await?,
            None => None,
        };
        while visible.last_summary.may_follow(after.as_ref()) {
            let page = self
                .store
                .summary_log(handle.conversation, after.as_ref(), 256)
                .await?;
            for summary in page.items {
                let hit = matcher.summary(&summary);
                if hit.is_some() || query.cursor.is_some() {
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
}

impl Handle<'_> {
    /// The id of a segment's last summary.
    async fn last_summary(&self, segment: &IndexSegment) -> Result<Option<SummaryId>> {
        match self.record_chunks(segment).await?.last() {
            Some(chunk) => last_summary(chunk),
            None => Ok(None),
        }
    }

    /// The positions of some of a segment's documents, by their numbers.
    pub(super) async fn positions(
        &self,
        segment: &IndexSegment,
        numbers: &[u32],
    ) -> Result<Vec<Seq>> {
        if segment.last - segment.first + 1 == segment.documents {
            return Ok(numbers
                .iter()
                .map(|number| Seq(segment.first + number))
                .collect());
        }
        // Notes are between them.
        let records = self.records(segment).await?;
        let seq = |number: &u32| records.get(*number as usize).map(|record| record.seq);
        Ok(numbers.iter().filter_map(seq).collect())
    }
}

/// Adds what is found among summaries, in the query's order and behind the cursor.
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

/// A part of the log, as a search of messages sees it.
enum LogPart<'v> {
    /// What an index knows.
    Indexed(&'v Stretch),
    /// What comes behind all of that, from this position on.
    Unindexed(Seq),
}

impl LogPart<'_> {
    /// What of a range is in it.
    fn range(&self, range: &SeqRange) -> Option<SeqRange> {
        let part = match self {
            LogPart::Indexed(stretch) => SeqRange::new(Seq(stretch.segment.first), stretch.last),
            LogPart::Unindexed(first) => SeqRange::new(*first, range.last),
        };
        part.and_then(|part| part.intersect(range))
    }
}

/// The search of messages, in the order of the log.
struct Messages<'m, S> {
    search: &'m SegmentSearch<S>,
    handle: &'m Handle<'m>,
    info: &'m Conversation,
    query: &'m Query,
    matcher: &'m Matcher,
    need: &'m Need,
}

impl<S> Messages<'_, S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    async fn find(
        &self,
        visible: &Visible,
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
        let mut parts: Vec<LogPart<'_>> = visible.messages.iter().map(LogPart::Indexed).collect();
        parts.push(LogPart::Unindexed(visible.indexed.next()));
        if newest_first {
            parts.reverse();
        }
        // As many as are likely to fill the answer, then more where few of them matched. Few of one part are read with
        // those of the next.
        let wanted = |hits: &HitCollector, least| hits.room().saturating_add(1).clamp(least, BATCH);
        let (mut least, mut batch) = (1, wanted(hits, 1));
        let mut candidates = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let seen = part.range(&range);
            let found = match (part, seen) {
                (_, None) => Some(Vec::new()),
                (LogPart::Indexed(stretch), Some(seen)) => {
                    self.candidates(&stretch.segment, seen).await?
                }
                (LogPart::Unindexed(_), Some(seen)) => self.each_of_few(seen),
            };
            let is_last = found.is_none() || at + 1 == parts.len();
            candidates.extend(found.iter().flatten());
            let mut rest = candidates.as_slice();
            while rest.len() >= batch || is_last && !rest.is_empty() {
                let (now, later) = rest.split_at(batch.min(rest.len()));
                rest = later;
                if self.read(now, hits).await?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                least = BATCH.min(least * 8);
                batch = wanted(hits, least);
            }
            candidates = rest.to_vec();
            if found.is_none() && self.read_all(seen, hits).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads all messages of a range.
    async fn read_all(
        &self,
        range: Option<SeqRange>,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        let (store, id) = (&*self.search.store, self.info.id);
        let mut calls = LogCalls::new(store, id);
        let mut rest = range;
        while let Some(range) = rest {
            let mut read = LogRead::new(range);
            if self.query.order == HitOrder::Newest {
                read = read.newest_first();
            }
            let page = store.read(id, &read).await?;
            calls.add_page(&page.items);
            for entry in &page.items {
                if self.see(entry, &mut calls, hits).await?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            rest = page.next;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds a message if it is a hit. Breaks if the answer is full or its time is over.
    async fn see(
        &self,
        entry: &LogEntry,
        calls: &mut LogCalls<'_, S::Target>,
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

    /// The messages of a range that no index knows, in the query's order; `None` where they are many.
    fn each_of_few(&self, range: SeqRange) -> Option<Vec<Seq>> {
        let mut seqs: Vec<Seq> = match range.len() <= BATCH as u64 {
            true => (range.first.0..=range.last.0).map(Seq).collect(),
            false => return None,
        };
        if self.query.order == HitOrder::Newest {
            seqs.reverse();
        }
        Some(seqs)
    }

    /// The messages that may match in the part of a segment that is in a range, in the query's order; `None` where each
    /// may.
    async fn candidates(
        &self,
        segment: &IndexSegment,
        range: SeqRange,
    ) -> Result<Option<Vec<Seq>>> {
        let tools = self.matcher.tools();
        let mut numbers = self.handle.candidates(segment, self.need).await?;
        if numbers == Candidates::All && tools.is_empty() {
            return Ok(None);
        }
        if self.matcher.searches_echoes() {
            // Their words are not indexed.
            let echoes = self.handle.using(segment, &is_memory_tool).await?;
            numbers = numbers.or(echoes);
        }
        if !tools.is_empty() {
            let is_wanted = |name: &str| is_one_of(name, tools);
            let using = self.handle.using(segment, &is_wanted).await?;
            numbers = numbers.and(Candidates::Some(using));
        }
        let numbers = numbers.numbers(segment.documents);
        let mut seqs = self.handle.positions(segment, &numbers).await?;
        seqs.retain(|seq| range.contains(*seq));
        if self.query.order == HitOrder::Newest {
            seqs.reverse();
        }
        Ok(Some(seqs))
    }

    /// Reads candidates, which are in the query's order.
    async fn read(&self, candidates: &[Seq], hits: &mut HitCollector) -> Result<ControlFlow<()>> {
        let newest_first = self.query.order == HitOrder::Newest;
        let store = &*self.search.store;
        let mut reading = Reading::new(store, self.info.id, candidates.iter().copied());
        if newest_first {
            reading = reading.newest_first();
        }
        while let Some(entry) = reading.next().await? {
            if self.see(&entry, &mut reading.calls, hits).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[async_trait]
impl<S> Search for SegmentSearch<S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
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

/// Whether no index helps with a ranking: it counts the words of echoes, which are not indexed, or the messages behind a
/// ranking that was stopped, most of which are not.
fn needs_all(query: &Query, matcher: &Matcher) -> Result<bool> {
    if !matcher.ranks(query.order) {
        return Ok(false);
    }
    let cursor = query.cursor.as_ref().map(RankedCursor::from_cursor);
    let is_behind = |cursor: RankedCursor| cursor.state.first > Seq::FIRST;
    Ok(cursor.transpose()?.is_some_and(is_behind)
        || query.scope.has_messages() && matcher.searches_echoes())
}

/// Whether a segment was replaced while it was read.
fn is_replaced(error: &Error) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<memory_store::Error>());
    source.is_some_and(|source| source.kind() == memory_store::ErrorKind::Stale)
}

impl<S> SegmentSearch<S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    async fn answer(
        &self,
        conversation: ConversationId,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<Hits> {
        let mut attempts = 0;
        while attempts < ATTEMPTS
            && let Some(index) = self.store.index().filter(|_| self.uses_index)
        {
            let distrusted = self.cache.distrusted();
            match self.by_index(index, conversation, query, matcher).await {
                // Each time it leaves one more out.
                Err(error) if is_replaced(&error) && self.cache.distrusted() > distrusted => {}
                Err(error) if is_replaced(&error) => attempts += 1,
                answer => return answer,
            }
        }
        let info = read_conversation(&*self.store, conversation).await?;
        let answer = self.by_visible(None, &info, Visible::default(), query, matcher);
        answer.await
    }

    async fn by_index(
        &self,
        index: &dyn IndexStore,
        conversation: ConversationId,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<Hits> {
        let read = Visible::read(&*self.store, index, &self.cache, conversation);
        let (info, mut visible) = read.await?;
        let is_damaged = visible.is_damaged;
        if needs_all(query, matcher)? {
            visible = Visible::default();
        }
        let answer = self.by_visible(Some(index), &info, visible, query, matcher);
        let mut answer = answer.await?;
        answer.index_damaged = is_damaged;
        Ok(answer)
    }

    async fn by_visible(
        &self,
        index: Option<&dyn IndexStore>,
        info: &Conversation,
        visible: Visible,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<Hits> {
        let handle = Handle {
            index,
            cache: &self.cache,
            conversation: info.id,
        };
        let how = match visible.messages.is_empty() && visible.summaries.is_empty() {
            true => "-scan",
            false => "-index",
        };
        if matcher.ranks(query.order) {
            let ranked = self.ranked(&handle, info, visible, query, matcher, how);
            return ranked.await;
        }
        let hits = self.by_position(&handle, info, &visible, query, matcher);
        let name = format!("{}{how}", matcher.mode().as_str());
        Ok(hits.await?.finish(name, query.scope))
    }
}
