//! Ranked answers.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use memory_model::conventions::names_tool;
use memory_model::{EntryKind, Seq, SeqRange};
use memory_search::implementors::{Matcher, RankedCursor, RankedOrder, RankedTarget, RankedUpTo};
use memory_search::ranking::{Corpus, Document, Wanted};
use memory_search::segment::{
    Need, SegmentFormat, find, with_prefix, word_key, word_of, word_prefix, words,
};
use memory_search::{Hit, Hits, Query, Result, SearchMode};

use super::base::{Base, Doc, Part};
use super::candidates::Candidates;
use super::search::SegmentSearch;
use super::visible::{Handle, Visible};
use crate::calls::LogCalls;
use crate::segments::{IndexSegment, IndexedKind};
use crate::store::Store;
use crate::types::{Conversation, LogRead};

/// Conversations whose records are kept in memory.
const MOST_BASES: usize = 4;

/// Words whose numbers of documents are read at once.
const COUNTED: usize = 256;

/// Words whose numbers of documents are kept.
const MOST_COUNTS: usize = 1 << 16;

/// A ranking of messages or of summaries.
struct Ranking {
    base: Base,
    /// Number of documents that are indexed.
    indexed: usize,
    /// What is not indexed.
    tail: Vec<Pending>,
}

/// A document that is not indexed.
struct Pending {
    /// Whether it passes the filters.
    admitted: bool,
    /// Whether it matches by itself.
    matches: bool,
}

