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
    /// The first message. It is not the first of the log if the ranking continues one that was stopped.
    pub first: Seq,
    /// The last message.
    pub head: Seq,
    /// Number of summaries, in the order in which they were made.
    pub summaries: usize,
    /// The last message whose vector counts; `None` where words alone are ranked.
    pub vectors: Option<Seq>,
    /// Whether the time was over before everything was read. The messages behind `head`, and all summaries, are then
    /// ranked separately, and their hits follow.
    pub stopped: bool,
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
    /// For each target, the cursor of the targets that follow it.
    pub cursors: Vec<Cursor>,
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
    /// Returns the cursor: `r`, the head, the number of summaries, the number of hits before the page and, if vectors
    /// count, the last message with a vector that counts. The cursor of a stopped ranking begins with `w` and the first
    /// message. The cursor of the last ranking behind it begins with `e` and the first message; its head is 0 until it
    /// is read.
    pub fn to_cursor(self) -> Cursor {
        let RankedUpTo {
            first,
            head,
            summaries,
            vectors,
            stopped,
        } = self.state;
        let kind = match (stopped, first > Seq::FIRST) {
            (true, _) => format!("w{first}-"),
            (false, true) => format!("e{first}-"),
            (false, false) => "r".to_owned(),
        };
        let vectors = vectors.map_or_else(String::new, |last| format!(".{}", last.0));
        Cursor::new(format!(
            "{kind}{}.{summaries}.{}{vectors}",
            head.0, self.begin
        ))
    }

    /// Returns the cursor that continues here in a ranking of `found` hits, or behind it if it was stopped; `None` if
    /// nothing follows.
    pub fn behind(self, found: usize) -> Option<Cursor> {
        if self.begin < found {
            return Some(self.to_cursor());
        }
        let next = RankedUpTo {
            first: self.state.head.next(),
            head: Seq::NONE,
            summaries: 0,
            vectors: None,
            stopped: false,
        };
        let next = Self {
            state: next,
            begin: 0,
        };
        self.state.stopped.then(|| next.to_cursor())
    }

    /// Whether the ranking was made before, so that its pages are of the same messages.
    pub fn is_read(&self) -> bool {
        self.state.head > Seq::NONE
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// `Invalid` when [`RankedCursor::to_cursor`] did not make it.
    pub fn from_cursor(cursor: &Cursor) -> Result<Self> {
        let text = cursor.as_str();
        read_cursor(text).ok_or_else(|| {
            let message = format!(
                "{text:?} is not a cursor of a ranked answer: pass one that a search returned"
            );
            Error::new(ErrorKind::Invalid, message)
        })
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
    cursor: Option<RankedCursor>,
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
        let cursor = query.cursor.as_ref().map(RankedCursor::from_cursor);
        let cursor = cursor.transpose()?;
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

    /// The state to rank when the query continues an answer; otherwise rank all there is from [`first`](Self::first) on.
    pub fn up_to(&self) -> Option<RankedUpTo> {
        let cursor = self.cursor.filter(RankedCursor::is_read);
        cursor.map(|cursor| cursor.state)
    }

    /// The first message to rank.
    pub fn first(&self) -> Seq {
        let cursor = self.cursor.map(|cursor| cursor.state.first);
        cursor.unwrap_or(Seq::FIRST)
    }

    /// Adds the calls of a message before the first ranked one: results may belong to them.
    pub fn add_calls(&mut self, entry: &LogEntry) {
        self.calls.add(entry);
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
        let begin = self.cursor.map_or(0, |cursor| cursor.begin);
        let end = begin.saturating_add(self.query.limit.max(1));
        let cursor = RankedCursor { state, begin: end }.behind(order.len());
        let shown = order.first(end).get(begin..).unwrap_or_default().iter();
        let target = |(score, is_summary, number): &(f64, bool, u32)| {
            let number = *number as usize;
            let target = match is_summary {
                true => RankedTarget::Summary(self.summaries.1.get(number)?.target.clone()),
                false => RankedTarget::Message(self.messages.1.get(number)?.target),
            };
            Some((target, *score))
        };
        let targets: Vec<_> = shown.filter_map(target).collect();
        let behind = (begin + 1..).take(targets.len());
        let cursor_at = |begin| RankedCursor { state, begin }.to_cursor();
        RankedPage {
            cursors: behind.map(cursor_at).collect(),
            targets,
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

/// Parses the text of [`RankedCursor::to_cursor`].
fn read_cursor(text: &str) -> Option<RankedCursor> {
    let (first, numbers) = match text.split_at_checked(1)? {
        ("r", numbers) => (Seq::FIRST, numbers),
        ("w" | "e", rest) => {
            let (first, numbers) = rest.split_once('-')?;
            (Seq(first.parse().ok()?), numbers)
        }
        _ => return None,
    };
    let numbers: Option<Vec<u32>> = numbers.split('.').map(|one| one.parse().ok()).collect();
    match numbers.as_deref()? {
        [head, summaries, begin, vectors @ ..] if vectors.len() <= 1 => Some(RankedCursor {
            state: RankedUpTo {
                first,
                head: Seq(*head),
                summaries: *summaries as usize,
                vectors: vectors.first().map(|last| Seq(*last)),
                stopped: text.starts_with('w'),
            },
            begin: *begin as usize,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back() {
        for text in [
            "r12.3.20",
            "r12.3.20.9",
            "w1-40.0.20",
            "e41-0.0.0",
            "e41-90.2.5.7",
        ] {
            let cursor = RankedCursor::from_cursor(&Cursor::from(text)).unwrap();
            assert_eq!(cursor.to_cursor().as_str(), text);
        }
        for text in [
            "",
            "r",
            "r1.2",
            "w1.0.20",
            "e-1.0.0",
            "é",
            "r1.2.3.4.5",
            "x1.2.3",
        ] {
            let error = RankedCursor::from_cursor(&Cursor::from(text)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}");
        }
    }
}
