//! Finds passages for `recall` by search and by position, without a model.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, EntryKind, LogEntry, Part, Role, Seq, SeqRange, SummaryId, ViewName};
use memory_search::{
    ErrorKind as SearchErrorKind, Hit, HitTarget, Hits, Query, SearchMode, SearchScope,
};
use memory_store::{LogRead, read_spans};

use crate::arguments::Arguments as _;
use crate::error::{Error, ErrorKind, Result};
use crate::grep::DAMAGED_INDEX;
use crate::recall::{DEFAULT_BUDGET, Passage, RecallAnswer, RecallArgs, ending};
use crate::renewing::renew;
use crate::retrieval::{BATCH, Retrieval};
use crate::room::{Room, longest};
use crate::text::clip;

/// Maximum number of messages that get a higher score because they contain the exact words of the query.
const EXACT: usize = 32;

/// Maximum number of messages that are ranked for a query.
const CANDIDATES: usize = 256;

/// Number of passages that get their neighbouring messages if the answer has room left.
const BESIDE: usize = 48;

/// Maximum distance of a neighbouring message from a passage, in messages.
const BESIDE_DISTANCE: u32 = 3;

/// Minimum length of a passage that is cut to fit, in bytes.
const SHORTEST_CUT: usize = 60;

/// Part of an answer's room that may stay empty: 1/32 of its tokens.
const LEAST_LEFT: u64 = 32;

/// Maximum length of a passage for a query, in characters.
const PASSAGE_CHARS: usize = 1_200;

// Score of a message: the search's score divided by the best score, from 0 to 1. EXACT_WEIGHT is added if the message
// contains the exact words of the query. The sum is multiplied by 1 + LINEAGE · s, where s is the best score, from 0 to
// 1, of the summaries that contain the message. The product is multiplied by 1 + RECENCY · p, where p is the message's
// position in the log, from 0 to 1.
const EXACT_WEIGHT: f64 = 0.5;
const LINEAGE: f64 = 0.25;
const RECENCY: f64 = 0.1;

/// Position at which an answer continues: the number of earlier passages, and the last position in the log at the time
/// of the first answer.
struct Position {
    skip: usize,
    head: Seq,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let (skip, head) = text.strip_prefix('r')?.split_once('/')?;
        Some(Self {
            skip: skip.parse().ok()?,
            head: Seq(head.parse().ok()?),
        })
    }
}

impl Retrieval {
    /// Returns the passages that answer a query best, within a maximum number of tokens. If the arguments give a
    /// position (`turn`) in place of a query, returns the message at this position.
    ///
    /// Passages are verbatim. The same log, view and query always give the same passages. No model is called.
    ///
    /// # Errors
    /// `Invalid` if the arguments have neither a query nor a turn, if they have both, or if the cursor belongs to
    /// another query. `NotFound` if there is no message at the position `turn`. Also the errors of the search and the
    /// store.
    pub async fn recall(&self, args: impl Into<RecallArgs> + Send) -> Result<RecallAnswer> {
        let args = args.into();
        let budget = match args.budget {
            0 => DEFAULT_BUDGET,
            budget => budget,
        };
        let most = budget.min(self.limits().answer_tokens.max(1));
        let query = args
            .query
            .as_deref()
            .filter(|query| !query.trim().is_empty());
        let spending = self.grant.begin(RecallArgs::NAME, most)?;
        let most = spending.taken;
        let answer = match (query, args.turn) {
            (None, None) => Err(Error::invalid(
                "query or turn is required: give a question such as \"why did the build fail\", or the \
                 position of a message",
            )),
            (Some(_), Some(_)) => Err(Error::invalid(
                "query and turn are both given: give one of them",
            )),
            (None, Some(turn)) => self.turn(turn, most).await,
            (Some(query), None) => self.passages(query, args.cursor.as_deref(), most).await,
        }?;
        spending.end(answer.tokens);
        Ok(answer)
    }

