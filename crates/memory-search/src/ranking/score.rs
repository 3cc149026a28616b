//! The scores of documents.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::block::{BLOCK, Entry, documents};
use super::corpus::Corpus;
use super::dates::Nearness;
use super::postings::{Posting, TermId};
use super::question::Question;
use super::weights::*;

/// Number that is added to a document's length when words are taken from it to expand a question, so that very short
/// documents do not count for more than others.
const EXPANSION_LENGTH: f64 = 5.0;

/// Offset of each neighbour of a document, and the share of the neighbour's score that is added to the document's.
const SHARES: [(isize, f64); 3] = [
    (-1, PREVIOUS_SHARE),
    (-2, SECOND_PREVIOUS_SHARE),
    (1, NEXT_SHARE),
];

/// A document with its score for a question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    /// Number of the ranked document.
    pub document: usize,
    /// Score of the document. A higher score is a better answer. Scores for different questions are not comparable.
    pub score: f64,
}

/// The document with the higher score is greater. Of equal scores, the earlier document is greater.
impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then(other.document.cmp(&self.document))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// A question that is being answered.
#[derive(Debug)]
pub(crate) struct Asked {
    question: Question,
    /// Whether each document contains a word of the question itself.
    has_word: Vec<bool>,
    /// For each [block](super::block::BLOCK) of neighbouring documents, whether the question may find one of its
    /// documents.
    findable: Vec<bool>,
    context: Context,
    /// The best documents by the question's own words. Their common words are added to the question.
    sources: Vec<Ranked>,
}

/// The parts of the scores of all documents.
#[derive(Debug)]
pub(super) struct Context {
    /// Own score of each document: BM25, phrases and coverage.
    pub(super) own: Vec<f64>,
    /// For each document, the number of the question's subject words that it contains.
    covered: Vec<u16>,
    saturation: Saturation,
    episode_saturation: Saturation,
    /// Highest value in `own`. It is only computed for a question with dates, and is 0 for any other question.
    pub(super) best: f64,
    /// For each [block](super::block::BLOCK) of neighbouring documents, whether any of its documents has an own score.
    pub(super) touched: Vec<bool>,
    /// Score of each episode.
    pub(super) episodes: Vec<f64>,
}

impl Context {
    fn set_best(&mut self, question: &Question) {
        if question.dates.is_empty() {
            return;
        }
        let blocks = self.touched.iter().enumerate();
        let blocks = blocks.filter(|(_, touched)| **touched);
        let scores = blocks.flat_map(|(block, _)| {
            let range = documents(block, self.own.len());
            self.own.get(range).unwrap_or_default()
        });
        self.best = scores.copied().fold(0.0, f64::max);
    }
}

/// Effect of a term on the coverage, the number of the question's subject words in a document.
#[derive(Debug, Clone, Copy)]
enum Coverage {
    /// The term is a subject word: the coverage of its documents increases by one.
    Counted,
    /// The term does not change the coverage.
    Kept,
    /// The term does not change the coverage, and own scores already contain the coverage factor with this share for
    /// each word.
    Applied(f64),
}

/// Returns the factor of an own score for the number of subject words in the document.
fn coverage_factor(share: f64, covered: Option<&u16>) -> f64 {
    1.0 + share * covered.copied().map_or(0.0, f64::from)
}

/// Returns the share of a document's own score that is added for each subject word of the question.
fn coverage_share(question: &Question) -> f64 {
    COVERAGE_SHARE / question.telling_count.max(1) as f64
}

/// Saturation of BM25: the weight of the number of occurrences in a text of a given length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Saturation {
    most: f64,
    least: f64,
    slope: f64,
}

impl Saturation {
    /// Returns the weight of `count` occurrences in a text of `length` terms.
    pub(super) fn of(self, count: u32, length: f64) -> f64 {
        let count = f64::from(count);
        count * self.most / (count + self.least + self.slope * length)
    }
}

/// The scores of documents for a question. Each score is computed when it is needed.
#[derive(Debug)]
pub(crate) struct Scores<'c> {
    corpus: &'c Corpus,
    asked: Asked,
}

