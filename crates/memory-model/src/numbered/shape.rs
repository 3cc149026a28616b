//! The form of a sentence in any language: its tokens, terms and numbers, and the phrases in it.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::lexicon::{LEXICON, is_han};
use super::spelling::{amount_of, stem, written};
use super::weights::{Gram, Grams};

/// Lists of phrases, with the names of the features: how many more the later sentence has, and whether both have some.
pub(super) const PHRASES: [(&str, &str, &str); 11] = [
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

/// Number of characters of a label before a number, and of a stem in Hangul.
const LABEL: usize = 6;
const HANGUL_STEM: usize = 2;
/// Maximum length of a sentence that is read, in tokens.
pub(super) const LONGEST: usize = 60;

/// Numbers of a sentence in Japanese or Korean, each with its amount, unit and place, and its terms.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) terms: BTreeSet<String>,
    pub(super) numbers: Vec<(String, String, Range<usize>)>,
}

/// The form of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) tokens: Vec<Word>,
    /// Distinct terms, in order.
    pub(super) terms: Vec<Word>,
    /// Number of `terms` before the first number.
    before_numbers: usize,
    pub(super) numbers: Vec<Number>,
    /// Number of phrases of each list of [`PHRASES`], in languages without known words.
    pub(super) phrases: [u8; PHRASES.len()],
    pub(super) is_quoting: bool,
    pub(super) commas: u8,
    /// Whether the words of its language are known.
    pub(super) is_read: bool,
    /// Amounts with their dimensions, in thousandths, in languages without known words.
    pub(super) quantities: Vec<(&'static str, i64)>,
    /// Known parts of the text.
    pub(super) grams: Vec<Gram>,
}

/// Hash of a word, which is compared many times; 0 for no word.
pub(super) type Word = u64;

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

pub(super) fn is_number(word: Word) -> bool {
    word & 1 == 1
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) text: Word,
    /// The word directly before the number.
    pub(super) label: Word,
    /// Unit or counter after the number, by its beginning.
    pub(super) unit: Word,
    /// Whether a sign or counter says that the number names: `第3`, `3番`.
    pub(super) is_name: bool,
    pub(super) is_early: bool,
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

/// Returns the tokens of a text. Words for numbers are numbers if the words of its language are known.
fn tokens(chars: &[char], is_read: bool) -> Vec<Token> {
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
            let text: String = chars.iter().take(end).skip(at).collect();
            let chars = at..end;
            let number = LEXICON.digits.get(text.as_str()).filter(|_| is_read);
            out.push(Token {
                text: number.map_or(text, u32::to_string),
                script: number.map_or(script, |_| Script::Digit),
                chars,
            });
        }
        at = end;
    }
    out.truncate(LONGEST);
    out
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

/// Dimension of words that begin like units.
const NO_UNIT: &str = "none";

/// Returns whether a word in Latin letters or Katakana goes on at a place.
fn goes_on(chars: &[char], at: usize) -> bool {
    let script = |at: usize| chars.get(at).map_or(Script::Other, |c| Script::of(*c));
    let own = script(at);
    matches!(own, Script::Latin | Script::Katakana)
        && at
            .checked_sub(1)
            .is_some_and(|before| script(before) == own)
}

