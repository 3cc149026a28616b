//! The condition that a segment must meet for a query.

use super::grams::{folded, folded_text, grams_of};
use super::unbroken::SHORTEST;
use super::{gram_key, word_key};

/// Keys of which one must exist.
pub(super) type TermKeys = Vec<Vec<u8>>;

/// The characters that one place may have, as runs of characters have them; rising.
pub(crate) type CharSet = Vec<char>;

/// The condition that every message that matches a pattern meets, as far as an index can check it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Need {
    /// No condition: all messages are read.
    Nothing,
    /// All of these runs of characters, by their keys.
    Grams(Vec<Vec<u8>>),
    /// A run of characters with this beginning.
    GramPrefix(Vec<u8>),
    /// Adjacent characters, three or more: one of each of these sets.
    SideBySide(Vec<CharSet>),
    /// A stretch without white space. The number is its least length in characters: 16 to 254, or 255 for any length
    /// from 255 on.
    Unbroken(u8),
    /// One word of each of these, by their keys.
    Words(Vec<TermKeys>),
    /// All of these, two or more.
    All(Vec<Need>),
    /// One of these, two or more.
    Any(Vec<Need>),
}

impl Need {
    /// The condition of a text that contains a pattern, in any case.
    pub(crate) fn of_literal(pattern: &str) -> Self {
        let grams = grams_of(pattern);
        match grams.is_empty() {
            true => Need::GramPrefix(gram_key(&folded_text(pattern))),
            false => Need::Grams(grams.iter().map(|gram| gram_key(gram)).collect()),
        }
    }

    /// The condition of a text that has a stretch of at least `chars` characters without white space.
    pub(crate) fn of_unbroken(chars: u64) -> Self {
        match u8::try_from(chars).unwrap_or(u8::MAX) {
            ..SHORTEST => Need::Nothing,
            chars => Need::Unbroken(chars),
        }
    }

    /// The condition of a text that has one term of each of these lists.
    pub(crate) fn of_terms(terms: impl IntoIterator<Item = Vec<String>>) -> Self {
        let keys = |terms: Vec<String>| terms.iter().map(|term| word_key(term)).collect();
        Need::Words(terms.into_iter().map(keys).collect())
    }

    /// The condition of a text that meets all of these.
    pub(crate) fn all(mut needs: Vec<Need>) -> Self {
        needs.retain(|need| *need != Need::Nothing);
        match needs.len() {
            0 | 1 => needs.pop().unwrap_or(Need::Nothing),
            _ => Need::All(needs),
        }
    }

    /// The condition of a text that meets one of these.
    pub(crate) fn any(mut needs: Vec<Need>) -> Self {
        match needs.len() {
            _ if needs.contains(&Need::Nothing) => Need::Nothing,
            0 | 1 => needs.pop().unwrap_or(Need::Nothing),
            _ => Need::Any(needs),
        }
    }
}

/// A set of characters as runs have them; `None` if one of them becomes more than one.
pub(crate) fn char_set(chars: impl IntoIterator<Item = char>) -> Option<CharSet> {
    let mut set = CharSet::new();
    for c in chars {
        let mut alone = folded(c);
        set.extend(alone.next());
        if alone.next().is_some() {
            return None;
        }
    }
    set.sort_unstable();
    set.dedup();
    Some(set)
}
