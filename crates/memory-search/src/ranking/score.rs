//! The scores of documents.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::corpus::{Corpus, Entry, Posting, TermId};
use super::dates::Nearness;
use super::question::Question;
use super::weights::*;

/// Terms that are added to a document's length when words are taken from it for expansion, so that a
/// very short one does not count for more than others.
const EXPANSION_LENGTH: f64 = 5.0;

/// Where neighbours stand, and the share of their scores that counts.
const SHARES: [(isize, f64); 3] = [
    (-1, PREVIOUS_SHARE),
    (-2, SECOND_PREVIOUS_SHARE),
    (1, NEXT_SHARE),
];

/// A question under way.
#[derive(Debug)]
pub(crate) struct Asked {
    question: Question,
    /// Whether each document has a word of the question itself.
    has_word: Vec<bool>,
    context: Context,
    /// The best documents by the question's own words, which words are taken from, with their scores.
    sources: Vec<(usize, f64)>,
}

/// What the score of each document is made of.
#[derive(Debug)]
pub(super) struct Context {
    /// The documents' own scores: BM25, phrases, coverage.
    pub(super) own: Vec<f64>,
    /// How many telling words of the question each document has.
    covered: Vec<u16>,
    saturation: Saturation,
    episode_saturation: Saturation,
    /// The highest own score; 0 where the question has no dates.
    pub(super) best: f64,
    /// The episodes' scores.
    pub(super) episodes: Vec<f64>,
}

impl Context {
    fn set_best(&mut self, question: &Question) {
        if question.dates.is_empty() {
            return;
        }
        self.best = self.own.iter().copied().fold(0.0, f64::max);
    }
}

/// What a term does to the coverage of documents.
#[derive(Debug, Clone, Copy)]
enum Coverage {
    /// It is one more telling word that they have.
    Counted,
    /// Nothing.
    Kept,
    /// Nothing, and scores have it already, this share for each word.
    Applied(f64),
}

/// What an own score is multiplied by for the telling words that a document has.
fn coverage_factor(share: f64, covered: Option<&u16>) -> f64 {
    1.0 + share * covered.copied().map_or(0.0, f64::from)
}

/// The share of a document's own score that it gets for each telling word of the question.
fn coverage_share(question: &Question) -> f64 {
    COVERAGE_SHARE / question.telling_count.max(1) as f64
}

/// BM25's saturation: what occurrences count, in a text of some length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saturation {
    most: f64,
    least: f64,
    slope: f64,
}

impl Saturation {
    /// For `count` occurrences in a text of `length` terms.
    pub(super) fn of(self, count: u32, length: f64) -> f64 {
        let count = f64::from(count);
        count * self.most / (count + self.least + self.slope * length)
    }
}

