//! What a segment must have for a query.

use super::grams::{folded_text, grams_of};
use super::{gram_key, word_key};

/// Keys of which one must be there.
pub type TermKeys = Vec<Vec<u8>>;

/// What the messages that match a pattern have, as far as an index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// Nothing that an index knows: all are to be looked at.
    Nothing,
    /// All of these runs of characters, by their keys.
    Grams(Vec<Vec<u8>>),
    /// A run of characters that begins so.
    GramPrefix(Vec<u8>),
    /// One word of each of these, by their keys.
    Words(Vec<TermKeys>),
}

impl Need {
    /// What a text needs to contain a pattern, whatever its case.
    pub(crate) fn of_literal(pattern: &str) -> Self {
        let grams = grams_of(pattern);
        match grams.is_empty() {
            true => Need::GramPrefix(gram_key(&folded_text(pattern))),
            false => Need::Grams(grams.iter().map(|gram| gram_key(gram)).collect()),
        }
    }

    /// What a text needs to have one term of each of these.
    pub(crate) fn of_terms(terms: impl IntoIterator<Item = Vec<String>>) -> Self {
        let keys = |terms: Vec<String>| terms.iter().map(|term| word_key(term)).collect();
        Need::Words(terms.into_iter().map(keys).collect())
    }
}