    /// Returns the answer with the message at a position.
    async fn turn(&self, turn: Seq, most: u64) -> Result<RecallAnswer> {
        let range = self.part_of(SeqRange::single(Seq(turn.0.max(1)))).await?;
        let page = self
            .store
            .read(self.conversation, &LogRead::new(range))
            .await?;
        let entry = page.items.into_iter().next();
        let entry = entry.filter(|entry| entry.kind != EntryKind::Note && turn.0 > 0);
        let entry = entry.ok_or_else(|| {
            let message =
                format!("there is no message at turn {turn}: give the position of a message");
            Error::new(ErrorKind::NotFound, message)
        })?;
        let mut paths = self.paths(&BTreeSet::from([entry.seq])).await?;
        let path = paths.remove(&entry.seq).unwrap_or_default();
        let mut answer = RecallAnswer {
            turn: Some(turn),
            complete: true,
            ..RecallAnswer::default()
        };
        let mut room = self.room(most);
        room.spend(&ending(None));
        self.add(
            &mut answer,
            Passage::of_entry(entry, path, 1.0),
            &mut room,
            0,
        );
        Ok(answer)
    }

    /// Adds a passage to the answer. Cuts the passage if only a part of it fits and more than `least` tokens remain.
    /// Returns whether the passage was added. The first passage is always added.
    fn add(
        &self,
        answer: &mut RecallAnswer,
        mut passage: Passage,
        room: &mut Room<'_>,
        least: u64,
    ) -> bool {
        let before = answer.passages.last();
        let whole = passage.text.len();
        passage.tokens = self.accounting.text(&passage.text);
        if before.is_none() || room.text > least {
            self.shorten(&mut passage, before, room);
        }
        let written = passage.to_text(before);
        if before.is_none() {
            room.spend(&written);
        } else if passage.text.len() < whole.min(SHORTEST_CUT) || !room.take(&written) {
            return false;
        }
        answer.tokens = answer.tokens.saturating_add(passage.tokens);
        answer.passages.push(passage);
        true
    }

    /// Cuts the text of a passage until text and citation fit in the room, and counts its tokens.
    fn shorten(&self, passage: &mut Passage, before: Option<&Passage>, room: &Room<'_>) {
        if !room.holds(&passage.to_text(before)) {
            let words = std::mem::take(&mut passage.text);
            let end = longest(&words, |cut| {
                passage.text = format!("{cut}…");
                room.holds(&passage.to_text(before))
            });
            passage.text = format!("{}…", words.get(..end).unwrap_or_default());
            passage.tokens = self.accounting.text(&passage.text);
        }
    }

    /// Returns the answer with the passages for a query, the best first.
    async fn passages(&self, query: &str, cursor: Option<&str>, most: u64) -> Result<RecallAnswer> {
        let question = format!("recall {query}");
        let position = self.position(&question, cursor, Position::read).await?;
        let position = match position {
            Some(position) => position,
            None => Position {
                skip: 0,
                head: self.visible().await?.map_or(Seq::NONE, |seen| seen.last),
            },
        };
        let mut answer = RecallAnswer {
            query: Some(query.to_owned()),
            complete: true,
            ..RecallAnswer::default()
        };
        let range = SeqRange::new(Seq::FIRST, position.head);
        let Some(range) = range.and_then(|range| self.grant.visible(range)) else {
            return Ok(answer);
        };
        let mut found = self.candidates(query, range, &mut answer).await?;
        let mut given = BTreeSet::new();
        found.retain(|one| given.insert(one.text.clone()));
        let binding = self.binding(&question).await?;
        let cursor_at = |next: usize| binding.cursor(&format!("r{next}/{}", position.head));
        let mut room = self.room(most);
        let least = most / LEAST_LEFT;
        // More passages may follow: the answer then ends with a cursor.
        let last = cursor_at(position.skip.saturating_add(CANDIDATES));
        room.spend(&(answer.beginning() + &ending(Some(&last))));
        for passage in found.into_iter().skip(position.skip) {
            if !self.add(&mut answer, passage, &mut room, least) {
                answer.cursor = Some(cursor_at(position.skip + answer.passages.len()));
                answer.complete = false;
                break;
            }
        }
        let is_first_answer = position.skip == 0;
        if answer.complete && is_first_answer && !answer.stopped && room.text > least {
            self.add_beside(&mut answer, &mut room, range).await?;
        }
        if answer.stopped && answer.complete {
            answer.cursor = Some(cursor_at(position.skip + answer.passages.len()));
            answer.complete = false;
        }
        Ok(answer)
    }

