//! Sentences in Japanese and Korean, whose words are not known one by one: whether a later one changes an earlier one is
//! judged by fitted weights over their form.
//!
//! A logistic model gives the probability of a change: its features are [`FEATURES`], its weights `weights.txt`, which
//! `cargo xtask fit-changes` fits to pairs of statements that authors invented.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::item::stem;
use super::lexicon::{LEXICON, is_han};
use super::relation::NumberedRelation;
use super::sentence::{Clause, NumberedSentence, Value};

/// Features of a pair of sentences, in the order of their weights. Each is between 0 and 2.
pub const FEATURES: [&str; 38] = [
    "bias",
    // How much the words are alike, in order.
    "ratio",
    // Of sentences that are alike: one difference, several, the first one in a number, and number of those in numbers.
    "one-difference",
    "differences",
    "first-in-number",
    "in-numbers",
    // Terms of both, and of the later one alone; the first terms of the earlier one.
    "shared",
    "own",
    "first",
    "later-within",
    "earlier-within",
    // Terms before the first number.
    "subject",
    "other-subject",
    // Numbers: the first differ and stand early; the last differ, with one unit; none is new; several; and so on.
    "early-differ",
    "last-differ",
    "last-differ-in-unit",
    "none-new",
    "several",
    "all-differ",
    "only-last-differs",
    "more",
    "same-name",
    "one-name-differs",
    "one-label-differs",
    "unit",
    // Phrases of the later sentence.
    "move",
    "now",
    "same",
    "past",
    "open",
    "ask",
    "reason",
    "negation",
    "rule",
    "said",
    "topic",
    "quoted",
    "commas",
];

/// Lists of phrases whose number in the later sentence is a feature of the same name.
const PHRASES: [&str; 11] = [
    "jk move",
    "jk now",
    "jk same",
    "jk past",
    "jk open",
    "jk ask",
    "jk reason",
    "jk negation",
    "jk rule",
    "jk said",
    "jk topic",
];

/// Minimum probability of a change by the sentence that directly follows, and by any later one. Of 1,000 pairs of
/// sentences by chance, one with two common terms reaches the second.
const CHANGED: (f64, f64) = (0.7, 0.8);
/// Minimum number of terms that both sentences have, for each of these.
const SHARED: (usize, usize) = (1, 2);
/// Ratio above which the words of two sentences are alike.
const ALIKE: f64 = 0.6;
/// Number of characters of a label before a number, and of a stem in Latin letters and in Hangul.
const LABEL: usize = 6;
const HANGUL_STEM: usize = 2;
/// Maximum length of a sentence that is read, in tokens.
const LONGEST: usize = 60;

static WEIGHTS: LazyLock<[f64; FEATURES.len()]> = LazyLock::new(|| {
    let lines = include_str!("weights.txt").lines();
    let weight = |name: &str| {
        let mut lines = lines.clone().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(own, _)| *own == name);
        found
            .and_then(|(_, weight)| weight.parse().ok())
            .unwrap_or(0.0)
    };
    FEATURES.map(weight)
});

/// A sentence in Japanese or Korean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fitted {
    tokens: Vec<String>,
    terms: Vec<String>,
    /// Number of `terms` that stand before the first number.
    before_numbers: usize,
    numbers: Vec<Number>,
    /// Number of phrases of each list of [`PHRASES`].
    phrases: [u8; PHRASES.len()],
    is_quoting: bool,
    commas: u8,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Number {
    text: String,
    /// The word directly before the number.
    label: String,
    /// Unit or counter after the number, by its beginning.
    unit: String,
    /// Whether a sign or counter says that the number names: `第3`, `3番`.
    is_name: bool,
    is_early: bool,
    range: Range<usize>,
}

/// Kind of a character, by which a sentence is divided into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Digit,
    Latin,
    Hangul,
    Han,
    Katakana,
    Hiragana,
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' => Self::Digit,
            '\u{ac00}'..='\u{d7a3}' => Self::Hangul,
            '々' | '〆' | 'ヶ' => Self::Han,
            c if is_han(c) => Self::Han,
            '\u{30a1}'..='\u{30fa}' | 'ー' => Self::Katakana,
            '\u{3041}'..='\u{309f}' => Self::Hiragana,
            c if c.is_alphabetic() => Self::Latin,
            _ => Self::Other,
        }
    }
}

