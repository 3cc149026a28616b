//! Languages with rules that reduce words to their stems.

use super::chars::is_mark;
use rust_stemmers::{Algorithm, Stemmer};

/// A language with Snowball rules, which reduce words to their stems. All words in Latin script are treated as English.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Arabic.
    Arabic,
    /// English, and all other languages in Latin script.
    English,
    /// Greek.
    Greek,
    /// Russian.
    Russian,
}

/// Maximum length of a word that is stemmed, in bytes. No language has longer words, but data written in letters may
/// have.
const MAX_STEMMED_BYTES: usize = 64;

impl Language {
    /// Returns the language of a word, determined by its script. `None` for a script without stemming rules.
    pub fn of_word(word: &str) -> Option<Language> {
        match word.chars().find(|c| c.is_alphabetic() && !is_mark(*c))? {
            'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Some(Language::English),
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Some(Language::Greek),
            '\u{400}'..='\u{4ff}' => Some(Language::Russian),
            '\u{620}'..='\u{6ff}' => Some(Language::Arabic),
            _ => None,
        }
    }

    /// Returns the stem of a case-folded word. Words with digits and words longer than 64 bytes are returned unchanged.
    pub fn stem(self, word: &str) -> String {
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
            Language::English => Algorithm::English,
            Language::Greek => Algorithm::Greek,
            Language::Russian => Algorithm::Russian,
        }
    }
}
