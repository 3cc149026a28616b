//! Finds the best documents of a ranking without computing the scores of all documents.
//!
//! Documents (messages or summaries) are divided into blocks of 64 neighbouring documents. The highest values of each
//! part of a score in a block give an upper bound for the scores of its documents. Blocks are read in descending order
//! of their bounds, until the next bound is below the results found so far. Within a block, a document's own score
//! gives a closer bound.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::block::{Block, documents};
use super::corpus::Corpus;
use super::question::Question;
use super::score::{Context, Ranked};
use super::weights::*;

/// Relative addition to bounds, so that rounding errors never exclude a document.
const SLACK: f64 = 1e-9;

/// The best of the documents that were offered.
#[derive(Debug)]
struct Best {
    count: usize,
    /// The kept documents, with the worst on top.
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    fn offer(&mut self, offered: Ranked) {
        if self.heap.len() < self.count {
            self.heap.push(Reverse(offered));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && offered > worst.0
        {
            *worst = Reverse(offered);
        }
    }

    /// Returns the lowest kept score if no more documents fit. Documents with lower scores are not kept.
    fn threshold(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.count => worst.0.score,
            _ => f64::NEG_INFINITY,
        }
    }
}

/// Upper bounds for the parts of the scores of the documents in a block (64 neighbouring documents).
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// Maximum own score of a document.
    most: f64,
    /// Maximum that is added to an own score for neighbouring documents and the episode.
    around: f64,
    /// Maximum factor by which the own score plus the addition for neighbours is multiplied.
    times: f64,
    /// Maximum that is then added for dates in the question.
    dated: f64,
    /// Maximum factor by which the score is multiplied at the end.
    factor: f64,
}

impl Bound {
    /// Returns the highest possible score of a document with this own score.
    fn of(&self, own: f64) -> f64 {
        ((own + self.around) * self.times + self.dated) * self.factor * (1.0 + SLACK)
    }
}

impl Corpus {
    /// Returns the `count` documents (messages or summaries) with the highest scores, best first, and the number of
    /// documents for which `score` was called. Of equal scores, the earlier document comes first. A document for which
    /// `score` returns `None` is left out. Otherwise, `score` must return 0 or the document's score for `question` and
    /// `context`, because documents are skipped by upper bounds of these scores. `blocks` has a flag for each block of
    /// neighbouring documents. Blocks with the flag `false` are not read. `None` reads all blocks.
    pub(super) fn best(
        &self,
        question: &Question,
        context: &Context,
        count: usize,
        blocks: Option<&[bool]>,
        score: &dyn Fn(usize) -> Option<f64>,
    ) -> (Vec<Ranked>, usize) {
        if count == 0 {
            return (Vec::new(), 0);
        }
        let (heap, mut seen) = (BinaryHeap::new(), 0);
        let mut best = Best { count, heap };
        let is_wanted =
            |number: usize| blocks.is_none_or(|wanted| wanted.get(number) == Some(&true));
        let numbered = self.blocks.iter().enumerate();
        let wanted = numbered.filter(|(number, _)| is_wanted(*number));
        // Each block with the highest score that one of its documents may have.
        let mut bounded: Vec<(f64, Bound, usize)> = wanted
            .map(|(number, block)| {
                let bound = self.bound(question, context, number, block);
                (bound.of(bound.most), bound, number)
            })
            .collect();
        bounded.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        for (highest, bound, number) in bounded {
            if highest < best.threshold() {
                break;
            }
            // Later documents mostly have higher scores.
            for document in documents(number, self.len()).rev() {
                let own = context.own.get(document).copied().unwrap_or_default();
                if bound.of(own) < best.threshold() {
                    continue;
                }
                seen += 1;
                if let Some(score) = score(document) {
                    best.offer(Ranked { document, score });
                }
            }
        }
        let sorted = best.heap.into_sorted_vec().into_iter();
        (sorted.map(|Reverse(ranked)| ranked).collect(), seen)
    }

