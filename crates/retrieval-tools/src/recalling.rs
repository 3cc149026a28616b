//! How `recall` finds passages: by search, lineage and place, without a model.

use std::collections::{BTreeMap, BTreeSet};

use memory_model::{Child, EntryKind, LogEntry, Part, Role, Seq, SeqRange, SummaryId, ViewName};
use memory_search::{
    ErrorKind as SearchErrorKind, Fallback, Hit, HitTarget, Hits, Query, SearchMode, SearchScope,
};
use memory_store::{LogRead, read_spans};

use crate::arguments::Arguments as _;
use crate::error::{Error, ErrorKind, Result};
use crate::grep::DAMAGED_INDEX;
use crate::recall::{DEFAULT_BUDGET, Passage, RecallAnswer, RecallArgs, ending};
use crate::renewing::{Candidate, renew};
use crate::retrieval::{BATCH, Retrieval};
use crate::room::{Room, longest};
use crate::tools::echo;

/// Maximum number of messages with the exact words of a query that count as such.
const EXACT: usize = 32;

/// Maximum number of messages that are ranked.
const CANDIDATES: usize = 256;

/// Number of passages that are shown with their neighbours if there is room left.
const BESIDE: usize = 48;

/// How far from a passage they may be.
const BESIDE_DISTANCE: u32 = 3;

/// Minimum length of a passage that is cut to fit, in bytes.
const SHORTEST_CUT: usize = 60;

/// Share of an answer's room that may stay empty: one in this many tokens.
const LEAST_LEFT: u64 = 32;

/// Maximum length of a passage that a query finds, in characters.
const PASSAGE_CHARS: usize = 1_200;

// A message's score is that of the search, from 0 to 1 of the best, plus the weight of the exact words where it has them.
// The sum is multiplied by 1 + LINEAGE · s, where s is the score of the best summary above it from 0 to 1, and by
// 1 + RECENCY · p, where p is its place in the log from 0 to 1.
const EXACT_WEIGHT: f64 = 0.5;
const LINEAGE: f64 = 0.25;
const RECENCY: f64 = 0.1;

/// Candidate passages for a query, the best first, and the summaries that lead to each.
struct Candidates {
    found: Vec<Candidate>,
    paths: BTreeMap<Seq, Vec<SummaryId>>,
    /// Fallback that the search used.
    fallback: Option<Fallback>,
    /// Whether the time was over before all was searched.
    stopped: bool,
    /// Whether the search index was found to be damaged.
    index_damaged: bool,
}

