//! Judges by fitted weights whether a sentence in Japanese or Korean changes an earlier one. No list has the words of these
//! languages, so the form of the sentences decides, and words that the weights know.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::grams::grams;
use super::lexicon::LEXICON;
use super::quantities::{Quantity, quantities};
use super::scripts::{LONGEST, Script, Token, plain, tokens};
use super::spelling::{amount_of, stem, written};
use super::weights::{Feature, Gram, gram, probability};

/// Lists of phrases, with the names of the features: how many more the later sentence has, and whether both have some.
const PHRASES: [(&str, &str, &str); 11] = [
    ("more-move", "both-move", "jk move"),
    ("more-now", "both-now", "jk now"),
    ("more-same", "both-same", "jk same"),
    ("more-past", "both-past", "jk past"),
    ("more-open", "both-open", "jk open"),
    ("more-ask", "both-ask", "jk ask"),
    ("more-reason", "both-reason", "jk reason"),
    ("more-negation", "both-negation", "jk negation"),
    ("more-rule", "both-rule", "jk rule"),
    ("more-said", "both-said", "jk said"),
    ("more-topic", "both-topic", "jk topic"),
];

/// Minimum probability of a change by the sentence that directly follows, and by any later one. `cargo xtask fit-changes` prints
/// how many pairs of statements by chance reach these.
const CHANGED: (f64, f64) = (0.6, 0.9);
/// Minimum number of terms that both sentences have, for each of these.
const SHARED: (usize, usize) = (1, 2);
/// Maximum number of terms that are in one sentence only: this many, and [`FOR_SHARED`] for each term of both. Long sentences share
/// terms by chance, and have several subjects.
const MOST_APART: usize = 6;
const FOR_SHARED: usize = 2;
/// Ratio above which the words of two sentences are alike.
const ALIKE: f64 = 0.6;
/// Number of characters of a label before a number, and of a stem in Hangul.
const LABEL: usize = 6;
const HANGUL_STEM: usize = 2;

/// Numbers of a sentence in Japanese or Korean, each with its amount, unit and place, and its terms.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) terms: BTreeSet<String>,
    pub(super) numbers: Vec<(String, String, Range<usize>)>,
}

/// A sentence in Japanese or Korean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fitted {
    tokens: Vec<Word>,
    /// Distinct terms, in order.
    terms: Vec<Word>,
    /// Number of `terms` before the first number.
    before_numbers: usize,
    numbers: Vec<Number>,
    /// Number of phrases of each list of [`PHRASES`].
    phrases: [u8; PHRASES.len()],
    is_quoting: bool,
    commas: u8,
    quantities: Vec<Quantity>,
    grams: Vec<Gram>,
}

/// Hash of a word, which is compared many times; 0 for no word.
type Word = u64;

/// Returns the hash of a word. Its lowest bit says whether it is a number.
fn word(text: &str) -> Word {
    if text.is_empty() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    hasher.finish() & !1 | u64::from(is_number)
}

