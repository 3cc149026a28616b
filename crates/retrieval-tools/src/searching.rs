//! How `grep` asks a search.

use async_trait::async_trait;
use memory_model::{ConversationId, Timestamp};
use memory_search::{
    Cursor, ErrorKind as SearchErrorKind, Hit, HitOrder, HitTarget, Hits, Query, Search,
    SearchMode, SearchScope, search_auto,
};

use crate::error::{Error, Result};
use crate::grep::{DEFAULT_LIMIT, EchoCount, GrepAnswer, GrepArgs, UndatedCount, WiderSearch};
use crate::retrieval::{GREP, Retrieval};

/// Maximum number of hits that are counted in a wider scope.
const COUNTED: usize = 100;

impl Retrieval {
    /// Finds text in messages and summaries.
    ///
    /// # Errors
    /// `Invalid` for an empty pattern or a cursor that no search for it in this session gave; `NotFound`
    /// when nothing of the positions can be seen; whatever the search gives.
    pub async fn grep(&self, args: impl Into<GrepArgs> + Send) -> Result<GrepAnswer> {
        self.answer(&args.into(), true).await
    }

    /// As [`grep`](Self::grep), but does not look wider where nothing is found.
    pub(crate) async fn grep_hits(&self, args: &GrepArgs) -> Result<GrepAnswer> {
        self.answer(args, false).await
    }

    /// The cursor behind the first `taken` hits of an answer to a question.
    pub(crate) async fn cursor_after(
        &self,
        args: &GrepArgs,
        answer: &GrepAnswer,
        taken: usize,
    ) -> Result<Option<String>> {
        let position = match taken.checked_sub(1).and_then(|at| answer.cursors.get(at)) {
            Some(position) => Some(position.clone()),
            None => {
                let query = self.query(args, taken).await?;
                self.find(&query).await?.cursor
            }
        };
        let question = args.question();
        let question: Vec<&str> = question.iter().map(String::as_str).collect();
        Ok(match &position {
            Some(position) => Some(self.binding(&question).await?.cursor(position)),
            None => None,
        })
    }

    /// The query of a question, with its cursor and within what this tool set sees.
    async fn query(&self, args: &GrepArgs, limit: usize) -> Result<Query> {
        let mut query = args.query(limit);
        query.range = self.grant.range().or(query.range);
        if let (Some(asked), Some(_)) = (args.range, self.grant.range()) {
            query.range = Some(self.part_of(asked).await?);
        }
        if let Some(cursor) = &args.cursor {
            let question = args.question();
            let question: Vec<&str> = question.iter().map(String::as_str).collect();
            let binding = self.binding(&question).await?;
            query = query.with_cursor(binding.position(cursor)?);
        }
        Ok(query)
    }

    async fn answer(&self, args: &GrepArgs, looks_wider: bool) -> Result<GrepAnswer> {
        if args.pattern.is_empty() {
            return Err(Error::invalid(
                "pattern is required: give some text to find, such as \"tests are green\"",
            ));
        }
        let limits = self.limits();
        let spending = self.grant.begin(GREP, limits.answer_tokens.max(1))?;
        let limit = match args.limit {
            0 => DEFAULT_LIMIT,
            limit => limit,
        };
        let query = self.query(args, limit.min(limits.hits.max(1))).await?;
        let question = args.question();
        let question: Vec<&str> = question.iter().map(String::as_str).collect();
        let mut hits = self.find(&query).await?;
        let undated = self.undated(args).await?;
        // What an answer may hold is known once its hits are. The rest is for what stands beside them.
        let whole = spending.most();
        let share = match (args.around, args.shows_corrections()) {
            (1.., _) => whole / 2,
            (_, true) => whole - whole / 8,
            _ => whole,
        };
        let (fit, most) = self.fit(&hits, undated, share);
        if fit < hits.hits.len() && !hits.truncate(fit) {
            hits = self.find(&query.clone().with_limit(fit)).await?;
        }
        let cursor = match &hits.cursor {
            Some(position) => Some(self.binding(&question).await?.cursor(position)),
            None => None,
        };
        let mut answer = GrepAnswer::new(args, hits, cursor);
        answer.undated = undated;
        if let [only] = answer.hits.as_mut_slice() {
            only.within(most, &*self.accounting);
        }
        if looks_wider && answer.hits.is_empty() && answer.complete && args.cursor.is_none() {
            answer.wider = self.wider(args).await?;
            answer.echoes = self.echoes(args).await?;
        }
        if !answer.stopped {
            self.add_later(args, &mut answer, whole).await?;
        }
        self.add_around(args.around, &mut answer, whole).await?;
        spending.end(self.accounting.text(&answer.to_text()));
        Ok(answer)
    }

