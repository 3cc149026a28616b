//! The signal phrases in `cues.txt`, and a search for them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Meaning of a signal phrase for its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    /// A value that follows probably replaces another value.
    Weak,
    /// A value or thing that follows replaces another one.
    Strong,
    /// The phrase cancels an earlier statement, such as a plan.
    Drop,
    /// The phrase is a negation.
    Negation,
    /// The statement repeats an earlier one, or is about another case.
    Same,
    /// The statement is a rule for doing something.
    Rule,
    /// The statement adds something to an earlier one.
    Adding,
    /// An example follows.
    Example,
    /// A reason or purpose follows.
    Reason,
    /// The phrase joins two clauses, such as `and`.
    Joint,
    /// The phrase separates two contrasting clauses. Only the second clause counts.
    Contrast,
    /// The words do not describe a subject.
    Empty,
    /// The sentence refers to something named earlier.
    Pronoun,
    /// The rest of the sentence is a value, if it is short and the sentence has no other value.
    Copula,
    /// The phrase is a value that is written as a word. The two numbers are the index of its list and of the value in
    /// the list.
    Value(usize, usize),
    /// The phrase names one of several things that are never the same, such as `start` and `end`. The two numbers are
    /// the index of the list and of the thing in the list.
    Apart(usize, usize),
}

/// A signal phrase that was found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) cue: Cue,
}

/// All signal phrases.
struct Phrases {
    /// Phrases in scripts with spaces. Maps the first word to the remaining words and the meaning.
    spaced: HashMap<&'static str, Vec<(Vec<&'static str>, Cue)>>,
    /// Phrases in scripts without spaces between words, or with particles joined to the words.
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
                "copula" => Cue::Copula,
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

/// Returns whether a character is Kana, Hangul or Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}')
}

/// Returns the byte ranges of the words in a case-folded text. A word may contain apostrophes.
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

/// Returns the signal phrases in a case-folded text.
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

/// Returns the words that link a subject to its value, such as `is`.
pub(super) fn links() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("cues.txt").lines();
    let lists = lines.filter_map(|line| line.strip_prefix("is: "));
    lists.flat_map(|list| list.split(", ").map(str::trim))
}
