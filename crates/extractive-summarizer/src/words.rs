//! Words of a sentence, and the values among them: quoted texts, names of code, numbers, dates.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use crate::cue_lists::Cues;
use crate::said_value::{CURRENCIES, Class, Value, is_letter_case};
use crate::value_cues::{
    ANSWERS, MEASURES, MONTHS, NUMBERS, SCALES, STOP_WORDS, SYSTEMS, UNITS, WEEKDAYS, WISHES, ZONES,
};
use sentence_model::is_unspaced;

/// Maximum length of a quoted value, in characters. The next constant is its maximum number of words.
const QUOTED: usize = 40;
const QUOTED_WORDS: usize = 3;
/// Maximum number of words of a name.
const NAME_WORDS: usize = 3;
/// Placeholder for a value among the words of a sentence.
pub(crate) const VALUE: &str = "\0";

static LITTLE: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

/// Returns whether a word does not describe a subject.
pub(crate) fn is_little(word: &str) -> bool {
    LITTLE.contains(word)
}

/// A word of a sentence.
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Byte offset in the sentence.
    pub(crate) at: usize,
    pub(crate) lower: String,
    /// Number of the clause that contains the word.
    pub(crate) clause: usize,
    pub(crate) value: Option<Value>,
    /// Stems of the word, computed when first used.
    pub(crate) stems: OnceCell<Vec<String>>,
}

impl<'a> Word<'a> {
    fn new(text: &'a str, at: usize, lower: String, clause: usize, value: Option<Value>) -> Self {
        Self {
            text,
            at,
            lower,
            clause,
            value,
            stems: OnceCell::new(),
        }
    }
}

/// Words of a sentence in lower case, and its values. Each value has the placeholder [`VALUE`] among the words.
pub(crate) struct Words<'a> {
    pub(crate) words: Vec<Word<'a>>,
    /// Whether a value of the sentence is quoted.
    pub(crate) quoted: bool,
    /// Numbers of the clauses that end in a colon.
    headings: Vec<usize>,
    /// Index of the value that describes the manner of answers, such as `short` in `keep answers short`.
    manner: Option<usize>,
    /// Lists of phrases of which the sentence may have one, computed at the first use.
    cues: OnceCell<Cues>,
}

fn closing(open: char) -> Option<char> {
    Some(match open {
        '\'' | '"' | '`' => open,
        '“' | '„' => '”',
        '‘' | '‚' => '’',
        '「' => '」',
        '『' => '』',
        '«' => '»',
        _ => return None,
    })
}

/// Returns the text in the quotation marks at the start of `text`, and the length with the marks.
fn quoted(text: &str) -> Option<(&str, usize)> {
    let open = text.chars().next()?;
    let close = closing(open)?;
    let inside = text.get(open.len_utf8()..)?;
    let german = if open == '„' { '“' } else { close };
    let end = inside.find([close, german])?;
    let value = inside.get(..end)?;
    let mut after = inside.get(end..)?.chars();
    let length = open.len_utf8() + end + after.next()?.len_utf8();
    let ends = !after
        .next()
        .is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
    let words = value.split_whitespace().count();
    let fits = (1..=QUOTED_WORDS).contains(&words) && value.chars().count() <= QUOTED;
    (ends && fits && value.trim() == value).then_some((value, length))
}

/// Returns whether a word has the form of a value: a digit, an underscore, a capital after a small letter, a path, or
/// capitals after a word that takes a value.
fn is_value(word: &str, before: &str) -> bool {
    let upper = word.chars().filter(|c| c.is_uppercase()).count();
    let hump = word.len() > 3
        && word
            .as_bytes()
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let capitals = upper > 2 && upper == word.chars().count();
    let named = matches!(
        before,
        "use" | "using" | "all" | "in" | "as" | "to" | "is" | "are"
    );
    // `src/Main` is a path, but `and/or` and `CI/CD` are not.
    let path = word.contains('/')
        && (word.contains(['.', '-']) || word.matches('/').count() > 1 || upper > 0)
        && word.contains(char::is_lowercase);
    word.contains(|c: char| c.is_numeric() || c == '_') || path || hump || (capitals && named)
}

