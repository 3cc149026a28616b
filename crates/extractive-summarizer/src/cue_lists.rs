//! Lists of phrases that mark the meaning of a sentence, and a quick search for all of them.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::rule_cues::{ASKS, CHANGES, SINCE, SMALL_TALK, STANDING, UNIVERSAL, UPDATES, WITHDRAWS};
use crate::text::matcher;

/// A list of phrases.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cue {
    Standing,
    Asks,
    Changes,
    Updates,
    Since,
    Universal,
    Withdraws,
    Kindly,
}

impl Cue {
    const ALL: [Self; 8] = [
        Self::Standing,
        Self::Asks,
        Self::Changes,
        Self::Updates,
        Self::Since,
        Self::Universal,
        Self::Withdraws,
        Self::Kindly,
    ];

    pub(crate) fn phrases(self) -> &'static [&'static str] {
        match self {
            Self::Standing => STANDING,
            Self::Asks => ASKS,
            Self::Changes => CHANGES,
            Self::Updates => UPDATES,
            Self::Since => SINCE,
            Self::Universal => UNIVERSAL,
            Self::Withdraws => WITHDRAWS,
            Self::Kindly => SMALL_TALK,
        }
    }
}

/// Set of the lists of which a sentence may have a phrase: one bit for each list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cues(u8);

impl Cues {
    /// Searches a sentence for the phrases of all lists. Does not check the borders of words.
    pub(crate) fn of(sentence: &str) -> Self {
        static ALL: LazyLock<(Option<AhoCorasick>, Vec<u8>)> = LazyLock::new(|| {
            let lists = Cue::ALL.iter().map(|cue| (cue.phrases(), 1 << *cue as u8));
            let all = lists.flat_map(|(phrases, bit)| phrases.iter().map(move |one| (*one, bit)));
            let (phrases, bits): (Vec<&str>, Vec<u8>) = all.unzip();
            (matcher(&phrases), bits)
        });
        let (matcher, bits) = &*ALL;
        let found = matcher
            .iter()
            .flat_map(|all| all.find_overlapping_iter(sentence));
        let bit = |n: usize| bits.get(n).copied().unwrap_or(0);
        Self(found.fold(0, |found, phrase| found | bit(phrase.pattern().as_usize())))
    }

    pub(crate) fn has(self, cue: Cue) -> bool {
        self.0 & (1 << cue as u8) != 0
    }
}
