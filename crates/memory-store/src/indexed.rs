//! Search by an index as far as it reaches, and by a scan of the rest.

use std::borrow::Cow;
use std::fmt;
use std::ops::{ControlFlow, Deref};

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};
use memory_search::implementors::{HitCollector, Matcher, Position, search_auto};
use memory_search::ranking::RankingPolicy;
use memory_search::{
    ErrorKind, Fallback, Hit, HitOrder, HitTarget, Hits, IndexedHits, Query, Result, Search,
    SearchIndex, SearchMode, SearchScope, Watermark,
};

use crate::calls::LogCalls;
use crate::scan::{SCAN, ScanSearch};
use crate::store::Store;
use crate::types::LogRead;

/// A search that answers from an index up to its [`Watermark`] and scans what lies behind it.
///
/// Its answers are complete however far the index lags. It never writes to the index: the
/// application fills it when it likes, so that what is scanned stays short. A mode that the index
/// does not have is left to the scan. Hits come by position; the order by relevance is the oldest
/// first.
///
/// The order [`HitOrder::Newest`] scans all summaries, since a store lists them oldest first.
#[derive(Debug, Clone)]
pub struct IndexedSearch<I, S> {
    index: I,
    scan: ScanSearch<S>,
}

impl<I, S> IndexedSearch<I, S>
where
    I: SearchIndex,
    S: Deref + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    /// A search by `index` over the conversations of a store.
    pub fn new(index: I, store: S) -> Self {
        Self {
            index,
            scan: ScanSearch::new(store),
        }
    }

    /// The index.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Asks the index; `None` where it cannot answer and everything is to be scanned.
    async fn ask(
        &self,
        conversation: ConversationId,
        query: &Query,
        answer: &mut Answer,
    ) -> Result<Option<IndexedHits>> {
        match self.index.search_indexed(conversation, query).await {
            Ok(indexed) if indexed.watermark == Watermark::default() => Ok(None),
            Ok(indexed) => {
                answer.index = Some(indexed.hits.strategy.clone());
                Ok(Some(indexed))
            }
            Err(error) => match error.kind() {
                ErrorKind::Unsupported | ErrorKind::NotFound => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Scans, and adds what is found.
    async fn scan(
        &self,
        conversation: ConversationId,
        query: &Query,
        answer: &mut Answer,
    ) -> Result<ControlFlow<()>> {
        let query = query.clone().with_limit(answer.hits.room().max(1));
        let found = self.scan.search(conversation, &query).await?;
        answer.scan = Some(found.strategy.clone());
        answer.fallback = found.fallback.clone();
        Ok(answer.hits.extend(found))
    }

    async fn messages(
        &self,
        conversation: ConversationId,
        query: &Query,
        answer: &mut Answer,
    ) -> Result<ControlFlow<()>> {
        let query = query.clone().with_scope(SearchScope::Messages);
        // Which calls results belong to is read from the log, not asked of the index.
        let mut asked = query.clone().with_echoes();
        asked.tools.clear();
        let Some(indexed) = self.ask(conversation, &asked, answer).await? else {
            return self.scan(conversation, &query, answer).await;
        };
        if query.order == HitOrder::Newest
            && let Some(rest) = behind(&query, indexed.watermark.messages)
            && self.scan(conversation, &rest, answer).await?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        let matcher = Matcher::of_any_mode(&query, &RankingPolicy::default())?;
        let mut next = Some(indexed);
        let mut watermark = Watermark::default();
        while let Some(indexed) = next.take() {
            watermark = indexed.watermark;
            for hit in indexed.hits.hits {
                if let Some(hit) = self.admitted(conversation, &matcher, hit).await?
                    && answer.hits.push(hit).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if let Some(cursor) = indexed.hits.cursor {
                asked = asked.with_cursor(cursor.clone());
                next = self.ask(conversation, &asked, answer).await?;
                if next.is_none() {
                    let rest = query.with_cursor(cursor);
                    return self.scan(conversation, &rest, answer).await;
                }
            }
        }
        match behind(&query, watermark.messages) {
            Some(rest) if query.order != HitOrder::Newest => {
                self.scan(conversation, &rest, answer).await
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    /// The hit as far as the query's filter on tools admits it and it is no echo.
    async fn admitted(
        &self,
        conversation: ConversationId,
        matcher: &Matcher,
        hit: Hit,
    ) -> Result<Option<Hit>> {
        let HitTarget::Message { seq, .. } = hit.target else {
            return Ok(Some(hit));
        };
        if matcher.searches_echoes() && matcher.tools().is_empty() {
            return Ok(Some(hit));
        }
        let store = self.scan.store();
        let one = LogRead::new(SeqRange::single(seq));
        let page = store.read(conversation, &one).await?;
        let Some(entry) = page.items.first() else {
            return Ok(None);
        };
        let mut calls = LogCalls::new(store, conversation);
        calls.add_page(&page.items);
        calls.resolve(entry).await?;
        let calls = calls.names();
        Ok(
            match matcher.searches_echoes() || !calls.has_echoes(entry) {
                true => matcher.admits_message(entry, calls).then_some(hit),
                false => matcher.message(entry, calls),
            },
        )
    }

    async fn summaries(
        &self,
        conversation: ConversationId,
        query: &Query,
        answer: &mut Answer,
    ) -> Result<ControlFlow<()>> {
        let query = query
            .clone()
            .with_scope(SearchScope::Summaries)
            .with_limit(answer.hits.room().max(1));
        if query.order == HitOrder::Newest {
            return self.scan(conversation, &query, answer).await;
        }
        let indexed = self.ask(conversation, &query, answer).await?;
        let Some((hits, last)) =
            indexed.and_then(|found| Some((found.hits, found.watermark.summaries?)))
        else {
            return self.scan(conversation, &query, answer).await;
        };
        if answer.hits.extend(hits).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let rest = query.with_cursor(Position::Summary(last).to_cursor());
        self.scan(conversation, &rest, answer).await
    }
}

/// An answer as it comes together.
struct Answer {
    hits: HitCollector,
    /// The index's strategy, when it was used.
    index: Option<Cow<'static, str>>,
    /// The scan's strategy, when it was used.
    scan: Option<Cow<'static, str>>,
    /// What the scan did instead of what was asked.
    fallback: Option<Fallback>,
}

impl Answer {
    fn finish(self, scope: SearchScope) -> Hits {
        let strategy = match (self.index, self.scan) {
            (None, scan) => scan.unwrap_or(Cow::Borrowed(SCAN)),
            (Some(index), None) => index,
            (Some(index), Some(scan)) => Cow::Owned(format!("{index}+{scan}")),
        };
        self.hits
            .finish(strategy, scope)
            .with_fallback(self.fallback)
    }
}

/// The query for messages behind a position; `None` when it asks for none of them.
fn behind(query: &Query, indexed: Seq) -> Option<Query> {
    let (first, last) = match query.range {
        Some(range) => (range.first, range.last),
        None => (Seq::FIRST, Seq(u32::MAX)),
    };
    let rest = SeqRange::new(first.max(indexed.next()), last)?;
    Some(query.clone().with_range(rest))
}

#[async_trait]
impl<I, S> Search for IndexedSearch<I, S>
where
    I: SearchIndex,
    S: Deref + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits> {
        query.check()?;
        if query.mode == SearchMode::Auto {
            return search_auto(self, conversation, query).await;
        }
        // An index has no ranking yet: what ranks is scanned.
        if query.mode == SearchMode::Prose
            || (query.mode == SearchMode::Words && query.order == HitOrder::Relevance)
        {
            return self.scan.search(conversation, query).await;
        }
        let position = query.cursor.as_ref().map(Position::from_cursor);
        let position = position.transpose()?;
        let mut query = query.clone();
        if query.order != HitOrder::Newest {
            query.order = HitOrder::Oldest;
        }
        let mut answer = Answer {
            hits: HitCollector::new(query.limit),
            index: None,
            scan: None,
            fallback: None,
        };
        let past_messages = matches!(position, Some(Position::Summary(_)));
        let mut flow = ControlFlow::Continue(());
        if query.scope.has_messages() && !past_messages {
            flow = self.messages(conversation, &query, &mut answer).await?;
        }
        if query.scope.has_summaries() && flow.is_continue() {
            if !past_messages {
                query.cursor = None;
            }
            // Nothing follows the summaries: whether more fits makes no difference.
            let _ = self.summaries(conversation, &query, &mut answer).await?;
        }
        Ok(answer.finish(query.scope))
    }
}