/// Splits a sentence into words and finds its values.
pub(crate) fn words(sentence: &str) -> Words<'_> {
    let mut found = Words {
        words: Vec::new(),
        quoted: false,
        headings: Vec::new(),
        manner: None,
        cues: OnceCell::new(),
    };
    let (mut clause, mut at, mut before) = (0, 0, ' ');
    let kind = |c: char| match c {
        '\u{3040}'..='\u{309f}' => 1,
        '\u{30a0}'..='\u{30ff}' => 2,
        '\u{3400}'..='\u{9fff}' => 3,
        '\u{ac00}'..='\u{d7af}' => 4,
        c if c.is_alphanumeric() || matches!(c, '_' | '@' | '\'' | '’') => 5,
        _ => 0,
    };
    while let Some(rest) = sentence.get(at..)
        && let Some(c) = rest.chars().next()
    {
        if (!before.is_alphanumeric() || is_unspaced(before))
            && let Some((value, length)) = quoted(rest)
        {
            found.quoted = true;
            found.push_value(
                Value {
                    class: Class::Code,
                    ..Value::of(value)
                },
                at,
                clause,
            );
            at += length;
            before = ' ';
            continue;
        }
        let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let currency = CURRENCIES.contains(&c) && digit(rest.get(c.len_utf8()..).unwrap_or(""));
        before = c;
        let of = if currency { 5 } else { kind(c) };
        if of == 0 || matches!(c, '\'' | '’') {
            if matches!(
                c,
                ',' | ';' | ':' | '(' | ')' | '—' | '–' | '、' | '，' | '：' | '；'
            ) {
                if matches!(c, ':' | '：') {
                    found.headings.push(clause);
                }
                clause += 1;
            }
            at += c.len_utf8();
            continue;
        }
        let (mut length, mut last) = (0, c);
        for (n, c) in rest.char_indices() {
            let inside =
                n == 0 && currency || kind(c) == of || (of == 5 && matches!(c, '.' | '-' | '/'));
            let of_number = matches!(c, ',' | ':')
                && last.is_ascii_digit()
                && digit(rest.get(n + 1..).unwrap_or(""));
            if !inside && !of_number {
                break;
            }
            length = n + c.len_utf8();
            last = c;
        }
        let word = rest.get(..length).unwrap_or("");
        let after = rest.get(length..).unwrap_or("");
        if of == 5 && after.starts_with("://") {
            let address = rest
                .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '>' | ')'));
            let address = address.into_iter().next().unwrap_or(word);
            let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?']);
            found.push_value(Value::new(address, Class::Code), at, clause);
            before = ' ';
            at += address.len().max(1);
            continue;
        }
        let word = word.trim_end_matches(['.', '-', '/', '\'', '’']);
        let last = found.words.last().map_or("", |word| word.lower.as_str());
        if of == 5 && is_value(word, last) {
            found.push_value(Value::of(word), at, clause);
        } else {
            found.push(word, at, clause);
        }
        before = word.chars().next_back().unwrap_or(c);
        at += length;
    }
    found.join();
    found
}

impl<'a> Words<'a> {
    fn push(&mut self, text: &'a str, at: usize, clause: usize) {
        let mut lower = text.to_lowercase();
        if lower.contains('’') {
            lower = lower.replace('’', "'");
        }
        self.words.push(Word::new(text, at, lower, clause, None));
    }

    fn push_value(&mut self, value: Value, at: usize, clause: usize) {
        self.words
            .push(Word::new(VALUE, at, VALUE.to_owned(), clause, Some(value)));
    }

    /// Returns the lists of phrases of which the sentence may have one.
    pub(crate) fn cues(&self, sentence: &str) -> Cues {
        *self.cues.get_or_init(|| Cues::of(sentence))
    }

    /// Returns the word at an index in lower case, or an empty text.
    pub(crate) fn at(&self, n: usize) -> &str {
        self.words.get(n).map_or("", |word| word.lower.as_str())
    }

    /// Returns the word `places` words before an index, if it is in the same clause; otherwise an empty text.
    pub(crate) fn before(&self, at: usize, places: usize) -> &str {
        match at.checked_sub(places) {
            Some(n) if self.clause(n) == self.clause(at) => self.at(n),
            _ => "",
        }
    }

    pub(crate) fn value(&self, n: usize) -> Option<&Value> {
        self.words.get(n).and_then(|word| word.value.as_ref())
    }

    pub(crate) fn is_value(&self, n: usize) -> bool {
        self.value(n).is_some()
    }

