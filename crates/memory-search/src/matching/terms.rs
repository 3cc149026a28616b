//! The terms of a pattern, and their positions in texts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sentence_model::words::{Tokenizer, WordKind, visit_words};

/// The distinct terms of a pattern, with a cache of words that were seen in texts. Most words of a text occurred
/// before, and a look-up in the cache is faster than stemming a word again.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    sorted: Vec<String>,
    tokenizer: Tokenizer,
    /// Maps each seen word to the index of its term in `sorted`. `None` if the pattern does not contain the term.
    seen: Arc<Mutex<HashMap<Box<str>, Option<usize>>>>,
    /// The possible first ASCII characters, in lower case, of words with these terms.
    first: Vec<u8>,
}

impl Terms {
    /// Maximum number of words in the cache.
    const MOST_SEEN: usize = 1 << 14;

    /// Maximum length of a word in the cache, in bytes.
    const LONGEST_SEEN: usize = 32;

    /// Creates the terms of a pattern. `terms` must be sorted.
    pub(super) fn new(terms: Vec<String>, tokenizer: Tokenizer) -> Self {
        let first = tokenizer.first_letters(&terms);
        Self {
            sorted: terms,
            tokenizer,
            seen: Arc::default(),
            first,
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, String> {
        self.sorted.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the occurrences of the terms in a text: for each, the index of the term and its byte range.
    pub(super) fn places(&self, text: &str) -> Vec<(usize, Range<usize>)> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        let place = |term: &String| self.sorted.binary_search(term).ok();
        visit_words(text, &mut |word| {
            if word.kind == WordKind::Unspaced {
                self.tokenizer
                    .visit_characters(text, &word, &mut |range, term| {
                        found.extend(place(&term).map(|place| (place, range)));
                    });
                return;
            }
            let body = text.get(word.range.clone()).unwrap_or_default();
            if let Some(first) = body.bytes().next()
                && first.is_ascii()
                && body.is_ascii()
                && !self.first.contains(&first.to_ascii_lowercase())
            {
                return;
            }
            let at = match seen.get(body) {
                Some(at) => *at,
                None => {
                    let at = place(&self.tokenizer.term(body));
                    if body.len() <= Self::LONGEST_SEEN && seen.len() < Self::MOST_SEEN {
                        seen.insert(body.into(), at);
                    }
                    at
                }
            };
            found.extend(at.map(|place| (place, word.range)));
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_term_is_found() {
        let text = "went Going GO gave dying skies yelled Yay children 3rd naïve écoles бегают かな 🎉 generously \
                    buys bought It x86";
        for tokenizer in [Tokenizer::WORDS, Tokenizer::RANKING] {
            let mut all = Vec::new();
            tokenizer.visit_text(text, &mut |range, term| all.push((range, term)));
            for (_, term) in &all {
                let terms = Terms::new(vec![term.clone()], tokenizer);
                let expected = all.iter().filter(|(_, other)| other == term);
                let expected: Vec<_> = expected.map(|(range, _)| (0, range.clone())).collect();
                assert_eq!(terms.places(text), expected, "{term}");
            }
        }
    }
}
