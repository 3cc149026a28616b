//! Answers of queries that rank: what is found depends on the whole conversation.

use memory_model::{LogEntry, Seq, Summary, SummaryId};

use super::matcher::Matcher;
use crate::calls::CallNames;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{HitOrder, Query, SearchMode};
use crate::ranking::{Corpus, Document, FusionPolicy, RankingPolicy};

/// The state of a conversation that a ranking is made of.
///
/// A cursor names it, so that all pages of an answer come from one ranking, however the conversation
/// grows between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedUpTo {
    /// The last message.
    pub head: Seq,
    /// Number of summaries, in the order in which they were made.
    pub summaries: usize,
    /// The last message whose vector counts; `None` where words alone are ranked.
    pub vectors: Option<Seq>,
}

/// A found message or summary.
#[derive(Debug, Clone, PartialEq)]
pub enum RankedTarget {
    /// A message.
    Message(Seq),
    /// A summary.
    Summary(SummaryId),
}

/// A page of a ranked answer, without texts.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedPage {
    /// What was found, with its score, in the query's order.
    pub targets: Vec<(RankedTarget, f64)>,
    /// Cursor of the next page; `None` when there is none.
    pub cursor: Option<Cursor>,
}

/// Where a page of a ranked answer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedCursor {
    /// The state that was ranked.
    pub state: RankedUpTo,
    /// Number of hits before the page.
    pub begin: usize,
}

impl RankedCursor {
    /// The cursor: `r`, the head, the number of summaries, where the page begins, and the last message
    /// whose vector counts, where vectors do.
    pub fn to_cursor(self) -> Cursor {
        let RankedUpTo {
            head,
            summaries,
            vectors,
        } = self.state;
        let vectors = vectors.map_or_else(String::new, |last| format!(".{}", last.0));
        Cursor::new(format!("r{}.{summaries}.{}{vectors}", head.0, self.begin))
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// `Invalid` when [`RankedCursor::to_cursor`] did not make it.
    pub fn from_cursor(cursor: &Cursor) -> Result<Self> {
        let (state, begin) = read_cursor(cursor)?;
        Ok(Self { state, begin })
    }
}

/// Found messages and summaries in the order of a query, sorted as far as they are asked for.
///
/// Of equal scores messages come before summaries, and earlier ones first.
#[derive(Debug)]
pub struct RankedOrder {
    items: Vec<(f64, bool, u32)>,
    sorted: usize,
}

impl RankedOrder {
    /// What was found, by number, in rising order, with scores.
    pub fn new(
        order: HitOrder,
        messages: impl IntoIterator<Item = (u32, f64)>,
        summaries: impl IntoIterator<Item = (u32, f64)>,
    ) -> Self {
        let mut items: Vec<_> = messages
            .into_iter()
            .map(|(number, score)| (score, false, number))
            .collect();
        let of_messages = items.len();
        let summaries = summaries.into_iter();
        items.extend(summaries.map(|(number, score)| (score, true, number)));
        if order == HitOrder::Newest {
            let (messages, summaries) = items.split_at_mut(of_messages);
            messages.reverse();
            summaries.reverse();
        }
        let sorted = match order {
            HitOrder::Relevance => 0,
            _ => items.len(),
        };
        Self { items, sorted }
    }

    /// The first `count`, or all where there are fewer: score, whether it is a summary, number.
    pub fn first(&mut self, count: usize) -> &[(f64, bool, u32)] {
        let count = count.min(self.items.len());
        if self.sorted < count {
            let better = |a: &(f64, bool, u32), b: &(f64, bool, u32)| {
                b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2))
            };
            if count < self.items.len() {
                self.items.select_nth_unstable_by(count, better);
            }
            if let Some(first) = self.items.get_mut(..count) {
                first.sort_unstable_by(better);
            }
            self.sorted = count;
        }
        self.items.get(..count).unwrap_or_default()
    }

    /// Number of all.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A message or a summary, and whether it may be a hit.
#[derive(Debug)]
struct Candidate<T> {
    target: T,
    /// Whether it passes the filters.
    admitted: bool,
    /// Whether it matches by itself; `None` where the ranking decides.
    matches: Option<bool>,
}

/// Ranks a conversation by a query. Add what the conversation holds, then ask for the page.
#[derive(Debug)]
pub struct RankedQuery<'q> {
    query: &'q Query,
    matcher: &'q Matcher,
    messages: (Corpus, Vec<Candidate<Seq>>),
    summaries: (Corpus, Vec<Candidate<SummaryId>>),
    calls: CallNames,
    cursor: Option<(RankedUpTo, usize)>,
    nearness: Option<(Vec<Option<f64>>, FusionPolicy)>,
}

impl<'q> RankedQuery<'q> {
    /// Whether a query is answered by a ranking: in the mode `Prose`, and in the mode `Words` when the
    /// order is by relevance. A pattern without words is not.
    pub fn applies(query: &Query, matcher: &Matcher) -> bool {
        match query.mode {
            _ if matcher.fallback().is_some() => false,
            SearchMode::Prose => true,
            SearchMode::Words => query.order == HitOrder::Relevance,
            _ => false,
        }
    }

