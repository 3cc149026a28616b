//! The condition that a document in a segment must satisfy for a query.

use super::grams::{folded, folded_text, grams_of};
use super::unbroken::SHORTEST;
use super::{gram_key, word_key};

/// Keys of words, of which a document must contain at least one.
pub(super) type TermKeys = Vec<Vec<u8>>;

/// The possible characters at one place, in the form in which runs contain them, in ascending order.
pub(crate) type CharSet = Vec<char>;

/// A condition that every message matching a pattern satisfies, and that an index can check. Other messages may satisfy
/// it too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Need {
    /// No condition: all messages are read.
    Nothing,
    /// The message contains all of these runs of three characters, given by their keys.
    Grams(Vec<Vec<u8>>),
    /// The message contains a run of characters that begins with this prefix.
    GramPrefix(Vec<u8>),
    /// The message contains three or more adjacent characters, one from each of these sets.
    SideBySide(Vec<CharSet>),
    /// The message contains a stretch without white space. The number is its minimum length in characters: 16 to 254,
    /// or 255 for any length of at least 255.
    Unbroken(u8),
    /// The message contains, for each of these lists, one of its words, given by their keys.
    Words(Vec<TermKeys>),
    /// The message satisfies all of these conditions. There are at least two.
    All(Vec<Need>),
    /// The message satisfies one of these conditions. There are at least two.
    Any(Vec<Need>),
}

impl Need {
    /// Returns the condition for texts that contain a literal pattern, ignoring case.
    pub(crate) fn of_literal(pattern: &str) -> Self {
        let grams = grams_of(pattern);
        match grams.is_empty() {
            true => Need::GramPrefix(gram_key(&folded_text(pattern))),
            false => Need::Grams(grams.iter().map(|gram| gram_key(gram)).collect()),
        }
    }

    /// Returns the condition for texts with a stretch of at least `chars` characters without white space.
    pub(crate) fn of_unbroken(chars: u64) -> Self {
        match u8::try_from(chars).unwrap_or(u8::MAX) {
            ..SHORTEST => Need::Nothing,
            chars => Need::Unbroken(chars),
        }
    }

    /// Returns the condition for texts that contain one term of each of these lists.
    pub(crate) fn of_terms(terms: impl IntoIterator<Item = Vec<String>>) -> Self {
        let keys = |terms: Vec<String>| terms.iter().map(|term| word_key(term)).collect();
        Need::Words(terms.into_iter().map(keys).collect())
    }

    /// Returns the condition for texts that satisfy all of these conditions.
    pub(crate) fn all(mut needs: Vec<Need>) -> Self {
        needs.retain(|need| *need != Need::Nothing);
        match needs.len() {
            0 | 1 => needs.pop().unwrap_or(Need::Nothing),
            _ => Need::All(needs),
        }
    }

    /// Returns the condition for texts that satisfy one of these conditions.
    pub(crate) fn any(mut needs: Vec<Need>) -> Self {
        match needs.len() {
            _ if needs.contains(&Need::Nothing) => Need::Nothing,
            0 | 1 => needs.pop().unwrap_or(Need::Nothing),
            _ => Need::Any(needs),
        }
    }
}

/// Returns a set of characters in the form in which runs contain them. `None` if one of them becomes several
/// characters.
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
