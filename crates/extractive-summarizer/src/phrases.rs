//! Search for phrases that mark the meaning of a sentence.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::rule_cues::{ASKS, CHANGES, SINCE, SMALL_TALK, STANDING, UNIVERSAL, UPDATES, WITHDRAWS};
use crate::text::{is_wide, matcher};
use crate::words::Words;

/// A list of phrases, with a matcher that quickly finds sentences that may have one.
pub(crate) struct Cues {
    phrases: &'static [&'static str],
    pub(crate) matcher: Option<AhoCorasick>,
}

impl Cues {
    fn of(phrases: &'static [&'static str]) -> Self {
        let matcher = matcher(phrases);
        Self { phrases, matcher }
    }
}

pub(crate) static SAID_STANDING: LazyLock<Cues> = LazyLock::new(|| Cues::of(STANDING));
pub(crate) static SAID_ASKS: LazyLock<Cues> = LazyLock::new(|| Cues::of(ASKS));
pub(crate) static SAID_CHANGES: LazyLock<Cues> = LazyLock::new(|| Cues::of(CHANGES));
pub(crate) static SAID_UPDATES: LazyLock<Cues> = LazyLock::new(|| Cues::of(UPDATES));
pub(crate) static SAID_SINCE: LazyLock<Cues> = LazyLock::new(|| Cues::of(SINCE));
pub(crate) static SAID_UNIVERSAL: LazyLock<Cues> = LazyLock::new(|| Cues::of(UNIVERSAL));
pub(crate) static SAID_WITHDRAWS: LazyLock<Cues> = LazyLock::new(|| Cues::of(WITHDRAWS));
pub(crate) static SAID_KINDLY: LazyLock<Cues> = LazyLock::new(|| Cues::of(SMALL_TALK));

/// Returns whether a sentence has one of the phrases. Phrases in scripts without spaces may occur anywhere, and others
/// only as whole words.
pub(crate) fn any(words: &Words<'_>, sentence: &str, cues: &Cues) -> bool {
    // Most sentences have none of the phrases, so a fast check comes first.
    let found = cues
        .matcher
        .as_ref()
        .is_some_and(|matcher| matcher.is_match(sentence));
    found
        && cues
            .phrases
            .iter()
            .any(|phrase| match phrase.contains(is_wide) {
                true => sentence.contains(phrase),
                false => words.has(phrase),
            })
}