    /// Begins a ranking.
    ///
    /// # Errors
    /// `Invalid` for a cursor that no ranked answer had.
    pub fn new(query: &'q Query, matcher: &'q Matcher, policy: &RankingPolicy) -> Result<Self> {
        let cursor = query.cursor.as_ref().map(read_cursor).transpose()?;
        Ok(Self {
            query,
            matcher,
            messages: (Corpus::new(policy.clone()), Vec::new()),
            summaries: (Corpus::new(policy.clone()), Vec::new()),
            calls: CallNames::new(),
            cursor,
            nearness: None,
        })
    }

    /// The state to rank when the query continues an answer; otherwise rank all there is.
    pub fn up_to(&self) -> Option<RankedUpTo> {
        self.cursor.map(|(state, _)| state)
    }

    /// Adds the next message of the log, from the first on, whatever the query's filters. Notes are ignored,
    /// and so are messages that are nothing but echoes, unless the query searches them.
    pub fn add_message(&mut self, entry: &LogEntry) {
        if entry.kind == memory_model::EntryKind::Note {
            return;
        }
        self.calls.forget_before(entry.seq);
        self.calls.add(entry);
        let document = match self.matcher.searches_echoes() {
            true => Some(Document::of_entry(entry)),
            false => Document::without_echoes(entry, &self.calls),
        };
        let Some(document) = document else { return };
        let words = self.query.mode == SearchMode::Words;
        self.messages.0.add(&document);
        self.messages.1.push(Candidate {
            target: entry.seq,
            admitted: self.matcher.admits_message(entry, &self.calls),
            matches: words.then(|| self.matcher.message(entry, &self.calls).is_some()),
        });
    }

    /// Adds the next summary, whatever the query's filters.
    pub fn add_summary(&mut self, summary: &Summary) {
        let words = self.query.mode == SearchMode::Words;
        self.summaries.0.add(&Document::of_summary(summary));
        self.summaries.1.push(Candidate {
            target: summary.id.clone(),
            admitted: self.matcher.admits_summary(summary),
            matches: words.then(|| self.matcher.summary(summary).is_some()),
        });
    }

    /// The positions of the messages that were added, in the order of the log.
    pub fn positions(&self) -> impl Iterator<Item = Seq> + '_ {
        self.messages.1.iter().map(|candidate| candidate.target)
    }

    /// The question as it is embedded, once all messages were added.
    pub fn question_to_embed(&self) -> String {
        self.messages.0.question_to_embed(&self.query.pattern)
    }

    /// Sets how near each message is to the question, in the order of [`positions`](Self::positions), and
    /// how much that counts. Only the mode `Prose` uses it.
    pub fn set_nearness(&mut self, cosines: Vec<Option<f64>>, policy: &FusionPolicy) {
        self.nearness = Some((cosines, policy.clone()));
    }

    /// Returns the page. `state` is what was added: the cursor of the next page names it.
    pub fn page(&self, state: RankedUpTo) -> RankedPage {
        let pattern = &self.query.pattern;
        let nearness = self.nearness.as_ref();
        let nearness = nearness.filter(|_| self.query.mode == SearchMode::Prose);
        let messages = found(&self.messages.0, &self.messages.1, pattern, nearness);
        let summaries = found(&self.summaries.0, &self.summaries.1, pattern, None);
        let mut order = RankedOrder::new(self.query.order, messages, summaries);
        let begin = self.cursor.map_or(0, |(_, begin)| begin);
        let end = begin.saturating_add(self.query.limit.max(1));
        let next = RankedCursor { state, begin: end };
        let cursor = (end < order.len()).then(|| next.to_cursor());
        let shown = order.first(end).get(begin..).unwrap_or_default().iter();
        let target = |(score, is_summary, number): &(f64, bool, u32)| {
            let number = *number as usize;
            let target = match is_summary {
                true => RankedTarget::Summary(self.summaries.1.get(number)?.target.clone()),
                false => RankedTarget::Message(self.messages.1.get(number)?.target),
            };
            Some((target, *score))
        };
        RankedPage {
            targets: shown.filter_map(target).collect(),
            cursor,
        }
    }
}

/// The numbers of the candidates that a pattern finds, with their scores, in the order of the log.
fn found<T>(
    corpus: &Corpus,
    candidates: &[Candidate<T>],
    pattern: &str,
    nearness: Option<&(Vec<Option<f64>>, FusionPolicy)>,
) -> impl Iterator<Item = (u32, f64)> {
    let mut scores = corpus.scores(pattern);
    if let Some((cosines, policy)) = nearness {
        corpus.fuse(&mut scores, cosines, policy);
    }
    let all = (0_u32..).zip(candidates).zip(scores);
    all.filter_map(|((number, one), score)| {
        let matches = one.matches.unwrap_or(score.is_some());
        (one.admitted && matches).then(|| (number, score.unwrap_or_default()))
    })
}

/// Reads `r`, the head, the number of summaries, where the next page begins, and the last vector.
fn read_cursor(cursor: &Cursor) -> Result<(RankedUpTo, usize)> {
    let text = cursor.as_str();
    let numbers = text.strip_prefix('r').unwrap_or_default();
    let numbers: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([head, summaries, begin, vectors @ ..]) if vectors.len() <= 1 => {
            let state = RankedUpTo {
                head: Seq(*head),
                summaries: *summaries as usize,
                vectors: vectors.first().map(|last| Seq(*last)),
            };
            Ok((state, *begin as usize))
        }
        _ => Err(Error::new(
            ErrorKind::Invalid,
            format!("{text:?} is not a cursor of a ranked answer: pass one that a search returned"),
        )),
    }
}
