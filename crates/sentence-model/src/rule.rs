//! Whether a sentence of a user is a rule for the work to come.
//!
//! A logistic model judges the form of a sentence: with which kind of word its clauses begin, which meanings of [`cues`] it
//! has, and short runs of words. Its weights are in `rule/weights.txt`, which `cargo xtask fit-rules` fits to sentences that
//! authors invented and to real ones that readers labelled.

mod clauses;
mod cues;
mod features;
#[cfg(test)]
mod tests;
mod weights;

pub use features::rule_features;

/// Minimum probability of a rule. Of the invented sentences that `cargo xtask fit-rules --each` leaves out in turn and that reach it,
/// 95 of 100 are rules: an agent obeys a rule first, so one that is missed costs less than a false one.
pub const RULE_PROBABILITY: f64 = 0.8;
/// Maximum length of a sentence that can be a rule, in bytes.
const LONGEST: usize = 600;

/// Returns the probability that a sentence of a user is a rule for the work to come: an instruction, a prohibition or a
/// convention that holds beyond the step that is asked for. 0 for a sentence of more than 600 bytes.
pub fn rule_probability(sentence: &str) -> f64 {
    match sentence.len() {
        ..=LONGEST => weights::probability(&rule_features(sentence)),
        _ => 0.0,
    }
}

/// Returns whether a sentence of a user is a rule for the work to come: whether [`rule_probability`] is at least
/// [`RULE_PROBABILITY`].
///
/// Whether a sentence is the user's own, and not pasted or quoted text, is for the caller to know.
pub fn is_rule(sentence: &str) -> bool {
    rule_probability(sentence) >= RULE_PROBABILITY
}