    /// How many of the first hits an answer of `most` tokens holds, at least one, and what one of them may
    /// cost.
    fn fit(&self, hits: &Hits, undated: Option<UndatedCount>, most: u64) -> (usize, u64) {
        // What stands around the hits.
        let around = GrepAnswer::new(
            &GrepArgs::new("x"),
            hits.clone(),
            hits.cursor
                .as_ref()
                .map(|cursor| format!("{cursor}@01234567")),
        );
        let mut around = around;
        around.undated = undated;
        let lines = std::mem::take(&mut around.hits);
        around.hits.extend(lines.first().cloned().map(|mut line| {
            line.snippet.clear();
            line
        }));
        let most = most.saturating_sub(self.accounting.text(&around.to_text()));
        let mut spent = 0u64;
        let fit = lines.iter().take_while(|line| {
            spent = spent.saturating_add(line.cost(&*self.accounting));
            spent <= most
        });
        (fit.count().max(1), most)
    }

    /// How many messages the search left out because they are echoes.
    async fn echoes(&self, args: &GrepArgs) -> Result<Option<EchoCount>> {
        let mut query = args.query(COUNTED).with_snippet_chars(1);
        if query.searches_echoes() || !query.scope.has_messages() || query.has_long_pattern() {
            return Ok(None);
        }
        query = query
            .with_echoes()
            .with_scope(SearchScope::Messages)
            .with_order(HitOrder::Oldest);
        // Nothing that was said matches, so that all that match are echoes.
        if matches!(query.mode, SearchMode::Auto | SearchMode::Prose) {
            query.mode = SearchMode::Literal;
        }
        query.range = match (self.grant.range(), query.range) {
            (Some(own), Some(asked)) => own.intersect(&asked),
            (own, asked) => own.or(asked),
        };
        let hits = self.find(&query).await?;
        Ok((!hits.hits.is_empty()).then_some(EchoCount {
            messages: hits.hits.len(),
            complete: hits.complete,
        }))
    }

    /// Counts the messages without a time that have the pattern, if the question has time limits; `None` if none has.
    async fn undated(&self, args: &GrepArgs) -> Result<Option<UndatedCount>> {
        let has_limits = args.since.is_some() || args.until.is_some();
        if !has_limits || !args.scope.has_messages() || args.cursor.is_some() {
            return Ok(None);
        }
        let mut query = args.query(COUNTED).with_snippet_chars(1);
        query = query
            .with_scope(SearchScope::Messages)
            .with_order(HitOrder::Oldest);
        // The time of a message without one, and nothing else.
        let none = Timestamp::default();
        query.since = Some(none);
        query.until = Some(Timestamp(none.0 + 1));
        query.range = match (self.grant.range(), query.range) {
            (Some(own), Some(asked)) => own.intersect(&asked),
            (own, asked) => own.or(asked),
        };
        let hits = self.find(&query).await?;
        Ok((!hits.hits.is_empty()).then_some(UndatedCount {
            messages: hits.hits.len(),
            complete: hits.complete,
            left_out: args.since.is_some_and(|since| since > none),
        }))
    }