    /// Fills the rest of the room with messages around the passages, the nearest first. Only plain text of users and
    /// assistants is added.
    async fn add_beside(
        &self,
        answer: &mut RecallAnswer,
        room: &mut Room<'_>,
        visible: SeqRange,
    ) -> Result<()> {
        let found = answer.passages.iter();
        let found = found.filter(|passage| passage.summary_id.is_none());
        let found: Vec<Seq> = found.map(|passage| passage.seq).take(BESIDE).collect();
        let mut known: BTreeSet<Seq> = answer.passages.iter().map(|one| one.seq).collect();
        let mut beside: Vec<Seq> = Vec::new();
        for distance in 1..=BESIDE_DISTANCE {
            for seq in &found {
                let near = [seq.0.checked_add(distance), seq.0.checked_sub(distance)];
                for seq in near.into_iter().flatten().map(Seq) {
                    if visible.contains(seq) && known.insert(seq) {
                        beside.push(seq);
                    }
                }
            }
        }
        let mut paths = self.paths(&beside.iter().copied().collect()).await?;
        for seq in beside {
            let read = LogRead::new(SeqRange::single(seq));
            let page = self.store.read(self.conversation, &read).await?;
            let Some(entry) = page.items.into_iter().find(is_said) else {
                continue;
            };
            let path = paths.remove(&seq).unwrap_or_default();
            let mut passage = Passage::of_entry(entry, path, 0.0);
            passage.text = clip(&passage.text, PASSAGE_CHARS);
            if !self.add(answer, passage, room, 0) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the passages that may answer a query, the best first. Records the replaced search and the notes of the
    /// searches in `answer`.
    async fn candidates(
        &self,
        query: &str,
        range: SeqRange,
        answer: &mut RecallAnswer,
    ) -> Result<Vec<Passage>> {
        let ask = |mode: SearchMode, scope: SearchScope, limit: usize| {
            Query::new(query)
                .with_mode(mode)
                .with_scope(scope)
                .with_range(range)
                .with_limit(limit)
                .with_snippet_chars(PASSAGE_CHARS)
        };
        let asked = ask(SearchMode::Prose, SearchScope::Messages, CANDIDATES);
        let (ranked, is_long) = (self.ranked(&asked).await?, asked.has_long_pattern());
        let asked = ask(SearchMode::Literal, SearchScope::Messages, EXACT);
        let exact = match is_long {
            // A long query is not searched literally.
            true => Hits::new(Vec::new(), "", SearchScope::Messages, None),
            false => self.find(&asked).await?,
        };
        let asked = ask(SearchMode::Prose, SearchScope::Summaries, CANDIDATES);
        let above = self.ranked(&asked).await?;
        answer.fallback = ranked.fallback.map(|fallback| fallback.to_string());
        answer.stopped = ranked.stopped || above.stopped;
        let is_damaged = ranked.index_damaged || exact.index_damaged || above.index_damaged;
        answer.note = is_damaged.then_some(DAMAGED_INDEX);
        let shares = |hits: &[Hit]| {
            let best = hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
            move |score: f64| if best > 0.0 { score / best } else { 1.0 }
        };
        let (of_message, of_summary) = (shares(&ranked.hits), shares(&above.hits));
        let mut found: BTreeMap<Seq, Passage> = BTreeMap::new();
        for hit in ranked.hits {
            let score = of_message(hit.score);
            let message = Passage::new(hit, score);
            found.insert(message.seq, message);
        }
        for hit in exact.hits {
            // The snippet of this hit shows the exact words.
            let mut message = Passage::new(hit, EXACT_WEIGHT);
            message.score += found.get(&message.seq).map_or(0.0, |one| one.score);
            found.insert(message.seq, message);
        }
        let mut lineage: BTreeMap<SummaryId, f64> = BTreeMap::new();
        let mut alone = Vec::new();
        for hit in above.hits {
            let HitTarget::Summary { id, range } = &hit.target else {
                continue;
            };
            let score = of_summary(hit.score);
            lineage.insert(id.clone(), score);
            // Only the summary contains the words: none of its messages is a candidate.
            if found.range(range.first..=range.last).next().is_none() {
                alone.push(Passage::new(hit, score * LINEAGE));
            }
        }
        let mut candidates: Vec<Passage> = found.into_values().chain(alone).collect();
        self.weigh(&mut candidates, &lineage, range).await?;
        renew(&mut candidates, query);
        candidates.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then_with(|| b.seq.cmp(&a.seq))
                .then_with(|| a.summary_id.cmp(&b.summary_id))
        });
        for candidate in &mut candidates {
            // Six digits, so that scores are the same on every machine.
            candidate.score = (candidate.score * 1e6).round() / 1e6;
        }
        Ok(candidates)
    }

