//! Search by reading everything: always right, on any store.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{ControlFlow, Deref};

use async_trait::async_trait;
use memory_model::{ConversationId, Seq, SeqRange};
use memory_search::embedding::Semantics;
use memory_search::implementors::{
    HitCollector, Matcher, Position, RankedQuery, RankedTarget, RankedUpTo, search_auto,
};
use memory_search::ranking::{FusionPolicy, RankingPolicy};
use memory_search::{
    CALL_WINDOW, Error, ErrorKind, Hit, HitOrder, Hits, Query, Result, Search, SearchMode,
};

use crate::calls::LogCalls;
use crate::checks::no_conversation;
use crate::store::Store;
use crate::types::{Conversation, ConversationRef, LogRead};
use crate::vectors::{Nearness, nearness};

/// Name of the strategy that reads everything, for a literal text.
pub const SCAN: &str = "literal-scan";

/// Name of the strategy that reads everything, for a regular expression.
pub const REGEX_SCAN: &str = "regex-scan";

/// Name of the strategy that reads everything, for words.
pub const WORDS_SCAN: &str = "words-scan";

/// Name of the strategy that reads everything and ranks it.
pub const PROSE_SCAN: &str = "prose-scan";

/// Summaries read at once.
const SUMMARY_PAGE: usize = 256;

/// A search that reads a whole conversation, page by page, whatever the store.
///
/// It needs no index, sees every write that was finished before it began, and is what an index is
/// tested against. It has every mode. In the modes `Words` and `Prose` hits are ranked; in the others
/// scores are 0, and the order by relevance is the oldest first. A ranking reads the whole conversation
/// for each page, and keeps its words in memory meanwhile.
///
/// The store is borrowed or shared: `ScanSearch::new(&store)`, `ScanSearch::new(Arc::clone(&store))`.
#[derive(Debug, Clone)]
pub struct ScanSearch<S> {
    store: S,
    ranking: RankingPolicy,
    semantics: Option<Semantics>,
}

