//! The parts of the ranking and their weights.

use serde::{Deserialize, Serialize};

use crate::words::{Language, Tokenizer};

/// Weights of the parts that make up a score. A part with the weight 0, or the factor 1, is off.
///
/// The score of a message is the BM25 score of the question's words, plus shares of its neighbours'
/// and its episode's scores, times factors. The defaults were chosen on conversations between people,
/// by cross-validation over conversations; `docs/measurements/recall.md` has the figures of each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RankingPolicy {
    /// BM25's saturation: how soon further occurrences of a word stop counting. Default 0.9.
    pub k1: f64,
    /// BM25's length normalisation, from 0 (none) to 1 (full). Default 0.3.
    pub b: f64,
    /// Power of a word's rarity (its inverse document frequency). Default 0.8.
    pub rarity_power: f64,
    /// Language of words in Latin script: they are stemmed, and its lists of words apply. Words in
    /// Cyrillic, Greek and Arabic script are treated as Russian, Greek and Arabic. Default English;
    /// `None` leaves words in Latin script as they are.
    pub language: Option<Language>,
    /// Whether irregular and short forms (`went`, `kids`) count as the usual form. Default true.
    pub usual_forms: bool,
    /// Whether words that say nothing about a subject are left out of a question. Default true.
    pub omit_stop_words: bool,
    /// Whether participants' names are left out of a question. Default true.
    pub omit_names: bool,
    /// Weight of words that ask rather than describe (`kind`, `mention`). Default 0.8.
    pub asking_word_weight: f64,
    /// Weight of words of the conversation that a question's word is derived from, or that are derived
    /// from it: they begin alike. Default 0.3.
    pub derived_word_weight: f64,
    /// Share of a phrase's rarity that is added where two neighbouring words of the question stand
    /// beside each other. Default 0.6.
    pub phrase_share: f64,
    /// Bonus for a message that has all words of the question, as a share of its score; less for
    /// fewer. Default 0.5.
    pub coverage_share: f64,
    /// Share of a message's own score that is taken away when it consists of questions. Default 0.4.
    pub question_discount: f64,
    /// Share of the previous message's score that is added. Default 0.5.
    pub previous_share: f64,
    /// Further share of the previous message's score, relative to the first, when that message asks
    /// something. Default 0.5.
    pub answer_bonus: f64,
    /// Share of the score of the message before the previous one that is added. Default 0.2.
    pub second_previous_share: f64,
    /// Share of the next message's score that is added. Default 0.25.
    pub next_share: f64,
    /// Share of the episode's own BM25 score that is added. Default 0.8.
    pub episode_share: f64,
    /// Time without a message after which an episode ends, in seconds. Default 3,600.
    pub episode_gap_seconds: u32,
    /// Factor for messages of the participant whom the question names, when it names one. Default 2.
    pub participant_factor: f64,
    /// Factor for messages of the first participant whom the question names, when it names several.
    /// Default 1.3.
    pub first_participant_factor: f64,
    /// Factor for messages of the role `user` when the question is in the first person. Default 1.5.
    pub asker_factor: f64,
    /// Number of words at which a message counts as half self-contained. The longer a message is, the
    /// less it leans on its neighbours, and the less a question in it says: their shares and the
    /// discount are multiplied by n / (n + words). Default 100.
    pub self_contained_words: u32,
    /// Bonus for messages in the first person, as a share of the score. Default 0.1.
    pub first_person_share: f64,
    /// Bonus for messages that name a time when the question asks for one, as a share of the score.
    /// Default 0.2.
    pub time_word_share: f64,
    /// Share of the best message's score that is added within a week of a day in the question, half of
    /// it after two days. Default 0.7.
    pub day_share: f64,
    /// Share of the best message's score that is added within a month in the question, half of it
    /// within a year. Default 0.7.
    pub month_share: f64,
    /// Bonus for the newest message, as a share of the score; less for older ones. Default 0.05.
    pub recency_share: f64,
    /// Weight of the best word that the best messages have in common; less for further words. Default
    /// 0.15.
    pub expansion_weight: f64,
    /// Number of words that are taken from the best messages. Default 20.
    pub expansion_words: usize,
    /// Number of best messages that words are taken from. Default 10.
    pub expansion_messages: usize,
}

impl Default for RankingPolicy {
    fn default() -> Self {
        Self {
            b: 0.3,
            rarity_power: 0.8,
            usual_forms: true,
            omit_names: true,
            asking_word_weight: 0.8,
            derived_word_weight: 0.3,
            phrase_share: 0.6,
            coverage_share: 0.5,
            question_discount: 0.4,
            previous_share: 0.5,
            answer_bonus: 0.5,
            second_previous_share: 0.2,
            next_share: 0.25,
            episode_share: 0.8,
            participant_factor: 2.0,
            first_participant_factor: 1.3,
            asker_factor: 1.5,
            first_person_share: 0.1,
            time_word_share: 0.2,
            day_share: 0.7,
            month_share: 0.7,
            recency_share: 0.05,
            expansion_weight: 0.15,
            ..Self::plain()
        }
    }
}

impl RankingPolicy {
    /// BM25 alone (k1 0.9, b 0.4), over stems, without stop words.
    pub fn plain() -> Self {
        Self {
            k1: 0.9,
            b: 0.4,
            rarity_power: 1.0,
            language: Some(Language::English),
            usual_forms: false,
            omit_stop_words: true,
            omit_names: false,
            asking_word_weight: 1.0,
            derived_word_weight: 0.0,
            phrase_share: 0.0,
            coverage_share: 0.0,
            question_discount: 0.0,
            previous_share: 0.0,
            answer_bonus: 0.0,
            second_previous_share: 0.0,
            next_share: 0.0,
            episode_share: 0.0,
            episode_gap_seconds: 3_600,
            participant_factor: 1.0,
            first_participant_factor: 1.0,
            asker_factor: 1.0,
            self_contained_words: 100,
            first_person_share: 0.0,
            time_word_share: 0.0,
            day_share: 0.0,
            month_share: 0.0,
            recency_share: 0.0,
            expansion_weight: 0.0,
            expansion_words: 20,
            expansion_messages: 10,
        }
    }

    pub(crate) fn tokenizer(&self) -> Tokenizer {
        Tokenizer {
            latin: self.language,
            usual_forms: self.usual_forms,
        }
    }
}
