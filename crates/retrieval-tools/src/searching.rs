//! The searches of `grep`.

use async_trait::async_trait;
use memory_model::{ConversationId, SeqRange, Timestamp};
use memory_search::{
    ErrorKind as SearchErrorKind, Hit, HitOrder, HitTarget, Hits, Query, Search, SearchMode,
    SearchScope, search_auto,
};

use crate::arguments::Arguments as _;
use crate::error::{Error, Result};
use crate::grep::{EchoCount, GrepAnswer, GrepArgs, UndatedCount, WiderSearch};
use crate::retrieval::Retrieval;

/// Maximum number of hits that a wider search counts.
const COUNTED: usize = 100;

impl Retrieval {
    /// Returns messages and summaries that match a pattern.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern, and for a cursor of another search or conversation. `NotFound` if the tool
    /// set is narrowed to a range without the requested positions. Also the errors of the search.
    pub async fn grep(&self, args: impl Into<GrepArgs> + Send) -> Result<GrepAnswer> {
        self.answer_grep(&args.into(), true).await
    }

    /// Returns the hits that this tool set sees. Their cursors are bound to the conversation and the search.
    async fn hits(&self, args: &GrepArgs, limit: usize) -> Result<Hits> {
        let mut query = args.query(limit);
        query.range = match (args.range()?, self.grant.range) {
            (Some(asked), Some(_)) => Some(self.part_of(asked).await?),
            (asked, own) => own.or(asked),
        };
        let binding = self.binding(&args.question()).await?;
        if let Some(cursor) = &args.cursor {
            query.cursor = Some(binding.position(cursor)?.to_owned());
        }
        let mut hits = self.find(&query).await?;
        let cursors = hits.hits.iter_mut().map(|hit| &mut hit.cursor);
        for cursor in cursors.chain(&mut hits.cursor) {
            *cursor = binding.cursor(cursor);
        }
        Ok(hits)
    }

    /// Does the same as [`grep`](Self::grep). If there are no hits, searches in a wider scope only if `looks_wider` is
    /// `true`.
    pub(crate) async fn answer_grep(
        &self,
        args: &GrepArgs,
        looks_wider: bool,
    ) -> Result<GrepAnswer> {
        if args.pattern.is_empty() {
            return Err(Error::invalid(
                "pattern is required: give some text to find, such as \"tests are green\"",
            ));
        }
        let limits = self.limits();
        let spending = self
            .grant
            .begin(GrepArgs::NAME, limits.answer_tokens.max(1))?;
        let room = self.room(spending.taken);
        let hits = self.hits(args, limits.hits(args.limit)).await?;
        let mut answer = GrepAnswer::new(args, hits);
        answer.undated = self.undated(args).await?;
        // The rest of the room is for messages that are shown with the hits.
        let share = match (args.around, args.shows_corrections()) {
            (1.., _) => room.without(2),
            (_, true) => room.without(8),
            _ => room.clone(),
        };
        answer.fit(share);
        if looks_wider && answer.hits.is_empty() && answer.complete && args.cursor.is_none() {
            answer.wider = self.wider(args).await?;
            answer.echoes = self.echoes(args).await?;
        }
        if !answer.stopped {
            self.add_later(args, &mut answer, room.clone()).await?;
        }
        self.add_around(args.around, &mut answer, room).await?;
        spending.end(self.accounting.text(&answer.to_text()));
        Ok(answer)
    }

    /// Returns the hits of a query for counting. `asked` is the requested range of positions.
    async fn count(&self, mut query: Query, asked: Option<SeqRange>) -> Result<Hits> {
        query.snippet_chars = 1;
        query.range = match (self.grant.range, asked) {
            (Some(own), Some(asked)) => own.intersect(&asked),
            (own, asked) => own.or(asked),
        };
        Ok(self.find(&query).await?)
    }

    /// Returns the number of matching messages that the search excluded as calls and results of memory tools.
    async fn echoes(&self, args: &GrepArgs) -> Result<Option<EchoCount>> {
        let mut query = args.query(COUNTED);
        if query.searches_echoes() || !query.scope.has_messages() || query.has_long_pattern() {
            return Ok(None);
        }
        query = query
            .with_echoes()
            .with_scope(SearchScope::Messages)
            .with_order(HitOrder::Oldest);
        // This is only called if no other message matches. All matching messages are therefore echoes.
        if matches!(query.mode, SearchMode::Auto | SearchMode::Prose) {
            query.mode = SearchMode::Literal;
        }
        let hits = self.count(query, args.range()?).await?;
        Ok((!hits.hits.is_empty()).then_some(EchoCount {
            messages: hits.hits.len(),
            complete: hits.complete,
        }))
    }

