//! Search for phrases that mark the meaning of a sentence.

use crate::cue_lists::Cue;
use crate::words::Words;
use sentence_model::is_unspaced;

/// Returns whether a sentence has one of the phrases of a list. Phrases in scripts without spaces may occur anywhere,
/// and others only as whole words.
pub(crate) fn any(words: &Words<'_>, sentence: &str, cue: Cue) -> bool {
    // Most sentences have none of the phrases, so a fast check comes first.
    words.cues(sentence).has(cue)
        && cue
            .phrases()
            .iter()
            .any(|phrase| match phrase.contains(is_unspaced) {
                true => sentence.contains(phrase),
                false => words.has(phrase),
            })
}
