//! The words of a conversation and their occurrences, from which documents are ranked.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory_model::{Role, Timestamp};

use super::block::{BLOCK, Block, Entry};
use super::document::{Document, MOST_TELLING_WORDS};
use super::postings::{Postings, TermId, count, raise};
use super::record::Record;
use super::weights::EPISODE_GAP;
use sentence_model::fold::fold_case;
use sentence_model::words::{Tokenizer, is_stop_word, visit_words};

/// Maximum size of loaded words that are kept for the next question, in bytes.
const MOST_LOADED_BYTES: usize = 32 << 20;

/// Maximum number of words of documents, counted with repetitions, that are kept for the next question.
const MOST_TOLD_WORDS: usize = 1 << 19;

/// Maximum number of terms that are kept for the next question.
const MOST_TERMS: usize = 1 << 17;

/// The words of a conversation's messages, or of its summaries, in memory.
///
/// Documents are numbered from 0 in the order in which they are added, which is the order of the log.
#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(super) terms: BTreeMap<Arc<str>, TermId>,
    /// Text of each term, by number.
    pub(super) texts: Vec<Arc<str>>,
    pub(super) postings: Vec<Postings>,
    /// Maps the number of a document to its terms in order, without stop words. Contains only documents with known
    /// words.
    pub(super) contents: BTreeMap<usize, Vec<TermId>>,
    pub(super) entries: Vec<Entry>,
    /// Number of terms in each document. These numbers are in a separate list, because each occurrence of a word needs
    /// one.
    pub(super) lengths: Vec<u32>,
    /// Properties of each block of 64 neighbouring documents, from which upper bounds for their scores are computed.
    pub(super) blocks: Vec<Block>,
    /// Number of terms in each episode.
    pub(super) episodes: Vec<u64>,
    /// Maps each case-folded word of a participant's name to the participant's number.
    pub(super) names: BTreeMap<String, u32>,
    participants: BTreeMap<String, u32>,
    /// Number of documents that were [added without their words](Corpus::add_record).
    records: usize,
    /// Terms of the documents that were added with their words, after the first document that was added without words.
    behind: Vec<TermId>,
    /// Size of the loaded words, in bytes.
    loaded_bytes: usize,
    /// Number of words that [`set_content`](Corpus::set_content) added.
    told_words: usize,
}

impl Corpus {
    /// Creates an empty corpus.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns the number of documents.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a document with its words. Its number is the number of documents before.
    pub(crate) fn add(&mut self, document: &Document<'_>) {
        let episode = self.episode_of(document.created_at);
        let place = count(self.entries.len());
        let (mut length, mut content) = (0, Vec::new());
        for text in document.composed_texts() {
            Tokenizer::RANKING.visit_text(&text, &mut |range, term| {
                length += 1;
                let id = self.term_id(&term);
                let word = text.get(range).unwrap_or_default();
                let Some(postings) = self.postings.get_mut(id as usize) else {
                    return;
                };
                if postings.raise(place, episode) && self.records > 0 {
                    self.behind.push(id);
                }
                if !is_stop_word(word) {
                    postings.positions.push(count(content.len()));
                    content.push(id);
                }
            });
        }
        content.truncate(MOST_TELLING_WORDS);
        content.shrink_to_fit();
        self.contents.insert(self.len(), content);
        let record = Record::of(document);
        self.push(&Record { length, ..record }, episode);
    }

    /// Adds a document without its words. [`load`](Self::load) later adds the words that a question needs.
    pub(crate) fn add_record(&mut self, record: &Record) {
        let episode = self.episode_of(record.created_at);
        self.records += 1;
        self.push(record, episode);
    }

    fn push(&mut self, record: &Record, episode: u32) {
        if let Some(sum) = self.episodes.get_mut(episode as usize) {
            *sum += u64::from(record.length);
        }
        let participant = record.name.as_deref().map(|name| self.participant(name));
        let entry = Entry {
            participant,
            is_users: record.role == Some(Role::User),
            created_at: record.created_at,
            episode,
            question_share: record.question_share,
            asks: record.asks,
            first_person: record.first_person,
            names_time: record.names_time,
        };
        Block::add(&mut self.blocks, self.entries.len(), &entry, record.length);
        self.lengths.push(record.length);
        self.entries.push(entry);
    }

    /// Returns the number of the episode to which a message with this time belongs. Begins a new episode after a long
    /// pause.
    fn episode_of(&mut self, time: Timestamp) -> u32 {
        let begins = match self.entries.last() {
            Some(last) => time.0.saturating_sub(last.created_at.0) > EPISODE_GAP,
            None => true,
        };
        if begins {
            self.episodes.push(0);
        }
        count(self.episodes.len().saturating_sub(1))
    }