impl Scores<'_> {
    /// Returns the score of a document. `None` if the question does not find the document.
    pub(crate) fn get(&self, document: usize) -> Option<f64> {
        let Asked {
            question,
            has_word,
            context,
            ..
        } = &self.asked;
        let entry = self.corpus.entries.get(document)?;
        self.corpus
            .is_found(question, has_word, document, entry)
            .then(|| {
                self.corpus
                    .context_score(question, context, document, entry)
            })
    }

    /// Returns the first `count` found documents that satisfy a filter, best first. Of equal scores, the earlier
    /// document comes first.
    pub(crate) fn first(&self, count: usize, filter: &dyn Fn(usize) -> bool) -> Vec<Ranked> {
        let score = |at: usize| filter(at).then(|| self.get(at)).flatten();
        self.look(count, Some(&self.asked.findable), &score).0
    }

    /// Returns the first `count` documents that satisfy a filter, best first. A document that the question does not
    /// find has the score 0.
    pub(crate) fn first_of(&self, count: usize, filter: &dyn Fn(usize) -> bool) -> Vec<Ranked> {
        let score = |at: usize| filter(at).then(|| self.get(at).unwrap_or_default());
        self.look(count, None, &score).0
    }

    /// Returns the `count` documents with the highest scores, and the number of documents for which `score` was called.
    /// See [`Corpus::best`].
    pub(super) fn look(
        &self,
        count: usize,
        blocks: Option<&[bool]>,
        score: &dyn Fn(usize) -> Option<f64>,
    ) -> (Vec<Ranked>, usize) {
        let Asked {
            question, context, ..
        } = &self.asked;
        self.corpus.best(question, context, count, blocks, score)
    }
}

/// Returns the rarity of a term that occurs in `having` of `all` places: `ln(1 + (N - n + 0.5) / (n + 0.5))`, as in
/// BM25 without negative values (Robertson and Zaragoza, "The Probabilistic Relevance Framework").
pub(super) fn rarity(all: usize, having: usize) -> f64 {
    let (all, having) = (all as f64, having as f64);
    ((all - having + 0.5) / (having + 0.5)).ln_1p()
}

impl Corpus {
    /// Computes scores with the words of a question. The words in [`Wanted`](super::Wanted) must be
    /// [loaded](Self::load) before the call, if not all words of the corpus are loaded.
    pub(crate) fn ask(&self, question: &str) -> Asked {
        let question = Question::read(self, question);
        let (has_word, findable) = self.with_words(&question);
        let context = self.context(&question);
        let sources = self.best_sources(&question, &context);
        Asked {
            question,
            has_word,
            findable,
            context,
            sources,
        }
    }

    fn best_sources(&self, question: &Question, context: &Context) -> Vec<Ranked> {
        let score = |at: usize| {
            let entry = self.entries.get(at)?;
            Some(self.context_score(question, context, at, entry))
        };
        let (best, _) = self.best(question, context, EXPANSION_MESSAGES, None, &score);
        match best.first() {
            Some(top) if top.score > 0.0 => best,
            _ => Vec::new(),
        }
    }

    /// Returns the documents from which [`expand`](Self::expand) takes words, best first. Their words must be known
    /// before that call.
    pub(crate) fn sources(&self, asked: &Asked) -> Vec<usize> {
        asked.sources.iter().map(|one| one.document).collect()
    }

    /// Adds the words that the best documents have in common to a question, and returns these words.
    pub(crate) fn expand(&self, asked: &mut Asked) -> Vec<Arc<str>> {
        self.add_common_words(&mut asked.question, &asked.sources)
    }

