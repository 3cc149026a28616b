//! Languages that words are stemmed by.

use super::chars::is_mark;
use rust_stemmers::{Algorithm, Stemmer};
use serde::{Deserialize, Serialize};

/// A language whose words are reduced to their stems, by the Snowball rules for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say all")]
pub enum Language {
    Arabic,
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Greek,
    Hungarian,
    Italian,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// Longest word that is stemmed, in bytes. No language has longer ones; data in letters has.
const MAX_STEMMED_BYTES: usize = 64;

impl Language {
    /// Returns the language of a word by its script: `latin` for Latin letters; `None` for a script
    /// whose words are not stemmed.
    pub(crate) fn of_word(word: &str, latin: Option<Language>) -> Option<Language> {
        match word.chars().find(|c| c.is_alphabetic() && !is_mark(*c))? {
            'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => latin,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Language::Greek),
            '\u{400}'..='\u{4ff}' => Some(Language::Russian),
            '\u{620}'..='\u{6ff}' => Some(Language::Arabic),
            _ => None,
        }
    }

    /// Returns the stem of a folded word. Words with digits and words longer than 64 bytes stay as
    /// they are.
    pub(crate) fn stem(self, word: &str) -> String {
        if word.len() > MAX_STEMMED_BYTES || word.chars().any(char::is_numeric) {
            return word.to_owned();
        }
        let stem = Stemmer::create(self.algorithm()).stem(word);
        match stem.is_empty() {
            true => word.to_owned(),
            false => stem.into_owned(),
        }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Language::Arabic => Algorithm::Arabic,
            Language::Danish => Algorithm::Danish,
            Language::Dutch => Algorithm::Dutch,
            Language::English => Algorithm::English,
            Language::Finnish => Algorithm::Finnish,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Greek => Algorithm::Greek,
            Language::Hungarian => Algorithm::Hungarian,
            Language::Italian => Algorithm::Italian,
            Language::Norwegian => Algorithm::Norwegian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Romanian => Algorithm::Romanian,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Turkish => Algorithm::Turkish,
        }
    }
}