/// The order of documents with their scores: best first; of equal ones the earlier first.
fn better(a: &(usize, f64), b: &(usize, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// Rarity of a term that `having` of `all` places have: `ln(1 + (N - n + 0.5) / (n + 0.5))`, as BM25
/// has it, without negative values (Robertson and Zaragoza, "The Probabilistic Relevance Framework").
pub(super) fn rarity(all: usize, having: usize) -> f64 {
    let (all, having) = (all as f64, having as f64);
    ((all - having + 0.5) / (having + 0.5)).ln_1p()
}

impl Corpus {
    /// Ranks by a question's own words. Where not all words are [loaded](Self::load), those that
    /// [`Wanted`](super::Wanted) names must be.
    pub(crate) fn ask(&self, question: &str) -> Asked {
        let question = Question::read(self, question);
        let mut has_word = vec![false; self.entries.len()];
        for posting in question.own.iter().flat_map(|id| self.documents(*id)) {
            if let Some(has_word) = has_word.get_mut(posting.place as usize) {
                *has_word = true;
            }
        }
        let context = self.context(&question);
        Asked {
            sources: self.best_sources(&question, &context),
            question,
            has_word,
            context,
        }
    }

    fn best_sources(&self, question: &Question, context: &Context) -> Vec<(usize, f64)> {
        let entries = self.entries.iter().enumerate();
        let score = |(at, entry)| (at, self.context_score(question, context, at, entry));
        let mut best: Vec<(usize, f64)> = entries.map(score).collect();
        if best.len() > EXPANSION_MESSAGES {
            best.select_nth_unstable_by(EXPANSION_MESSAGES, better);
            best.truncate(EXPANSION_MESSAGES);
        }
        best.sort_unstable_by(better);
        match best.first() {
            Some((_, score)) if *score > 0.0 => best,
            _ => Vec::new(),
        }
    }

    /// The documents that [`expand`](Self::expand) takes words from, best first: their words must be
    /// known.
    pub(crate) fn sources(&self, asked: &Asked) -> Vec<usize> {
        asked
            .sources
            .iter()
            .map(|(document, _)| *document)
            .collect()
    }

    /// Adds to a question the words that its best documents have in common, and returns them.
    pub(crate) fn expand(&self, asked: &mut Asked) -> Vec<Arc<str>> {
        self.add_common_words(&mut asked.question, &asked.sources)
    }

    /// The score of each document; `None` for one that the question does not find: it is found when it has a word of the
    /// question, when a neighbour in the same episode has one, and when it is of a day in the question. All words of the
    /// question must be [loaded](Self::load).
    pub(crate) fn finish(&self, mut asked: Asked) -> Vec<Option<f64>> {
        self.add_expansion(&asked.question, &mut asked.context);
        let (question, context) = (&asked.question, &asked.context);
        let score = |(at, entry)| {
            let is_found = self.is_found(question, &asked.has_word, at, entry);
            is_found.then(|| self.context_score(question, context, at, entry))
        };
        self.entries.iter().enumerate().map(score).collect()
    }

    /// Whether a document is found.
    fn is_found(&self, question: &Question, has_word: &[bool], at: usize, entry: &Entry) -> bool {
        has_word.get(at) == Some(&true)
            || SHARES.iter().any(|(offset, _)| {
                let neighbour = self.neighbour(at, *offset);
                neighbour.is_some_and(|at| has_word.get(at) == Some(&true))
            })
            || self.is_of_day(question, entry)
    }

    fn is_of_day(&self, question: &Question, entry: &Entry) -> bool {
        let mut dates = question.dates.iter();
        dates.any(|date| date.nearness(entry.created_at) == Some(Nearness::Day))
    }

    /// Number of documents that have a term.
    fn document_count(&self, id: TermId) -> usize {
        self.postings
            .get(id as usize)
            .map_or(0, |postings| postings.count())
    }

    pub(super) fn documents(&self, id: TermId) -> &[Posting] {
        let postings = self.postings.get(id as usize);
        postings.map_or(&[], |postings| &postings.documents)
    }

    /// Returns a document's neighbour in the same episode.
    fn neighbour(&self, at: usize, offset: isize) -> Option<usize> {
        let neighbour = at.checked_add_signed(offset)?;
        let same = self.entries.get(at)?.episode == self.entries.get(neighbour)?.episode;
        same.then_some(neighbour)
    }

    /// Number of terms of a document.
    fn length(&self, at: usize) -> u32 {
        self.lengths.get(at).copied().unwrap_or_default()
    }

    /// BM25's saturation in texts where `mean` terms are usual.
    pub(super) fn saturation(&self, mean: f64) -> Saturation {
        Saturation {
            most: K1 + 1.0,
            least: K1 * (1.0 - B),
            slope: K1 * B / mean,
        }
    }

    /// What a term of a question is worth, by its rarity and its weight in the question.
    pub(super) fn weight(&self, id: TermId, weight: f64) -> f64 {
        let rarity = rarity(self.entries.len(), self.documents(id).len());
        rarity.powf(RARITY_POWER) * weight
    }

    /// Adds what a term is worth to the own scores of the documents that have it.
    fn add_term(&self, (id, weight): (TermId, f64), context: &mut Context, coverage: Coverage) {
        let weight = self.weight(id, weight);
        let saturation = context.saturation;
        for posting in self.documents(id) {
            let at = posting.place as usize;
            let length = self.length(at);
            let Some(score) = context.own.get_mut(at) else {
                continue;
            };
            let mut added = weight * saturation.of(posting.count, f64::from(length));
            match coverage {
                Coverage::Counted => {
                    if let Some(covered) = context.covered.get_mut(at) {
                        *covered = covered.saturating_add(1);
                    }
                }
                Coverage::Kept => {}
                Coverage::Applied(share) => {
                    added *= coverage_factor(share, context.covered.get(at));
                }
            }
            *score += added;
        }
    }

    fn add_phrases(&self, question: &Question, scores: &mut [f64]) {
        for (first, second) in &question.pairs {
            let having = self.documents_with_pair(*first, *second);
            let bonus = PHRASE_SHARE * rarity(self.entries.len(), having.len());
            for at in having {
                if let Some(score) = scores.get_mut(at) {
                    *score += bonus;
                }
            }
        }
    }

    /// Adds what a term is worth to the scores of the episodes that have it: BM25 over episodes.
    fn add_to_episodes(&self, (id, weight): (TermId, f64), context: &mut Context) {
        let all = self.episodes.len();
        let postings = self.postings.get(id as usize);
        let postings = postings.map_or(&[][..], |postings| &postings.episodes);
        let weight = rarity(all, postings.len()) * weight;
        for posting in postings {
            let at = posting.place as usize;
            let length = self.episodes.get(at).copied().unwrap_or_default();
            if let Some(score) = context.episodes.get_mut(at) {
                let saturation = context.episode_saturation;
                *score += weight * saturation.of(posting.count, length as f64);
            }
        }
    }

    fn context(&self, question: &Question) -> Context {
        let mut context = Context {
            own: vec![0.0; self.entries.len()],
            covered: vec![0; self.entries.len()],
            saturation: self.saturation(self.mean_length()),
            episode_saturation: self.saturation(self.mean_episode()),
            best: 0.0,
            episodes: vec![0.0; self.episodes.len()],
        };
        for term in question.terms.values() {
            let coverage = match question.telling.contains(&term.0) {
                true => Coverage::Counted,
                false => Coverage::Kept,
            };
            self.add_term(*term, &mut context, coverage);
            self.add_to_episodes(*term, &mut context);
        }
        self.add_phrases(question, &mut context.own);
        let share = coverage_share(question);
        for (score, covered) in context.own.iter_mut().zip(&context.covered) {
            *score *= coverage_factor(share, Some(covered));
        }
        context.set_best(question);
        context
    }

    /// Adds the words that were added to a question.
    fn add_expansion(&self, question: &Question, context: &mut Context) {
        if question.added.is_empty() {
            return;
        }
        let coverage = Coverage::Applied(coverage_share(question));
        for term in &question.added {
            self.add_term(*term, context, coverage);
            self.add_to_episodes(*term, context);
        }
        context.set_best(question);
    }

    /// The score of a document in its context.
    fn context_score(
        &self,
        question: &Question,
        context: &Context,
        at: usize,
        entry: &Entry,
    ) -> f64 {
        let own_score = context.own.get(at).copied().unwrap_or_default();
        let episode = context.episodes.get(entry.episode as usize).copied();
        let leaning = self.leaning(at);
        let discount = QUESTION_DISCOUNT * entry.question_share;
        let mut score = own_score * (1.0 - leaning * discount)
            + leaning * self.neighbours_share(&context.own, at)
            + EPISODE_SHARE * episode.unwrap_or_default();
        if question.asks_time && entry.names_time {
            score *= 1.0 + TIME_WORD_SHARE;
        }
        if entry.first_person {
            score *= 1.0 + FIRST_PERSON_SHARE;
        }
        score += context.best * self.date_share(question, entry);
        score *= self.participant_factor(question, entry);
        let newness = (at + 1) as f64 / self.entries.len() as f64;
        score * (1.0 + RECENCY_SHARE * newness)
    }

    /// How much a document depends on what stands beside it, from 1 to 0.
    fn leaning(&self, at: usize) -> f64 {
        SELF_CONTAINED_WORDS / (SELF_CONTAINED_WORDS + f64::from(self.length(at)))
    }

    fn neighbours_share(&self, own: &[f64], at: usize) -> f64 {
        let mut sum = 0.0;
        for (offset, share) in SHARES {
            let Some(neighbour) = self.neighbour(at, offset) else {
                continue;
            };
            let asks = self.entries.get(neighbour).is_some_and(|entry| entry.asks);
            let bonus = match offset {
                -1 if asks => ANSWER_BONUS,
                _ => 0.0,
            };
            sum += share * (1.0 + bonus) * own.get(neighbour).copied().unwrap_or_default();
        }
        sum
    }

    /// The share of the best score that an entry gets for the dates in the question.
    fn date_share(&self, question: &Question, entry: &Entry) -> f64 {
        let share = |nearness| match nearness {
            Nearness::Day => DAY_SHARE,
            Nearness::Week => DAY_SHARE / 2.0,
            Nearness::Month => MONTH_SHARE,
            Nearness::Year => MONTH_SHARE / 2.0,
        };
        let dates = question.dates.iter();
        dates
            .filter_map(|date| date.nearness(entry.created_at))
            .map(share)
            .sum()
    }

    fn participant_factor(&self, question: &Question, entry: &Entry) -> f64 {
        let factor = match question.participants.as_slice() {
            [only] if entry.participant == Some(*only) => PARTICIPANT_FACTOR,
            [first, _, ..] if entry.participant == Some(*first) => FIRST_PARTICIPANT_FACTOR,
            _ => 1.0,
        };
        match question.first_person && entry.is_users {
            true => factor * ASKER_FACTOR,
            false => factor,
        }
    }

    /// Adds to the question the words that its best documents have in common, and returns them.
    fn add_common_words(&self, question: &mut Question, best: &[(usize, f64)]) -> Vec<Arc<str>> {
        let top = best.first().map_or(0.0, |best| best.1);
        let mut gains: BTreeMap<TermId, f64> = BTreeMap::new();
        for (document, score) in best {
            let length = f64::from(self.length(*document));
            let share = score / top / (length + EXPANSION_LENGTH);
            let mut counts: BTreeMap<TermId, u32> = BTreeMap::new();
            let number = u32::try_from(*document).unwrap_or(u32::MAX);
            for id in self.contents.get(&number).into_iter().flatten() {
                *counts.entry(*id).or_default() += 1;
            }
            for (id, count) in counts {
                let rarity = rarity(self.entries.len(), self.document_count(id));
                *gains.entry(id).or_default() += share * f64::from(count.min(2)) * rarity;
            }
        }
        let names = self.names.keys();
        for id in names.filter_map(|name| self.terms.get(name.as_str())) {
            gains.remove(id);
        }
        let mut gains: Vec<(TermId, f64)> = gains
            .into_iter()
            .filter(|(id, _)| !question.terms.contains_key(self.text(*id)))
            .collect();
        gains.sort_by(|a, b| {
            let texts = || self.text(a.0).cmp(self.text(b.0));
            b.1.total_cmp(&a.1).then_with(texts)
        });
        gains.truncate(EXPANSION_WORDS);
        let most = gains.first().map_or(0.0, |gain| gain.1);
        if most <= 0.0 {
            return Vec::new();
        }
        let mut added = Vec::new();
        for (id, gain) in &gains {
            let weight = EXPANSION_WEIGHT * gain / most;
            if let Some(text) = self.texts.get(*id as usize) {
                question.added.push((*id, weight));
                added.push(Arc::clone(text));
            }
        }
        added
    }
}

#[cfg(test)]
impl Corpus {
    /// The score of each document; `None` for one that the question does not find.
    pub(super) fn scores(&self, question: &str) -> Vec<Option<f64>> {
        let mut asked = self.ask(question);
        self.expand(&mut asked);
        self.finish(asked)
    }
}
