//! Meanings of words and phrases, from `cues.txt`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::clauses::Clauses;
use crate::scripts::is_unspaced;

/// Lists of words that only count at the beginning of a clause.
const BEGINNINGS: [&str; 11] = [
    "verb",
    "filler",
    "ever",
    "dont",
    "bare",
    "own",
    "us",
    "other",
    "when",
    "question",
    "addressed",
];

/// Phrases of which some may be found in a text, with the meaning of each.
#[derive(Default)]
struct Phrases {
    search: Option<AhoCorasick>,
    meanings: Vec<&'static str>,
}

impl Phrases {
    fn new(phrases: Vec<(String, &'static str)>) -> Self {
        let (texts, meanings): (Vec<String>, Vec<&str>) = phrases.into_iter().unzip();
        // Of `from now on` and `now`, the longer one is meant. The patterns are constant, and a test searches with them.
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(texts)
            .ok();
        Self { search, meanings }
    }

    fn count<'p>(&'p self, text: &str, counts: &mut BTreeMap<&'p str, u32>) {
        let found = self.search.iter().flat_map(|search| search.find_iter(text));
        for one in found {
            if let Some(meaning) = self.meanings.get(one.pattern().as_usize()) {
                *counts.entry(meaning).or_default() += 1;
            }
        }
    }
}

struct Cues {
    /// Phrases of scripts with spaces, each with a space at both ends.
    spaced: Phrases,
    unspaced: Phrases,
    begins: HashMap<&'static str, HashSet<&'static str>>,
}

static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let (mut spaced, mut unspaced) = (Vec::new(), Vec::new());
    let mut begins: HashMap<&'static str, HashSet<&'static str>> = HashMap::new();
    let lines = include_str!("cues.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    for (name, list) in lines.filter_map(|line| line.split_once(": ")) {
        let meaning = name.split_once(' ').map_or(name, |(meaning, _)| meaning);
        let phrases = list.split(", ").map(str::trim);
        if BEGINNINGS.contains(&meaning) {
            begins.entry(meaning).or_default().extend(phrases);
            continue;
        }
        for phrase in phrases {
            match phrase.contains(is_unspaced) || !phrase.contains(char::is_alphanumeric) {
                true => unspaced.push((phrase.to_owned(), meaning)),
                false => spaced.push((spaced_out(phrase.split(' ')), meaning)),
            }
        }
    }
    Cues {
        spaced: Phrases::new(spaced),
        unspaced: Phrases::new(unspaced),
        begins,
    }
});

/// Returns words with a space at both ends of each, so that two phrases in a row share no space.
fn spaced_out<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!(" {word} ")).collect()
}

/// Returns all phrases that have a meaning wherever they are.
#[cfg(test)]
pub(super) fn phrases() -> Vec<&'static str> {
    let lines = include_str!("cues.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let lists = lines.filter_map(|line| line.split_once(": "));
    let lists = lists.filter(|(name, _)| !BEGINNINGS.iter().any(|list| name.starts_with(list)));
    lists.flat_map(|(_, list)| list.split(", ")).collect()
}

/// Returns the meaning of each phrase.
#[cfg(test)]
pub(super) fn all_meanings() -> impl Iterator<Item = &'static str> {
    let meanings = CUES.spaced.meanings.iter().chain(&CUES.unspaced.meanings);
    meanings.copied()
}

/// Returns how many phrases of each meaning a sentence has.
pub(super) fn meanings(sentence: &Clauses) -> BTreeMap<&'static str, u32> {
    let mut counts = BTreeMap::new();
    CUES.spaced
        .count(&spaced_out(sentence.words()), &mut counts);
    if sentence.text.contains(is_unspaced) {
        CUES.unspaced.count(&sentence.text, &mut counts);
    }
    counts
}

/// Returns the number of words of the phrase at the beginning of some words that says that something lasts; 0 if there is none.
pub(super) fn lasting<'w>(words: impl Iterator<Item = &'w str>) -> usize {
    let words = spaced_out(words);
    let first = CUES
        .spaced
        .search
        .iter()
        .find_map(|search| search.find(&words));
    let first = first.filter(|found| {
        let meaning = CUES.spaced.meanings.get(found.pattern().as_usize());
        found.start() == 0 && meaning == Some(&"lasting")
    });
    let phrase = first.and_then(|found| words.get(found.range()));
    phrase.map_or(0, |phrase| phrase.split_whitespace().count())
}

/// Returns whether a word is in a list of words at the beginning of a clause.
pub(super) fn begins(list: &str, word: &str) -> bool {
    CUES.begins
        .get(list)
        .is_some_and(|words| words.contains(word))
}
