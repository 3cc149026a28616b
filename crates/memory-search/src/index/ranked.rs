//! Answers with ranked hits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use crate::matching::{Position, RankedCursor, RankedUpTo};
use crate::ranking::{Asked, Document, Wanted};
use crate::segment::{find, with_prefix, word_key, word_of, words};
use crate::vectors::{Nearness, nearness};
use crate::{Hit, Hits, Result, SearchMode};
use memory_model::{EntryKind, Seq, SeqRange, SummaryId};

use super::base::{Base, Doc};
use super::cache::Handle;
use super::found::{Found, FoundOrder};
use super::reading::Reading;
use super::seal::Seal;
use super::search::Asking;
use crate::log_calls::LogCalls;
use memory_store::{IndexSegment, IndexedKind, LogRead, Store};

/// Maximum number of rankings with records that are kept in memory.
const MOST_BASES: usize = 4;

/// Number of candidates after a page that are ranked with it. Some candidates do not match, and one more shows whether
/// more hits follow.
const NEXT: usize = 16;

/// Number of words for which the numbers of documents are read at once.
const COUNTED: usize = 256;

impl<T: Store + ?Sized> Asking<'_, T> {
    /// Returns the vectors of the question and the messages, for comparison. `None` for a query for which vectors are
    /// not used.
    async fn nearness(
        &self,
        question: &str,
        state: RankedUpTo,
        is_first_page: bool,
    ) -> Result<Option<Nearness>> {
        let counts = self.query.mode == SearchMode::Prose
            && self.query.scope.has_messages()
            && (is_first_page || state.vectors.is_some());
        let Some(embedder) = self.embedder.filter(|_| counts) else {
            return Ok(None);
        };
        let (head, last) = (state.head.min(self.info.head), state.vectors);
        nearness(self.store, &self.info, embedder, question, head, last).await
    }

    /// Answers a query with ranked hits. `how` is the end of the strategy's name.
    pub(super) async fn ranked(mut self, how: &str) -> Result<Hits> {
        let (query, matcher) = (self.query, self.matcher);
        let cursor = query.cursor.as_deref().map(RankedCursor::from_cursor);
        let cursor = cursor.transpose()?;
        let begin = cursor.map_or(0, |cursor| cursor.begin);
        let read = cursor.filter(RankedCursor::is_read);
        let is_first_page = read.is_none();
        let mut state = read.map_or(
            RankedUpTo {
                first: cursor.map_or(Seq::FIRST, |cursor| cursor.state.first),
                head: self.info.head,
                summaries: usize::MAX,
                vectors: None,
                stopped: false,
            },
            |cursor| cursor.state,
        );
        self.visible.up_to(state.head);
        let (mut messages, mut summaries) = (None, None);
        if query.scope.has_messages() {
            let is_over = || is_first_page && query.is_over();
            let (ranking, stopped) = self.message_ranking(state, &is_over).await?;
            if let Some(last) = stopped {
                (state.head, state.stopped) = (last, true);
            }
            messages = Some(ranking);
        }
        if query.scope.has_summaries() && !state.stopped {
            let ranking = self.summary_ranking(state.summaries).await?;
            state.summaries = ranking.docs.len();
            summaries = Some(ranking);
        } else {
            state.summaries = 0;
        }
        let mut near = None;
        if let Some(ranking) = &messages {
            let question = ranking.corpus.question_to_embed(&query.pattern);
            near = self.nearness(&question, state, is_first_page).await?;
        }
        let mut name = matcher.mode().as_str().to_owned();
        if let Some(near) = &near {
            state.vectors = Some(near.last);
            name.push_str("-vectors");
        }
        name.push_str(how);
        let mut rankings: Vec<Base> = messages.into_iter().chain(summaries).collect();
        let mut asked = Vec::new();
        for ranking in &mut rankings {
            asked.push(self.ask(ranking).await?);
        }
        let mut found = Vec::new();
        for (ranking, asked) in rankings.iter().zip(asked) {
            let read = Found::read(&self.handle, ranking, asked, near.as_ref(), query, matcher);
            found.push(read.await?);
        }
        let end = begin.saturating_add(query.limit.max(1));
        let (hits, found_count) = match query.mode {
            SearchMode::Prose => self.best(&found, begin..end).await?,
            _ => self.matching(&found, begin..end).await?,
        };
        drop(found);
        rankings
            .into_iter()
            .for_each(|ranking| self.give_back(ranking));
        let cursor_at = |begin| RankedCursor { state, begin };
        let hits = hits.into_iter().map(|(hit, behind)| Hit {
            cursor: cursor_at(behind).to_cursor(),
            ..hit
        });
        let next = cursor_at(end).behind(found_count);
        let mut answer = Hits::new(hits.collect(), name, query.scope, next);
        answer.stopped = is_first_page && state.stopped;
        Ok(answer)
    }

    /// Returns the hits of a page in the mode `Prose`, even if their own text does not match. Each hit comes with the
    /// number of hits up to it. Also returns the number of hits up to the end of the page, plus one if more follow.
    async fn best(
        &self,
        found: &[Found<'_>],
        page: Range<usize>,
    ) -> Result<(Vec<(Hit, usize)>, usize)> {
        let order = FoundOrder::new(found, self.query.order, page.end.saturating_add(1)).hits;
        let end = page.end.min(order.len());
        let shown = order.get(page.start..end).unwrap_or_default();
        let mut read = self.read_targets(shown, true).await?;
        let hits = (page.start + 1..).zip(shown);
        let hits = hits.filter_map(|(behind, (target, score))| {
            let mut hit = read.remove(target)?;
            hit.score = *score;
            Some((hit, behind))
        });
        Ok((hits.collect(), order.len()))
    }

    /// Returns the same as [`best`](Self::best) for other modes. The index selects the documents that may contain all
    /// words. Each is read and compared, best first.
    async fn matching(
        &self,
        found: &[Found<'_>],
        page: Range<usize>,
    ) -> Result<(Vec<(Hit, usize)>, usize)> {
        let order = self.query.order;
        let (mut hits, mut at, mut seen) = (Vec::new(), 0, 0);
        let mut ranked = FoundOrder::new(found, order, page.end.saturating_add(NEXT));
        while seen <= page.end {
            let upto = at + page.end + 1 - seen;
            if ranked.hits.len() < upto && ranked.is_cut {
                ranked = FoundOrder::new(found, order, upto.saturating_mul(4));
            }
            let upto = upto.min(ranked.hits.len());
            let next = ranked.hits.get(at..upto).unwrap_or_default();
            if next.is_empty() {
                break;
            }
            at += next.len();
            let mut read = self.read_targets(next, false).await?;
            for (target, score) in next {
                let Some(mut hit) = read.remove(target) else {
                    continue;
                };
                hit.score = *score;
                seen += 1;
                if page.contains(&(seen - 1)) {
                    hits.push((hit, seen));
                }
            }
        }
        Ok((hits, seen))
    }

    /// Reads messages and summaries, and returns their hits: of all of them, or only of those that match by their own
    /// text.
    async fn read_targets(
        &self,
        targets: &[(Position, f64)],
        all: bool,
    ) -> Result<HashMap<Position, Hit>> {
        let mut hits = HashMap::new();
        let (mut seqs, mut ids) = (Vec::new(), Vec::new());
        for (target, _) in targets {
            match target {
                Position::Message(seq) => seqs.push(*seq),
                Position::Summary(id) => ids.push(id.clone()),
            }
        }
        let mut reading = Reading::new(self.store, self.info.id, seqs);
        while let Some(entry) = reading.next().await? {
            let calls = &mut reading.calls;
            let hit = match all {
                true => {
                    calls.resolve(&entry).await?;
                    Some(self.matcher.show_message(&entry, calls.names()))
                }
                false => calls.hit(self.matcher, &entry).await?,
            };
            hits.extend(hit.map(|hit| (Position::Message(entry.seq), hit)));
        }
        if !ids.is_empty() {
            let summaries = self.store.summaries(self.info.id, &ids).await?;
            for summary in summaries.into_iter().flatten() {
                let hit = match all {
                    true => Some(self.matcher.show_summary(&summary)),
                    false => self.matcher.summary(&summary),
                };
                hits.extend(hit.map(|hit| (Position::Summary(summary.id.clone()), hit)));
            }
        }
        Ok(hits)
    }

    async fn message_ranking(
        &self,
        state: RankedUpTo,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Base, Option<Seq>)> {
        let stretches = self.visible.messages.iter();
        let parts = stretches.map(|one| (one.segment.clone(), one.last.0));
        let mut ranking = self.base(IndexedKind::Messages, parts.collect()).await?;
        let matcher = self.matcher;
        let mut calls = LogCalls::new(self.store, self.info.id);
        let first = self.visible.indexed.next().max(state.first);
        let mut rest = SeqRange::new(first, state.head.min(self.info.head));
        let mut stopped = None;
        while let Some(range) = rest {
            let page = self.store.read(self.info.id, &LogRead::new(range)).await?;
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
                    let admitted = matcher.admits_message(&entry, calls.names());
                    let matches = matcher.mode() != SearchMode::Prose
                        && matcher.message(&entry, calls.names()).is_some();
                    ranking.add(Doc::of_entry(&entry), &document, admitted, matches);
                }
            }
            rest = page.next;
            if rest.is_some() && is_over() {
                stopped = last;
                break;
            }
        }
        ranking.finish();
        Ok((ranking, stopped))
    }

    async fn summary_ranking(&self, most: usize) -> Result<Base> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let segments = self.visible.summaries.iter();
        let parts = segments
            .filter(|one| one.first <= most)
            .map(|one| (one.clone(), one.last.min(most)));
        let mut ranking = self.base(IndexedKind::Summaries, parts.collect()).await?;
        let mut after = match ranking.docs.get(..ranking.indexed()) {
            Some([.., Doc::Summary { id, .. }]) => Some(id.clone()),
            _ => None,
        };
        loop {
            let left = (most as usize).saturating_sub(ranking.indexed() + ranking.added);
            if left == 0 || self.visible.last_summary.as_ref() == Some(&after) {
                break;
            }
            let page = self
                .store
                .summary_log(self.info.id, after.as_ref(), left.min(256));
            let page = page.await?;
            for summary in &page.items {
                let matcher = self.matcher;
                let admitted = matcher.admits_summary(summary);
                let matches =
                    matcher.mode() != SearchMode::Prose && matcher.summary(summary).is_some();
                let document = Document::of_summary(summary);
                ranking.add(Doc::of_summary(summary), &document, admitted, matches);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        ranking.finish();
        Ok(ranking)
    }

    /// Returns the documents of some segments: kept from an earlier query, or read from the index.
    async fn base(&self, kind: IndexedKind, parts: Vec<(IndexSegment, u32)>) -> Result<Base> {
        let conversation = self.info.id;
        let key = parts.iter();
        let key: Vec<_> = key
            .map(|(one, last)| (one.id, Seal::of(one), *last))
            .collect();
        {
            let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |base: &Base| {
                base.conversation == conversation && base.kind == kind && base.key == key
            };
            if let Some(at) = bases.iter().position(fits) {
                return Ok(bases.remove(at));
            }
        }
        Base::read(&self.handle, conversation, kind, key, parts).await
    }

    /// Keeps the documents and their words for the next query.
    fn give_back(&self, mut base: Base) {
        if base.parts.is_empty() {
            return;
        }
        base.shrink();
        let mut bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        // Removes an older ranking, or one that another search kept meanwhile.
        bases.retain(|one| one.conversation != base.conversation || one.kind != base.kind);
        if bases.len() >= MOST_BASES {
            bases.remove(0);
        }
        bases.push(base);
    }

    /// Reads the parts of the index that a question needs, and begins to answer the question.
    async fn ask(&self, ranking: &mut Base) -> Result<Asked> {
        let (handle, question) = (&self.handle, self.query.pattern.as_str());
        let wanted = Wanted::new(question);
        let mut terms: BTreeSet<String> = wanted.terms.clone();
        let may_need_longer = |beginning: &[u8]| {
            word_of(beginning).is_none_or(|beginning| wanted.may_need_longer(beginning))
        };
        // Only the first key can be as short as the beginning that all keys have in common.
        let may_hold = |first: &[u8], beginning: &[u8]| {
            let is_needed = word_of(first).is_some_and(|word| wanted.needs(word));
            is_needed || may_need_longer(beginning)
        };
        for prefix in &wanted.prefixes {
            let key = word_key(prefix);
            for part in &ranking.parts {
                let chunks = handle.chunks_among(&part.segment, &key, &may_hold, usize::MAX);
                for chunk in chunks.await?.unwrap_or_default() {
                    with_prefix(&chunk, &key, &mut |key, _| {
                        if let Some(word) = word_of(key).filter(|word| wanted.needs(word)) {
                            terms.insert(word.to_owned());
                        }
                        let may_follow =
                            |end: &usize| may_need_longer(key.get(..*end).unwrap_or_default());
                        (1..=key.len()).take_while(may_follow).last().unwrap_or(0)
                    })?;
                }
            }
        }
        load(handle, ranking, &terms).await?;
        let mut asked = ranking.corpus.ask(question);
        let sources = ranking.corpus.sources(&asked);
        self.contents(ranking, &sources).await?;
        let uncounted = ranking.corpus.uncounted(&sources);
        count(handle, ranking, &uncounted).await?;
        let added = ranking.corpus.expand(&mut asked);
        load(handle, ranking, &added).await?;
        Ok(asked)
    }

    /// Adds the words of the indexed documents among `documents` to the corpus.
    async fn contents(&self, base: &mut Base, documents: &[usize]) -> Result<()> {
        let indexed = base.indexed();
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
        let mut reading = Reading::new(self.store, self.info.id, seqs);
        while let Some(entry) = reading.next().await? {
            reading.calls.resolve(&entry).await?;
            let said = Document::without_echoes(&entry, reading.calls.names());
            if let Some((said, at)) = said.zip(messages.get(&entry.seq)) {
                base.corpus.set_content(*at, &said.telling_words());
            }
        }
        if !summaries.is_empty() {
            let ids: Vec<SummaryId> = summaries.iter().map(|(id, _)| id.clone()).collect();
            let found = self.store.summaries(self.info.id, &ids).await?;
            for ((_, at), summary) in summaries.iter().zip(found) {
                if let Some(summary) = summary {
                    let words = Document::of_summary(&summary).telling_words();
                    base.corpus.set_content(*at, &words);
                }
            }
        }
        Ok(())
    }
}

/// Reads the occurrences of some terms in the indexed documents.
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

/// Adds, for each term, the number of indexed documents that contain it to the corpus.
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