    fn bound(&self, question: &Question, context: &Context, number: usize, block: &Block) -> Bound {
        let highest = |range: Range<usize>| {
            let scores = context.own.get(range).unwrap_or_default().iter();
            scores.fold(0.0, |most, one| if *one > most { *one } else { most })
        };
        let range = documents(number, self.len());
        let most = match context.touched.get(number) {
            Some(true) => highest(range.clone()),
            _ => 0.0,
        };
        // The neighbours of a document are the two documents before it and the one after it.
        let before = highest(range.start.saturating_sub(2)..range.start);
        let behind = highest(range.end..self.len().min(range.end + 1));
        let beside = most.max(before).max(behind);
        let asks = block.has_question || {
            let before = range
                .start
                .checked_sub(1)
                .and_then(|at| self.entries.get(at));
            before.is_some_and(|entry| entry.asks)
        };
        let bonus = if asks { ANSWER_BONUS } else { 0.0 };
        let shares = PREVIOUS_SHARE * (1.0 + bonus) + SECOND_PREVIOUS_SHARE + NEXT_SHARE;
        let leaning = SELF_CONTAINED_WORDS / (SELF_CONTAINED_WORDS + f64::from(block.least_length));
        let around =
            leaning * shares * beside + EPISODE_SHARE * self.highest_episode(context, block);
        let mut times = 1.0;
        if question.asks_time && block.has_time {
            times *= 1.0 + TIME_WORD_SHARE;
        }
        if block.has_first_person {
            times *= 1.0 + FIRST_PERSON_SHARE;
        }
        let has = |participant: u32| block.may_be_by(participant);
        let mut factor = match question.participants.as_slice() {
            [only] if has(*only) => PARTICIPANT_FACTOR,
            [first, _, ..] if has(*first) => FIRST_PARTICIPANT_FACTOR,
            _ => 1.0,
        };
        if question.first_person && block.has_users {
            factor *= ASKER_FACTOR;
        }
        factor *= 1.0 + RECENCY_SHARE * range.end as f64 / self.len() as f64;
        let dates = question.dates.len() as f64 * DAY_SHARE.max(MONTH_SHARE);
        Bound {
            most,
            around,
            times,
            dated: context.best * dates,
            factor,
        }
    }

    /// Returns the highest score of the episodes to which the documents of a block (64 neighbouring documents) belong.
    fn highest_episode(&self, context: &Context, block: &Block) -> f64 {
        let (first, last) = block.episodes;
        let scores = context.episodes.get(first as usize..=last as usize);
        scores
            .unwrap_or_default()
            .iter()
            .copied()
            .fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::Document;
    use fastrand::Rng;
    use memory_model::{Role, Timestamp};

    /// Texts of the words `w0` to `w39`, the first ones the most frequent, by three people in episodes.
    fn corpus(rng: &mut Rng) -> Corpus {
        let mut corpus = Corpus::new();
        let mut time = 0;
        for _ in 0..rng.usize(1..1_200) {
            let words = (0..rng.usize(1..20)).map(|_| {
                let rank = rng.f64() * rng.f64() * rng.f64() * 40.0;
                format!("w{}{}", rank as usize, ["", "", "?", "."][rng.usize(..4)])
            });
            let mut text = words.collect::<Vec<_>>().join(" ");
            text.push_str(["", " I", " yesterday", " in 2021", "?"][rng.usize(..5)]);
            time += [1_000_000_i64, 60_000_000, 5_000_000_000][rng.usize(..3)] * rng.i64(0..30);
            let document = Document::new(text, Timestamp(time))
                .with_name(["Ann", "Ben", "Cid"][rng.usize(..3)])
                .with_role([Role::User, Role::Assistant][rng.usize(..2)]);
            corpus.add(&document);
        }
        corpus
    }

    const QUESTIONS: [&str; 10] = [
        "w39",
        "w0",
        "w0 w39",
        "w20 w30 w35",
        "when did Ann w31",
        "Ann Ben w12",
        "did I w33 w5",
        "w25 in 1970",
        "w30 in january 1970",
        "nothing",
    ];

    #[test]
    fn the_best_are_those_of_the_whole_ranking() {
        for seed in 0..150 {
            let rng = &mut Rng::with_seed(seed);
            let corpus = corpus(rng);
            for question in QUESTIONS {
                let all = corpus.rank(question);
                let scores = corpus.scored(question);
                for count in [0, 1, 10, 50, 5_000] {
                    let top = scores.first(count, &|_| true);
                    assert_eq!(
                        top,
                        all[..count.min(all.len())],
                        "{seed}, {question}, {count}"
                    );
                }
                let third = |at: usize| at.is_multiple_of(3);
                let some: Vec<Ranked> = all.into_iter().filter(|one| third(one.document)).collect();
                let top = scores.first(7, &third);
                assert_eq!(top, some[..7.min(some.len())], "{seed}, {question}");
                let mut every: Vec<Ranked> = (0..corpus.len())
                    .filter(|at| third(*at))
                    .map(|document| {
                        let score = scores.get(document).unwrap_or_default();
                        Ranked { document, score }
                    })
                    .collect();
                every.sort_by(|one, other| other.cmp(one));
                let top = scores.first_of(9, &third);
                assert_eq!(top, every[..9.min(every.len())], "{seed}, {question}");
            }
        }
    }

    #[test]
    fn blocks_that_cannot_be_among_the_best_are_not_looked_at() {
        let rng = &mut Rng::with_seed(4);
        let mut corpus = Corpus::new();
        for n in 0..4_000 {
            let text = format!("w{} and w{} of n{n}", rng.usize(..300), rng.usize(..300));
            corpus.add(&Document::new(text, Timestamp(n * 600_000_000)));
        }
        let scores = corpus.scored("w7");
        let (best, seen) = scores.look(3, None, &|at| scores.get(at));
        assert_eq!(best, corpus.rank("w7")[..3]);
        assert!(seen < corpus.len() / 2, "{seen}");
    }
}