    /// Returns whether the sentence has a value.
    pub(crate) fn has_value(&self) -> bool {
        self.words.iter().any(|word| word.value.is_some())
    }

    pub(crate) fn clause(&self, n: usize) -> Option<usize> {
        self.words.get(n).map(|word| word.clause)
    }

    /// Returns whether the word at an index is in a clause that ends in a colon. A label in capitals does not count.
    pub(crate) fn is_heading(&self, n: usize) -> bool {
        let is_label = |word: &&Word<'_>| word.text.chars().all(char::is_uppercase);
        self.words
            .get(n)
            .is_some_and(|word| self.headings.contains(&word.clause) && !is_label(&word))
    }

    /// Returns whether the words contain a phrase.
    pub(crate) fn has(&self, phrase: &str) -> bool {
        let begins = |n: usize| {
            phrase
                .split(' ')
                .zip(n..)
                .all(|(word, n)| self.at(n) == word)
        };
        (0..self.words.len()).any(begins)
    }

    /// Returns whether the word at an index begins a clause, or follows an uninformative first word of a clause.
    pub(crate) fn begins(&self, n: usize) -> bool {
        let mut n = n;
        while let Some(before) = n.checked_sub(1) {
            if self.clause(before) != self.clause(n) {
                return true;
            }
            if !matches!(
                self.at(before),
                "please"
                    | "also"
                    | "and"
                    | "but"
                    | "then"
                    | "so"
                    | "now"
                    | "firstly"
                    | "secondly"
                    | "first"
            ) {
                return false;
            }
            n = before;
        }
        true
    }

    /// Joins words that form one value: `March 4`, `five hundred`, `snake case`.
    fn join(&mut self) {
        let mut at = 0;
        while at < self.words.len() {
            if let Some((length, value)) = self.joined(at) {
                let clause = self.clause(at).unwrap_or(0);
                let offset = self.words.get(at).map_or(0, |word| word.at);
                let word = Word::new(VALUE, offset, VALUE.to_owned(), clause, value);
                let word = word.value.is_some().then_some(word);
                self.words.splice(at..at + length, word);
            }
            at += 1;
        }
    }

    /// Returns the number of words that form one value at an index, and the value. The value is `None` if the value
    /// before already contains it.
    fn joined(&self, at: usize) -> Option<(usize, Option<Value>)> {
        let word = self.words.get(at)?;
        let next = self.words.get(at + 1);
        let day = |n: usize| {
            let value = self.value(n).map(|value| value.text.as_str())?;
            let digits = value.trim_end_matches(|c: char| c.is_ascii_lowercase());
            let number: u32 = digits.parse().ok()?;
            (1..=31).contains(&number).then_some((number, value))
        };
        let month = |n: usize| {
            let word = self.words.get(n)?;
            if !word.text.starts_with(char::is_uppercase) {
                return None;
            }
            let at = MONTHS.iter().position(|month| *month == word.lower)?;
            Some((at % 12 + 1, word.text))
        };
        let date = |text: String, month: usize, day: u32| {
            let mut value = Value::new(&text, Class::Date);
            value.key = format!("{month:02}-{day:02}");
            Some(value)
        };
        if let Some((month, name)) = month(at) {
            return match day(at + 1) {
                Some((day, text)) => {
                    let date = date(format!("{name} {text}"), month, day);
                    let known = at.checked_sub(1).and_then(|n| self.value(n));
                    let known = known.is_some_and(|value| value.class == Class::Date);
                    Some((2, date.filter(|_| !known)))
                }
                None => None,
            };
        }
        if let Some((number, text)) = day(at) {
            let skip = 1 + usize::from(self.at(at + 1) == "of");
            let (month, name) = month(at + skip)?;
            return Some((skip + 1, date(format!("{text} {name}"), month, number)));
        }
        if word.value.is_some() {
            return None;
        }
        let lower = word.lower.as_str();
        let before = at.checked_sub(1).map_or("", |n| self.at(n));
        let dated = matches!(
            before,
            "on" | "by" | "until" | "to" | "is" | "every" | "next" | "am"
        );
        if dated && word.text.starts_with(char::is_uppercase) && WEEKDAYS.contains(&lower) {
            return Some((1, Some(Value::new(word.text, Class::Date))));
        }
        let kind = ["case", "time", "letters"];
        let next = next.filter(|next| next.clause == word.clause);
        if let Some(next) = next.filter(|next| kind.contains(&next.lower.as_str())) {
            let text = format!("{} {}", word.text, next.text);
            let is_case =
                is_letter_case(&text) || (next.lower == "letters" && is_letter_case(lower));
            let capital = word.text.starts_with(char::is_uppercase);
            let is_zone = next.lower == "time"
                && capital
                && matches!(
                    lower,
                    "pacific" | "mountain" | "central" | "eastern" | "atlantic"
                );
            return match () {
                () if is_case && next.lower == "letters" => {
                    Some((2, Some(Value::new(word.text, Class::LetterCase))))
                }
                () if is_case => Some((2, Some(Value::new(&text, Class::LetterCase)))),
                () if is_zone => Some((2, Some(Value::new(&text, Class::TimeZone)))),
                () => None,
            };
        }
        if self
            .value(at.wrapping_sub(1))
            .is_some_and(|value| value.class == Class::LetterCase)
            && lower == "letters"
        {
            return Some((1, None));
        }
        let measures = next.is_some_and(|next| MEASURES.contains(&next.lower.as_str()));
        if measures && SYSTEMS.contains(&lower) {
            return Some((1, Some(Value::new(lower, Class::Units))));
        }
        if is_letter_case(lower) {
            return Some((1, Some(Value::new(word.text, Class::LetterCase))));
        }
        let capital = word.text.starts_with(char::is_uppercase);
        if capital && ZONES.contains(&word.text) {
            return Some((1, Some(Value::new(word.text, Class::TimeZone))));
        }
        self.number(at)
    }