    /// What a wider search finds.
    async fn wider(&self, args: &GrepArgs) -> Result<Option<WiderSearch>> {
        let mut wider = Vec::new();
        if args.scope != SearchScope::Both {
            wider.push((args.clone().with_scope(SearchScope::Both), false));
        }
        if args.is_filtered() {
            let mut free = GrepArgs::new(args.pattern.as_str()).with_mode(args.mode);
            free.smart_case = args.smart_case;
            wider.push((free, true));
        }
        let mut answer = None;
        for (args, unfiltered) in wider {
            let mut query = args.query(COUNTED).with_snippet_chars(1);
            query.range = match (self.grant.range(), query.range) {
                (Some(own), Some(asked)) => own.intersect(&asked),
                (own, asked) => own.or(asked),
            };
            let hits = self.find(&query).await?;
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

    /// Answers a query with what this tool set sees.
    pub(crate) async fn find(&self, query: &Query) -> Result<Hits> {
        Ok(self.find_raw(query).await?)
    }

    /// As [`find`](Self::find), with the error of the search.
    pub(crate) async fn find_raw(&self, query: &Query) -> memory_search::Result<Hits> {
        let conversation = self.conversation;
        let stoppable = self.stop.clone().map(|stop| query.clone().with_stop(stop));
        let query = stoppable.as_ref().unwrap_or(query);
        if !self.grant.sees_all() {
            return Seen(self).search(conversation, query).await;
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

/// Hits of an answer that a tool set sees, each with the cursor right after it.
#[derive(Debug, Default)]
struct Kept {
    hits: Vec<Hit>,
    cursors: Vec<Option<Cursor>>,
}

/// The search of a tool set that does not see everything: it leaves out the summaries that are hidden. Which
/// messages are found is a filter of the query.
#[derive(Debug)]
struct Seen<'a>(&'a Retrieval);

impl Seen<'_> {
    /// Moves the hits that the tool set sees from an answer to `kept`; drops the others.
    async fn keep(&self, from: &mut Hits, kept: &mut Kept) -> memory_search::Result<()> {
        let grant = &self.0.grant;
        let mut cursors = std::mem::take(&mut from.cursors).into_iter();
        for hit in std::mem::take(&mut from.hits) {
            let cursor = cursors.next();
            let seen = match &hit.target {
                HitTarget::Message { seq, .. } => grant.sees(*seq),
                HitTarget::Summary { id, range } => {
                    grant.covers(range)
                        && (grant.depth().is_none() || {
                            let seen = self.0.seen(std::slice::from_ref(id)).await;
                            let seen = seen.map_err(|error| {
                                let text = error.to_string();
                                memory_search::Error::new(SearchErrorKind::Storage, text)
                                    .with_source(error)
                            });
                            !seen?.is_empty()
                        })
                }
            };
            if seen {
                kept.hits.push(hit);
                kept.cursors.push(cursor);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Search for Seen<'_> {
    async fn search(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> memory_search::Result<Hits> {
        if query.mode == SearchMode::Auto {
            return search_auto(self, conversation, query).await;
        }
        let mut hits = self.0.search.search(conversation, query).await?;
        let mut kept = Kept::default();
        self.keep(&mut hits, &mut kept).await?;
        while kept.hits.len() < query.limit.max(1)
            && !hits.stopped
            && let Some(cursor) = hits.cursor.take()
        {
            let next = query.clone().with_cursor(cursor);
            let next = next.with_limit(query.limit.max(1) - kept.hits.len());
            hits = self.0.search.search(conversation, &next).await?;
            self.keep(&mut hits, &mut kept).await?;
        }
        hits.hits = kept.hits;
        let cursors: Option<Vec<Cursor>> = kept.cursors.into_iter().collect();
        hits.cursors = cursors.unwrap_or_default();
        Ok(hits)
    }
}
