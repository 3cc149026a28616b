//! The phrases of `cues.txt`, and a search for them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Meaning of a phrase for its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// A value that follows is meant to replace another.
    Weak,
    /// Something that follows is meant to replace something else.
    Strong,
    /// Something is no longer so.
    Drop,
    /// A negation.
    Negation,
    /// The statement is repeated, or is about another case.
    Same,
    /// A rule about how something is done.
    Rule,
    /// Something is added.
    Adding,
    /// An example follows.
    Example,
    /// A reason or purpose follows.
    Reason,
    /// A joint between two clauses, such as `and`.
    Joint,
    /// A boundary between clauses. The second one counts.
    Contrast,
    /// Words that do not describe a subject.
    Empty,
    /// The sentence refers to an earlier name.
    Pronoun,
    /// A value that is written as a word: the number of the list, and of the value.
    Value(usize, usize),
    /// One of several things that are never the same: the number of the list, and of the thing.
    Apart(usize, usize),
}

/// A phrase in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) cue: Cue,
}

/// All phrases.
struct Phrases {
    /// By their first word: the words after it.
    spaced: HashMap<&'static str, Vec<(Vec<&'static str>, Cue)>>,
    /// In scripts without spaces between words, and with particles joined to them.
    unspaced: Vec<(&'static str, Cue)>,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut phrases = Phrases {
        spaced: HashMap::new(),
        unspaced: Vec::new(),
    };
    let lines = include_str!("cues.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    for (at, line) in lines.enumerate() {
        let Some((name, list)) = line.split_once(": ") else {
            continue;
        };
        for (thing, names) in list.split(", ").enumerate() {
            let cue = match name {
                "weak" => Cue::Weak,
                "strong" => Cue::Strong,
                "drop" => Cue::Drop,
                "negation" => Cue::Negation,
                "same" => Cue::Same,
                "rule" => Cue::Rule,
                "adding" => Cue::Adding,
                "example" => Cue::Example,
                "reason" => Cue::Reason,
                "joint" => Cue::Joint,
                "contrast" => Cue::Contrast,
                "empty" => Cue::Empty,
                "pronoun" => Cue::Pronoun,
                "values" => Cue::Value(at, thing),
                "apart" => Cue::Apart(at, thing),
                _ => continue,
            };
            for phrase in names.split('/').map(str::trim) {
                phrases.add(phrase, cue);
            }
        }
    }
    phrases
});

impl Phrases {
    fn add(&mut self, phrase: &'static str, cue: Cue) {
        if phrase.starts_with(is_unspaced) {
            self.unspaced.push((phrase, cue));
            return;
        }
        let mut words = words(phrase)
            .into_iter()
            .filter_map(|range| phrase.get(range));
        if let Some(first) = words.next() {
            let rest = (words.collect(), cue);
            self.spaced.entry(first).or_default().push(rest);
        }
    }
}

/// Whether a character is Kana, Hangul or Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}')
}

/// The words of a folded text, with the apostrophes within them.
pub(super) fn words(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (at, c) in text.char_indices() {
        let is_word = c.is_alphanumeric() || c == '\'';
        match (is_word, open) {
            (true, true) => out.iter_mut().next_back().into_iter().for_each(|word| {
                word.end = at + c.len_utf8();
            }),
            (true, false) => out.push(at..at + c.len_utf8()),
            _ => {}
        }
        open = is_word;
    }
    out
}

/// The phrases that a folded text has.
pub(super) fn find(text: &str) -> Vec<Found> {
    let phrases = &*PHRASES;
    let mut out = Vec::new();
    let words = words(text);
    let word = |at: usize| words.get(at).and_then(|range| text.get(range.clone()));
    for (at, range) in words.iter().enumerate() {
        let known = word(at).and_then(|first| phrases.spaced.get(first));
        for (rest, cue) in known.into_iter().flatten() {
            let goes_on = rest.iter().enumerate();
            let has = goes_on
                .clone()
                .all(|(n, next)| word(at + 1 + n) == Some(next));
            let last = words.get(at + rest.len());
            if let (true, Some(last)) = (has, last) {
                out.push(Found {
                    range: range.start..last.end,
                    cue: *cue,
                });
            }
        }
    }
    if text.contains(is_unspaced) {
        for (phrase, cue) in &phrases.unspaced {
            out.extend(text.match_indices(phrase).map(|(at, _)| Found {
                range: at..at + phrase.len(),
                cue: *cue,
            }));
        }
    }
    out
}

/// The words that say that something is a value of something else.
pub(super) fn links() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("cues.txt").lines();
    let lists = lines.filter_map(|line| line.strip_prefix("is: "));
    lists.flat_map(|list| list.split(", ").map(str::trim))
}