    /// Returns the number in words at an index, if it has several words or counts something.
    fn number(&self, at: usize) -> Option<(usize, Option<Value>)> {
        // Number words begin only with these letters.
        if !self.at(at).starts_with(['e', 'f', 'n', 'o', 's', 't', 'z']) {
            return None;
        }
        let (mut total, mut part, mut length) = (0_u64, 0_u64, 0);
        while let Some(word) = self.words.get(at + length) {
            let lower = word.lower.as_str();
            let small = |word: &str| {
                let n = NUMBERS.iter().position(|number| *number == word)? as u64;
                Some(if n < 20 { n } else { (n - 18) * 10 })
            };
            let parts: Option<u64> = lower.split('-').map(small).sum();
            if let Some(n) = parts {
                part += n;
            } else if let Some((_, scale)) = SCALES.iter().find(|(name, _)| *name == lower)
                && length > 0
            {
                part = part.max(1) * scale;
                if *scale > 100 {
                    total += std::mem::take(&mut part);
                }
            } else {
                break;
            }
            length += 1;
        }
        let counted = UNITS.contains(&self.at(at + length));
        if length == 0 || (length == 1 && !counted) {
            return None;
        }
        let words = self.words.get(at..at + length)?;
        let text: Vec<&str> = words.iter().map(|word| word.text).collect();
        let mut value = Value::new(&text.join(" "), Class::Amount);
        value.key = (total + part).to_string();
        Some((length, Some(value)))
    }

    /// If the sentence has no value, uses a name, or a word that a subject *is* or is set *to*, as the value. If
    /// `plain` is false, only a name.
    pub(crate) fn find_weak(&mut self, plain: bool) {
        let mut values = self.words.iter().filter_map(|word| word.value.as_ref());
        if values.all(|value| value.class == Class::Units) && self.has_value() && plain {
            // The manner in `short answers with metric units` is a value, too.
            if let Some(at) = self.manner() {
                self.manner = Some(at);
                self.set_value(at, 1, Class::Word);
            }
        }
        if self.has_value() {
            return;
        }
        let mut found = (0..self.words.len()).filter_map(|at| self.weak(at));
        let found = found.find(|(.., class)| plain || *class == Class::Name);
        let found = found.or_else(|| {
            let manner = self.manner().filter(|_| plain)?;
            self.manner = Some(manner);
            Some((manner, 1, Class::Word))
        });
        let Some((at, length, class)) = found else {
            return;
        };
        self.set_value(at, length, class);
    }

