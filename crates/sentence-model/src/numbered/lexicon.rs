//! The words in `words.txt`.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Meanings of phrases, as bits.
pub(super) mod cue {
    pub(crate) const MOVES: u16 = 1;
    pub(crate) const NOW: u16 = 1 << 1;
    pub(crate) const RULE: u16 = 1 << 2;
    pub(crate) const SAME: u16 = 1 << 3;
    pub(crate) const PAST: u16 = 1 << 4;
    pub(crate) const OPEN: u16 = 1 << 5;
    pub(crate) const DROPS: u16 = 1 << 6;
    pub(crate) const ASSIGNS: u16 = 1 << 7;
    pub(crate) const NEGATES: u16 = 1 << 8;
    /// A past tense.
    pub(crate) const WAS: u16 = 1 << 9;
    /// Letters of a script without known words.
    pub(crate) const FOREIGN: u16 = 1 << 10;
    /// Phrases that do not describe a subject.
    pub(crate) const EMPTY: u16 = MOVES | NOW | RULE | SAME | DROPS | NEGATES;
}

/// A phrase after its first word, with its meaning.
type Rest = (Vec<&'static str>, u16);

/// Lists of words by which the numbers of a sentence are understood.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    /// Phrases in scripts with spaces, by their first word.
    phrases: HashMap<&'static str, Vec<Rest>>,
    /// Phrases in scripts without spaces.
    han_phrases: Beginnings<u16>,
    pub(super) empty: HashSet<&'static str>,
    /// Other lists of words, by their names.
    lists: HashMap<&'static str, HashSet<&'static str>>,
    pub(super) empty_chars: HashSet<char>,
    pub(super) day_chars: HashSet<char>,
    /// Maps a word to the index of its opposite and its side.
    pub(super) opposite: HashMap<&'static str, (usize, usize)>,
    pub(super) han_opposites: Beginnings<(usize, usize)>,
    pub(super) alias: HashMap<&'static str, &'static str>,
    /// Maps a unit to its dimension and its size.
    pub(super) units: HashMap<&'static str, (&'static str, f64)>,
    pub(super) han_units: Beginnings<(&'static str, f64)>,
    pub(super) scales: HashMap<&'static str, f64>,
    pub(super) han_scales: Beginnings<f64>,
    /// Units and scales of languages without known words.
    pub(super) units_behind: Beginnings<(&'static str, f64)>,
    pub(super) scales_behind: Beginnings<f64>,
    pub(super) counters: Beginnings<()>,
    pub(super) namers: Beginnings<()>,
    pub(super) digits: HashMap<&'static str, u32>,
    pub(super) times: HashMap<&'static str, u32>,
    pub(super) ordinals: HashMap<&'static str, u32>,
    pub(super) months: HashMap<&'static str, u32>,
    pub(super) weekdays: HashMap<&'static str, u32>,
    pub(super) han_days: Beginnings<u32>,
}

/// Words by their first character.
#[derive(Debug)]
pub(super) struct Beginnings<T>(HashMap<char, Vec<(&'static str, T)>>);

impl<T> Default for Beginnings<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Copy> Beginnings<T> {
    fn add(&mut self, word: &'static str, value: T) {
        if let Some(first) = word.chars().next() {
            self.0.entry(first).or_default().push((word, value));
        }
    }

    /// Returns the words at the beginning of a text.
    pub(super) fn all(&self, text: &str) -> impl Iterator<Item = (&'static str, T)> {
        let known = text.chars().next().and_then(|first| self.0.get(&first));
        let known = known.into_iter().flatten();
        known
            .copied()
            .filter(move |(word, _)| text.starts_with(word))
    }

    /// Returns the longest word at the beginning of a text.
    pub(super) fn longest(&self, text: &str) -> Option<(&'static str, T)> {
        self.all(text).max_by_key(|(word, _)| word.len())
    }
}

/// Returns the greatest length with all of its meanings.
fn longest(found: impl Iterator<Item = (usize, u16)>) -> Option<(usize, u16)> {
    found.reduce(|one, other| match one.0.cmp(&other.0) {
        Ordering::Less => other,
        Ordering::Equal => (one.0, one.1 | other.1),
        Ordering::Greater => one,
    })
}

/// Returns whether a character is Han.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}')
}

impl Lexicon {
    /// Returns whether a list contains a word.
    pub(super) fn has(&self, list: &str, word: &str) -> bool {
        self.lists
            .get(list)
            .is_some_and(|words| words.contains(word))
    }

    /// Returns the words of a list.
    pub(super) fn list(&self, name: &str) -> impl Iterator<Item = &'static str> {
        self.lists.get(name).into_iter().flatten().copied()
    }

    /// Returns whether a list contains a word, or the end of a text in a script without spaces.
    pub(super) fn ends(&self, list: &str, text: &str) -> bool {
        let ends = |word: &&str| word.starts_with(is_han) && text.ends_with(*word);
        self.has(list, text)
            || self
                .lists
                .get(list)
                .is_some_and(|words| words.iter().any(ends))
    }

    /// Returns the length in words of the longest phrase at the beginning of some words, with its meanings.
    pub(super) fn phrase<'w>(
        &self,
        words: impl Iterator<Item = &'w str> + Clone,
    ) -> Option<(usize, u16)> {
        let known = self.phrases.get(words.clone().next()?)?.iter();
        let found = known.filter(|(rest, _)| {
            let mut own = words.clone().skip(1);
            rest.iter().all(|word| own.next() == Some(*word))
        });
        longest(found.map(|(rest, cue)| (rest.len() + 1, *cue)))
    }

    /// Returns the length in bytes of the longest phrase at the beginning of a text in a script without spaces, with
    /// its meanings.
    pub(super) fn han_phrase(&self, text: &str) -> Option<(usize, u16)> {
        let known = self.han_phrases.all(text);
        longest(known.map(|(phrase, cue)| (phrase.len(), cue)))
    }

    /// Returns whether a text in a script without spaces begins with a negation.
    pub(super) fn negates(&self, text: &str) -> bool {
        let mut known = self.han_phrases.all(text);
        known.any(|(_, cue)| cue & (cue::NEGATES | cue::DROPS) != 0)
    }

    fn add_phrase(&mut self, phrase: &'static str, cue: u16) {
        if phrase.starts_with(is_han) {
            return self.han_phrases.add(phrase, cue);
        }
        // A comma at the end of a phrase belongs to it.
        let (phrase, mark) = match phrase.strip_suffix(',') {
            Some(phrase) => (phrase, Some(",")),
            None => (phrase, None),
        };
        let mut words = phrase.split(' ').chain(mark);
        if let Some(first) = words.next() {
            self.phrases
                .entry(first)
                .or_default()
                .push((words.collect(), cue));
        }
    }

    fn add_unit(&mut self, name: &str, list: &'static str) {
        let (size, words) = list.rsplit_once(' ').unwrap_or(("", list));
        let (dimension, size) = size.rsplit_once(' ').unwrap_or(("", size));
        let size = size.parse().unwrap_or(1.0);
        for word in words.split('/') {
            match (name, word.starts_with(is_han)) {
                ("jk unit", _) => self.units_behind.add(word, (dimension, size)),
                ("jk scale", _) => self.scales_behind.add(word, size),
                ("unit", true) => self.han_units.add(word, (dimension, size)),
                ("unit", false) => drop(self.units.insert(word, (dimension, size))),
                (_, true) => self.han_scales.add(word, size),
                (_, false) => drop(self.scales.insert(word, size)),
            }
        }
    }

    fn add_opposite(&mut self, at: usize, list: &'static str) {
        for (side, words) in list.split(", ").enumerate() {
            for word in words.split('/') {
                match word.starts_with(is_han) {
                    true => self.han_opposites.add(word, (at, side)),
                    false => drop(self.opposite.insert(word, (at, side))),
                }
            }
        }
    }
}

pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut all = Lexicon::default();
    let lines = include_str!("words.txt").lines().enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
        let Some((name, list)) = line.split_once(": ") else {
            continue;
        };
        let words = || list.split(", ").map(str::trim);
        let numbers = || {
            words().filter_map(|word| {
                let (word, number) = word.rsplit_once(' ')?;
                Some((word, number.parse::<u32>().ok()?))
            })
        };
        let cue = match name {
            "move" => cue::MOVES,
            "now" => cue::NOW,
            "rule" => cue::RULE,
            "same" => cue::SAME,
            "past" => cue::PAST,
            "if" => cue::OPEN,
            "drop" => cue::DROPS,
            "assigned" => cue::ASSIGNS,
            "negation" => cue::NEGATES,
            "was" => cue::WAS,
            _ => 0,
        };
        match name {
            _ if cue != 0 => words().for_each(|word| all.add_phrase(word, cue)),
            "empty" => all.empty.extend(words()),
            "empty_chars" => all.empty_chars.extend(list.trim().chars()),
            "day_chars" => all.day_chars.extend(list.trim().chars()),
            "counter" => words().for_each(|word| all.counters.add(word, ())),
            "namer" => words().for_each(|word| all.namers.add(word, ())),
            "digits" => all.digits.extend(numbers()),
            "times" => all.times.extend(numbers()),
            "ordinal" => all.ordinals.extend(numbers()),
            "month" => all.months.extend(numbers()),
            "weekday" => {
                for (word, day) in numbers() {
                    match word.starts_with(is_han) {
                        true => all.han_days.add(word, day),
                        false => drop(all.weekdays.insert(word, day)),
                    }
                }
            }
            "opposite" => all.add_opposite(at, list),
            "alias" => {
                let first = list.split('/').next().unwrap_or(list);
                all.alias.extend(list.split('/').map(|word| (word, first)));
            }
            "unit" | "scale" | "jk unit" | "jk scale" => all.add_unit(name, list),
            _ => all.lists.entry(name).or_default().extend(words()),
        }
    }
    all
});
