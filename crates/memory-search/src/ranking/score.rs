//! The scores of documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::corpus::{Corpus, Entry, Posting, TermId};
use super::dates::Nearness;
use super::question::Question;

/// Terms that are added to a document's length when words are taken from it for expansion, so that a
/// very short one does not count for more than others.
const EXPANSION_LENGTH: f64 = 5.0;

/// A document and how well it answers a question.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ranked {
    /// The document's number.
    pub document: usize,
    /// The score; higher is better. Scores of different questions cannot be compared.
    pub score: f64,
}

/// A question under way.
#[derive(Debug)]
pub struct Asked {
    question: Question,
    found: Vec<bool>,
    scores: Vec<f64>,
}

/// Rarity of a term that `having` of `all` places have: `ln(1 + (N - n + 0.5) / (n + 0.5))`, as BM25
/// has it, without negative values (Robertson and Zaragoza, "The Probabilistic Relevance Framework").
pub(super) fn rarity(all: usize, having: usize) -> f64 {
    let (all, having) = (all as f64, having as f64);
    ((all - having + 0.5) / (having + 0.5)).ln_1p()
}

impl Corpus {
    /// Returns the documents that a question finds, best first; of equal ones the earlier first.
    ///
    /// A document is found when it has a word of the question. Where the policy gives it a share of its
    /// neighbours' scores, it is also found when such a neighbour in the same episode has one; where
    /// days in the question count, also when it is of such a day.
    pub fn rank(&self, question: &str) -> Vec<Ranked> {
        let scored = self.scores(question);
        let mut ranked: Vec<Ranked> = scored
            .into_iter()
            .enumerate()
            .filter_map(|(document, score)| score.map(|score| Ranked { document, score }))
            .collect();
        ranked.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(a.document.cmp(&b.document))
        });
        ranked
    }

    /// Returns the score of each document; `None` for one that the question does not find.
    pub fn scores(&self, question: &str) -> Vec<Option<f64>> {
        let mut asked = self.ask(question);
        self.expand(&mut asked);
        self.finish(asked)
    }

    /// Ranks by a question's own words. Where not all words are [loaded](Self::load), those that
    /// [`Wanted`](super::Wanted) names must be.
    pub fn ask(&self, question: &str) -> Asked {
        let question = Question::read(self, question);
        let found = self.found(&question);
        let scores = self.context_scores(&question);
        Asked {
            question,
            found,
            scores,
        }
    }

    /// The documents that [`expand`](Self::expand) takes words from, best first: their words must be
    /// known.
    pub fn sources(&self, asked: &Asked) -> Vec<usize> {
        let best = self.best(&asked.scores, self.policy.expansion_messages);
        match best.first() {
            Some((_, top)) if *top > 0.0 && self.policy.expansion_weight > 0.0 => {
                best.into_iter().map(|(at, _)| at).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The distinct words of a document whose words are known.
    pub fn words_of(&self, document: usize) -> impl Iterator<Item = &str> {
        let number = u32::try_from(document).unwrap_or(u32::MAX);
        let content = self.contents.get(&number).map_or(&[][..], Vec::as_slice);
        let distinct: std::collections::BTreeSet<&str> =
            content.iter().map(|id| self.text(*id)).collect();
        distinct.into_iter()
    }

    /// Adds to a question the words that its best documents have in common, and returns them.
    pub fn expand(&self, asked: &mut Asked) -> Vec<Arc<str>> {
        if self.policy.expansion_weight <= 0.0 {
            return Vec::new();
        }
        self.add_common_words(&mut asked.question, &asked.scores)
    }

    /// Returns the score of each document; `None` for one that the question does not find.
    pub fn finish(&self, asked: Asked) -> Vec<Option<f64>> {
        let scores = match asked.question.is_expanded {
            true => self.context_scores(&asked.question),
            false => asked.scores,
        };
        let scores = asked.found.iter().zip(scores);
        scores
            .map(|(found, score)| found.then_some(score))
            .collect()
    }

    /// The documents with the best scores, best first; of equal ones the earlier first.
    fn best(&self, scores: &[f64], count: usize) -> Vec<(usize, f64)> {
        let mut best: Vec<(usize, f64)> = scores.iter().copied().enumerate().collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if count > 0 && count < best.len() {
            best.select_nth_unstable_by(count - 1, order);
        }
        best.truncate(count);
        best.sort_by(order);
        best
    }

    /// Whether each document is found.
    fn found(&self, question: &Question) -> Vec<bool> {
        let mut own = vec![false; self.entries.len()];
        for posting in question.own.iter().flat_map(|id| self.documents(*id)) {
            if let Some(own) = own.get_mut(posting.place as usize) {
                *own = true;
            }
        }
        let shares = self.shares();
        let found = |at: usize| {
            own.get(at) == Some(&true)
                || shares.iter().any(|(offset, share)| {
                    let neighbour = self.neighbour(at, *offset);
                    *share > 0.0 && neighbour.is_some_and(|at| own.get(at) == Some(&true))
                })
                || self
                    .entries
                    .get(at)
                    .is_some_and(|entry| self.is_of_day(question, entry))
        };
        (0..own.len()).map(found).collect()
    }

    fn is_of_day(&self, question: &Question, entry: &Entry) -> bool {
        let mut dates = question.dates.iter();
        self.policy.day_share > 0.0
            && dates.any(|date| date.nearness(entry.created_at) == Some(Nearness::Day))
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

    /// Where neighbours stand, and the share of their scores that counts.
    fn shares(&self) -> [(isize, f64); 3] {
        [
            (-1, self.policy.previous_share),
            (-2, self.policy.second_previous_share),
            (1, self.policy.next_share),
        ]
    }

    /// Returns a document's neighbour in the same episode.
    fn neighbour(&self, at: usize, offset: isize) -> Option<usize> {
        let neighbour = at.checked_add_signed(offset)?;
        let same = self.entries.get(at)?.episode == self.entries.get(neighbour)?.episode;
        same.then_some(neighbour)
    }

    /// BM25's saturation of `count` occurrences in a text of `length` terms, where `mean` is usual.
    pub(super) fn saturation(&self, count: u32, length: f64, mean: f64) -> f64 {
        let (k1, b, count) = (self.policy.k1, self.policy.b, f64::from(count));
        count * (k1 + 1.0) / (count + k1 * (1.0 - b + b * length / mean))
    }

    /// The documents' own scores: BM25, phrases, coverage.
    fn own_scores(&self, question: &Question) -> Vec<f64> {
        let (all, mean) = (self.entries.len(), self.mean_length());
        let mut scores = vec![0.0; all];
        let mut covered = vec![0_u32; all];
        for (id, weight) in question.terms.values() {
            let postings = self.documents(*id);
            let rarity = rarity(all, postings.len()).powf(self.policy.rarity_power) * weight;
            let is_telling = question.telling.contains(id);
            for posting in postings {
                let at = posting.place as usize;
                let length = self.entries.get(at).map_or(0, |entry| entry.length);
                if let Some(score) = scores.get_mut(at) {
                    *score += rarity * self.saturation(posting.count, f64::from(length), mean);
                }
                if let Some(covered) = covered.get_mut(at) {
                    *covered += u32::from(is_telling);
                }
            }
        }
        if self.policy.phrase_share > 0.0 {
            self.add_phrases(question, &mut scores);
        }
        let words = question.telling_count.max(1) as f64;
        for (score, covered) in scores.iter_mut().zip(covered) {
            *score *= 1.0 + self.policy.coverage_share * f64::from(covered) / words;
        }
        scores
    }

    fn add_phrases(&self, question: &Question, scores: &mut [f64]) {
        for (first, second) in &question.pairs {
            let having = self.documents_with_pair(*first, *second);
            let bonus = self.policy.phrase_share * rarity(self.entries.len(), having.len());
            for at in having {
                if let Some(score) = scores.get_mut(at) {
                    *score += bonus;
                }
            }
        }
    }

    /// The scores of episodes: BM25 over episodes.
    fn episode_scores(&self, question: &Question) -> Vec<f64> {
        let all = self.episodes.len();
        let sum: u64 = self.episodes.iter().sum();
        let mean = (sum as f64 / all.max(1) as f64).max(1.0);
        let mut scores = vec![0.0; all];
        for (id, weight) in question.terms.values() {
            let postings = self.postings.get(*id as usize);
            let postings = postings.map_or(&[][..], |postings| &postings.episodes);
            let rarity = rarity(all, postings.len()) * weight;
            for posting in postings {
                let at = posting.place as usize;
                let length = self.episodes.get(at).copied().unwrap_or_default();
                if let Some(score) = scores.get_mut(at) {
                    *score += rarity * self.saturation(posting.count, length as f64, mean);
                }
            }
        }
        scores
    }

    /// The scores of documents in their context.
    fn context_scores(&self, question: &Question) -> Vec<f64> {
        let own = self.own_scores(question);
        let episodes = match self.policy.episode_share > 0.0 {
            true => self.episode_scores(question),
            false => Vec::new(),
        };
        let best = own.iter().copied().fold(0.0, f64::max);
        let entries = self.entries.iter().enumerate();
        entries
            .map(|(at, entry)| {
                let own_score = own.get(at).copied().unwrap_or_default();
                let episode = episodes.get(entry.episode as usize).copied();
                let leaning = self.leaning(entry);
                let discount = self.policy.question_discount * entry.question_share;
                let mut score = own_score * (1.0 - leaning * discount)
                    + leaning * self.neighbours_share(&own, at)
                    + self.policy.episode_share * episode.unwrap_or_default();
                if question.asks_time && entry.names_time {
                    score *= 1.0 + self.policy.time_word_share;
                }
                if entry.first_person {
                    score *= 1.0 + self.policy.first_person_share;
                }
                score += best * self.date_share(question, entry);
                score *= self.participant_factor(question, entry);
                let newness = (at + 1) as f64 / self.entries.len() as f64;
                score * (1.0 + self.policy.recency_share * newness)
            })
            .collect()
    }

    /// How much a document depends on what stands beside it, from 1 to 0.
    fn leaning(&self, entry: &Entry) -> f64 {
        let half = f64::from(self.policy.self_contained_words.max(1));
        half / (half + f64::from(entry.length))
    }

    fn neighbours_share(&self, own: &[f64], at: usize) -> f64 {
        let mut sum = 0.0;
        for (offset, share) in self.shares() {
            let Some(neighbour) = self.neighbour(at, offset) else {
                continue;
            };
            let asks = self.entries.get(neighbour).is_some_and(|entry| entry.asks);
            let bonus = match offset {
                -1 if asks => self.policy.answer_bonus,
                _ => 0.0,
            };
            sum += share * (1.0 + bonus) * own.get(neighbour).copied().unwrap_or_default();
        }
        sum
    }

    /// The share of the best score that an entry gets for the dates in the question.
    fn date_share(&self, question: &Question, entry: &Entry) -> f64 {
        let (day, month) = (self.policy.day_share, self.policy.month_share);
        let share = |nearness| match nearness {
            Nearness::Day => day,
            Nearness::Week => day / 2.0,
            Nearness::Month => month,
            Nearness::Year => month / 2.0,
        };
        let dates = question.dates.iter();
        dates
            .filter_map(|date| date.nearness(entry.created_at))
            .map(share)
            .sum()
    }

    fn participant_factor(&self, question: &Question, entry: &Entry) -> f64 {
        let factor = match question.participants.as_slice() {
            [only] if entry.participant == Some(*only) => self.policy.participant_factor,
            [first, _, ..] if entry.participant == Some(*first) => {
                self.policy.first_participant_factor
            }
            _ => 1.0,
        };
        match question.first_person && entry.is_users {
            true => factor * self.policy.asker_factor,
            false => factor,
        }
    }

    /// Adds to the question the words that its best documents have in common, and returns them.
    fn add_common_words(&self, question: &mut Question, scores: &[f64]) -> Vec<Arc<str>> {
        let best = self.best(scores, self.policy.expansion_messages);
        let top = best.first().map_or(0.0, |best| best.1);
        if top <= 0.0 {
            return Vec::new();
        }
        let mut gains: BTreeMap<TermId, f64> = BTreeMap::new();
        for (at, score) in best {
            let Some(entry) = self.entries.get(at) else {
                continue;
            };
            let share = score / top / (f64::from(entry.length) + EXPANSION_LENGTH);
            let mut counts: BTreeMap<TermId, u32> = BTreeMap::new();
            let number = u32::try_from(at).unwrap_or(u32::MAX);
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
        gains.truncate(self.policy.expansion_words);
        let most = gains.first().map_or(0.0, |gain| gain.1);
        let mut added = Vec::new();
        for (id, gain) in &gains {
            let weight = self.policy.expansion_weight * gain / most;
            if let Some(text) = self.texts.get(*id as usize) {
                question.terms.insert(Arc::clone(text), (*id, weight));
                added.push(Arc::clone(text));
            }
        }
        question.is_expanded = most > 0.0;
        match question.is_expanded {
            true => added,
            false => Vec::new(),
        }
    }
}