    /// Turns `length` words from an index on into one value.
    fn set_value(&mut self, at: usize, length: usize, class: Class) {
        let words = self.words.get(at..at + length).unwrap_or_default();
        let text: Vec<&str> = words.iter().map(|word| word.text).collect();
        let value = Value::new(&text.join(" "), class);
        let clause = self.clause(at).unwrap_or(0);
        let offset = words.first().map_or(0, |word| word.at);
        let word = Word::new(VALUE, offset, VALUE.to_owned(), clause, Some(value));
        self.words.splice(at..at + length, [word]);
    }

    /// Returns whether the value at an index describes the manner of answers: `keep answers short`.
    pub(crate) fn is_manner(&self, at: usize) -> bool {
        self.manner == Some(at)
    }

    /// Returns the index of the word that describes the manner of answers.
    fn manner(&self) -> Option<usize> {
        let telling = |n: usize| {
            let word = self.at(n);
            word.len() > 2 && !is_little(word) && !WISHES.contains(&word)
        };
        let at = (1..self.words.len()).find(|n| ANSWERS.contains(&self.at(*n)))?;
        if !(0..at).any(|n| WISHES.contains(&self.at(n))) {
            return None;
        }
        let before = at - 1;
        if self.clause(before) == self.clause(at) && telling(before) {
            return Some(before);
        }
        let after = at + 1;
        let keeps = (0..at).any(|n| matches!(self.at(n), "keep" | "make"));
        (keeps && self.clause(after) == self.clause(at) && telling(after)).then_some(after)
    }

    /// Returns the index, the number of words and the class of the value at an index that only its place in the
    /// sentence marks; `None` if there is none.
    fn weak(&self, at: usize) -> Option<(usize, usize, Class)> {
        let clause = self.clause(at);
        let inside = |n: usize| self.clause(n) == clause;
        let capital = |n: usize| {
            let word = self.words.get(n).filter(|_| inside(n));
            word.is_some_and(|word| {
                word.text.starts_with(char::is_uppercase)
                    && !matches!(word.lower.as_str(), "i" | "i'm" | "i'd" | "i'll" | "i've")
            })
        };
        let run = |from: usize| {
            (from..from + NAME_WORDS)
                .take_while(|n| capital(*n))
                .count()
        };
        let begins = at == 0 || self.clause(at - 1) != clause;
        if begins {
            let names = run(at);
            let is_label = self.is_label(at);
            let verb = self.at(at + names);
            let is_verb = inside(at + names)
                && (matches!(verb, "now" | "will" | "has" | "owns") || verb.ends_with('s'));
            return (names > 1 && !is_label && is_verb).then_some((at, names, Class::Name));
        }
        let word = self.words.get(at).map_or("", |word| word.text);
        let language = word.ends_with(['語', '语']) || matches!(word, "中文" | "英文" | "日文");
        if language && (2..5).contains(&word.chars().count()) {
            return Some((at, 1, Class::Name));
        }
        let before = self.at(at - 1);
        let link = matches!(
            before,
            "is" | "are"
                | "be"
                | "to"
                | "by"
                | "from"
                | "as"
                | "in"
                | "on"
                | "with"
                | "use"
                | "using"
                | "called"
                | "named"
                | "now"
                | "ist"
                | "sind"
                | "auf"
                | "heißt"
                | "jetzt"
                | "von"
        );
        if !link {
            return None;
        }
        // A name before the verb belongs to the subject: `the flight to Rome is`.
        let mut rest = (at..self.words.len()).take_while(|n| inside(*n));
        if rest.any(|n| {
            matches!(
                self.at(n),
                "is" | "are"
                    | "was"
                    | "were"
                    | "has"
                    | "have"
                    | "will"
                    | "moved"
                    | "ist"
                    | "sind"
                    | "wird"
            )
        }) {
            return None;
        }
        let names = run(at);
        if names > 0 {
            return Some((at, names, Class::Name));
        }
        let ends =
            !inside(at + 1) || matches!(self.at(at + 1), "for" | "instead" | "now" | "statt");
        let is_one = matches!(
            before,
            "is" | "are" | "to" | "now" | "use" | "using" | "called" | "named"
        );
        (is_one && ends && self.at(at).len() > 2).then_some((at, 1, Class::Word))
    }

    /// Returns whether a clause is a label in capitals.
    fn is_label(&self, at: usize) -> bool {
        let clause = self.clause(at);
        let words = self.words.iter().filter(|word| Some(word.clause) == clause);
        words
            .into_iter()
            .all(|word| word.text.chars().all(char::is_uppercase))
    }
}
