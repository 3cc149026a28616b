//! The best documents, without a look at all of them.

use super::best::{Best, SLACK};
use super::corpus::{Corpus, Posting};
use super::policy::RankingPolicy;
use super::question::Question;
use super::score::{Ranked, Saturation};

/// One term's postings.
struct List<'c> {
    /// What is left of them.
    rest: &'c [Posting],
    /// The term's rarity times its weight.
    weight: f64,
    /// Most that the term adds to a score.
    bound: f64,
    saturation: Saturation,
    /// Place among the question's terms, in which order scores are summed.
    place: usize,
}

impl RankingPolicy {
    /// Whether a score is a sum over the words that a document has, and of nothing else.
    fn is_sum_of_terms(&self) -> bool {
        let plain = Self::plain();
        *self
            == Self {
                k1: self.k1,
                b: self.b,
                rarity_power: self.rarity_power,
                language: self.language,
                usual_forms: self.usual_forms,
                omit_stop_words: self.omit_stop_words,
                omit_names: self.omit_names,
                asking_word_weight: self.asking_word_weight,
                ..plain
            }
    }
}

impl Corpus {
    /// Returns the first `count` documents of [`rank`](Self::rank), the same ones with the same scores.
    ///
    /// Where a score is a sum over words alone, as with [`RankingPolicy::plain`], documents that cannot
    /// be among them are not looked at: those whose words are all too common to reach the worst of the
    /// best so far. Other parts of a score depend on the whole conversation: then the words' documents are
    /// counted, and of the rest only what can be among the first.
    pub fn top(&self, question: &str, count: usize) -> Vec<Ranked> {
        if !self.policy.is_sum_of_terms() {
            return self.scored(question).first(count, &|_| true);
        }
        self.top_of_sums(question, count).0
    }

    /// The best documents, and how many were looked at.
    fn top_of_sums(&self, question: &str, count: usize) -> (Vec<Ranked>, usize) {
        let mut lists = self.lists(question);
        let mut best = Best::new(count);
        let (mut seen, mut threshold) = (0, f64::NEG_INFINITY);
        if count == 0 {
            return (Vec::new(), seen);
        }
        loop {
            // Lists before `needed` cannot reach the threshold together.
            let (needed, sure) = split(&lists, threshold);
            let next = lists.iter().skip(needed);
            let next = next
                .filter_map(|list| list.rest.first())
                .map(|first| first.place);
            let Some(document) = next.min() else { break };
            seen += 1;
            let score = self.sum_at(&mut lists, document, needed, sure, threshold);
            let Some(score) = score else { continue };
            best.offer(document as usize, score);
            threshold = best.threshold();
        }
        (best.finish(), seen)
    }

    /// The postings of the question's terms, those that add least first.
    fn lists(&self, question: &str) -> Vec<List<'_>> {
        let question = Question::read(self, question);
        let saturation = self.saturation(self.mean_length());
        let terms = question.terms.values().enumerate();
        let mut lists: Vec<List<'_>> = terms
            .map(|(place, (id, weight))| {
                let weight = self.weight(*id, *weight);
                List {
                    rest: self.documents(*id),
                    weight,
                    saturation,
                    bound: weight * (self.policy.k1 + 1.0),
                    place,
                }
            })
            .collect();
        lists.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.place.cmp(&b.place)));
        lists
    }

    /// Returns a document's score, and moves the lists behind `needed` past it; `None` when it cannot
    /// pass the threshold. `sure` is the most that the lists before `needed` add.
    fn sum_at(
        &self,
        lists: &mut [List<'_>],
        document: u32,
        needed: usize,
        sure: f64,
        threshold: f64,
    ) -> Option<f64> {
        let length = *self.lengths.get(document as usize)?;
        let mut parts = Vec::with_capacity(lists.len());
        let added = |list: &List<'_>, posting: &Posting| {
            let counted = list.saturation.of(posting.count, f64::from(length));
            (list.place, list.weight * counted)
        };
        for list in lists.iter_mut().skip(needed) {
            if let Some((first, rest)) = list.rest.split_first()
                && first.place == document
            {
                parts.push(added(list, first));
                list.rest = rest;
            }
        }
        let sum: f64 = parts.iter().map(|part| part.1).sum();
        if (sum + sure) * (1.0 + SLACK) < threshold {
            return None;
        }
        for list in lists.iter_mut().take(needed) {
            let before = list
                .rest
                .partition_point(|posting| posting.place < document);
            list.rest = list.rest.get(before..).unwrap_or_default();
            if let Some(first) = list.rest.first().filter(|first| first.place == document) {
                parts.push(added(list, first));
            }
        }
        parts.sort_by_key(|part| part.0);
        Some(parts.iter().map(|part| part.1).sum())
    }
}

/// Returns how many of the first lists stay below the threshold together, and the most that they add.
fn split(lists: &[List<'_>], threshold: f64) -> (usize, f64) {
    let mut sure = 0.0;
    for (at, list) in lists.iter().enumerate() {
        if (sure + list.bound) * (1.0 + SLACK) >= threshold {
            return (at, sure);
        }
        sure += list.bound;
    }
    (lists.len(), sure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::Document;
    use memory_model::Timestamp;

    /// Texts of the words `w0` to `w29`, the first ones the most frequent.
    fn corpus(seed: u64) -> Corpus {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut corpus = Corpus::new(RankingPolicy::plain());
        for _ in 0..400 {
            let words = (0..rng.usize(1..20)).map(|_| {
                let rank = rng.f64() * rng.f64() * 30.0;
                format!("w{}", rank as usize)
            });
            let text = words.collect::<Vec<_>>().join(" ");
            corpus.add(&Document::new(text, Timestamp(0)));
        }
        corpus
    }

    #[test]
    fn the_best_are_those_of_the_whole_ranking() {
        for seed in 0..20 {
            let corpus = corpus(seed);
            for question in ["w0 w29", "w1", "w0 w1 w2 w27 w28", "w5 w5 w6", "nothing"] {
                let all = corpus.rank(question);
                for count in [0, 1, 3, 10, 1_000] {
                    let top = corpus.top(question, count);
                    assert_eq!(top, all[..count.min(all.len())], "{question}, {count}");
                }
            }
        }
    }

    #[test]
    fn common_words_alone_are_not_looked_at() {
        let corpus = corpus(3);
        let found = corpus.rank("w0 w24").len();
        let (top, seen) = corpus.top_of_sums("w0 w24", 3);
        assert_eq!(top.len(), 3);
        assert!(seen < found / 2, "{seen} of {found}");
    }
}
