//! The weights of the parts of a score.
//!
//! The score of a message is the BM25 score of the question's words, plus shares of the scores of neighbouring messages
//! and of the episode (messages without a long pause between them), times factors. The values were chosen on
//! conversations between people, by cross-validation over conversations.

/// BM25's saturation: the lower the value, the less further occurrences of a word count.
pub(super) const K1: f64 = 0.9;

/// BM25's length normalisation, from 0 (none) to 1 (full).
pub(super) const B: f64 = 0.3;

/// Power of a word's rarity (its inverse document frequency).
pub(super) const RARITY_POWER: f64 = 0.8;

/// Weight of words that ask instead of describing (`kind`, `mention`).
pub(super) const ASKING_WORD_WEIGHT: f64 = 0.8;

/// Weight of a word in the conversation that is derived from a word of the question, or from which a word of the
/// question is derived. The two words have the same beginning.
pub(super) const DERIVED_WORD_WEIGHT: f64 = 0.3;

/// Share of a phrase's rarity that is added if two neighbouring words of the question are adjacent in a message.
pub(super) const PHRASE_SHARE: f64 = 0.6;

/// Bonus for a message that contains all words of the question, as a share of its score. The bonus is proportionally
/// lower for fewer words.
pub(super) const COVERAGE_SHARE: f64 = 0.5;

/// Share of a message's own score that is subtracted if the message consists of questions.
pub(super) const QUESTION_DISCOUNT: f64 = 0.4;

/// Share of the previous message's score that is added.
pub(super) const PREVIOUS_SHARE: f64 = 0.5;

/// Additional share of the previous message's score if that message asks a question, relative to [`PREVIOUS_SHARE`].
pub(super) const ANSWER_BONUS: f64 = 0.5;

/// Share of the score of the message before the previous one that is added.
pub(super) const SECOND_PREVIOUS_SHARE: f64 = 0.2;

/// Share of the next message's score that is added.
pub(super) const NEXT_SHARE: f64 = 0.25;

/// Share of the BM25 score of the message's episode that is added.
pub(super) const EPISODE_SHARE: f64 = 0.8;

/// Pause between two messages after which a new episode begins, in microseconds.
pub(super) const EPISODE_GAP: i64 = 3_600_000_000;

/// Factor for messages of the participant whom the question names, if it names only one.
pub(super) const PARTICIPANT_FACTOR: f64 = 2.0;

/// Factor for messages of the first participant whom the question names, if it names several.
pub(super) const FIRST_PARTICIPANT_FACTOR: f64 = 1.3;

/// Factor for messages with the role `user` if the question is in the first person.
pub(super) const ASKER_FACTOR: f64 = 1.5;

/// Number n of words at which a message is half self-contained. Longer messages depend less on their neighbours: the
/// shares of neighbouring scores, and the discount for questions, are multiplied by n / (n + words).
pub(super) const SELF_CONTAINED_WORDS: f64 = 100.0;

/// Bonus for messages in the first person, as a share of the score.
pub(super) const FIRST_PERSON_SHARE: f64 = 0.1;

/// Bonus for messages that name a time if the question asks for one, as a share of the score.
pub(super) const TIME_WORD_SHARE: f64 = 0.2;

/// Share of the best message's score that is added to messages of a day in the question and of the two days after it.
/// Half of the share is added to messages three to eight days after it.
pub(super) const DAY_SHARE: f64 = 0.7;

/// Share of the best message's score that is added to messages of a month in the question. Half of the share is added
/// to messages of a year in the question.
pub(super) const MONTH_SHARE: f64 = 0.7;

/// Bonus for the last message, as a share of its score. The bonus is proportionally lower for earlier messages.
pub(super) const RECENCY_SHARE: f64 = 0.05;

/// Weight of the best word that is taken from the best messages. Further words have lower weights.
pub(super) const EXPANSION_WEIGHT: f64 = 0.15;

/// Number of words that are taken from the best messages.
pub(super) const EXPANSION_WORDS: usize = 20;

/// Number of the best messages from which words are taken.
pub(super) const EXPANSION_MESSAGES: usize = 10;

/// Minimum cosine of a message that is found although neither it nor a neighbour contains a word of the question.
pub(super) const FOUND_FROM_COSINE: f64 = 0.4;

/// Share of the difference between a message's score and the best score that is added for a cosine of 1.
pub(super) const COSINE_SHARE: f64 = 0.6;

/// Share of the difference between a message's score and the best score that is added for a cosine of 1 of the episode.
/// The cosine of an episode is the mean of its highest cosines.
pub(super) const EPISODE_COSINE_SHARE: f64 = 0.3;

/// The cosine of an episode is the mean of this number of its highest cosines.
pub(super) const EPISODE_COSINES: usize = 3;
