//! Combines scores by words with the similarity of vectors.
//!
//! The similarity (cosine) of a message's vector raises its score by words towards the best score: it adds a share of
//! the difference between the two. The message with the best score by words therefore stays first. Of two messages with
//! equal scores by words, the more similar one ranks higher. Negative cosines count as 0.

use super::corpus::Corpus;
use super::weights::{COSINE_SHARE, EPISODE_COSINE_SHARE, EPISODE_COSINES, FOUND_FROM_COSINE};
use sentence_model::fold::fold_case;
use sentence_model::words::visit_words;

impl Corpus {
    /// Returns the question in the form in which it is embedded: without names of participants. Returns it unchanged if
    /// it consists only of names.
    pub(crate) fn question_to_embed(&self, question: &str) -> String {
        let (mut rest, mut end, mut has_words) = (String::new(), 0, false);
        visit_words(question, &mut |word| {
            let text = question.get(word.range.clone()).unwrap_or_default();
            if self.names.contains_key(&fold_case(text)) {
                rest.push_str(question.get(end..word.range.start).unwrap_or_default());
                end = word.range.end;
            } else {
                has_words = true;
            }
        });
        rest.push_str(question.get(end..).unwrap_or_default());
        match has_words {
            true => rest,
            false => question.to_owned(),
        }
    }

    /// Raises the scores of documents by the similarity of their vectors to the question. `scores` are the scores that
    /// [`finish`](Self::finish) returned. A document without a cosine is raised only by its episode.
    pub(crate) fn fuse(&self, scores: &mut [Option<f64>], cosines: &[Option<f64>]) {
        if cosines.iter().all(Option::is_none) {
            return;
        }
        let best = scores
            .iter()
            .flatten()
            .fold(0.0_f64, |best, one| best.max(*one));
        let best = if best > 0.0 { best } else { 1.0 };
        let episodes = self.episode_cosines(cosines);
        for ((score, cosine), entry) in scores.iter_mut().zip(cosines).zip(&self.entries) {
            let cosine = cosine.unwrap_or_default().max(0.0);
            if score.is_none() && cosine < FOUND_FROM_COSINE {
                continue;
            }
            let episode = episodes.get(entry.episode as usize).copied();
            let nearness =
                COSINE_SHARE * cosine + EPISODE_COSINE_SHARE * episode.unwrap_or_default();
            let words = score.unwrap_or_default();
            *score = Some(words + (best - words) * nearness.min(1.0));
        }
    }

    /// Returns the similarity of each episode: the mean of its highest cosines. Missing and negative cosines count as
    /// 0.
    fn episode_cosines(&self, cosines: &[Option<f64>]) -> Vec<f64> {
        let mut best: Vec<Vec<f64>> = vec![Vec::new(); self.episodes.len()];
        for (cosine, entry) in cosines.iter().zip(&self.entries) {
            if let Some(cosine) = cosine.filter(|cosine| *cosine > 0.0)
                && let Some(best) = best.get_mut(entry.episode as usize)
            {
                let at = best.partition_point(|one| *one >= cosine);
                best.insert(at, cosine);
                best.truncate(EPISODE_COSINES);
            }
        }
        let means = best
            .iter()
            .map(|best| best.iter().sum::<f64>() / EPISODE_COSINES as f64);
        means.collect()
    }
}

#[cfg(test)]
mod tests {
    use memory_model::Timestamp;

    use super::*;
    use crate::ranking::Document;

    fn corpus() -> Corpus {
        let mut corpus = Corpus::new();
        for (at, text) in ["a puppy", "the dog barks", "rain", "", "sun"]
            .into_iter()
            .enumerate()
        {
            // Two episodes: the last two texts are a day later.
            let time = Timestamp(if at < 3 { 0 } else { 86_400_000_000 });
            corpus.add(&Document::new(text, time));
        }
        corpus
    }

    #[test]
    fn names_are_not_embedded() {
        let mut corpus = corpus();
        let named = Document::new("hm", Timestamp(0)).with_name("Ann Lee");
        corpus.add(&named);
        let embedded = |question| corpus.question_to_embed(question);
        assert_eq!(embedded("Did ANN Lee's dog bark?"), "Did  's dog bark?");
        assert_eq!(embedded("Ann?"), "Ann?");
    }

    #[test]
    fn what_words_rank_first_stays_first() {
        let corpus = corpus();
        let mut scores = corpus.scores("the dog barks");
        let best = scores[1];
        let before = scores[0];
        let cosines = [Some(1.0), Some(-0.2), None, None, None];
        corpus.fuse(&mut scores, &cosines);
        assert_eq!(scores[1], best);
        assert!(before < scores[0] && scores[0] < best, "{scores:?}");
    }

    #[test]
    fn near_documents_are_found_and_others_are_not() {
        let corpus = corpus();
        let mut scores = corpus.scores("hound");
        assert_eq!(scores, [None; 5]);
        let cosines = [Some(0.8), Some(0.9), Some(0.3), None, Some(-0.5)];
        corpus.fuse(&mut scores, &cosines);
        assert!(scores[1] > scores[0] && scores[0].is_some(), "{scores:?}");
        assert_eq!(scores[2..], [None; 3]);
    }

    #[test]
    fn an_episode_counts_by_the_mean_of_its_best() {
        let corpus = corpus();
        let cosines = [Some(0.2), Some(0.4), Some(-1.0), Some(0.9), None];
        let episodes = corpus.episode_cosines(&cosines);
        assert!((episodes[0] - 0.2).abs() < 1e-12 && (episodes[1] - 0.3).abs() < 1e-12);
    }
}