/// Returns the amounts of a text with their dimensions, in thousandths: a number with its unit, or several as in `1時間30分` and
/// `1만 2천 원`.
fn quantities(chars: &[char], tokens: &[Token]) -> Vec<(&'static str, i64)> {
    let mut out: Vec<(&'static str, f64)> = Vec::new();
    // The amount so far without a unit, and where the last number with its unit or scale ended.
    let (mut sum, mut end) = (0.0, usize::MAX);
    for token in tokens.iter().filter(|token| token.script == Script::Digit) {
        let spaces = |from: usize| chars.iter().skip(from).take_while(|c| **c == ' ').count();
        let follows = end <= token.chars.start && end + spaces(end) == token.chars.start;
        let Some(mut amount) = amount_of(&token.text) else {
            end = usize::MAX;
            continue;
        };
        let rest = |from: usize| -> String { chars.iter().skip(from).take(8).collect() };
        end = token.chars.end;
        end += spaces(end);
        let mut is_scaled = false;
        while let Some((word, size)) = LEXICON.scales_behind.longest(&rest(end)) {
            amount *= size;
            end += word.chars().count();
            end += spaces(end);
            is_scaled = true;
        }
        sum = if follows { sum + amount } else { amount };
        let unit = LEXICON.units_behind.longest(&rest(end));
        let unit = unit.filter(|(word, (dimension, _))| {
            *dimension != NO_UNIT && !goes_on(chars, end + word.chars().count())
        });
        let Some((word, (dimension, size))) = unit else {
            if !is_scaled {
                end = usize::MAX;
            }
            continue;
        };
        end += word.chars().count();
        let half = matches!(chars.get(end), Some('半' | '반'));
        let amount = (sum + if half { 0.5 } else { 0.0 }) * size;
        sum = 0.0;
        match out.last_mut() {
            Some((last, before))
                if follows && (*last == dimension || (*last, dimension) == ("clock", "time")) =>
            {
                *before += amount
            }
            _ => out.push((dimension, amount)),
        }
    }
    #[allow(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let thousandths = |amount: f64| (amount * 1000.0).round() as i64;
    out.into_iter()
        .map(|(dimension, amount)| (dimension, thousandths(amount)))
        .collect()
}

/// Returns the parts of a text that may say that something changes: words and pairs of neighbours, ends and beginnings of
/// words in Hangul, and up to three characters of other scripts without spaces. A number is `0`.
pub(super) fn grams(text: &str, is_read: bool) -> BTreeSet<String> {
    let chars: Vec<char> = text.chars().map(plain).collect();
    grams_of(&chars, &tokens(&chars, is_read))
}

fn grams_of(chars: &[char], tokens: &[Token]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut before: Option<&str> = None;
    let is_run = |token: &Token| {
        matches!(
            token.script,
            Script::Han | Script::Hiragana | Script::Katakana
        )
    };
    for (n, token) in tokens.iter().enumerate() {
        let word = match token.script {
            Script::Digit => Some("0"),
            Script::Latin => Some(token.text.as_str()),
            _ => None,
        };
        if let Some(word) = word {
            out.insert(word.to_owned());
            out.extend(before.map(|before| format!("{before} {word}")));
        }
        before = word;
        if token.script == Script::Hangul {
            let chars: Vec<char> = token.text.chars().collect();
            out.insert(token.text.clone());
            for length in (1..=3).filter(|length| *length < chars.len()) {
                let end: String = chars.iter().skip(chars.len() - length).collect();
                out.insert(format!("{end}$"));
                if length < 3 {
                    let start: String = chars.iter().take(length).collect();
                    out.insert(format!("^{start}"));
                }
            }
        }
        // Of neighbours in these scripts, the first one begins a run.
        let touches = |one: &Token| is_run(one) && one.chars.end == token.chars.start;
        if is_run(token)
            && !n
                .checked_sub(1)
                .and_then(|n| tokens.get(n))
                .is_some_and(touches)
        {
            let mut end = token.chars.end;
            for next in tokens.iter().skip(n + 1) {
                if !is_run(next) || next.chars.start != end {
                    break;
                }
                end = next.chars.end;
            }
            let run = chars.get(token.chars.start..end).unwrap_or_default();
            for length in 1..=3 {
                out.extend(
                    run.windows(length)
                        .map(|part| part.iter().collect::<String>()),
                );
            }
        }
    }
    out
}

impl Shape {
    /// Reads a sentence. `is_read` says whether the words of its language are known.
    pub(super) fn read(sentence: &str, is_read: bool) -> (Self, Words) {
        let (offsets, chars): (Vec<usize>, Vec<char>) = sentence
            .char_indices()
            .map(|(at, c)| (at, plain(c)))
            .unzip();
        let offset = |n: usize| offsets.get(n).copied().unwrap_or(sentence.len());
        let tokens = tokens(&chars, is_read);
        let text: String = chars.iter().collect();
        let numbers = tokens.iter().filter(|token| token.script == Script::Digit);
        let within_numbers: usize = numbers.map(|token| token.text.matches(',').count()).sum();
        let mut out = Self {
            is_quoting: text.contains(['"', '“', '「', '『', '«']),
            commas: few(text.matches([',', '、']).count() - within_numbers),
            is_read,
            ..Self::default()
        };
        let known = Grams::of(is_read);
        let grams = grams_of(&chars, &tokens).into_iter();
        out.grams = grams.filter_map(|gram| known.place(&gram)).collect();
        if !is_read {
            let has = |phrase: &&str| text.contains(phrase);
            out.phrases = PHRASES.map(|(.., list)| few(LEXICON.list(list).filter(has).count()));
            out.quantities = quantities(&chars, &tokens);
        }
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
        (out, words)
    }

    /// Returns the terms before the first number.
    pub(super) fn subject(&self) -> &[Word] {
        self.terms.get(..self.before_numbers).unwrap_or_default()
    }

    /// Returns the number of terms that both sentences have.
    pub(super) fn shared(&self, other: &Self) -> usize {
        common(&self.terms, &other.terms)
    }

    /// Returns the place of the last number that the earlier sentence does not have.
    pub(super) fn new_number(&self, earlier: &Self) -> Option<Range<usize>> {
        let is_new = |number: &&Number| earlier.numbers.iter().all(|one| one.text != number.text);
        let new = self.numbers.iter().rev().find(is_new);
        new.map(|number| number.range.clone())
    }
}

/// Returns the number of words in both of two lists without repetitions.
pub(super) fn common(one: &[Word], other: &[Word]) -> usize {
    one.iter().filter(|word| other.contains(word)).count()
}

fn few(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}