/// Returns a character in lower case, and of common width.
fn plain(c: char) -> char {
    let c = match c {
        '！'..='～' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        c => c,
    };
    c.to_lowercase().next().unwrap_or(c)
}

/// A token of a sentence: its text, script, and place in characters.
struct Token {
    text: String,
    script: Script,
    chars: Range<usize>,
}

fn tokens(chars: &[char]) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = chars.get(at) {
        let script = Script::of(*first);
        let mut end = at + 1;
        while let Some(next) = chars.get(end) {
            let joins = match script {
                Script::Digit => {
                    let after = chars.get(end + 1).copied().unwrap_or(' ');
                    next.is_ascii_digit()
                        || matches!(next, ',' | '.' | ':' | '/' | '-') && after.is_ascii_digit()
                }
                Script::Other => false,
                _ => Script::of(*next) == script,
            };
            if !joins {
                break;
            }
            end += 1;
        }
        if script != Script::Other {
            let text = chars.iter().take(end).skip(at).collect();
            let chars = at..end;
            out.push(Token {
                text,
                script,
                chars,
            });
        }
        at = end;
    }
    out.truncate(LONGEST);
    out
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

impl Fitted {
    /// Reads a sentence. `None` if it has no digit, or neither kana nor Hangul.
    fn read(sentence: &str) -> Option<Self> {
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
        let mut out = Self {
            is_quoting: text.contains(['"', '“', '「', '『', '«']),
            commas: u8::try_from(text.matches([',', '、']).count()).unwrap_or(u8::MAX),
            phrases: PHRASES.map(|list| {
                let found = LEXICON.list(list).filter(|phrase| text.contains(phrase));
                u8::try_from(found.count()).unwrap_or(u8::MAX)
            }),
            ..Self::default()
        };
        for (at, token) in tokens.iter().enumerate() {
            out.tokens.push(token.text.clone());
            if token.script != Script::Digit {
                for term in terms_of(token) {
                    if !out.terms.contains(&term) {
                        out.terms.push(term);
                    }
                }
                continue;
            }
            if out.numbers.is_empty() {
                out.before_numbers = out.terms.len();
            }
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let label = before.filter(|before| {
                let between = chars.iter().take(token.chars.start).skip(before.chars.end);
                before.script != Script::Hiragana
                    && between.into_iter().all(|c| matches!(c, ' ' | '-' | '#'))
            });
            let label = label.map_or("", |before| before.text.as_str());
            let length = label.chars().count();
            let signed = token
                .chars
                .start
                .checked_sub(1)
                .and_then(|at| chars.get(at));
            let mut behind = chars
                .iter()
                .skip(token.chars.end)
                .skip_while(|c| **c == ' ');
            let counter: String = behind.clone().take(2).collect();
            let script = behind
                .clone()
                .next()
                .map_or(Script::Other, |c| Script::of(*c));
            let unit = match script {
                Script::Latin => {
                    let letters = behind.take_while(|c| Script::of(**c) == Script::Latin);
                    letters.collect()
                }
                Script::Hangul | Script::Han | Script::Katakana => {
                    behind.by_ref().take(1).collect()
                }
                _ if behind.next() == Some(&'%') => "%".to_owned(),
                _ => String::new(),
            };
            let mut counters = LEXICON.list("jk counter");
            out.numbers.push(Number {
                text: token.text.clone(),
                label: label.chars().skip(length.saturating_sub(LABEL)).collect(),
                is_name: signed.is_some_and(|c| matches!(c, '第' | '제' | '#'))
                    || counters.any(|one| counter.starts_with(one)),
                is_early: token.chars.start * 5 < chars.len() * 2,
                range: offset(token.chars.start)..offset(token.chars.end),
                unit,
            });
        }
        (!out.numbers.is_empty()).then_some(out)
    }

