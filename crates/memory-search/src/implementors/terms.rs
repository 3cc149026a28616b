//! The terms of a pattern, and where they stand in texts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::words::{Tokenizer, WordKind, visit_words};

/// The distinct terms of a pattern, and which of them the words are that texts had so far: most words of a text
/// occurred before, and finding a word's stem takes longer than looking the word up.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    sorted: Vec<String>,
    /// By word, as it is written: the place of its term, if it is one.
    seen: Arc<Mutex<HashMap<Box<str>, Option<usize>>>>,
}

impl Terms {
    /// Words that are remembered.
    const MOST_SEEN: usize = 1 << 14;

    /// Longest word that is remembered, in bytes.
    const LONGEST_SEEN: usize = 32;

    /// `terms` are in order.
    pub(super) fn new(terms: Vec<String>) -> Self {
        Self {
            sorted: terms,
            seen: Arc::default(),
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, String> {
        self.sorted.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Where terms stand in a text, with the place of each.
    pub(super) fn places(&self, text: &str, tokenizer: Tokenizer) -> Vec<(usize, Range<usize>)> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        let place = |term: &String| self.sorted.binary_search(term).ok();
        visit_words(text, &mut |word| {
            if word.kind == WordKind::Unspaced {
                tokenizer.visit_characters(text, &word, &mut |range, term| {
                    found.extend(place(&term).map(|place| (place, range)));
                });
                return;
            }
            let body = text.get(word.range.clone()).unwrap_or_default();
            let at = match seen.get(body) {
                Some(at) => *at,
                None => {
                    let at = place(&tokenizer.term(text, &word));
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
