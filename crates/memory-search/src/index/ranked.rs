//! Ranked answers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, PoisonError};

use crate::matching::{Matcher, RankedCursor, RankedTarget, RankedUpTo};
use crate::ranking::{Asked, Corpus, Document, Wanted};
use crate::segment::{find, some_with_prefix, word_key, word_of, word_prefix, words};
use crate::vectors::{Nearness, nearness};
use crate::{Hit, Hits, Query, Result, SearchMode};
use memory_model::{EntryKind, Seq, SeqRange, SummaryId};

use super::base::{Base, Doc, Part, Pending, Ranking, number};
use super::cache::Handle;
use super::found::{Found, FoundOrder, Scored};
use super::reading::Reading;
use super::seal::Seal;
use super::search::SegmentSearch;
use super::visible::Visible;
use crate::log_calls::LogCalls;
use memory_store::{Conversation, IndexSegment, IndexedKind, LogRead, Store};

/// Conversations whose records are kept in memory.
const MOST_BASES: usize = 4;

/// Candidates behind a page that are ranked with it: some do not match, and one tells whether more follow.
const NEXT: usize = 16;

/// Words whose numbers of documents are read at once.
const COUNTED: usize = 256;

impl<S> SegmentSearch<S>
where
    S: Deref + Clone + Send + Sync + fmt::Debug,
    S::Target: Store,
{
    /// How near messages are to the question; `None` for a query that vectors do not change.
    async fn nearness(
        &self,
        info: &Conversation,
        query: &Query,
        question: &str,
        state: RankedUpTo,
        is_first_page: bool,
    ) -> Result<Option<Nearness>> {
        let counts = query.mode == SearchMode::Prose
            && query.scope.has_messages()
            && (is_first_page || state.vectors.is_some());
        let Some(embedder) = self.embedder.as_deref().filter(|_| counts) else {
            return Ok(None);
        };
        let (head, last) = (state.head.min(info.head), state.vectors);
        nearness(&*self.store, info, embedder, question, head, last).await
    }

    /// Answers a query that ranks. `how` ends the name of the strategy.
    pub(super) async fn ranked(
        &self,
        handle: &Handle<'_>,
        info: &Conversation,
        mut visible: Visible,
        query: &Query,
        matcher: &Matcher,
        how: &str,
    ) -> Result<Hits> {
        let cursor = query.cursor.as_ref().map(RankedCursor::from_cursor);
        let cursor = cursor.transpose()?;
        let begin = cursor.map_or(0, |cursor| cursor.begin);
        let read = cursor.filter(RankedCursor::is_read);
        let is_first_page = read.is_none();
        let mut state = read.map_or(
            RankedUpTo {
                first: cursor.map_or(Seq::FIRST, |cursor| cursor.state.first),
                head: info.head,
                summaries: usize::MAX,
                vectors: None,
                stopped: false,
            },
            |cursor| cursor.state,
        );
        visible.up_to(state.head);
        let (mut messages, mut summaries) = (None, None);
        if query.scope.has_messages() {
            let is_over = || is_first_page && query.is_over();
            let ranking = self.message_ranking(handle, info, &visible, state, matcher, &is_over);
            let (ranking, stopped) = ranking.await?;
            if let Some(last) = stopped {
                (state.head, state.stopped) = (last, true);
            }
            messages = Some(ranking);
        }
        if query.scope.has_summaries() && !state.stopped {
            let ranking = self
                .summary_ranking(handle, &visible, state.summaries, matcher)
                .await?;
            state.summaries = ranking.base.docs.len();
            summaries = Some(ranking);
        } else {
            state.summaries = 0;
        }
        let corpus = messages.as_ref().map(|ranking| &ranking.base.corpus);
        let question = corpus.map(|corpus| corpus.question_to_embed(&query.pattern));
        let question = question.unwrap_or_default();
        let near = self
            .nearness(info, query, &question, state, is_first_page)
            .await?;
        let mut name = matcher.mode().as_str().to_owned();
        if let Some(near) = &near {
            state.vectors = Some(near.last);
            name.push_str("-vectors");
        }
        name.push_str(how);
        let mut asked = Vec::new();
        for ranking in [&mut messages, &mut summaries].into_iter() {
            asked.push(match ranking {
                Some(ranking) => Some(self.ask(handle, ranking, &query.pattern).await?),
                None => None,
            });
        }
        let mut found = Vec::new();
        for (ranking, asked) in [&messages, &summaries].into_iter().zip(asked) {
            if let Some((ranking, asked)) = ranking.as_ref().zip(asked) {
                let scored = Scored::new(ranking, asked, near.as_ref());
                found.push(Found::read(handle, ranking, scored, query, matcher).await?);
            }
        }
        let end = begin.saturating_add(query.limit.max(1));
        let (hits, found_count) = match query.mode {
            SearchMode::Prose => {
                let order = FoundOrder::new(&found, query.order, end.saturating_add(1));
                let shown = order.first(end).get(begin..).unwrap_or_default();
                let mut read = self.read_targets(info, matcher, shown, true).await?;
                let hits = (begin + 1..)
                    .zip(shown)
                    .filter_map(|(behind, (target, score))| {
                        let mut hit = read.remove(target)?;
                        hit.score = *score;
                        Some((hit, behind))
                    });
                (hits.collect(), order.len())
            }
            _ => {
                let matching = self.matching(info, matcher, &found, query, begin..end);
                let (hits, found_count) = matching.await?;
                (
                    (hits.into_iter().zip(begin + 1..)).collect::<Vec<_>>(),
                    found_count,
                )
            }
        };
        drop(found);
        for ranking in [messages, summaries].into_iter().flatten() {
            self.give_back(ranking);
        }
        let cursor_at = |begin| RankedCursor { state, begin };
        let (hits, behind): (Vec<Hit>, Vec<usize>) = hits.into_iter().unzip();
        let cursors = behind.into_iter().map(|at| cursor_at(at).to_cursor());
        let mut answer = match cursor_at(end).behind(found_count) {
            Some(next) => Hits::partial(hits, name, query.scope, next),
            None => Hits::complete(hits, name, query.scope),
        };
        answer.cursors = cursors.collect();
        answer.stopped = is_first_page && state.stopped;
        Ok(answer)
    }

    /// Returns the hits of a page if the index says which messages may have all words: each is read, best first.
    /// Also returns the number of hits up to the page's end, plus one if more follow.
    async fn matching(
        &self,
        info: &Conversation,
        matcher: &Matcher,
        found: &[Found<'_>],
        query: &Query,
        page: Range<usize>,
    ) -> Result<(Vec<Hit>, usize)> {
        let (mut hits, mut at, mut seen) = (Vec::new(), 0, 0);
        let mut order = FoundOrder::new(found, query.order, page.end.saturating_add(NEXT));
        while seen <= page.end {
            let upto = at + page.end + 1 - seen;
            if order.len() < upto && order.is_cut {
                order = FoundOrder::new(found, query.order, upto.saturating_mul(4));
            }
            let next = order.first(upto).get(at..).unwrap_or_default();
            if next.is_empty() {
                break;
            }
            at += next.len();
            let mut read = self.read_targets(info, matcher, next, false).await?;
            for (target, score) in next {
                let Some(mut hit) = read.remove(target) else {
                    continue;
                };
                hit.score = *score;
                if page.contains(&seen) {
                    hits.push(hit);
                }
                seen += 1;
            }
        }
        Ok((hits, seen))
    }

    /// The hits among messages and summaries: all of them, or those that match by themselves.
    async fn read_targets(
        &self,
        info: &Conversation,
        matcher: &Matcher,
        targets: &[(RankedTarget, f64)],
        all: bool,
    ) -> Result<HashMap<RankedTarget, Hit>> {
        let mut hits = HashMap::new();
        let (mut seqs, mut ids) = (Vec::new(), Vec::new());
        for (target, _) in targets {
            match target {
                RankedTarget::Message(seq) => seqs.push(*seq),
                RankedTarget::Summary(id) => ids.push(id.clone()),
            }
        }
        let mut reading = Reading::new(&*self.store, info.id, seqs);
        while let Some(entry) = reading.next().await? {
            let calls = &mut reading.calls;
            let hit = match all {
                true => {
                    calls.resolve(&entry).await?;
                    Some(matcher.show_message(&entry, calls.names()))
                }
                false => calls.hit(matcher, &entry).await?,
            };
            hits.extend(hit.map(|hit| (RankedTarget::Message(entry.seq), hit)));
        }
        if !ids.is_empty() {
            let summaries = self.store.summaries(info.id, &ids).await?;
            for summary in summaries.into_iter().flatten() {
                let hit = match all {
                    true => Some(matcher.show_summary(&summary)),
                    false => matcher.summary(&summary),
                };
                hits.extend(hit.map(|hit| (RankedTarget::Summary(summary.id.clone()), hit)));
            }
        }
        Ok(hits)
    }

    async fn message_ranking(
        &self,
        handle: &Handle<'_>,
        info: &Conversation,
        visible: &Visible,
        state: RankedUpTo,
        matcher: &Matcher,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Ranking, Option<Seq>)> {
        let stretches = visible.messages.iter();
        let parts = stretches
            .map(|one| (one.segment.clone(), one.last.0))
            .collect();
        let base = self.base(handle, IndexedKind::Messages, parts).await?;
        let mut ranking = Ranking::new(base);
        let mut calls = LogCalls::new(&*self.store, info.id);
        let first = visible.indexed.next().max(state.first);
        let mut rest = SeqRange::new(first, state.head.min(info.head));
        let mut stopped = None;
        while let Some(range) = rest {
            let page = self.store.read(info.id, &LogRead::new(range)).await?;
            calls.add_page(&page.items);
            let last = page.items.last().map(|entry| entry.seq);
            for entry in page.items {
                if entry.kind == EntryKind::Note {
                    continue;
                }
                calls.resolve(&entry).await?;
                let document = match matcher.searches_echoes() {
                    true => Some(Document::of_entry(&entry)),
                    false => Document::without_echoes(&entry, calls.names()),
                };
                if let Some(document) = document {
                    let pending = Pending {
                        admitted: matcher.admits_message(&entry, calls.names()),
                        matches: matcher.mode() != SearchMode::Prose
                            && matcher.message(&entry, calls.names()).is_some(),
                    };
                    ranking.add(Doc::of_entry(&entry), &document, pending);
                }
            }
            rest = page.next;
            if rest.is_some() && is_over() {
                stopped = last;
                break;
            }
        }
        Ok((ranking.finish(), stopped))
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
        let mut ranking = Ranking::new(base);
        let last = ranking.indexed().checked_sub(1);
        let mut after = match last.and_then(|last| ranking.base.docs.get(last)) {
            Some(Doc::Summary { id, .. }) => Some(id.clone()),
            _ => None,
        };
        let mut tail = Vec::new();
        while ranking.indexed() + tail.len() < most as usize
            && visible.last_summary.may_follow(after.as_ref())
        {
            let left = most as usize - ranking.indexed() - tail.len();
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
            let pending = Pending {
                admitted: matcher.admits_summary(summary),
                matches: matcher.mode() != SearchMode::Prose && matcher.summary(summary).is_some(),
            };
            ranking.add(
                Doc::of_summary(summary),
                &Document::of_summary(summary),
                pending,
            );
        }
        Ok(ranking.finish())
    }

    /// The records of some segments: kept from before, or read.
    async fn base(
        &self,
        handle: &Handle<'_>,
        kind: IndexedKind,
        parts: Vec<(IndexSegment, u32)>,
    ) -> Result<Base> {
        let key = parts.iter();
        let key: Vec<_> = key
            .map(|(one, last)| (one.id, Seal::of(one), *last))
            .collect();
        let mut before = None;
        {
            let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |base: &Base| {
                base.conversation == handle.conversation && base.kind == kind && base.key == key
            };
            if let Some(at) = bases.iter().position(fits) {
                before = Some(bases.remove(at));
            }
        }
        if let Some(base) = before {
            return Ok(base);
        }
        let mut base = Base {
            conversation: handle.conversation,
            kind,
            key,
            parts: Vec::new(),
            corpus: Corpus::new(),
            docs: Vec::new(),
            unindexed: Vec::new(),
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

    /// Keeps the records and the words for the next query.
    fn give_back(&self, ranking: Ranking) {
        let Ranking { mut base, .. } = ranking;
        if base.parts.is_empty() {
            return;
        }
        base.shrink();
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is older, or that another search gave back meanwhile.
        bases.retain(|one| one.conversation != base.conversation || one.kind != base.kind);
        if bases.len() >= MOST_BASES {
            bases.remove(0);
        }
        bases.push(base);
    }

    /// Asks a question: reads what of the index it counts.
    async fn ask(
        &self,
        handle: &Handle<'_>,
        ranking: &mut Ranking,
        question: &str,
    ) -> Result<Asked> {
        let wanted = Wanted::new(question);
        let mut terms: BTreeSet<String> = wanted.terms.clone();
        // The first key is the only one that may be no longer than what all of them begin with.
        let may_hold = |first: &[u8], beginning: &[u8]| {
            let is_needed = word_of(first).is_some_and(|word| wanted.needs(word));
            is_needed || may_need_longer(&wanted, beginning)
        };
        for prefix in &wanted.prefixes {
            let key = word_prefix(prefix);
            for part in &ranking.base.parts {
                let chunks = handle.chunks_among(&part.segment, &key, &may_hold, usize::MAX);
                for chunk in chunks.await?.unwrap_or_default() {
                    some_with_prefix(&chunk, &key, &mut |key, _| {
                        if let Some(word) = word_of(key).filter(|word| wanted.needs(word)) {
                            terms.insert(word.to_owned());
                        }
                        let may_follow = |end: &usize| {
                            let beginning = key.get(..*end).unwrap_or_default();
                            may_need_longer(&wanted, beginning)
                        };
                        (1..=key.len()).take_while(may_follow).last().unwrap_or(0)
                    })?;
                }
            }
        }
        load(handle, &mut ranking.base, &terms).await?;
        let mut asked = ranking.base.corpus.ask(question);
        let sources = ranking.base.corpus.sources(&asked);
        self.contents(handle, ranking, &sources).await?;
        let uncounted = ranking.base.corpus.uncounted(&sources);
        count(handle, &mut ranking.base, &uncounted).await?;
        let added = ranking.base.corpus.expand(&mut asked);
        load(handle, &mut ranking.base, &added).await?;
        Ok(asked)
    }

    /// Tells the corpus the words of those of some documents that are indexed.
    async fn contents(
        &self,
        handle: &Handle<'_>,
        ranking: &mut Ranking,
        documents: &[usize],
    ) -> Result<()> {
        let indexed = ranking.indexed();
        let base = &mut ranking.base;
        let (mut messages, mut summaries) = (BTreeMap::new(), Vec::new());
        let unknown = |at: &&usize| **at < indexed && !base.corpus.has_content(**at);
        for at in documents.iter().filter(unknown) {
            match base.docs.get(*at) {
                Some(Doc::Message { seq, .. }) => {
                    messages.insert(*seq, *at);
                }
                Some(Doc::Summary { id, .. }) => summaries.push((id.clone(), *at)),
                None => {}
            }
        }
        let seqs = messages.keys().copied();
        let mut reading = Reading::new(&*self.store, handle.conversation, seqs);
        while let Some(entry) = reading.next().await? {
            reading.calls.resolve(&entry).await?;
            let said = Document::without_echoes(&entry, reading.calls.names());
            if let Some((said, at)) = said.zip(messages.get(&entry.seq)) {
                let words = base.corpus.telling_words(&said);
                base.corpus.set_content(*at, &words);
            }
        }
        if !summaries.is_empty() {
            let ids: Vec<SummaryId> = summaries.iter().map(|(id, _)| id.clone()).collect();
            let found = self.store.summaries(handle.conversation, &ids).await?;
            for ((_, at), summary) in summaries.iter().zip(found) {
                if let Some(summary) = summary {
                    let words = base.corpus.telling_words(&Document::of_summary(&summary));
                    base.corpus.set_content(*at, &words);
                }
            }
        }
        Ok(())
    }
}

/// Whether a word may be needed whose key begins so and goes on.
fn may_need_longer(wanted: &Wanted, beginning: &[u8]) -> bool {
    let words = match std::str::from_utf8(beginning) {
        Ok(_) => beginning,
        // A character is cut off.
        Err(error) => beginning.get(..error.valid_up_to()).unwrap_or_default(),
    };
    word_of(words).is_none_or(|beginning| wanted.may_need_longer(beginning))
}

/// Reads where some terms stand in what is indexed.
async fn load<T: AsRef<str>>(
    handle: &Handle<'_>,
    base: &mut Base,
    terms: impl IntoIterator<Item = T>,
) -> Result<()> {
    let unknown = |term: &T| !base.corpus.is_loaded(term.as_ref());
    let terms: Vec<T> = terms.into_iter().filter(unknown).collect();
    if terms.is_empty() {
        return Ok(());
    }
    let keys: Vec<Vec<u8>> = terms.iter().map(|term| word_key(term.as_ref())).collect();
    let Base { parts, corpus, .. } = base;
    let mut chunks = Vec::new();
    for part in parts.iter() {
        let found = handle.chunks_of(&part.segment, &keys, true).await?;
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
async fn count(handle: &Handle<'_>, base: &mut Base, terms: &[Arc<str>]) -> Result<()> {
    for terms in terms.chunks(COUNTED) {
        let keys: Vec<Vec<u8>> = terms.iter().map(|term| word_key(term)).collect();
        let mut counts = vec![0; keys.len()];
        for part in &base.parts {
            let chunks = handle.chunks_of(&part.segment, &keys, false).await?;
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
        for (term, documents) in terms.iter().zip(counts) {
            base.corpus.set_unread(term, documents);
        }
    }
    Ok(())
}
