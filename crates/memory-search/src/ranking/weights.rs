//! The weights of the parts of a score.
//!
//! The score of a message is the BM25 score of the question's words, plus shares of its neighbours' and its episode's
//! scores, times factors. The values were chosen on conversations between people, by cross-validation over
//! conversations.

/// BM25's saturation: how soon further occurrences of a word stop counting.
pub(super) const K1: f64 = 0.9;

/// BM25's length normalisation, from 0 (none) to 1 (full).
pub(super) const B: f64 = 0.3;

/// Power of a word's rarity (its inverse document frequency).
pub(super) const RARITY_POWER: f64 = 0.8;

/// Weight of words that ask rather than describe (`kind`, `mention`).
pub(super) const ASKING_WORD_WEIGHT: f64 = 0.8;

/// Weight of words of the conversation that a question's word is derived from, or that are derived from it: they begin
/// alike.
pub(super) const DERIVED_WORD_WEIGHT: f64 = 0.3;

/// Share of a phrase's rarity that is added if two neighbouring words of the question are next to each other.
pub(super) const PHRASE_SHARE: f64 = 0.6;

/// Bonus for a message that has all words of the question, as a share of its score; less for fewer.
pub(super) const COVERAGE_SHARE: f64 = 0.5;

/// Share of a message's own score that is taken away when it consists of questions.
pub(super) const QUESTION_DISCOUNT: f64 = 0.4;

/// Share of the previous message's score that is added.
pub(super) const PREVIOUS_SHARE: f64 = 0.5;

/// Further share of the previous message's score, relative to the first, when that message asks something.
pub(super) const ANSWER_BONUS: f64 = 0.5;

/// Share of the score of the message before the previous one that is added.
pub(super) const SECOND_PREVIOUS_SHARE: f64 = 0.2;

/// Share of the next message's score that is added.
pub(super) const NEXT_SHARE: f64 = 0.25;

/// Share of the episode's own BM25 score that is added.
pub(super) const EPISODE_SHARE: f64 = 0.8;

/// Time without a message after which an episode ends, in microseconds.
pub(super) const EPISODE_GAP: i64 = 3_600_000_000;

/// Factor for messages of the participant whom the question names, when it names one.
pub(super) const PARTICIPANT_FACTOR: f64 = 2.0;

/// Factor for messages of the first participant whom the question names, when it names several.
pub(super) const FIRST_PARTICIPANT_FACTOR: f64 = 1.3;

/// Factor for messages of the role `user` when the question is in the first person.
pub(super) const ASKER_FACTOR: f64 = 1.5;

/// Number of words at which a message counts as half self-contained. The longer a message is, the less it leans on its
/// neighbours, and the less a question in it says: their shares and the discount are multiplied by n / (n + words).
pub(super) const SELF_CONTAINED_WORDS: f64 = 100.0;

/// Bonus for messages in the first person, as a share of the score.
pub(super) const FIRST_PERSON_SHARE: f64 = 0.1;

/// Bonus for messages that name a time when the question asks for one, as a share of the score.
pub(super) const TIME_WORD_SHARE: f64 = 0.2;

/// Share of the best message's score that is added within a week of a day in the question, half of it after two days.
pub(super) const DAY_SHARE: f64 = 0.7;

/// Share of the best message's score that is added within a month in the question, half of it within a year.
pub(super) const MONTH_SHARE: f64 = 0.7;

/// Bonus for the last message, as a share of the score; less for earlier ones.
pub(super) const RECENCY_SHARE: f64 = 0.05;

/// Weight of the best word that the best messages have in common; less for further words.
pub(super) const EXPANSION_WEIGHT: f64 = 0.15;

/// Number of words that are taken from the best messages.
pub(super) const EXPANSION_WORDS: usize = 20;

/// Number of best messages that words are taken from.
pub(super) const EXPANSION_MESSAGES: usize = 10;

/// Cosine from which a message is found even if neither it nor a neighbour has a word of the question.
pub(super) const FOUND_FROM_COSINE: f64 = 0.4;

/// Share of the difference between a score and the best one that is added for a cosine of 1.
pub(super) const COSINE_SHARE: f64 = 0.6;

/// Share of the difference between a score and the best one that is added for an episode's cosine of 1. The episode's
/// cosine is the mean of its best ones.
pub(super) const EPISODE_COSINE_SHARE: f64 = 0.3;

/// Number of an episode's best messages that make the mean of the episode's cosine.
pub(super) const EPISODE_COSINES: usize = 3;