impl<S> SegmentSearch<S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    /// Answers a query that ranks.
    pub(super) async fn ranked(
        &self,
        handle: &Handle<'_>,
        info: &Conversation,
        mut visible: Visible,
        query: &Query,
        matcher: &Matcher,
        name: String,
    ) -> Result<Hits> {
        let cursor = query.cursor.as_ref().map(RankedCursor::from_cursor);
        let cursor = cursor.transpose()?;
        let begin = cursor.map_or(0, |cursor| cursor.begin);
        let mut state = cursor.map_or(
            RankedUpTo {
                head: info.head,
                summaries: usize::MAX,
            },
            |cursor| cursor.state,
        );
        visible.up_to(state.head);
        let (mut messages, mut summaries) = (None, None);
        if query.scope.has_messages() {
            messages = Some(
                self.message_ranking(handle, info, &visible, state.head, matcher)
                    .await?,
            );
        }
        if query.scope.has_summaries() {
            let ranking = self
                .summary_ranking(handle, &visible, state.summaries, matcher)
                .await?;
            state.summaries = ranking.base.docs.len();
            summaries = Some(ranking);
        } else {
            state.summaries = 0;
        }
        let mut found = [Vec::new(), Vec::new()];
        for (ranking, found) in [&mut messages, &mut summaries].into_iter().zip(&mut found) {
            if let Some(ranking) = ranking {
                *found = self.found(handle, ranking, query, matcher).await?;
            }
        }
        let [of_messages, of_summaries] = found;
        let mut order = RankedOrder::new(query.order, of_messages, of_summaries);
        let end = begin.saturating_add(query.limit.max(1));
        let target = |is_summary: bool, number: u32| {
            let ranking = if is_summary { &summaries } else { &messages };
            let doc = ranking.as_ref()?.base.docs.get(number as usize)?;
            Some(match doc {
                Doc::Message { seq, .. } => RankedTarget::Message(*seq),
                Doc::Summary { id, .. } => RankedTarget::Summary(id.clone()),
            })
        };
        let (hits, more) = match query.mode {
            SearchMode::Prose => {
                let shown = order.first(end).get(begin..).unwrap_or_default().iter();
                let targets = shown
                    .filter_map(|(score, is_summary, number)| {
                        Some((target(*is_summary, *number)?, *score))
                    })
                    .collect();
                let hits = self.scan.shown(info, matcher, targets).await?;
                (hits, end < order.len())
            }
            // The index says which messages may have all words; each is read, best first.
            _ => {
                let (mut hits, mut at, mut seen) = (Vec::new(), 0, 0);
                while seen <= end && at < order.len() {
                    let upto = (at + 2 * (end + 1 - seen)).min(order.len());
                    let next: Vec<_> = order.first(upto).get(at..).unwrap_or_default().to_vec();
                    at = upto;
                    for (score, is_summary, number) in next {
                        let Some(target) = target(is_summary, number) else {
                            continue;
                        };
                        if let Some(mut hit) = self.matching(info, matcher, target).await? {
                            hit.score = score;
                            if (begin..end).contains(&seen) {
                                hits.push(hit);
                            }
                            seen += 1;
                            if seen > end {
                                break;
                            }
                        }
                    }
                }
                (hits, seen > end)
            }
        };
        for ranking in [messages, summaries].into_iter().flatten() {
            self.give_back(ranking);
        }
        let next = RankedCursor { state, begin: end };
        Ok(match more {
            true => Hits::partial(hits, name, query.scope, next.to_cursor()),
            false => Hits::complete(hits, name, query.scope),
        })
    }

    /// The hit, where a message or a summary matches by itself.
    async fn matching(
        &self,
        info: &Conversation,
        matcher: &Matcher,
        target: RankedTarget,
    ) -> Result<Option<Hit>> {
        match target {
            RankedTarget::Message(seq) => {
                let Some(one) = SeqRange::new(seq, seq) else {
                    return Ok(None);
                };
                let page = self.store.read(info.id, &LogRead::new(one)).await?;
                let mut calls = LogCalls::new(&*self.store, info.id);
                calls.add_page(&page.items);
                match page.items.first() {
                    Some(entry) => Ok(calls.hit(matcher, entry).await?),
                    None => Ok(None),
                }
            }
            RankedTarget::Summary(id) => {
                let found = self.store.summaries(info.id, &[id]).await?;
                let found = found.into_iter().next().flatten();
                Ok(found.and_then(|summary| matcher.summary(&summary)))
            }
        }
    }

    async fn message_ranking(
        &self,
        handle: &Handle<'_>,
        info: &Conversation,
        visible: &Visible,
        head: Seq,
        matcher: &Matcher,
    ) -> Result<Ranking> {
        let stretches = visible.messages.iter();
        let parts = stretches
            .map(|one| (one.segment.clone(), one.last.0))
            .collect();
        let base = self.base(handle, IndexedKind::Messages, parts).await?;
        let mut ranking = Ranking {
            indexed: base.docs.len(),
            base,
            tail: Vec::new(),
        };
        let mut calls = LogCalls::new(&*self.store, info.id);
        let mut rest = SeqRange::new(visible.indexed.next(), head.min(info.head));
        while let Some(range) = rest {
            let page = self.store.read(info.id, &LogRead::new(range)).await?;
            calls.add_page(&page.items);
            for entry in page.items {
                if entry.kind == EntryKind::Note {
                    continue;
                }
                calls.resolve(&entry).await?;
                if let Some(document) = Document::without_echoes(&entry, calls.names()) {
                    ranking.base.corpus.add(&document);
                    ranking.base.docs.push(Doc::of_entry(&entry));
                    ranking.tail.push(Pending {
                        admitted: matcher.admits_message(&entry, calls.names()),
                        matches: matcher.message(&entry, calls.names()).is_some(),
                    });
                }
            }
            rest = page.next;
        }
        Ok(ranking)
    }

    async fn summary_ranking(
        &self,
        handle: &Handle<'_>,
        visible: &Visible,
        most: usize,
        matcher: &Matcher,
    ) -> Result<Ranking> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let segments = visible.summaries.iter();
        let parts: Vec<(IndexSegment, u32)> = segments
            .filter(|one| one.first <= most)
            .map(|one| (one.clone(), one.last.min(most)))
            .collect();
        let base = self.base(handle, IndexedKind::Summaries, parts).await?;
        let mut ranking = Ranking {
            indexed: base.docs.len(),
            base,
            tail: Vec::new(),
        };
        let mut after = match ranking.base.docs.last() {
            Some(Doc::Summary { id, .. }) => Some(id.clone()),
            _ => None,
        };
        let mut tail = Vec::new();
        while ranking.indexed + tail.len() < most as usize {
            let left = most as usize - ranking.indexed - tail.len();
            let page = self
                .store
                .summary_log(handle.conversation, after.as_ref(), left.min(256));
            let page = page.await?;
            tail.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        for summary in &tail {
            ranking.base.corpus.add(&Document::of_summary(summary));
            ranking.base.docs.push(Doc::of_summary(summary));
            ranking.tail.push(Pending {
                admitted: matcher.admits_summary(summary),
                matches: matcher.summary(summary).is_some(),
            });
        }
        Ok(ranking)
    }

    /// The records of some segments: kept from before, or read.
    async fn base(
        &self,
        handle: &Handle<'_>,
        kind: IndexedKind,
        parts: Vec<(IndexSegment, u32)>,
    ) -> Result<Base> {
        let key: Vec<(u64, u32)> = parts.iter().map(|(one, last)| (one.id, *last)).collect();
        let mut before = None;
        {
            let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |base: &Base| base.conversation == handle.conversation && base.kind == kind;
            if let Some(at) = bases.iter().position(fits) {
                before = Some(bases.remove(at));
            }
        }
        if let Some(base) = before.filter(|base| base.key == key) {
            return Ok(base);
        }
        let mut base = Base {
            conversation: handle.conversation,
            kind,
            key,
            parts: Vec::new(),
            corpus: Corpus::new(self.ranking.clone()),
            docs: Vec::new(),
            counts: HashMap::new(),
        };
        for (segment, last) in parts {
            let begin = base.docs.len();
            let (mut seen, mut echoes) = (0, Vec::new());
            for (number, record) in (segment.first..).zip(handle.records(&segment).await?) {
                let is_seen = match kind {
                    IndexedKind::Messages => record.seq.0 <= last,
                    IndexedKind::Summaries => number <= last,
                };
                if let Some(doc) = Doc::of(&record).filter(|_| is_seen) {
                    match record.is_echo {
                        true => echoes.push(seen),
                        false => {
                            base.corpus.add_record(&record);
                            base.docs.push(doc);
                        }
                    }
                    seen += 1;
                }
            }
            base.parts.push(Part {
                segment,
                begin: number(begin),
                seen,
                echoes,
            });
        }
        Ok(base)
    }

    /// Keeps the records for the next query.
    fn give_back(&self, ranking: Ranking) {
        let Ranking {
            mut base, indexed, ..
        } = ranking;
        base.corpus.reset(indexed);
        base.docs.truncate(indexed);
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if bases.len() >= MOST_BASES {
            bases.remove(0);
        }
        bases.push(base);
    }

    /// The documents that may be hits, rising, with their scores.
    async fn found(
        &self,
        handle: &Handle<'_>,
        ranking: &mut Ranking,
        query: &Query,
        matcher: &Matcher,
    ) -> Result<Vec<(u32, f64)>> {
        let scores = self.scores(handle, ranking, &query.pattern).await?;
        let tools = matcher.tools();
        let mut using: Vec<u32> = Vec::new();
        if !tools.is_empty() {
            let is_wanted = |name: &str| tools.iter().any(|tool| names_tool(name, tool));
            for part in &ranking.base.parts {
                let places = handle.using(&part.segment, &is_wanted).await?;
                using.extend(places.into_iter().filter_map(|place| part.ranked(place)));
            }
        }
        let admitted = |at: u32| match (at as usize).checked_sub(ranking.indexed) {
            Some(behind) => ranking.tail.get(behind).is_some_and(|one| one.admitted),
            None => {
                let doc = ranking.base.docs.get(at as usize);
                doc.is_some_and(|doc| doc.is_admitted(matcher))
                    && (tools.is_empty() || using.binary_search(&at).is_ok())
            }
        };
        if query.mode == SearchMode::Prose {
            let all = scores.into_iter().enumerate();
            return Ok(all
                .filter_map(|(at, score)| Some((number(at), score?)))
                .filter(|(at, _)| admitted(*at))
                .collect());
        }
        let need = matcher.need(SegmentFormat::of(&self.ranking));
        let mut matching: Vec<u32> = Vec::new();
        for part in &ranking.base.parts {
            matching.extend(self.matching_in(handle, part, &need).await?);
        }
        let tail = ranking.tail.iter().enumerate();
        let tail = tail.filter(|(_, one)| one.matches);
        matching.extend(tail.map(|(at, _)| number(ranking.indexed + at)));
        let score = |at: &u32| {
            scores
                .get(*at as usize)
                .copied()
                .flatten()
                .unwrap_or_default()
        };
        Ok(matching
            .into_iter()
            .filter(|at| admitted(*at))
            .map(|at| (at, score(&at)))
            .collect())
    }

    async fn matching_in(&self, handle: &Handle<'_>, part: &Part, need: &Need) -> Result<Vec<u32>> {
        let candidates: Candidates = handle.candidates(&part.segment, need).await?;
        let numbers = candidates.numbers(part.segment.documents).into_iter();
        Ok(numbers.filter_map(|place| part.ranked(place)).collect())
    }

    /// The score of each document; `None` for one that the question does not find.
    async fn scores(
        &self,
        handle: &Handle<'_>,
        ranking: &mut Ranking,
        question: &str,
    ) -> Result<Vec<Option<f64>>> {
        let wanted = Wanted::new(&self.ranking, question);
        let mut terms: BTreeSet<String> = wanted.terms.clone();
        for prefix in &wanted.prefixes {
            let key = word_prefix(prefix);
            for part in &ranking.base.parts {
                for chunk in handle.chunks(part.segment.id, &key, true).await? {
                    with_prefix(&chunk, &key, &mut |key, _| {
                        let word = word_of(key).filter(|word| wanted.needs(word));
                        terms.extend(word.map(str::to_owned));
                    })?;
                }
            }
        }
        load(handle, &mut ranking.base, &terms).await?;
        let mut asked = ranking.base.corpus.ask(question);
        let sources = ranking.base.corpus.sources(&asked);
        let mut counted: BTreeSet<String> = BTreeSet::new();
        for at in sources {
            if at < ranking.indexed {
                self.tell_content(handle, &mut ranking.base, at).await?;
            }
            let words = ranking.base.corpus.words_of(at);
            counted.extend(words.map(str::to_owned));
        }
        let unread: Vec<&String> = counted.difference(&terms).collect();
        count(handle, &mut ranking.base, &unread).await?;
        let added = ranking.base.corpus.expand(&mut asked);
        load(handle, &mut ranking.base, &added).await?;
        Ok(ranking.base.corpus.finish(asked))
    }

    /// Reads the words of a document that is indexed.
    async fn tell_content(&self, handle: &Handle<'_>, base: &mut Base, at: usize) -> Result<()> {
        match base.docs.get(at) {
            Some(Doc::Message { seq, .. }) => {
                if let Some(one) = SeqRange::new(*seq, *seq) {
                    let page = self
                        .store
                        .read(handle.conversation, &LogRead::new(one))
                        .await?;
                    let mut calls = LogCalls::new(&*self.store, handle.conversation);
                    calls.add_page(&page.items);
                    if let Some(entry) = page.items.first() {
                        calls.resolve(entry).await?;
                        if let Some(said) = Document::without_echoes(entry, calls.names()) {
                            base.corpus.set_content(at, &said);
                        }
                    }
                }
            }
            Some(Doc::Summary { id, .. }) => {
                let ids = [id.clone()];
                let found = self.store.summaries(handle.conversation, &ids).await?;
                if let Some(summary) = found.into_iter().next().flatten() {
                    base.corpus.set_content(at, &Document::of_summary(&summary));
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// Reads where some terms stand in what is indexed.
async fn load<T: AsRef<str>>(
    handle: &Handle<'_>,
    base: &mut Base,
    terms: impl IntoIterator<Item = T>,
) -> Result<()> {
    let terms: Vec<T> = terms.into_iter().collect();
    let keys: Vec<Vec<u8>> = terms.iter().map(|term| word_key(term.as_ref())).collect();
    let Base { parts, corpus, .. } = base;
    let mut chunks: Vec<(&Part, Vec<Option<Arc<[u8]>>>)> = Vec::new();
    for part in parts.iter() {
        let found = handle.chunks_of(part.segment.id, &keys, true).await?;
        chunks.push((part, found));
    }
    for (at, (term, key)) in terms.iter().zip(&keys).enumerate() {
        corpus.load(term.as_ref(), |place| {
            for (part, chunks) in &chunks {
                let Some(Some(chunk)) = chunks.get(at) else {
                    continue;
                };
                if let Some(entry) = find(chunk, key)? {
                    words(&entry, &mut |posting, positions| {
                        let ranked = part.ranked(posting.place).filter(|_| posting.count > 0);
                        if let Some(at) = ranked {
                            place(at, posting.count, positions);
                        }
                    })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Tells the corpus in how many of the indexed documents some terms stand.
async fn count(handle: &Handle<'_>, base: &mut Base, terms: &[&String]) -> Result<()> {
    let mut unknown: Vec<&String> = Vec::new();
    for term in terms {
        match base.counts.get(term.as_str()) {
            Some(documents) => base.corpus.set_unread(term, *documents),
            None => unknown.push(term),
        }
    }
    for terms in unknown.chunks(COUNTED) {
        let keys: Vec<Vec<u8>> = terms.iter().map(|term| word_key(term)).collect();
        let mut counts = vec![0; keys.len()];
        for part in &base.parts {
            let chunks = handle.chunks_of(part.segment.id, &keys, false).await?;
            for ((key, chunk), documents) in keys.iter().zip(chunks).zip(&mut counts) {
                let Some(chunk) = chunk else { continue };
                let Some(entry) = find(&chunk, key)? else {
                    continue;
                };
                if part.seen == part.segment.documents {
                    *documents += entry.count as usize;
                    continue;
                }
                words(&entry, &mut |posting, _| {
                    *documents += usize::from(posting.count > 0 && posting.place < part.seen);
                })?;
            }
        }
        if base.counts.len() > MOST_COUNTS {
            base.counts.clear();
        }
        for (term, documents) in terms.iter().zip(counts) {
            base.corpus.set_unread(term, documents);
            base.counts.insert((*term).clone(), documents);
        }
    }
    Ok(())
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