    /// Adds the occurrences of a term in the documents that were added without words. `read` calls a function with the
    /// number of each document, the number of occurrences, and their positions among the document's words without stop
    /// words. A term that [is loaded](Self::is_loaded) already stays unchanged.
    pub(crate) fn load(
        &mut self,
        term: &str,
        read: impl FnOnce(&mut dyn FnMut(usize, u32, &[u32])) -> crate::Result<()>,
    ) -> crate::Result<()> {
        if self.is_loaded(term) {
            return Ok(());
        }
        let id = self.term_id(term);
        let mut loaded = Postings {
            is_loaded: true,
            ..Postings::default()
        };
        let entries = &self.entries;
        read(&mut |place, times, positions| {
            let Some(entry) = entries.get(place) else {
                return;
            };
            loaded.starts.push(count(loaded.positions.len()));
            raise(&mut loaded.documents, count(place), times);
            loaded.positions.extend_from_slice(positions);
            raise(&mut loaded.episodes, entry.episode, times);
        })?;
        if let Some(postings) = self.postings.get_mut(id as usize) {
            let behind = std::mem::replace(postings, loaded);
            let shift = count(postings.positions.len());
            postings
                .starts
                .extend(behind.starts.iter().map(|start| start + shift));
            postings.positions.extend(behind.positions);
            postings.documents.extend(behind.documents);
            for posting in behind.episodes {
                raise(&mut postings.episodes, posting.place, posting.count);
            }
            self.loaded_bytes += postings.shrink();
        }
        Ok(())
    }

    /// Returns whether the occurrences of a term were [loaded](Self::load).
    pub(crate) fn is_loaded(&self, term: &str) -> bool {
        let id = self.terms.get(term);
        let postings = id.and_then(|id| self.postings.get(*id as usize));
        postings.is_some_and(|postings| postings.is_loaded)
    }

    /// Sets the number of documents without words that contain a term. This number is used until the term is
    /// [loaded](Self::load).
    pub(crate) fn set_unread(&mut self, term: &str, documents: usize) {
        let id = self.term_id(term);
        let postings = self.postings.get_mut(id as usize);
        if let Some(postings) = postings.filter(|postings| !postings.is_loaded) {
            postings.unread = Some(documents);
        }
    }

    /// Returns the known words of some documents that are neither loaded nor [counted](Self::set_unread).
    pub(crate) fn uncounted(&self, documents: &[usize]) -> Vec<Arc<str>> {
        let contents = documents.iter();
        let contents = contents.filter_map(|at| self.contents.get(at));
        let mut ids: Vec<TermId> = contents.flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let word = |id: TermId| {
            let postings = self.postings.get(id as usize)?;
            let is_counted = postings.is_loaded || postings.unread.is_some();
            self.texts.get(id as usize).filter(|_| !is_counted).cloned()
        };
        let mut words: Vec<Arc<str>> = ids.into_iter().filter_map(word).collect();
        words.sort_unstable();
        words
    }

    /// Sets the [words without stop words](Document::telling_words) of a document that was added without its words.
    pub(crate) fn set_content(&mut self, place: usize, words: &[String]) {
        let content = words.iter().map(|word| self.term_id(word)).collect();
        self.contents.insert(place, content);
        self.told_words += words.len();
    }

    /// Returns whether the words of a document are known.
    pub(crate) fn has_content(&self, place: usize) -> bool {
        self.contents.contains_key(&place)
    }

    /// Removes the documents from number `length` on. [Loaded](Self::load) words and the words that were set for
    /// documents are kept for the next question. If they exceed 32 MB of occurrences, 131,072 different words, or
    /// 524,288 words of documents, they are removed too, with all documents that were [added](Self::add) with their
    /// words. If the corpus has only such documents, it always removes them.
    pub(crate) fn reset(&mut self, mut length: usize) {
        let is_large = self.loaded_bytes > MOST_LOADED_BYTES
            || self.told_words > MOST_TOLD_WORDS
            || self.texts.len() > MOST_TERMS;
        if is_large || self.records == 0 || length < self.records {
            length = length.min(self.records);
            self.records = length;
            self.forget_words();
        } else {
            self.forget_words_behind(length);
        }
        if self.entries.len() <= length {
            return;
        }
        let gone = self.entries.drain(length..);
        for (entry, terms) in gone.zip(self.lengths.drain(length..)) {
            if let Some(sum) = self.episodes.get_mut(entry.episode as usize) {
                *sum = sum.saturating_sub(u64::from(terms));
            }
        }
        let whole = self.entries.len() / BLOCK;
        self.blocks.truncate(whole);
        let rest = self.entries.iter().zip(&self.lengths).enumerate();
        for (at, (entry, length)) in rest.skip(whole * BLOCK) {
            Block::add(&mut self.blocks, at, entry, *length);
        }
        let episodes = self
            .entries
            .last()
            .map_or(0, |last| last.episode as usize + 1);
        self.episodes.truncate(episodes);
        let known = self
            .entries
            .iter()
            .filter_map(|entry| entry.participant)
            .max();
        let known = known.map_or(0, |last| last + 1);
        self.participants.retain(|_, number| *number < known);
        self.names.retain(|_, number| *number < known);
    }