    /// Returns the number of messages without a known time that match the pattern. `None` if the request has no time
    /// limits or has a cursor, or if no such message matches.
    async fn undated(&self, args: &GrepArgs) -> Result<Option<UndatedCount>> {
        let has_limits = args.since.is_some() || args.until.is_some();
        if !has_limits || !args.scope.has_messages() || args.cursor.is_some() {
            return Ok(None);
        }
        let mut query = args.query(COUNTED);
        query = query
            .with_scope(SearchScope::Messages)
            .with_order(HitOrder::Oldest);
        // This range contains only the time that stands for an unknown time.
        let none = Timestamp::default();
        query.since = Some(none);
        query.until = Some(Timestamp(none.0 + 1));
        let hits = self.count(query, args.range()?).await?;
        Ok((!hits.hits.is_empty()).then_some(UndatedCount {
            messages: hits.hits.len(),
            complete: hits.complete,
            left_out: args.since.is_some_and(|since| since > none),
        }))
    }

    /// Searches all content, and then without filters, until a search has hits. Returns the last of these searches with
    /// its hits.
    async fn wider(&self, args: &GrepArgs) -> Result<Option<WiderSearch>> {
        let scope = SearchScope::Both;
        let wide = GrepArgs {
            scope,
            ..args.clone()
        };
        let free = GrepArgs {
            mode: args.mode,
            smart_case: args.smart_case,
            ..GrepArgs::new(args.pattern.as_str())
        };
        let wide = (args.scope != scope).then_some((wide, false));
        let wider = wide
            .into_iter()
            .chain(args.is_filtered().then_some((free, true)));
        let mut answer = None;
        for (args, unfiltered) in wider {
            let hits = self.count(args.query(COUNTED), args.range()?).await?;
            let found = hits.hits.len();
            answer = Some(WiderSearch {
                scope: args.scope,
                unfiltered,
                hits: found,
                complete: hits.complete,
            });
            if found > 0 {
                break;
            }
        }
        Ok(answer)
    }

    /// Answers a query, restricted to the messages and summaries that this tool set sees.
    pub(crate) async fn find(&self, query: &Query) -> memory_search::Result<Hits> {
        let conversation = self.conversation;
        let stoppable = self.stop.clone().map(|stop| query.clone().with_stop(stop));
        let query = stoppable.as_ref().unwrap_or(query);
        if !self.grant.sees_all() {
            return VisibleSearch(self).search(conversation, query).await;
        }
        let answer = self.search.search(conversation, query).await;
        match answer {
            Err(error)
                if query.mode == SearchMode::Auto
                    && error.kind() == SearchErrorKind::Unsupported =>
            {
                search_auto(&*self.search, conversation, query).await
            }
            answer => answer,
        }
    }
}

/// The search of a tool set that sees only a part of the conversation. It removes hidden summaries from the hits. A
/// filter in the query excludes hidden messages.
#[derive(Debug)]
struct VisibleSearch<'a>(&'a Retrieval);

impl VisibleSearch<'_> {
    async fn sees(&self, hit: &Hit) -> Result<bool> {
        let grant = &self.0.grant;
        Ok(match &hit.target {
            HitTarget::Message { seq, .. } => grant.sees(*seq),
            HitTarget::Summary { id, range } => {
                grant.covers(range)
                    && (grant.depth.is_none()
                        || !self.0.seen(std::slice::from_ref(id)).await?.is_empty())
            }
        })
    }

    /// Moves the hits of a search that the tool set may read to `kept`, and drops the others.
    async fn keep(&self, from: &mut Hits, kept: &mut Vec<Hit>) -> memory_search::Result<()> {
        for hit in std::mem::take(&mut from.hits) {
            let sees = self.sees(&hit).await.map_err(|error| {
                memory_search::Error::new(SearchErrorKind::Storage, error.to_string())
                    .with_source(error)
            });
            if sees? {
                kept.push(hit);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Search for VisibleSearch<'_> {
    async fn search(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> memory_search::Result<Hits> {
        if query.mode == SearchMode::Auto {
            return search_auto(self, conversation, query).await;
        }
        let most = query.limit.max(1);
        let mut hits = self.0.search.search(conversation, query).await?;
        let mut kept = Vec::new();
        self.keep(&mut hits, &mut kept).await?;
        while kept.len() < most
            && !hits.stopped
            && let Some(cursor) = hits.cursor.take()
        {
            let next = query.clone().with_cursor(cursor);
            let next = next.with_limit(most - kept.len());
            hits = self.0.search.search(conversation, &next).await?;
            self.keep(&mut hits, &mut kept).await?;
        }
        hits.hits = kept;
        Ok(hits)
    }
}