    /// Returns the sentence's numbers and terms in the form of other languages, by which sentences are found.
    fn clause(&self) -> Clause {
        let value = |number: &Number| Value {
            dimension: number.unit.clone(),
            amount: number.text.clone(),
            number: number.text.clone(),
            is_former: false,
            may_name: false,
            range: number.range.clone(),
        };
        Clause {
            values: self.numbers.iter().map(value).collect(),
            terms: self.terms.iter().cloned().collect(),
            ..Clause::default()
        }
    }

    fn shared(&self, other: &Self) -> usize {
        self.terms
            .iter()
            .filter(|term| other.terms.contains(term))
            .count()
    }

    /// Returns the last number that the earlier sentence does not have.
    fn new_number(&self, earlier: &Self) -> Option<&Number> {
        let is_new = |number: &&Number| earlier.numbers.iter().all(|one| one.text != number.text);
        self.numbers.iter().rev().find(is_new)
    }

    /// Returns how this sentence relates to an earlier one.
    pub(super) fn relation_to(&self, earlier: &Self) -> NumberedRelation {
        let weights = WEIGHTS.iter().zip(self.features(earlier));
        let score: f64 = weights.map(|(weight, feature)| weight * feature).sum();
        let probability = 1.0 / (1.0 + (-score).exp());
        let shared = self.shared(earlier);
        let value = self.new_number(earlier).map(|number| number.range.clone());
        match value {
            value if probability >= CHANGED.1 && shared >= SHARED.1 => NumberedRelation::Changed {
                value,
                in_part: false,
            },
            Some(value) if probability >= CHANGED.0 && shared >= SHARED.0 => {
                NumberedRelation::ChangedIfNext { value }
            }
            _ => NumberedRelation::Unchanged,
        }
    }