/// Where a recall goes on: how many passages came before, and the end of the log at the first.
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
    /// Recalls the passages that answer a query best, within a budget of tokens; or one message by its turn,
    /// which is its position.
    ///
    /// The words of a passage are as they were said. The same log, view and query give the same passages; no
    /// model is asked.
    ///
    /// # Errors
    /// `Invalid` for neither a query nor a turn, for both, and for a cursor that this query did not give;
    /// `NotFound` for a turn that is no message; whatever the search and the store give.
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
        let most = spending.most();
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

    /// One message by its position.
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
        let paths = self.paths(&BTreeSet::from([entry.seq])).await?;
        let mut passage = Passage {
            seq: entry.seq,
            path: paths.get(&entry.seq).cloned().unwrap_or_default(),
            summary_id: None,
            role: Some(entry.role),
            text: readable(&entry),
            external_id: entry.message.external_id,
            created_at: entry.message.created_at,
            tokens: 0,
            score: 1.0,
            name: entry.message.name,
            changed: Vec::new(),
        };
        let mut answer = RecallAnswer {
            turn: Some(turn),
            complete: true,
            ..RecallAnswer::default()
        };
        let mut room = self.room(most);
        room.spend(&ending(None), &answer);
        self.shorten(&mut passage, answer.passages.last(), &room);
        answer.tokens = passage.tokens;
        answer.passages.push(passage);
        Ok(answer)
    }

    /// Cuts the words of a passage until there is room for it with its citation, and counts them.
    fn shorten(&self, passage: &mut Passage, before: Option<&Passage>, room: &Room<'_>) {
        passage.tokens = self.accounting.text(&passage.text);
        if !room.holds(&passage.to_text(before), passage) {
            let words = std::mem::take(&mut passage.text);
            let end = longest(&words, |cut| {
                passage.text = format!("{cut}…");
                room.holds(&passage.to_text(before), passage)
            });
            passage.text = format!("{}…", words.get(..end).unwrap_or_default());
            passage.tokens = self.accounting.text(&passage.text);
        }
    }

    /// The passages that answer a query, the best first.
    async fn passages(&self, query: &str, cursor: Option<&str>, most: u64) -> Result<RecallAnswer> {
        let question = format!("recall {query}");
        let position = self.position(&question, cursor, Position::read).await?;
        let position = match position {
            Some(position) => position,
            None => Position {
                skip: 0,
                head: self.head().await?,
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
        let searched = self.candidates(query, range).await?;
        let Candidates { found, paths, .. } = searched;
        answer.fallback = searched.fallback.map(|fallback| fallback.to_string());
        answer.stopped = searched.stopped;
        answer.note = searched.index_damaged.then_some(DAMAGED_INDEX);
        let mut given = BTreeSet::new();
        let found = found
            .into_iter()
            .filter(|one| given.insert(one.hit.snippet.clone()));
        let binding = self.binding(&question).await?;
        let cursor_at = |next: usize| binding.cursor(&format!("r{next}/{}", position.head));
        let mut room = self.room(most);
        if room.reply.is_some() {
            answer.query.as_mut().into_iter().for_each(echo);
        }
        let least = most / LEAST_LEFT;
        // More may follow: then the answer ends with a cursor.
        let last = cursor_at(position.skip.saturating_add(CANDIDATES));
        room.spend(&(answer.beginning() + &ending(Some(&last))), &answer);
        room.spend("", &last);
        for candidate in found.skip(position.skip) {
            let mut path = paths.get(&candidate.seq).cloned().unwrap_or_default();
            if let Some(id) = &candidate.summary
                && let Some(end) = path.iter().position(|on| on == id)
            {
                path.truncate(end);
            }
            let (role, external_id) = match candidate.hit.target {
                HitTarget::Message {
                    role, external_id, ..
                } => (Some(role), external_id),
                HitTarget::Summary { .. } => (None, None),
            };
            let mut passage = Passage {
                seq: candidate.seq,
                path,
                summary_id: candidate.summary,
                role,
                external_id,
                created_at: candidate.hit.created_at,
                tokens: self.accounting.text(&candidate.hit.snippet),
                text: candidate.hit.snippet,
                // Six digits: the same on every machine.
                score: (candidate.score * 1e6).round() / 1e6,
                name: candidate.hit.name,
                changed: candidate.changed,
            };
            let is_first = answer.passages.is_empty();
            let whole = passage.text.len();
            if is_first || room.text > least {
                // The last one is cut where there is room for a part of it.
                self.shorten(&mut passage, answer.passages.last(), &room);
            }
            let is_scrap = passage.text.len() < whole.min(SHORTEST_CUT);
            if is_first {
                room.spend(&passage.to_text(None), &passage);
            } else if is_scrap || !room.take(&passage.to_text(answer.passages.last()), &passage) {
                answer.cursor = Some(cursor_at(position.skip + answer.passages.len()));
                answer.complete = false;
                break;
            }
            answer.tokens = answer.tokens.saturating_add(passage.tokens);
            answer.passages.push(passage);
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

    /// Fills the room that all passages leave with their neighbours, nearest first. What
    /// tools answered is left out.
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
        let paths = self.paths(&beside.iter().copied().collect()).await?;
        for seq in beside {
            let read = LogRead::new(SeqRange::single(seq));
            let page = self.store.read(self.conversation, &read).await?;
            let Some(entry) = page.items.into_iter().find(is_said) else {
                continue;
            };
            let mut text = readable(&entry);
            if let Some((end, _)) = text.char_indices().nth(PASSAGE_CHARS) {
                text.truncate(end);
                text.push('…');
            }
            let mut passage = Passage {
                seq,
                path: paths.get(&seq).cloned().unwrap_or_default(),
                summary_id: None,
                role: Some(entry.role),
                external_id: entry.message.external_id,
                created_at: entry.message.created_at,
                tokens: self.accounting.text(&text),
                text,
                score: 0.0,
                name: entry.message.name,
                changed: Vec::new(),
            };
            let whole = passage.text.len();
            self.shorten(&mut passage, answer.passages.last(), room);
            let is_scrap = passage.text.len() < whole.min(SHORTEST_CUT);
            if is_scrap || !room.take(&passage.to_text(answer.passages.last()), &passage) {
                break;
            }
            answer.tokens = answer.tokens.saturating_add(passage.tokens);
            answer.passages.push(passage);
        }
        Ok(())
    }

    /// What may answer a query, the best first, and the summaries that lead to each.
    async fn candidates(&self, query: &str, range: SeqRange) -> Result<Candidates> {
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
        let (exact, exact_damaged) = match is_long {
            // No message is asked for by so many words.
            true => (Vec::new(), false),
            false => {
                let found = self.find(&asked).await?;
                (found.hits, found.index_damaged)
            }
        };
        let asked = ask(SearchMode::Prose, SearchScope::Summaries, CANDIDATES);
        let above = self.ranked(&asked).await?;
        let fallback = ranked.fallback.clone();
        let stopped = ranked.stopped || above.stopped;
        let index_damaged = ranked.index_damaged || exact_damaged || above.index_damaged;
        let (ranked, above) = (ranked.hits, above.hits);
        let best = |hits: &[Hit]| hits.iter().map(|hit| hit.score).fold(0.0, f64::max);
        let share = |hit: &Hit, best: f64| if best > 0.0 { hit.score / best } else { 1.0 };
        let best_summary = best(&above);
        let mut lineage: BTreeMap<SummaryId, f64> = BTreeMap::new();
        for hit in &above {
            if let HitTarget::Summary { id, .. } = &hit.target {
                lineage.insert(id.clone(), share(hit, best_summary));
            }
        }
        let best_message = best(&ranked);
        let mut found: BTreeMap<Seq, (Hit, f64)> = BTreeMap::new();
        for hit in ranked {
            if let HitTarget::Message { seq, .. } = &hit.target {
                let score = share(&hit, best_message);
                found.insert(*seq, (hit, score));
            }
        }
        for hit in exact {
            if let HitTarget::Message { seq, .. } = &hit.target {
                // Its snippet shows the exact words.
                let score = found.get(seq).map_or(0.0, |(_, score)| *score) + EXACT_WEIGHT;
                found.insert(*seq, (hit, score));
            }
        }
        let mut candidates: Vec<Candidate> = found
            .into_iter()
            .map(|(seq, (hit, score))| Candidate {
                hit,
                seq,
                summary: None,
                score,
                changed: Vec::new(),
            })
            .collect();
        // Words that only a summary has: none of its messages is a candidate.
        let seqs: BTreeSet<Seq> = candidates.iter().map(|one| one.seq).collect();
        for hit in above {
            let HitTarget::Summary { id, range } = &hit.target else {
                continue;
            };
            if seqs.range(range.first..=range.last).next().is_none() {
                let (seq, score) = (range.first, share(&hit, best_summary) * LINEAGE);
                let summary = Some(id.clone());
                candidates.push(Candidate {
                    hit,
                    seq,
                    summary,
                    score,
                    changed: Vec::new(),
                });
            }
        }
        let paths = self
            .paths(&candidates.iter().map(|one| one.seq).collect())
            .await?;
        let (first, long) = (range.first.0, range.len().max(1));
        for candidate in &mut candidates {
            let place = f64::from(candidate.seq.0.saturating_sub(first) + 1) / long as f64;
            candidate.score *= 1.0 + RECENCY * place.min(1.0);
            if candidate.summary.is_none() {
                let path = paths.get(&candidate.seq).into_iter().flatten();
                let above = path.filter_map(|id| lineage.get(id)).copied();
                candidate.score *= 1.0 + LINEAGE * above.fold(0.0, f64::max);
            }
        }
        renew(&mut candidates, query);
        candidates.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then_with(|| b.seq.cmp(&a.seq))
                .then_with(|| a.summary.cmp(&b.summary))
        });
        Ok(Candidates {
            found: candidates,
            paths,
            fallback,
            stopped,
            index_damaged,
        })
    }

    /// The hits of a ranked query; where the search does not rank, of all words, or of the phrase.
    async fn ranked(&self, query: &Query) -> Result<Hits> {
        for mode in [SearchMode::Prose, SearchMode::Words] {
            let query = query.clone().with_mode(mode);
            let supports =
                |error: &memory_search::Error| error.kind() != SearchErrorKind::Unsupported;
            match self.find_raw(&query).await {
                Ok(hits) => return Ok(hits),
                Err(error) if supports(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        let query = query.clone().with_mode(SearchMode::Literal);
        self.find(&query).await
    }

    /// The summaries that lead to each of some messages, from the top of the view down. Asks the store once
    /// for each level and each few summaries.
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

    /// The summaries that a view shows for some messages.
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

    /// The view whose summaries lead to messages.
    async fn lineage_view(&self) -> Result<Option<ViewName>> {
        if let Some(view) = &self.view {
            return Ok(Some(view.clone()));
        }
        let views = self.store.views(self.conversation).await?;
        Ok(views.into_iter().next().map(|view| view.name))
    }
}

/// Whether a message is words alone, of a user or an assistant.
fn is_said(entry: &LogEntry) -> bool {
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    entry.kind != EntryKind::Note
        && matches!(entry.role, Role::User | Role::Assistant)
        && entry.message.parts.iter().all(is_text)
}

/// Everything that can be read of a message, one text after the other.
fn readable(entry: &LogEntry) -> String {
    let mut out = String::new();
    entry.visit_texts(&mut |text| {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&text);
    });
    out
}