    fn forget_words(&mut self) {
        self.terms.clear();
        self.texts.clear();
        self.postings.clear();
        self.contents.clear();
        self.behind.clear();
        (self.loaded_bytes, self.told_words) = (0, 0);
    }

    /// Removes the words of documents from number `length` on, which were added after the documents without words.
    fn forget_words_behind(&mut self, length: usize) {
        self.behind.sort_unstable();
        self.behind.dedup();
        for id in std::mem::take(&mut self.behind) {
            if let Some(postings) = self.postings.get_mut(id as usize) {
                postings.truncate(count(length), &self.entries);
                if postings.documents.is_empty() && !postings.is_loaded {
                    let unread = postings.unread;
                    *postings = Postings {
                        unread,
                        ..Postings::default()
                    };
                }
                let last = postings.documents.last();
                if last.is_some_and(|last| last.place as usize >= self.records) {
                    self.behind.push(id);
                }
            }
        }
        self.contents.split_off(&length);
    }

    /// Returns the documents that contain the terms `first` and `second` directly after each other.
    pub(super) fn documents_with_pair(&self, first: TermId, second: TermId) -> Vec<usize> {
        let postings = |id: TermId| self.postings.get(id as usize);
        let (Some(first), Some(second)) = (postings(first), postings(second)) else {
            return Vec::new();
        };
        let (mut having, mut other) = (Vec::new(), 0);
        for (at, posting) in first.documents.iter().enumerate() {
            let rest = second.documents.get(other..).unwrap_or_default();
            other += rest.partition_point(|candidate| candidate.place < posting.place);
            if second
                .documents
                .get(other)
                .is_none_or(|found| found.place != posting.place)
            {
                continue;
            }
            let after = second.positions(other);
            let mut before = first.positions(at).iter();
            if before.any(|position| after.binary_search(&(position + 1)).is_ok()) {
                having.push(posting.place as usize);
            }
        }
        having
    }

    fn term_id(&mut self, term: &str) -> TermId {
        if let Some(id) = self.terms.get(term) {
            return *id;
        }
        let id = count(self.texts.len());
        let text: Arc<str> = term.into();
        self.terms.insert(Arc::clone(&text), id);
        self.texts.push(text);
        self.postings.push(Postings::default());
        id
    }