fn is_number(word: Word) -> bool {
    word & 1 == 1
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Number {
    text: Word,
    /// The word directly before the number.
    label: Word,
    /// Unit or counter after the number, by its beginning.
    unit: Word,
    /// Whether a sign or counter says that the number names: `第3`, `3番`.
    is_name: bool,
    is_early: bool,
    range: Range<usize>,
}

/// Returns the form of a number that is equal for `1,200` and `1200`, and for `2.0` and `2`.
fn amount(number: &str) -> String {
    match amount_of(number) {
        Some(amount) if !number.contains([':', '/', '-']) => written(amount),
        _ => number.to_owned(),
    }
}

/// Returns the terms of a token: words by their beginning, and pairs of Han characters.
fn terms_of(token: &Token) -> Vec<String> {
    let text = token.text.as_str();
    match token.script {
        Script::Latin if LEXICON.empty.contains(text) || text.len() < 2 => Vec::new(),
        Script::Latin => vec![stem(text)],
        Script::Katakana => vec![text.to_owned()],
        Script::Hangul => {
            let ends = LEXICON.list("jk particle");
            let bare = ends.filter_map(|end| text.strip_suffix(end));
            let bare = bare
                .filter(|bare| !bare.is_empty())
                .min_by_key(|bare| bare.len());
            let bare = bare.unwrap_or(text);
            vec![bare.chars().take(HANGUL_STEM).collect()]
        }
        Script::Han => {
            let chars: Vec<char> = text.chars().collect();
            match chars.len() {
                1 => vec![text.to_owned()],
                _ => chars.windows(2).map(|pair| pair.iter().collect()).collect(),
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the end of the word directly before a number. Empty if there is none.
fn label_before(chars: &[char], number: &Token, before: Option<&Token>) -> String {
    let is_label = |before: &&Token| {
        let mut between = chars.iter().take(number.chars.start).skip(before.chars.end);
        before.script != Script::Hiragana && between.all(|c| matches!(c, ' ' | '-' | '#'))
    };
    let label = before.filter(is_label).map_or("", |before| &before.text);
    let length = label.chars().count();
    label.chars().skip(length.saturating_sub(LABEL)).collect()
}

/// Returns the unit or counter behind a number that ends at a character: a word in Latin letters, or the first character
/// of another word. Empty if there is none.
fn unit_behind(chars: &[char], end: usize) -> String {
    let mut behind = chars.iter().skip(end).skip_while(|c| **c == ' ').peekable();
    match behind.peek().map_or(Script::Other, |c| Script::of(**c)) {
        Script::Latin => {
            let letters = behind.take_while(|c| Script::of(**c) == Script::Latin);
            letters.collect()
        }
        Script::Hangul | Script::Han | Script::Katakana => behind.take(1).collect(),
        _ => behind.take(1).filter(|c| **c == '%').collect(),
    }
}

/// Returns whether a sign before a number or a counter behind it says that the number names: `第3`, `3番`.
fn is_name(chars: &[char], number: &Token) -> bool {
    let sign = number
        .chars
        .start
        .checked_sub(1)
        .and_then(|at| chars.get(at));
    let behind = chars.iter().skip(number.chars.end);
    let behind: String = behind.skip_while(|c| **c == ' ').take(2).collect();
    let mut counters = LEXICON.list("jk counter");
    sign.is_some_and(|c| matches!(c, '第' | '제' | '#'))
        || counters.any(|one| behind.starts_with(one))
}

/// Returns the grams of a text.
pub(super) fn grams_of(text: &str) -> BTreeSet<String> {
    let chars: Vec<char> = text.chars().map(plain).collect();
    grams(&chars, &tokens(&chars))
}

impl Fitted {
    /// Reads a sentence. `None` if it has no digit, or neither kana nor Hangul.
    pub(super) fn read(sentence: &str) -> Option<(Self, Words)> {
        let own = |c| {
            matches!(
                Script::of(c),
                Script::Hangul | Script::Hiragana | Script::Katakana
            )
        };
        if !sentence.contains(own) {
            return None;
        }
        let (offsets, chars): (Vec<usize>, Vec<char>) = sentence
            .char_indices()
            .map(|(at, c)| (at, plain(c)))
            .unzip();
        let offset = |n: usize| offsets.get(n).copied().unwrap_or(sentence.len());
        let tokens = tokens(&chars);
        let text: String = chars.iter().collect();
        let numbers = tokens.iter().filter(|token| token.script == Script::Digit);
        let within_numbers: usize = numbers.map(|token| token.text.matches(',').count()).sum();
        let mut out = Self {
            is_quoting: text.contains(['"', '“', '「', '『', '«']),
            commas: few(text.matches([',', '、']).count() - within_numbers),
            phrases: PHRASES.map(|(_, _, list)| {
                few(LEXICON
                    .list(list)
                    .filter(|phrase| text.contains(phrase))
                    .count())
            }),
            ..Self::default()
        };
        let own = grams(&chars, &tokens).into_iter();
        out.grams = own.filter_map(|text| gram(&text)).collect();
        out.quantities = quantities(&chars, &tokens);
        let mut words = Words::default();
        for (at, token) in tokens.iter().enumerate() {
            let amount = match token.script {
                Script::Digit => amount(&token.text),
                _ => token.text.clone(),
            };
            out.tokens.push(word(&amount));
            if token.script != Script::Digit {
                for term in terms_of(token) {
                    if words.terms.insert(term.clone()) {
                        out.terms.push(word(&term));
                    }
                }
                continue;
            }
            if out.numbers.is_empty() {
                out.before_numbers = out.terms.len();
            }
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let unit = unit_behind(&chars, token.chars.end);
            let range = offset(token.chars.start)..offset(token.chars.end);
            out.numbers.push(Number {
                text: word(&amount),
                label: word(&label_before(&chars, token, before)),
                unit: word(&unit),
                is_name: is_name(&chars, token),
                is_early: token.chars.start * 5 < chars.len() * 2,
                range: range.clone(),
            });
            words.numbers.push((amount, unit, range));
        }
        out.terms.truncate(LONGEST);
        (!out.numbers.is_empty()).then_some((out, words))
    }

    /// Returns the terms before the first number.
    fn subject(&self) -> &[Word] {
        self.terms.get(..self.before_numbers).unwrap_or_default()
    }

    /// Returns the number of terms that both sentences have.
    fn shared(&self, other: &Self) -> usize {
        common(&self.terms, &other.terms)
    }

    /// Returns the place of the last number that the earlier sentence does not have.
    pub(super) fn new_number(&self, earlier: &Self) -> Option<Range<usize>> {
        let is_new = |number: &&Number| earlier.numbers.iter().all(|one| one.text != number.text);
        let new = self.numbers.iter().rev().find(is_new);
        new.map(|number| number.range.clone())
    }

    /// Returns whether this sentence is enough about the same thing as an earlier one, and likely enough to change it, to
    /// change it directly after it, and anywhere later.
    pub(super) fn changes(&self, earlier: &Self) -> (bool, bool) {
        let shared = self.shared(earlier);
        let [own, others] = [self, earlier].map(|one| one.terms.len() - shared);
        // Without a new number, words replace words. A sentence that only adds or leaves out some repeats the rest.
        let repeats = self.new_number(earlier).is_none() && (own == 0 || others == 0);
        let is_far = own + others > MOST_APART + FOR_SHARED * shared;
        if shared < SHARED.0 || repeats || is_far {
            return (false, false);
        }
        let probability = probability(&self.features(earlier), &self.grams, &earlier.grams);
        (
            probability >= CHANGED.0,
            probability >= CHANGED.1 && shared >= SHARED.1,
        )
    }

    /// Returns the features of this sentence and an earlier one.
    pub(super) fn features(&self, earlier: &Self) -> Vec<Feature> {
        let later = self;
        let shared = later.shared(earlier);
        let differences = Differences::of(&earlier.tokens, &later.tokens);
        let is_alike = differences.ratio > ALIKE;
        let replaced = differences.replaced.len();
        let alike = |holds: bool| truth(is_alike && holds);
        let (subject, other) = (later.subject(), earlier.subject());
        let both = common(subject, other);
        let (new, old) = (&later.numbers, &earlier.numbers);
        let is_old = |one: &&Number| old.iter().any(|other| other.text == one.text);
        let early = |numbers: &'_ [Number]| numbers.iter().any(|one| one.is_early);
        let is_early_old = |one: &Number| {
            let mut early = old.iter().filter(|other| other.is_early);
            one.is_early && early.any(|other| other.text == one.text)
        };
        let early_differ = early(new) && early(old) && !new.iter().any(is_early_old);
        let none = Number::default();
        let (last, last_old) = (new.last().unwrap_or(&none), old.last().unwrap_or(&none));
        let last_differ = last.text != last_old.text;
        let several = new.len() > 1 && old.len() > 1;
        let text = |one: Option<&Number>| one.map(|one| one.text);
        let first_same = text(new.first()) == text(old.first());
        let one_each = new.len() == 1 && old.len() == 1 && last_differ;
        let same_name = new.iter().filter(|one| one.is_name).any(|one| {
            let mut names = old.iter().filter(|other| other.is_name);
            names.any(|other| other.text == one.text)
        });
        let unit = |one: &Number| one.unit != 0 && old.iter().any(|other| other.unit == one.unit);
        let first_terms = earlier.terms.get(..2).unwrap_or(&earlier.terms);
        let mut out = vec![
            ("bias", 1.0),
            // How much the tokens are alike, in order.
            ("ratio", differences.ratio),
            // If they are alike: one difference, several, the first one is of numbers, and how many are.
            ("one-difference", alike(replaced == 1)),
            ("differences", alike(replaced > 1)),
            (
                "first-in-number",
                alike(differences.replaced.first() == Some(&true)),
            ),
            (
                "in-numbers",
                alike(true) * upto(differences.replaced.iter().filter(|is| **is).count(), 3) / 2.0,
            ),
            // Terms of both, of the later one alone, and the first terms of the earlier one.
            ("shared", upto(shared, 6) / 3.0),
            ("own", upto(later.terms.len() - shared, 10) / 5.0),
            ("first", truth(common(first_terms, &later.terms) > 0)),
            (
                "later-within",
                truth(shared > 0 && shared == later.terms.len()),
            ),
            (
                "earlier-within",
                truth(shared > 0 && shared == earlier.terms.len()),
            ),
            // Terms before the first number.
            ("subject", ratio(both, subject.len() + other.len() - both)),
            (
                "other-subject",
                truth(!subject.is_empty() && !other.is_empty() && both == 0),
            ),
            // Numbers at the beginning, at the end, and all of them.
            ("early-differ", truth(early_differ)),
            ("last-differ", truth(last_differ)),
            (
                "last-differ-in-unit",
                truth(last_differ && last.unit != 0 && last.unit == last_old.unit),
            ),
            ("none-new", truth(new.iter().all(|one| is_old(&one)))),
            ("several", truth(several)),
            (
                "all-differ",
                truth(several && !new.iter().any(|one| is_old(&one))),
            ),
            (
                "only-last-differs",
                truth(several && first_same && last_differ),
            ),
            ("more", upto(new.len().saturating_sub(old.len()), 3) / 2.0),
            // Numbers that name by their form.
            ("same-name", truth(same_name)),
            (
                "one-name-differs",
                truth(one_each && (last.is_name || last_old.is_name)),
            ),
            (
                "one-label-differs",
                truth(one_each && last.label != 0 && last.label == last_old.label),
            ),
            ("unit", truth(new.iter().any(unit))),
        ];
        out.push(("quoted", truth(later.is_quoting)));
        out.push(("commas", upto(later.commas.into(), 3) / 2.0));
        out.extend(later.phrases(earlier));
        out.extend(later.quantities(earlier));
        out
    }

    /// Returns features of the phrases of this sentence and an earlier one.
    fn phrases(&self, earlier: &Self) -> impl Iterator<Item = Feature> {
        let counts = self.phrases.into_iter().zip(earlier.phrases);
        PHRASES
            .iter()
            .zip(counts)
            .flat_map(|((more, both, _), (own, other))| {
                let by = upto(own.saturating_sub(other).into(), 3) / 2.0;
                [(*more, by), (*both, truth(own > 0 && other > 0))]
            })
    }

    /// Returns features of the quantities of this sentence and an earlier one.
    fn quantities(&self, earlier: &Self) -> [Feature; 3] {
        let comparable = |(dimension, _): &&Quantity| {
            let mut others = earlier.quantities.iter();
            others.any(|(other, _)| other == dimension)
        };
        let both = self.quantities.iter().filter(comparable);
        let is_equal = |one: &Quantity| earlier.quantities.contains(one);
        [
            ("equal-quantity", truth(both.clone().any(is_equal))),
            (
                "new-quantity",
                truth(both.clone().any(|one| !is_equal(one))),
            ),
            (
                "no-new-quantity",
                truth(both.clone().next().is_some() && both.clone().all(is_equal)),
            ),
        ]
    }
}

/// Returns the number of words in both of two lists without repetitions.
fn common(one: &[Word], other: &[Word]) -> usize {
    one.iter().filter(|word| other.contains(word)).count()
}

fn few(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

#[allow(clippy::cast_precision_loss, reason = "small counts")]
fn upto(count: usize, most: usize) -> f64 {
    count.min(most) as f64
}

#[allow(clippy::cast_precision_loss, reason = "small counts")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Differences of two lists of tokens.
struct Differences {
    /// Share of the tokens that both have in the same order.
    ratio: f64,
    /// The places where each has other tokens, in order, and whether all of them are numbers.
    replaced: Vec<bool>,
}

impl Differences {
    fn of(earlier: &[Word], later: &[Word]) -> Self {
        // Length of the longest common subsequence of the rests from each place on.
        let mut common = [[0_u8; LONGEST + 1]; LONGEST + 1];
        let get = |common: &[[u8; LONGEST + 1]; LONGEST + 1], i: usize, j: usize| {
            common
                .get(i)
                .and_then(|row| row.get(j))
                .copied()
                .unwrap_or(0)
        };
        for (i, one) in earlier.iter().enumerate().rev() {
            for (j, other) in later.iter().enumerate().rev() {
                let length = match one == other {
                    true => get(&common, i + 1, j + 1) + 1,
                    false => get(&common, i + 1, j).max(get(&common, i, j + 1)),
                };
                if let Some(place) = common.get_mut(i).and_then(|row| row.get_mut(j)) {
                    *place = length;
                }
            }
        }
        let (mut i, mut j) = (0, 0);
        let (mut removed, mut added): (Vec<Word>, Vec<Word>) = (Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        let mut close = |removed: &mut Vec<Word>, added: &mut Vec<Word>| {
            if !removed.is_empty() && !added.is_empty() {
                replaced.push(
                    removed
                        .iter()
                        .chain(added.iter())
                        .all(|token| is_number(*token)),
                );
            }
            removed.clear();
            added.clear();
        };
        loop {
            match (earlier.get(i), later.get(j)) {
                (Some(one), Some(other)) if one == other => {
                    close(&mut removed, &mut added);
                    (i, j) = (i + 1, j + 1);
                }
                (Some(one), Some(_)) if get(&common, i + 1, j) >= get(&common, i, j + 1) => {
                    removed.push(*one);
                    i += 1;
                }
                (Some(one), None) => {
                    removed.push(*one);
                    i += 1;
                }
                (_, Some(other)) => {
                    added.push(*other);
                    j += 1;
                }
                (None, None) => break,
            }
        }
        close(&mut removed, &mut added);
        let length = usize::from(get(&common, 0, 0));
        Self {
            ratio: ratio(2 * length, earlier.len() + later.len()),
            replaced,
        }
    }
}