    /// Sets the paths of the candidates, and weighs their scores by their positions in the range and by the scores of the
    /// summaries above them.
    async fn weigh(
        &self,
        candidates: &mut [Passage],
        lineage: &BTreeMap<SummaryId, f64>,
        range: SeqRange,
    ) -> Result<()> {
        let seqs = candidates.iter().map(|one| one.seq).collect();
        let paths = self.paths(&seqs).await?;
        let (first, long) = (range.first.0, range.len().max(1));
        for candidate in candidates {
            candidate.path = paths.get(&candidate.seq).cloned().unwrap_or_default();
            let place = f64::from(candidate.seq.0.saturating_sub(first) + 1) / long as f64;
            candidate.score *= 1.0 + RECENCY * place.min(1.0);
            match &candidate.summary_id {
                Some(id) => {
                    let above = candidate.path.iter().take_while(|on| *on != id).count();
                    candidate.path.truncate(above);
                }
                None => {
                    let above = candidate.path.iter().filter_map(|id| lineage.get(id));
                    candidate.score *= 1.0 + LINEAGE * above.copied().fold(0.0, f64::max);
                }
            }
        }
        Ok(())
    }

    /// Returns the hits of a query in the mode `Prose`. If the search does not support this mode: in the mode `Words`,
    /// or else in the mode `Literal`.
    async fn ranked(&self, query: &Query) -> Result<Hits> {
        for mode in [SearchMode::Prose, SearchMode::Words] {
            let query = query.clone().with_mode(mode);
            let supports =
                |error: &memory_search::Error| error.kind() != SearchErrorKind::Unsupported;
            match self.find(&query).await {
                Ok(hits) => return Ok(hits),
                Err(error) if supports(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let query = query.clone().with_mode(SearchMode::Literal);
        Ok(self.find(&query).await?)
    }

    /// Returns, for each message, the summaries that contain it, from the summary that the view shows down to the
    /// lowest one. Each level of summaries takes one request to the store for every 64 summaries.
    async fn paths(&self, seqs: &BTreeSet<Seq>) -> Result<BTreeMap<Seq, Vec<SummaryId>>> {
        let mut paths: BTreeMap<Seq, Vec<SummaryId>> = BTreeMap::new();
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else {
            return Ok(paths);
        };
        let mut level = match self.lineage_view().await? {
            Some(view) => self.tops(&view, seqs, (*first, *last)).await?,
            None => Vec::new(),
        };
        while !level.is_empty() {
            let mut below = Vec::new();
            for ids in level.chunks(BATCH) {
                let found = self.store.summaries(self.conversation, ids).await?;
                for summary in found.into_iter().flatten() {
                    let range = summary.range;
                    if self.grant.sees_summary(&range, summary.depth) {
                        for seq in seqs.range(range.first..=range.last) {
                            paths.entry(*seq).or_default().push(summary.id.clone());
                        }
                    }
                    below.extend(
                        summary
                            .children
                            .into_iter()
                            .filter_map(|child| match child {
                                Child::Summary { range, id } => {
                                    let holds =
                                        seqs.range(range.first..=range.last).next().is_some();
                                    holds.then_some(id)
                                }
                                Child::Messages { .. } => None,
                            }),
                    );
                }
            }
            level = below;
        }
        Ok(paths)
    }

    /// Returns the summaries that a view shows in place of these messages.
    async fn tops(
        &self,
        view: &ViewName,
        seqs: &BTreeSet<Seq>,
        (first, last): (Seq, Seq),
    ) -> Result<Vec<SummaryId>> {
        let snapshot = self.store.snapshot(self.conversation, view).await?;
        let range = SeqRange::new(first, last);
        let mut tops = Vec::new();
        for span in read_spans(&*self.store, &snapshot, range).await? {
            let Some(range) = span.closed_range() else {
                continue;
            };
            let holds = seqs.range(range.first..=range.last).next().is_some();
            tops.extend(span.body.summary().filter(|_| holds).cloned());
        }
        Ok(tops)
    }

    /// Returns the view with the summaries for [`Passage::path`]. `None` if there is no view.
    pub(crate) async fn lineage_view(&self) -> Result<Option<ViewName>> {
        if let Some(view) = &self.view {
            return Ok(Some(view.clone()));
        }
        let views = self.store.views(self.conversation).await?;
        Ok(views.into_iter().next().map(|view| view.name))
    }
}

/// Returns whether a log entry is a message of a user or an assistant with only text.
fn is_said(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    entry.kind != EntryKind::Note
        && matches!(entry.role, Role::User | Role::Assistant)
        && entry.message.parts.iter().all(is_text)
}