    /// Returns the text of a term.
    pub(super) fn text(&self, id: TermId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    fn participant(&mut self, name: &str) -> u32 {
        let next = count(self.participants.len());
        let folded = fold_case(name);
        if let Some(known) = self.participants.get(&folded) {
            return *known;
        }
        visit_words(&folded, &mut |word| {
            let word = folded.get(word.range).unwrap_or_default();
            self.names.entry(word.to_owned()).or_insert(next);
        });
        self.participants.insert(folded, next);
        next
    }

    /// Returns the mean number of terms in an episode, at least 1.
    pub(super) fn mean_episode(&self) -> f64 {
        let sum: u64 = self.episodes.iter().sum();
        (sum as f64 / self.episodes.len().max(1) as f64).max(1.0)
    }

    /// Returns the mean number of terms in a document, at least 1.
    pub(super) fn mean_length(&self) -> f64 {
        let sum: u64 = self.episodes.iter().sum();
        (sum as f64 / self.entries.len().max(1) as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::postings::Posting;
    use super::super::question::Wanted;
    use super::*;
    use fastrand::Rng;

    /// Returns a document of few words, by one of three people, in episodes.
    fn document(rng: &mut Rng, time: &mut i64) -> Document<'static> {
        let words = (0..rng.usize(1..12)).map(|_| {
            let rank = rng.f64() * rng.f64() * 60.0;
            format!("worded{}", rank as usize)
        });
        let text = words.collect::<Vec<_>>().join(" ") + ["", " the", " I?"][rng.usize(..3)];
        *time += [60_000_000, 5_000_000_000][usize::from(rng.u8(..5) == 0)];
        Document::new(text, Timestamp(*time)).with_name(["Ann", "Ben", "Cid"][rng.usize(..3)])
    }

    fn record(document: &Document<'_>) -> Record {
        let mut alone = Corpus::new();
        alone.add(document);
        Record {
            length: alone.lengths[0],
            ..Record::of(document)
        }
    }

    /// Loads the occurrences of a term from a corpus with all words into one without words.
    fn load(corpus: &mut Corpus, term: &str, words: &Corpus) {
        let id = words.terms.get(term);
        let postings = id.map(|id| &words.postings[*id as usize]);
        let loaded = corpus.load(term, |place| {
            let Some(postings) = postings else {
                return Ok(());
            };
            for (at, posting) in postings.documents.iter().enumerate() {
                place(
                    posting.place as usize,
                    posting.count,
                    postings.positions(at),
                );
            }
            Ok(())
        });
        loaded.unwrap();
    }

    /// Returns the scores of a question if words are loaded when needed.
    fn scores(corpus: &mut Corpus, question: &str, words: &Corpus) -> Vec<Option<f64>> {
        let wanted = Wanted::new(question);
        let derived = words.terms.keys().filter(|term| wanted.needs(term));
        for term in derived
            .map(|term| &**term)
            .chain(wanted.terms.iter().map(String::as_str))
        {
            load(corpus, term, words);
        }
        let mut asked = corpus.ask(question);
        let sources = corpus.sources(&asked);
        for at in sources.iter().filter(|at| **at < words.len()) {
            if !corpus.has_content(*at) {
                let content = words.contents[at].iter();
                let content: Vec<String> = content.map(|id| words.text(*id).to_owned()).collect();
                corpus.set_content(*at, &content);
            }
        }
        for term in corpus.uncounted(&sources) {
            let having = words
                .terms
                .get(&term)
                .map_or(0, |id| words.documents(*id).len());
            corpus.set_unread(&term, having);
        }
        for term in corpus.expand(&mut asked) {
            load(corpus, &term, words);
        }
        let scores = corpus.finish(asked);
        (0..corpus.len()).map(|at| scores.get(at)).collect()
    }

    /// Only the beginning of a document of megabytes is used to expand a question. `telling_words` returns the same
    /// words that `add` keeps.
    #[test]
    fn the_telling_words_of_a_long_document_are_bounded() {
        let mut text: String = (0..3 * MOST_TELLING_WORDS)
            .map(|n| format!("w{n}, the "))
            .collect();
        text.insert_str((1 << 16) - 3, "é数据库数据库");
        let mut document = Document::new(text, Timestamp(0));
        document.texts.insert(0, "x".repeat(1 << 17).into());
        let mut corpus = Corpus::new();
        corpus.add(&document);
        let told = document.telling_words();
        assert_eq!(told.len(), MOST_TELLING_WORDS);
        let kept = corpus.contents[&0].iter().map(|id| corpus.text(*id));
        assert!(kept.eq(told.iter().map(String::as_str)));
        assert_eq!(told[1], "w0");
    }

    /// Words that are kept between questions do not change the scores: they are the same as in a corpus with all words.
    #[test]
    fn what_is_kept_answers_as_a_corpus_with_all_words() {
        for seed in 0..40 {
            let rng = &mut Rng::with_seed(seed);
            let mut words = Corpus::new();
            let mut kept = Corpus::new();
            let (mut time, mut indexed, mut behind) = (0, Vec::new(), Vec::new());
            for _ in 0..rng.usize(1..90) {
                let document = document(rng, &mut time);
                kept.add_record(&record(&document));
                words.add(&document);
                indexed.push(document);
            }
            let mut later = time - 30_000_000;
            for _ in 0..8 {
                let mut all = Corpus::new();
                indexed.iter().for_each(|document| all.add(document));
                for _ in 0..rng.usize(..20) {
                    let document = document(rng, &mut later);
                    kept.add(&document);
                    behind.push((document, later));
                }
                behind.iter().for_each(|(document, _)| all.add(document));
                let word = |rng: &mut Rng| format!("worded{}", rng.usize(..40));
                let question = [word(rng), word(rng), "Ann".into()].join(" ");
                let found = scores(&mut kept, &question, &words);
                assert_eq!(found, all.scores(&question), "{seed}, {question}");
                behind.truncate(rng.usize(..30));
                let length = words.len() + behind.len();
                kept.reset(length);
                assert_eq!(kept.len(), length);
                later = behind.last().map_or(time - 30_000_000, |(_, at)| *at);
                let is_behind = |one: &Posting| one.place as usize >= length;
                let mut postings = kept.postings.iter();
                assert!(!postings.any(|one| one.documents.iter().any(is_behind)));
            }
        }
    }
}
