//! An inverted index in memory: from each three characters to the texts that have them.
//!
//! It is written as a user of `memory-search` would: nothing here knows a store. The application
//! hands it messages and summaries when it likes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use memory_model::{ConversationId, LogEntry, Seq, Summary};
use memory_search::implementors::{HitCollector, Matcher, Position, folded_forms};
use memory_search::{
    CallNames, Error, ErrorKind, Hit, HitOrder, Hits, IndexedHits, Query, Result, Search,
    SearchIndex, Watermark,
};

type Trigram = [char; 3];

/// Texts, and where each three characters occur in them.
#[derive(Debug)]
struct Inverted<T> {
    items: Vec<T>,
    places: BTreeMap<Trigram, BTreeSet<usize>>,
}

impl<T> Default for Inverted<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<T> Inverted<T> {
    fn add(&mut self, item: T, texts: &[String]) {
        let forms = texts.iter().flat_map(|text| folded_forms(text));
        for trigram in forms.flat_map(|form| trigrams(&form)) {
            let places = self.places.entry(trigram).or_default();
            places.insert(self.items.len());
        }
        self.items.push(item);
    }

    /// Returns the places that may match a pattern in any of its forms: all if a form is shorter than three characters.
    fn candidates(&self, pattern: &str) -> Vec<usize> {
        let none = BTreeSet::new();
        let mut places = BTreeSet::new();
        for form in folded_forms(pattern) {
            let mut sets = trigrams(&form)
                .into_iter()
                .map(|trigram| self.places.get(&trigram).unwrap_or(&none));
            let Some(first) = sets.next() else {
                return (0..self.items.len()).collect();
            };
            let sets: Vec<_> = sets.collect();
            let in_all = |place: &&usize| sets.iter().all(|set| set.contains(place));
            places.extend(first.iter().filter(in_all));
        }
        places.into_iter().collect()
    }
}

fn trigrams(form: &str) -> Vec<Trigram> {
    let folded: Vec<char> = form.chars().collect();
    let trigrams = folded.windows(3).filter_map(|three| three.try_into().ok());
    trigrams.collect()
}

/// What is indexed of a conversation.
#[derive(Debug, Default)]
struct Indexed {
    messages: Inverted<LogEntry>,
    /// Which tools the results are of.
    calls: CallNames,
    summaries: Inverted<Summary>,
    watermark: Watermark,
}

impl Indexed {
    fn message_hits(&self, query: &Query, matcher: &Matcher, after: Option<Seq>) -> Vec<Hit> {
        let newest = query.order == HitOrder::Newest;
        let follows =
            |seq: Seq| after.is_none_or(|after| if newest { seq < after } else { seq > after });
        let candidates = self.messages.candidates(&query.pattern).into_iter();
        let entries = candidates.map(|place| &self.messages.items[place]);
        let hits = entries
            .filter(|entry| follows(entry.seq))
            .filter_map(|entry| matcher.message(entry, &self.calls));
        in_order(hits.collect(), newest)
    }

    fn summary_hits(&self, query: &Query, matcher: &Matcher, after: Option<usize>) -> Vec<Hit> {
        let newest = query.order == HitOrder::Newest;
        let follows = |place: usize| {
            after.is_none_or(|after| if newest { place < after } else { place > after })
        };
        let candidates = self.summaries.candidates(&query.pattern).into_iter();
        let hits = candidates
            .filter(|place| follows(*place))
            .filter_map(|place| matcher.summary(&self.summaries.items[place]));
        in_order(hits.collect(), newest)
    }

    fn hits(&self, query: &Query) -> Result<Hits> {
        let matcher = Matcher::new(query)?;
        let position = query.cursor.as_ref().map(Position::from_cursor);
        let (messages, summaries) = match position.transpose()? {
            None => (self.message_hits(query, &matcher, None), None),
            Some(Position::Message(seq)) => (self.message_hits(query, &matcher, Some(seq)), None),
            Some(Position::Summary(id)) => {
                let place = self.summaries.items.iter().position(|one| one.id == id);
                let place = place.ok_or_else(|| not_indexed(&format!("the summary {id}")))?;
                (Vec::new(), Some(place))
            }
        };
        let summaries = self.summary_hits(query, &matcher, summaries);
        let mut hits = HitCollector::new(query.limit);
        for hit in messages.into_iter().chain(summaries) {
            if hits.push(hit).is_break() {
                break;
            }
        }
        Ok(hits.finish("trigram-index", query.scope))
    }
}

fn in_order(mut hits: Vec<Hit>, newest: bool) -> Vec<Hit> {
    if newest {
        hits.reverse();
    }
    hits
}

fn not_indexed(what: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("{what} is not indexed: index it first"),
    )
}

/// The index. It keeps what it indexed, so that it can show snippets.
#[derive(Debug, Default)]
pub(crate) struct TrigramIndex {
    conversations: Mutex<BTreeMap<ConversationId, Indexed>>,
}

impl TrigramIndex {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConversationId, Indexed>> {
        let conversations = self.conversations.lock();
        conversations.unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a conversation is indexed.
    pub(crate) fn watermark(&self, conversation: ConversationId) -> Watermark {
        let conversations = self.lock();
        let indexed = conversations.get(&conversation);
        indexed.map(|one| one.watermark.clone()).unwrap_or_default()
    }

    /// Adds the entries of a conversation that follow the watermark, in their order.
    pub(crate) fn add_messages(&self, conversation: ConversationId, entries: Vec<LogEntry>) {
        let mut conversations = self.lock();
        let indexed = conversations.entry(conversation).or_default();
        for entry in entries {
            let mut texts = Vec::new();
            entry.visit_texts(&mut |text| texts.push(text.into_owned()));
            indexed.watermark.messages = entry.seq;
            indexed.calls.add(&entry);
            indexed.messages.add(entry, &texts);
        }
    }

    /// Adds the summaries of a conversation that follow the watermark, in their order.
    pub(crate) fn add_summaries(&self, conversation: ConversationId, summaries: Vec<Summary>) {
        let mut conversations = self.lock();
        let indexed = conversations.entry(conversation).or_default();
        for summary in summaries {
            let mut texts = vec![summary.text().to_owned()];
            texts.extend(summary.messages.as_ref().map(|json| json.decoded_strings()));
            indexed.watermark.summaries = Some(summary.id.clone());
            indexed.summaries.add(summary, &texts);
        }
    }

    /// Drops what is indexed of a conversation.
    pub(crate) fn forget(&self, conversation: ConversationId) {
        self.lock().remove(&conversation);
    }
}

/// Behind `memory_store::IndexedSearch`, which scans what is not indexed.
#[async_trait]
impl SearchIndex for TrigramIndex {
    async fn search_indexed(
        &self,
        conversation: ConversationId,
        query: &Query,
    ) -> Result<IndexedHits> {
        let conversations = self.lock();
        let nothing = Indexed::default();
        let indexed = conversations.get(&conversation).unwrap_or(&nothing);
        Ok(IndexedHits {
            hits: indexed.hits(query)?,
            watermark: indexed.watermark.clone(),
        })
    }
}

/// By itself, for an application that indexes whatever it appends before it searches.
#[async_trait]
impl Search for TrigramIndex {
    async fn search(&self, conversation: ConversationId, query: &Query) -> Result<Hits> {
        let conversations = self.lock();
        match conversations.get(&conversation) {
            Some(indexed) => indexed.hits(query),
            None => Err(not_indexed(&format!("the conversation {conversation}"))),
        }
    }
}