    /// Returns the features of a pair, in the order of [`FEATURES`].
    pub(super) fn features(&self, earlier: &Self) -> [f64; FEATURES.len()] {
        let (later, terms) = (self, |one: &Self| -> BTreeSet<String> {
            one.terms.iter().cloned().collect()
        });
        let (own, others) = (terms(later), terms(earlier));
        let differences = Differences::of(&earlier.tokens, &later.tokens);
        let is_alike = differences.ratio > ALIKE;
        let replaced = differences.replaced.len();
        let alike = |holds: bool| truth(is_alike && holds);
        let subject = |one: &Self| -> BTreeSet<String> {
            let first = match one.numbers.is_empty() {
                true => one.terms.len(),
                false => one.before_numbers,
            };
            one.terms.iter().take(first).cloned().collect()
        };
        let (subject, other) = (subject(later), subject(earlier));
        let both = subject.intersection(&other).count();
        let (new, old) = (&later.numbers, &earlier.numbers);
        let has = |numbers: &[Number], one: &Number| numbers.iter().any(|n| n.text == one.text);
        let shares = |numbers: &[Number]| numbers.iter().any(|one| has(old, one));
        let early = |numbers: &[Number]| -> Vec<Number> {
            numbers.iter().filter(|one| one.is_early).cloned().collect()
        };
        let (new_early, old_early) = (early(new), early(old));
        let early_differ = !new_early.is_empty()
            && !old_early.is_empty()
            && !new_early.iter().any(|one| has(&old_early, one));
        let (last, last_old) = (new.last().cloned(), old.last().cloned());
        let (last, last_old) = (last.unwrap_or_default(), last_old.unwrap_or_default());
        let last_differ = last.text != last_old.text;
        let several = new.len() > 1 && old.len() > 1;
        let first_same = new.first().map(|n| &n.text) == old.first().map(|n| &n.text);
        let one_each = new.len() == 1 && old.len() == 1 && last_differ;
        let mut pairs = new
            .iter()
            .flat_map(|one| old.iter().map(move |other| (one, other)));
        let same_name =
            pairs.any(|(one, other)| one.is_name && other.is_name && one.text == other.text);
        let unit = |one: &Number| !one.unit.is_empty() && old.iter().any(|n| n.unit == one.unit);
        let form = [
            1.0,
            differences.ratio,
            alike(replaced == 1),
            alike(replaced > 1),
            alike(differences.replaced.first() == Some(&true)),
            alike(true) * upto(differences.replaced.iter().filter(|is| **is).count(), 3) / 2.0,
            upto(later.shared(earlier), 6) / 3.0,
            upto(own.difference(&others).count(), 10) / 5.0,
            truth(earlier.terms.iter().take(2).any(|term| own.contains(term))),
            truth(!own.is_empty() && own.is_subset(&others)),
            truth(!others.is_empty() && others.is_subset(&own)),
            ratio(both, subject.union(&other).count()),
            truth(!subject.is_empty() && !other.is_empty() && both == 0),
            truth(early_differ),
            truth(last_differ),
            truth(last_differ && !last.unit.is_empty() && last.unit == last_old.unit),
            truth(new.iter().all(|one| has(old, one))),
            truth(several),
            truth(several && !shares(new)),
            truth(several && first_same && last_differ),
            upto(new.len().saturating_sub(old.len()), 3) / 2.0,
            truth(same_name),
            truth(one_each && (last.is_name || last_old.is_name)),
            truth(one_each && !last.label.is_empty() && last.label == last_old.label),
            truth(new.iter().any(unit)),
        ];
        let phrases = later.phrases.map(|count| upto(count.into(), 3) / 2.0);
        let marks = [truth(later.is_quoting), upto(later.commas.into(), 3) / 2.0];
        let mut out = [0.0; FEATURES.len()];
        let all = form.into_iter().chain(phrases).chain(marks);
        for (place, feature) in out.iter_mut().zip(all) {
            *place = feature;
        }
        out
    }
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
    fn of(earlier: &[String], later: &[String]) -> Self {
        // Length of the longest common subsequence of the rests from each place on.
        let width = later.len() + 1;
        let mut common = vec![0_u16; (earlier.len() + 1) * width];
        let at = |i: usize, j: usize| i * width + j;
        let get = |common: &[u16], n: usize| common.get(n).copied().unwrap_or(0);
        for (i, one) in earlier.iter().enumerate().rev() {
            for (j, other) in later.iter().enumerate().rev() {
                let length = match one == other {
                    true => get(&common, at(i + 1, j + 1)) + 1,
                    false => get(&common, at(i + 1, j)).max(get(&common, at(i, j + 1))),
                };
                if let Some(place) = common.get_mut(at(i, j)) {
                    *place = length;
                }
            }
        }
        let is_number = |token: &String| token.starts_with(|c: char| c.is_ascii_digit());
        let (mut i, mut j) = (0, 0);
        let (mut removed, mut added): (Vec<&String>, Vec<&String>) = (Vec::new(), Vec::new());
        let mut replaced = Vec::new();
        let mut close = |removed: &mut Vec<&String>, added: &mut Vec<&String>| {
            if !removed.is_empty() && !added.is_empty() {
                replaced.push(
                    removed
                        .iter()
                        .chain(added.iter())
                        .all(|token| is_number(token)),
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
                (Some(one), Some(_))
                    if get(&common, at(i + 1, j)) >= get(&common, at(i, j + 1)) =>
                {
                    removed.push(one);
                    i += 1;
                }
                (Some(one), None) => {
                    removed.push(one);
                    i += 1;
                }
                (_, Some(other)) => {
                    added.push(other);
                    j += 1;
                }
                (None, None) => break,
            }
        }
        close(&mut removed, &mut added);
        let length = usize::from(get(&common, 0));
        Self {
            ratio: ratio(2 * length, earlier.len() + later.len()),
            replaced,
        }
    }
}

impl NumberedSentence {
    /// Reads a sentence in Japanese or Korean. `None` for a sentence in another language or without a digit.
    pub(super) fn read_fitted(sentence: &str) -> Option<Self> {
        let fitted = Fitted::read(sentence)?;
        Some(Self {
            clauses: vec![fitted.clause()],
            fitted: Some(Box::new(fitted)),
            ..Self::default()
        })
    }

    /// Returns the features by which fitted weights judge whether this sentence changes an earlier one, in the order of
    /// [`FEATURES`]. `None` unless both are in Japanese or Korean, with digits.
    pub fn features(&self, earlier: &Self) -> Option<[f64; FEATURES.len()]> {
        let (later, earlier) = self.fitted.as_ref().zip(earlier.fitted.as_ref())?;
        Some(later.features(earlier))
    }
}
