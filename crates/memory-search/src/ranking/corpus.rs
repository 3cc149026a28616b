//! The words of a conversation and where they stand: the postings that are ranked.

use std::collections::BTreeMap;

use memory_model::{Role, Timestamp};

use super::document::Document;
use super::policy::RankingPolicy;
use crate::fold::fold_case;
use crate::words::{Language, Tokenizer, WordLists, visit_words};

/// Number of a term in a corpus.
pub(super) type TermId = u32;

/// A document, or an episode, that has a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    /// Number of the document or episode.
    pub(super) place: u32,
    /// How often it has the term.
    pub(super) count: u32,
}

/// Where one term stands.
#[derive(Debug, Default)]
pub(super) struct Postings {
    pub(super) documents: Vec<Posting>,
    pub(super) episodes: Vec<Posting>,
}

/// What is kept of a document.
#[derive(Debug)]
pub(super) struct Entry {
    /// Number of terms.
    pub(super) length: u32,
    /// Number of the participant.
    pub(super) participant: Option<u32>,
    /// Whether a user wrote it.
    pub(super) is_users: bool,
    pub(super) created_at: Timestamp,
    /// Number of the episode.
    pub(super) episode: u32,
    /// Its terms in their order, without stop words.
    pub(super) content: Vec<TermId>,
    pub(super) question_share: f64,
    pub(super) asks: bool,
    pub(super) first_person: bool,
    pub(super) names_time: bool,
}

/// The words of a conversation's messages, or of its summaries, in memory.
///
/// Documents are numbered from 0 in the order in which they are added, which is the order of the log.
#[derive(Debug)]
pub struct Corpus {
    pub(super) policy: RankingPolicy,
    pub(super) terms: BTreeMap<String, TermId>,
    pub(super) postings: Vec<Postings>,
    pub(super) entries: Vec<Entry>,
    /// Number of terms of each episode.
    pub(super) episodes: Vec<u64>,
    /// From each word of a name, folded, to the participant's number.
    pub(super) names: BTreeMap<String, u32>,
    participants: BTreeMap<String, u32>,
}

impl Corpus {
    /// An empty corpus, ranked by `policy`.
    pub fn new(policy: RankingPolicy) -> Self {
        Self {
            policy,
            terms: BTreeMap::new(),
            postings: Vec::new(),
            entries: Vec::new(),
            episodes: Vec::new(),
            names: BTreeMap::new(),
            participants: BTreeMap::new(),
        }
    }

    /// Number of documents.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a document. Its number is the corpus' length before.
    pub fn add(&mut self, document: &Document<'_>) {
        let episode = self.episode_of(document.created_at);
        let place = count(self.entries.len());
        let tokenizer = self.policy.tokenizer();
        let (mut length, mut content) = (0, Vec::new());
        for text in &document.texts {
            tokenizer.visit_text(text, &mut |range, term| {
                length += 1;
                let id = self.term_id(term);
                let word = text.get(range).unwrap_or_default();
                if !is_stop_word(word, tokenizer) {
                    content.push(id);
                }
                let Some(postings) = self.postings.get_mut(id as usize) else {
                    return;
                };
                raise(&mut postings.documents, place);
                raise(&mut postings.episodes, episode);
            });
        }
        if let Some(sum) = self.episodes.get_mut(episode as usize) {
            *sum += u64::from(length);
        }
        let participant = document.name.map(|name| self.participant(name));
        let (first_person, names_time) = document.traits(self.policy.language);
        self.entries.push(Entry {
            length,
            participant,
            is_users: document.role == Some(Role::User),
            created_at: document.created_at,
            episode,
            content,
            question_share: document.question_share(),
            asks: document.asks(),
            first_person,
            names_time,
        });
    }

    /// Returns the number of the episode that a message of this time belongs to.
    fn episode_of(&mut self, time: Timestamp) -> u32 {
        let gap = i64::from(self.policy.episode_gap_seconds).saturating_mul(1_000_000);
        let begins = match self.entries.last() {
            Some(last) => time.0.saturating_sub(last.created_at.0) > gap,
            None => true,
        };
        if begins {
            self.episodes.push(0);
        }
        count(self.episodes.len().saturating_sub(1))
    }

    fn term_id(&mut self, term: String) -> TermId {
        let next = count(self.terms.len());
        let id = *self.terms.entry(term).or_insert(next);
        if id == next {
            self.postings.push(Postings::default());
        }
        id
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

    /// Mean number of terms of a document.
    pub(super) fn mean_length(&self) -> f64 {
        let sum: u64 = self.episodes.iter().sum();
        (sum as f64 / self.entries.len().max(1) as f64).max(1.0)
    }
}

/// Counts one more occurrence at a place; places come in rising order.
fn raise(postings: &mut Vec<Posting>, place: u32) {
    match postings.last_mut() {
        Some(last) if last.place == place => last.count += 1,
        _ => postings.push(Posting { place, count: 1 }),
    }
}

/// Whether a word, as it stands in a text, says nothing about the text's subject.
pub(super) fn is_stop_word(word: &str, tokenizer: Tokenizer) -> bool {
    let folded = fold_case(word);
    let language = Language::of_word(&folded, tokenizer.latin);
    language.is_some_and(|language| WordLists::of(language).stop.contains(folded.as_str()))
}

/// A number of documents, terms or episodes; four thousand million are never reached in memory.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