impl<S> ScanSearch<S>
where
    S: Deref + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    /// A search over the conversations of a store.
    pub fn new(store: S) -> Self {
        Self {
            store,
            ranking: RankingPolicy::default(),
            semantics: None,
        }
    }

    /// Sets an embedder: in the mode `Prose`, messages that mean nearly what is asked rank higher. While
    /// the embedder cannot be asked, words alone are ranked.
    #[must_use]
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        self.semantics = Some(semantics);
        self
    }

    /// How near messages are to the question; `None` for a query that vectors do not change.
    pub(crate) async fn nearness(
        &self,
        info: &Conversation,
        (query, question): (&Query, &str),
        state: RankedUpTo,
        is_first_page: bool,
    ) -> Result<Option<(Nearness, &FusionPolicy)>> {
        let counts = query.mode == SearchMode::Prose
            && query.scope.has_messages()
            && (is_first_page || state.vectors.is_some());
        let Some(semantics) = self.semantics.as_ref().filter(|_| counts) else {
            return Ok(None);
        };
        let (head, last) = (state.head.min(info.head), state.vectors);
        let found = nearness(&*self.store, info, semantics, question, head, last).await?;
        Ok(found.map(|found| (found, &semantics.fusion)))
    }

    /// Sets how hits are ranked, and the language whose words are stemmed.
    #[must_use]
    pub fn with_ranking(mut self, ranking: RankingPolicy) -> Self {
        self.ranking = ranking;
        self
    }

    pub(crate) fn store(&self) -> &S::Target {
        &self.store
    }

    pub(crate) async fn conversation(&self, id: ConversationId) -> Result<Conversation> {
        let found = self.store.conversation(&ConversationRef::Id(id)).await?;
        Ok(found.ok_or_else(|| no_conversation(id))?)
    }

    /// Answers a query whose hits come in the order of the log.
    async fn by_position(
        &self,
        conversation: ConversationId,
        query: &Query,
        matcher: &Matcher,
        strategy: &'static str,
    ) -> Result<Hits> {
        let position = query.cursor.as_ref().map(Position::from_cursor);
        let (after, after_summary) = match position.transpose()? {
            None => (None, None),
            Some(Position::Message(seq)) => (Some(seq), None),
            Some(Position::Summary(id)) => (None, Some(id)),
        };
        let conversation = self.conversation(conversation).await?;
        let mut hits = HitCollector::new(query.limit);
        let mut flow = ControlFlow::Continue(());
        if query.scope.has_messages() && after_summary.is_none() {
            flow = self
                .messages(&conversation, query, after, matcher, &mut hits)
                .await?;
        }
        if query.scope.has_summaries() && flow.is_continue() {
            let _ = match query.order {
                HitOrder::Newest => {
                    self.newest_summaries(&conversation, after_summary, matcher, &mut hits)
                        .await?
                }
                _ => {
                    self.summaries(&conversation, query, after_summary, matcher, &mut hits)
                        .await?
                }
            };
        }
        Ok(hits.finish(strategy, query.scope))
    }

    /// Answers a query that ranks.
    async fn ranked(
        &self,
        conversation: ConversationId,
        query: &Query,
        matcher: &Matcher,
        strategy: &'static str,
    ) -> Result<Hits> {
        let mut ranked = RankedQuery::new(query, matcher, &self.ranking)?;
        let conversation = self.conversation(conversation).await?;
        let is_first_page = ranked.up_to().is_none();
        let mut state = ranked.up_to().unwrap_or(RankedUpTo {
            first: ranked.first(),
            head: conversation.head,
            summaries: usize::MAX,
            vectors: None,
            stopped: false,
        });
        if query.scope.has_messages() {
            self.calls_before(&conversation, &mut ranked).await?;
            let mut rest = SeqRange::new(state.first, state.head.min(conversation.head));
            while let Some(range) = rest {
                let page = self
                    .store
                    .read(conversation.id, &LogRead::new(range))
                    .await?;
                page.items
                    .iter()
                    .for_each(|entry| ranked.add_message(entry));
                rest = page.next;
                if let Some(last) = page.items.last()
                    && (is_first_page && rest.is_some() && query.is_over())
                {
                    (state.head, state.stopped) = (last.seq, true);
                    break;
                }
            }
        }
        let mut summaries = 0;
        let (mut after, mut more) = (None, query.scope.has_summaries() && !state.stopped);
        while more && summaries < state.summaries {
            let limit = SUMMARY_PAGE.min(state.summaries - summaries);
            let page = self
                .store
                .summary_log(conversation.id, after.as_ref(), limit);
            let page = page.await?;
            page.items
                .iter()
                .for_each(|summary| ranked.add_summary(summary));
            summaries += page.items.len();
            (more, after) = (page.next.is_some(), page.next);
        }
        state.summaries = summaries;
        let question = ranked.question_to_embed();
        let near = self
            .nearness(&conversation, (query, &question), state, is_first_page)
            .await?;
        let mut strategy = Cow::Borrowed(strategy);
        if let Some((near, policy)) = near {
            let cosines = near.cosines(ranked.positions().map(Some));
            ranked.set_nearness(cosines, policy);
            state.vectors = Some(near.last);
            strategy = with_vectors(&strategy).into();
        }
        let page = ranked.page(state);
        let hits = self.shown(&conversation, matcher, page.targets).await?;
        let answer = match page.cursor {
            Some(cursor) => Hits::partial(hits, strategy, query.scope, cursor),
            None => Hits::complete(hits, strategy, query.scope),
        };
        let stopped = is_first_page && state.stopped;
        Ok(answer.with_cursors(page.cursors).with_stopped(stopped))
    }

    /// Tells a ranking that begins within the log the calls before that.
    async fn calls_before(
        &self,
        conversation: &Conversation,
        ranked: &mut RankedQuery<'_>,
    ) -> Result<()> {
        let last = ranked.first().prev();
        let first = Seq(last.0.saturating_sub(CALL_WINDOW).max(1));
        let mut rest = SeqRange::new(first, last);
        while let Some(range) = rest {
            let read = LogRead::new(range);
            let page = self.store.read(conversation.id, &read).await?;
            page.items.iter().for_each(|entry| ranked.add_calls(entry));
            rest = page.next;
        }
        Ok(())
    }

    /// Reads what was found, for its snippets.
    pub(crate) async fn shown(
        &self,
        conversation: &Conversation,
        matcher: &Matcher,
        targets: Vec<(RankedTarget, f64)>,
    ) -> Result<Vec<Hit>> {
        let mut hits = Vec::with_capacity(targets.len());
        let mut calls = LogCalls::new(&*self.store, conversation.id);
        for (target, score) in targets {
            let hit = match target {
                RankedTarget::Message(seq) => {
                    let one = SeqRange::new(seq, seq).map(LogRead::new);
                    let Some(one) = one else { continue };
                    let page = self.store.read(conversation.id, &one).await?;
                    calls.add_page(&page.items);
                    match page.items.first() {
                        Some(entry) if !matcher.searches_echoes() => {
                            calls.resolve(entry).await?;
                            Some(matcher.show_message(entry, calls.names()))
                        }
                        entry => entry.map(|entry| matcher.show_message(entry, calls.names())),
                    }
                }
                RankedTarget::Summary(id) => {
                    let found = self.store.summaries(conversation.id, &[id]).await?;
                    let found = found.into_iter().next().flatten();
                    found.map(|summary| matcher.show_summary(&summary))
                }
            };
            hits.extend(hit.map(|mut hit| {
                hit.score = score;
                hit
            }));
        }
        Ok(hits)
    }

    pub(crate) async fn messages(
        &self,
        conversation: &Conversation,
        query: &Query,
        after: Option<Seq>,
        matcher: &Matcher,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        let newest_first = query.order == HitOrder::Newest;
        let mut rest = conversation.range();
        if let Some(range) = &query.range {
            rest = rest.and_then(|rest| rest.intersect(range));
        }
        if let Some(after) = after {
            rest = rest.and_then(|rest| match newest_first {
                true => SeqRange::new(rest.first, rest.last.min(after.prev())),
                false => SeqRange::new(rest.first.max(after.next()), rest.last),
            });
        }
        let mut calls = LogCalls::new(&*self.store, conversation.id);
        while let Some(range) = rest {
            let read = match newest_first {
                true => LogRead::new(range).newest_first(),
                false => LogRead::new(range),
            };
            let page = self.store.read(conversation.id, &read).await?;
            calls.add_page(&page.items);
            for entry in &page.items {
                if let Some(hit) = calls.hit(matcher, entry).await?
                    && hits.push(hit).is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
                if query.is_over() {
                    return Ok(hits.stop_behind(Position::Message(entry.seq)));
                }
            }
            rest = page.next;
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn summaries(
        &self,
        conversation: &Conversation,
        query: &Query,
        after: Option<memory_model::SummaryId>,
        matcher: &Matcher,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        let mut after = after;
        loop {
            let page = self
                .store
                .summary_log(conversation.id, after.as_ref(), SUMMARY_PAGE)
                .await?;
            for hit in page.items.iter().filter_map(|one| matcher.summary(one)) {
                if hits.push(hit).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            match page.next {
                Some(next) if query.is_over() => {
                    return Ok(hits.stop_behind(Position::Summary(next)));
                }
                Some(next) => after = Some(next),
                None => return Ok(ControlFlow::Continue(())),
            }
        }
    }

    /// As [`Self::summaries`] from the newest on. A store lists summaries oldest first, so that
    /// all are read, and the newest hits are kept.
    async fn newest_summaries(
        &self,
        conversation: &Conversation,
        before: Option<memory_model::SummaryId>,
        matcher: &Matcher,
        hits: &mut HitCollector,
    ) -> Result<ControlFlow<()>> {
        // One more than fits, to know whether there are more.
        let wanted = hits.room().saturating_add(1);
        let mut newest: VecDeque<Hit> = VecDeque::new();
        let mut seen_before = before.is_none();
        let mut after = None;
        'log: loop {
            let page = self
                .store
                .summary_log(conversation.id, after.as_ref(), SUMMARY_PAGE)
                .await?;
            for summary in &page.items {
                if before.as_ref() == Some(&summary.id) {
                    seen_before = true;
                    break 'log;
                }
                newest.extend(matcher.summary(summary));
                if newest.len() > wanted {
                    newest.pop_front();
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if !seen_before {
            return Err(no_such_cursor(before));
        }
        for hit in newest.into_iter().rev() {
            if hits.push(hit).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

pub(crate) fn no_such_cursor(summary: Option<memory_model::SummaryId>) -> Error {
    let id = summary.map(|id| id.to_string()).unwrap_or_default();
    Error::new(
        ErrorKind::NotFound,
        format!("the cursor names {id}, which the conversation does not have: search without it"),
    )
}

#[async_trait]
impl<S> Search for ScanSearch<S>
where
    S: Deref + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits> {
        let (query, long) = query.bounded()?;
        let query = &*query;
        if query.mode == SearchMode::Auto {
            return search_auto(self, conversation, query).await;
        }
        let matcher = Matcher::of_any_mode(query, &self.ranking)?;
        let strategy = strategy(matcher.mode());
        let answer = match RankedQuery::applies(query, &matcher) {
            true => self.ranked(conversation, query, &matcher, strategy).await?,
            false => {
                self.by_position(conversation, query, &matcher, strategy)
                    .await?
            }
        };
        Ok(answer.with_fallback(long.or(matcher.fallback().cloned())))
    }
}

/// The name of a strategy that counts vectors too: `prose-vectors-scan`.
pub(crate) fn with_vectors(strategy: &str) -> String {
    match strategy.split_once('-') {
        Some((mode, how)) => format!("{mode}-vectors-{how}"),
        None => strategy.to_owned(),
    }
}

/// The strategy of a mode.
pub(crate) fn strategy(mode: SearchMode) -> &'static str {
    match mode {
        SearchMode::Regex => REGEX_SCAN,
        SearchMode::Words => WORDS_SCAN,
        SearchMode::Prose => PROSE_SCAN,
        _ => SCAN,
    }
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        let kind = match error.kind() {
            crate::ErrorKind::NotFound => ErrorKind::NotFound,
            crate::ErrorKind::Invalid => ErrorKind::Invalid,
            crate::ErrorKind::Corrupt => ErrorKind::Corrupt,
            _ => ErrorKind::Storage,
        };
        Error::new(kind, error.to_string()).with_source(error)
    }
}