    /// Returns the scores. All words of the question must be [loaded](Self::load).
    pub(crate) fn finish(&self, mut asked: Asked) -> Scores<'_> {
        self.add_expansion(&asked.question, &mut asked.context);
        Scores {
            corpus: self,
            asked,
        }
    }

    /// Returns whether each document contains a word of the question itself, and, for each block of neighbouring
    /// documents, whether the question may find one of them.
    fn with_words(&self, question: &Question) -> (Vec<bool>, Vec<bool>) {
        let by_day = !question.dates.is_empty();
        let mut having = vec![false; self.entries.len()];
        let mut findable = vec![by_day; self.blocks.len()];
        for posting in question.own.iter().flat_map(|id| self.documents(*id)) {
            let at = posting.place as usize;
            if let Some(having) = having.get_mut(at) {
                *having = true;
            }
            // A document is found by a word in itself, in the two documents before it, or in the one after it.
            for block in at.saturating_sub(1) / BLOCK..=(at + 2) / BLOCK {
                if let Some(findable) = findable.get_mut(block) {
                    *findable = true;
                }
            }
        }
        (having, findable)
    }

    /// Returns whether the question finds a document.
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

    /// Returns the number of documents that contain a term, including documents that are [not read](Self::set_unread).
    fn having(&self, id: TermId) -> usize {
        let postings = self.postings.get(id as usize);
        postings.map_or(0, |one| one.documents.len() + one.unread.unwrap_or(0))
    }

    pub(super) fn documents(&self, id: TermId) -> &[Posting] {
        let postings = self.postings.get(id as usize);
        postings.map_or(&[], |postings| &postings.documents)
    }

    /// Returns a document's neighbour if it is in the same episode.
    fn neighbour(&self, at: usize, offset: isize) -> Option<usize> {
        let neighbour = at.checked_add_signed(offset)?;
        let same = self.entries.get(at)?.episode == self.entries.get(neighbour)?.episode;
        same.then_some(neighbour)
    }

    /// Returns the number of terms in a document.
    fn length(&self, at: usize) -> u32 {
        self.lengths.get(at).copied().unwrap_or_default()
    }

    /// Returns the saturation of BM25 for texts with `mean` terms on average.
    pub(super) fn saturation(&self, mean: f64) -> Saturation {
        Saturation {
            most: K1 + 1.0,
            least: K1 * (1.0 - B),
            slope: K1 * B / mean,
        }
    }

    /// Returns the weight of a term in the question: its rarity, times `weight`.
    pub(super) fn weight(&self, id: TermId, weight: f64) -> f64 {
        let rarity = rarity(self.entries.len(), self.documents(id).len());
        rarity.powf(RARITY_POWER) * weight
    }

    /// Adds the weight of a term to the own scores of the documents that contain it.
    fn add_term(&self, (id, weight): (TermId, f64), context: &mut Context, coverage: Coverage) {
        let weight = self.weight(id, weight);
        let saturation = context.saturation;
        for posting in self.documents(id) {
            let at = posting.place as usize;
            let length = self.length(at);
            let (Some(score), Some(touched)) =
                (context.own.get_mut(at), context.touched.get_mut(at / BLOCK))
            else {
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
            *touched = true;
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

    /// Adds the weight of a term to the scores of the episodes that contain it (BM25 over episodes).
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
            touched: vec![false; self.blocks.len()],
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
        let Context {
            own,
            covered,
            touched,
            ..
        } = &mut context;
        for (block, _) in touched.iter().enumerate().filter(|(_, touched)| **touched) {
            let range = documents(block, self.len());
            let own = own.get_mut(range.clone()).unwrap_or_default();
            let covered = covered.get(range).unwrap_or_default();
            for (score, covered) in own.iter_mut().zip(covered) {
                *score *= coverage_factor(share, Some(covered));
            }
        }
        context.set_best(question);
        context
    }

    /// Adds the weights of the words with which the question was expanded.
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

    /// Returns the score of a document with its neighbours, its episode and all bonuses.
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

    /// Returns the dependence of a document on its neighbours: 1 for an empty document, and closer to 0 the longer it
    /// is.
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

    /// Returns the share of the best score that is added to a document for the dates in the question.
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

    /// Adds the words that the best documents have in common to the question, and returns these words.
    fn add_common_words(&self, question: &mut Question, best: &[Ranked]) -> Vec<Arc<str>> {
        let top = best.first().map_or(0.0, |best| best.score);
        let mut gains: BTreeMap<TermId, f64> = BTreeMap::new();
        for one in best {
            let length = f64::from(self.length(one.document));
            let share = one.score / top / (length + EXPANSION_LENGTH);
            let mut counts: BTreeMap<TermId, u32> = BTreeMap::new();
            for id in self.contents.get(&one.document).into_iter().flatten() {
                *counts.entry(*id).or_default() += 1;
            }
            for (id, count) in counts {
                let rarity = rarity(self.entries.len(), self.having(id));
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

/// Complete rankings, for tests.
#[cfg(test)]
impl Corpus {
    /// Returns the documents that a question finds, best first. Of equal scores, the earlier document comes first.
    pub(super) fn rank(&self, question: &str) -> Vec<Ranked> {
        let scores = self.scores(question).into_iter().enumerate();
        let ranked = scores.filter_map(|(document, score)| Some((document, score?)));
        let mut ranked: Vec<Ranked> = ranked
            .map(|(document, score)| Ranked { document, score })
            .collect();
        ranked.sort_by(|one, other| other.cmp(one));
        ranked
    }

    /// Returns the score of each document. `None` if the question does not find it.
    pub(super) fn scores(&self, question: &str) -> Vec<Option<f64>> {
        let scores = self.scored(question);
        (0..self.len()).map(|at| scores.get(at)).collect()
    }

    pub(super) fn scored(&self, question: &str) -> Scores<'_> {
        let mut asked = self.ask(question);
        self.expand(&mut asked);
        self.finish(asked)
    }
}
