//! Reads the numbers of a sentence and decides which are names.

use std::collections::BTreeSet;
use std::ops::Range;

use super::lexicon::{LEXICON, cue, is_han};
use super::{Clause, Cues, DATE, Name, NumberedSentence, PLAIN, Value, WEEKDAY};

/// Number of characters of a word by which it is compared.
const STEM: usize = 5;
/// Number of Han characters that name what is numbered.
const HAN_KEY: usize = 2;

/// A word, a run of Han characters, a number or a mark.
#[derive(Debug, Clone)]
struct Token {
    kind: Kind,
    /// The text in lower case.
    text: String,
    range: Range<usize>,
    is_capital: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Han,
    Number,
    Mark,
}

/// A number with what belongs to it.
#[derive(Debug, Clone)]
struct Item {
    /// Tokens that belong to the number.
    tokens: Range<usize>,
    range: Range<usize>,
    form: Form,
    /// The number as it is written.
    number: String,
    is_former: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Form {
    /// The number names by its form: `#17`, `the first draft`.
    Name {
        key: String,
    },
    /// The number has a label, and its place decides: `tier 2`, `port 8080`.
    Label {
        key: String,
    },
    /// A word with digits, such as `worker-3` or `CA12`, whose place decides.
    Code {
        key: String,
        text: String,
    },
    /// A point in time, which may name.
    Date {
        dimension: &'static str,
        amount: String,
    },
    Value {
        dimension: String,
        amount: String,
    },
}

pub(super) fn sentence(text: &str) -> NumberedSentence {
    let tokens = tokens(text);
    if !tokens
        .iter()
        .any(|token| token.kind == Kind::Number || is_number_word(token))
    {
        return NumberedSentence::default();
    }
    Reader::new(text, tokens).read()
}

fn is_number_word(token: &Token) -> bool {
    let word = token.text.as_str();
    token.kind == Kind::Word
        && (word
            .split('-')
            .any(|part| LEXICON.digits.contains_key(part))
            || LEXICON.ordinals.contains_key(word)
            || LEXICON.weekdays.contains_key(word)
            || LEXICON.months.contains_key(word))
}

/// Splits a text into tokens.
fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..)
        && let Some(first) = rest.chars().next()
    {
        let (kind, length) = match first {
            c if is_han(c) => han(rest),
            c if c.is_alphanumeric() => {
                let length = run(rest);
                let word = rest.get(..length).unwrap_or(rest);
                let has_digit = word.contains(|c: char| c.is_ascii_digit());
                (if has_digit { Kind::Number } else { Kind::Word }, length)
            }
            c => (Kind::Mark, c.len_utf8()),
        };
        let word = rest.get(..length).unwrap_or(rest);
        if !word.trim().is_empty() {
            out.push(Token {
                kind,
                text: word.to_lowercase().replace('’', "'"),
                range: at..at + length,
                is_capital: first.is_uppercase(),
            });
        }
        at += length.max(1);
    }
    out
}

/// Returns the length of a word or number at the beginning of a text.
fn run(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() && !is_han(c);
    let mut length = 0;
    let mut chars = text.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        let digits = last.is_ascii_digit() && next.is_ascii_digit();
        let joins = match c {
            ',' | ':' | '/' => digits,
            '.' => is_part(next) && (digits || last.is_ascii_digit() || next.is_ascii_digit()),
            '-' | '_' => is_part(next),
            '\'' | '’' => last.is_alphabetic() && next.is_alphabetic(),
            _ => false,
        };
        if !is_part(c) && !(joins && is_part(last)) {
            break;
        }
        length = at + c.len_utf8();
        last = c;
    }
    length
}

/// Returns the kind and the length of the token at the beginning of a text that begins with a Han character.
fn han(text: &str) -> (Kind, usize) {
    let end = text.find(|c| !is_han(c)).unwrap_or(text.len());
    let run = text.get(..end).unwrap_or(text);
    let mut begins = run.char_indices();
    begins.next();
    if let Some(length) = han_number(run, ' ') {
        return (Kind::Number, length);
    }
    let mut before = run.chars().next().unwrap_or(' ');
    for (at, c) in begins {
        if han_number(run.get(at..).unwrap_or(""), before).is_some() {
            return (Kind::Han, at);
        }
        before = c;
    }
    (Kind::Han, end)
}

/// Returns the length of the number in Han characters at the beginning of a text: `第三`, `周一`, or `三` in `三个`.
fn han_number(text: &str, before: char) -> Option<usize> {
    if let Some((day, _)) = LEXICON.han_days.longest(text) {
        // In `下周一` and `三周一次` the text before decides.
        return (!matches!(before, '一' | '二' | '两' | '三' | '四' | '每')).then_some(day.len());
    }
    let (prefix, rest) = match text.strip_prefix('第') {
        Some(rest) => ('第'.len_utf8(), rest),
        None => (0, text),
    };
    let is_digit = |c: char| "零一二两三四五六七八九十百千".contains(c);
    let length = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
    if length == 0 || is_digit(before) {
        return None;
    }
    if prefix > 0 {
        return Some(prefix + length);
    }
    let digits = rest.get(..length)?;
    let after = rest.get(length..)?;
    let counts = (LEXICON.counters.longest(after).is_some()
        && !(digits == "一" && !after.starts_with("人")))
        || LEXICON.han_units.longest(after).is_some()
        || (LEXICON.namers.longest(after).is_some() && digits != "一")
        || after.starts_with('万')
        || (after.starts_with(['点', '月']) && !after.starts_with("点儿") && digits != "一");
    counts.then_some(length)
}

/// Returns the number that a text in digits of any script writes.
fn han_value(text: &str) -> Option<u32> {
    let (mut sum, mut digit) = (0, None);
    for c in text.chars() {
        let scale = match c {
            '十' => 10,
            '百' => 100,
            '千' => 1000,
            _ => {
                let digits = "零一二三四五六七八九";
                let value = match c {
                    '两' => 2,
                    _ => digits.chars().position(|one| one == c)? as u32,
                };
                digit = Some(value);
                continue;
            }
        };
        sum += digit.take().unwrap_or(1) * scale;
    }
    Some(sum + digit.unwrap_or(0))
}

/// Returns the beginning of a word by which it is compared.
fn stem(word: &str) -> String {
    let word = LEXICON.alias.get(word).copied().unwrap_or(word);
    let word = word.strip_suffix("'s").unwrap_or(word);
    let bare = word
        .strip_suffix('s')
        .filter(|bare| bare.chars().count() > 2 && !bare.ends_with('s'));
    bare.unwrap_or(word).chars().take(STEM).collect()
}

/// Returns the number that a text writes, without separators of thousands.
fn amount_of(text: &str) -> Option<f64> {
    let groups: Vec<&str> = text.split([',', '.']).collect();
    let thousands = groups.len() > 1
        && groups
            .first()
            .is_some_and(|group| (1..=3).contains(&group.len()) && *group != "0")
        && groups.iter().skip(1).all(|group| group.len() == 3);
    match thousands {
        true => groups.concat().parse().ok(),
        false => text.replace(',', ".").parse().ok(),
    }
}

fn written(amount: f64) -> String {
    let text = format!("{amount:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn clock(hour: u32, minute: u32) -> Form {
    Form::Value {
        dimension: "clock".to_owned(),
        amount: format!("{hour:02}:{minute:02}"),
    }
}

fn plain(number: &str) -> Form {
    Form::Value {
        dimension: PLAIN.to_owned(),
        amount: amount_of(number).map_or_else(|| number.to_owned(), written),
    }
}

struct Reader<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    /// For each token of a script with spaces, the meanings of the phrases to which it belongs.
    cues: Vec<u16>,
    /// The meanings of all phrases.
    all_cues: u16,
    /// Byte ranges of the phrases in scripts without spaces that do not describe a subject.
    han_cues: Vec<Range<usize>>,
    is_german: bool,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, tokens: Vec<Token>) -> Self {
        let mut cues = vec![0; tokens.len()];
        let (mut all_cues, mut han_cues) = (0, Vec::new());
        for n in 0..tokens.len() {
            let rest = tokens.get(n..).unwrap_or_default().iter();
            for (length, cue) in LEXICON.phrases(rest.map(|token| token.text.as_str())) {
                all_cues |= cue;
                let own = cues.get_mut(n..n + length).unwrap_or_default();
                own.iter_mut().for_each(|of| *of |= cue);
            }
        }
        if text.contains(is_han) {
            for (at, _) in text.char_indices() {
                for (length, cue) in LEXICON.han_phrases(text.get(at..).unwrap_or("")) {
                    all_cues |= cue;
                    if cue & cue::EMPTY != 0 {
                        han_cues.push(at..at + length);
                    }
                }
            }
        }
        let is_german = text.contains(['ä', 'ö', 'ü', 'ß'])
            || tokens
                .iter()
                .any(|token| LEXICON.german.contains(token.text.as_str()));
        Self {
            text,
            tokens,
            cues,
            all_cues,
            han_cues,
            is_german,
        }
    }

    fn at(&self, n: usize) -> &str {
        self.tokens.get(n).map_or("", |token| token.text.as_str())
    }

    /// Returns the text of a token before another.
    fn before(&self, n: usize, places: usize) -> &str {
        n.checked_sub(places).map_or("", |n| self.at(n))
    }

    fn kind(&self, n: usize) -> Option<Kind> {
        self.tokens.get(n).map(|token| token.kind)
    }

    /// Returns whether nothing is between a token and the next one.
    fn touches(&self, n: usize) -> bool {
        let end = self.tokens.get(n).map(|token| token.range.end);
        end.is_some() && end == self.tokens.get(n + 1).map(|token| token.range.start)
    }

    fn is_content(&self, n: usize) -> bool {
        self.kind(n) == Some(Kind::Word) && !LEXICON.empty.contains(self.at(n))
    }

    fn read(&self) -> NumberedSentence {
        let cues = self.cues();
        let items = self.items();
        let mut clauses: Vec<Clause> = Vec::new();
        for part in self.parts(&items) {
            let own: Vec<&Item> = items
                .iter()
                .filter(|item| part.contains(&item.tokens.start))
                .collect();
            let mut clause = self.clause(&part, &own, &items);
            if clause.names.is_empty()
                && let Some(before) = clauses.last()
            {
                clause.names.clone_from(&before.names);
                if clause.terms.is_empty() {
                    clause.terms.clone_from(&before.terms);
                }
            }
            clauses.push(clause);
        }
        NumberedSentence { clauses, cues }
    }

    /// Returns the numbers.
    fn items(&self) -> Vec<Item> {
        let mut out: Vec<Item> = Vec::new();
        let mut n = 0;
        while n < self.tokens.len() {
            let Some((tokens, form, number)) = self.item(n) else {
                n += 1;
                continue;
            };
            n = tokens.end.max(n + 1);
            let start = self
                .tokens
                .get(tokens.start)
                .map_or(0, |token| token.range.start);
            let end = tokens.end.checked_sub(1).and_then(|n| self.tokens.get(n));
            let end = end.map_or(start, |token| token.range.end);
            out.push(Item {
                tokens,
                range: start..end,
                form,
                number,
                is_former: false,
            });
        }
        let former: Vec<bool> = (0..out.len()).map(|at| self.is_former(&out, at)).collect();
        for (item, is_former) in out.iter_mut().zip(former) {
            item.is_former = is_former;
        }
        out
    }

    /// Returns whether the number is one that no longer holds: `not 5`, or `5` in `from 5 to 7`.
    fn is_former(&self, items: &[Item], at: usize) -> bool {
        let Some(item) = items.get(at) else {
            return false;
        };
        let mut n = item.tokens.start;
        // The label of a number comes before it.
        if matches!(item.form, Form::Label { .. }) {
            n = n.min(item.tokens.start);
        }
        while n > 0
            && matches!(
                self.before(n, 1),
                "the"
                    | "port"
                    | "version"
                    | "den"
                    | "der"
                    | "die"
                    | "das"
                    | "on"
                    | "at"
                    | "auf"
                    | "um"
                    | "am"
                    | "only"
                    | "nur"
                    | "just"
            )
        {
            n -= 1;
        }
        let one = self.before(n, 1);
        let two = self.before(n, 2);
        let ends = |words: &[&str]| words.iter().any(|word| one.ends_with(word));
        if matches!(
            (two, one),
            ("instead", "of") | ("rather", "than") | ("anstelle", "von")
        ) || matches!(one, "not" | "nicht" | "statt" | "anstatt")
            || ends(&["不是", "而不是", "而非", "不再是", "不用"])
        {
            return true;
        }
        let later = items.get(at + 1..).unwrap_or_default().iter();
        let later = later.into_iter().any(|other| {
            std::mem::discriminant(&other.form) == std::mem::discriminant(&item.form)
                && dimension(other) == dimension(item)
        });
        later
            && (matches!(
                one,
                "from" | "von" | "was" | "war" | "vom" | "were" | "waren"
            ) || ends(&[
                "从",
                "由",
                "原来是",
                "之前是",
                "原来的",
                "之前的",
                "原先的",
                "原定",
                "原本",
            ]))
    }

    /// Returns the tokens, the form and the number of the number at a token.
    fn item(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let token = self.tokens.get(n)?;
        match token.kind {
            Kind::Number if token.text.starts_with(is_han) => self.han_item(n),
            Kind::Number => self.number(n),
            Kind::Word => self.word(n),
            Kind::Han | Kind::Mark => None,
        }
    }

    /// Reads a number that is written as a word.
    fn word(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let token = self.tokens.get(n)?;
        let word = token.text.as_str();
        if let Some(day) = LEXICON.weekdays.get(word) {
            let form = Form::Date {
                dimension: WEEKDAY,
                amount: day.to_string(),
            };
            return Some((n..n + 1, form, day.to_string()));
        }
        if token.is_capital
            && let Some(month) = LEXICON.months.get(word)
        {
            let day = |n: usize| -> Option<u32> {
                let text = self
                    .at(n)
                    .trim_end_matches(|c: char| c.is_ascii_lowercase());
                text.parse().ok().filter(|day| (1..=31).contains(day))
            };
            let amount = |day: u32| format!("{month:02}-{day:02}");
            if let Some(day) = day(n + 1) {
                let form = Form::Date {
                    dimension: DATE,
                    amount: amount(day),
                };
                return Some((n..n + 2, form, amount(day)));
            }
            // `3 March` and `3. März` are read at the number. A month alone is a date, too.
            let is_name = matches!(
                self.before(n, 1),
                "in" | "from"
                    | "of"
                    | "vom"
                    | "von"
                    | "im"
                    | "until"
                    | "bis"
                    | "by"
                    | "to"
                    | "auf"
                    | "since"
                    | "seit"
                    | "ab"
                    | "for"
                    | "für"
            );
            return is_name.then(|| {
                let form = Form::Date {
                    dimension: "month",
                    amount: month.to_string(),
                };
                (n..n + 1, form, month.to_string())
            });
        }
        if let Some(number) = LEXICON.ordinals.get(word) {
            let counts = matches!(
                self.before(n, 1),
                "per" | "a" | "each" | "every" | "pro" | "one" | "at"
            );
            let follows = self.is_content(n + 1) && !LEXICON.units.contains_key(self.at(n + 1));
            if counts || !follows || self.is_cue(n + 1) {
                return None;
            }
            // `the second quarter` is what `Q2` is.
            let key = stem(self.at(n + 1));
            return Some((n..n + 2, Form::Name { key }, number.to_string()));
        }
        let number = match word {
            "one" if LEXICON.numbered.contains(self.before(n, 1)) => 1,
            "halb" => {
                let hour = LEXICON.digits.get(self.at(n + 1)).copied();
                let hour = hour.or_else(|| self.at(n + 1).parse().ok())?;
                return Some((n..n + 2, clock(hour.checked_sub(1)?, 30), format!("{hour}")));
            }
            // `forty-five`
            _ => word
                .split('-')
                .map(|part| {
                    LEXICON
                        .digits
                        .get(part)
                        .copied()
                        .or((part == "one").then_some(1))
                })
                .sum::<Option<u32>>()
                .filter(|_| word != "one")?,
        };
        // `six hundred`
        let (number, end) = match self.at(n + 1) {
            "hundred" | "hundert" if number < 100 => (number * 100, n + 2),
            _ => (number, n + 1),
        };
        self.counted(n, end, &number.to_string(), None)
    }

    /// Reads a number in Han characters.
    fn han_item(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let text = self.at(n);
        if let Some((_, day)) = LEXICON.han_days.longest(text) {
            let form = Form::Date {
                dimension: WEEKDAY,
                amount: day.to_string(),
            };
            return Some((n..n + 1, form, day.to_string()));
        }
        if let Some(digits) = text.strip_prefix('第') {
            let number = han_value(digits)?.to_string();
            let key = self.han_key(n + 1);
            return Some((n..n + 1, Form::Name { key }, number));
        }
        let number = han_value(text)?.to_string();
        self.counted(n, n + 1, &number, None)
    }

    /// Returns the Han characters at the beginning of a token that name what is numbered.
    fn han_key(&self, n: usize) -> String {
        let text = self.at(n);
        let first: String = text.chars().take(1).collect();
        let is_single = LEXICON.namers.all(&first).next().is_some()
            || LEXICON.counters.all(&first).next().is_some();
        let length = if is_single { 1 } else { HAN_KEY };
        let is_key = |c: &char| is_han(*c) && !LEXICON.empty_chars.contains(c);
        let key: String = text.chars().take_while(is_key).take(length).collect();
        LEXICON.alias.get(key.as_str()).map_or(key, |key| stem(key))
    }

    /// Reads a number that is written with digits.
    fn number(&self, n: usize) -> Option<(Range<usize>, Form, String)> {
        let text = self.at(n).to_owned();
        let before = self.before(n, 1);
        if before == "#" {
            let key = self.before_label(n - 1).unwrap_or_default();
            return Some((n - 1..n + 1, Form::Name { key }, text));
        }
        if before.ends_with('第') {
            let key = self.han_key(n + 1);
            return Some((n..n + 1, Form::Name { key }, text));
        }
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let (body, is_late) = match text.strip_suffix("pm") {
            Some(body) if body.ends_with(|c: char| c.is_ascii_digit()) => (body, Some(true)),
            _ => match text.strip_suffix("am") {
                Some(body) if body.ends_with(|c: char| c.is_ascii_digit()) => (body, Some(false)),
                _ => (text.as_str(), None),
            },
        };
        let (is_late, end) = match self.at(n + 1) {
            "am" if is_late.is_none() && !self.is_german => (Some(false), n + 2),
            "pm" if is_late.is_none() => (Some(true), n + 2),
            "o'clock" => (is_late.or(Some(false)), n + 2),
            "uhr" if !body.contains('-') => (Some(false), n + 2),
            _ => (is_late, n + 1),
        };
        let hour = |hour: u32| match is_late {
            Some(true) if hour < 12 => hour + 12,
            _ => hour,
        };
        if let Some((hours, minutes)) = body.split_once(':')
            && let (Ok(hours), Ok(minutes)) = (
                hours.parse::<u32>(),
                minutes.get(..2).unwrap_or("").parse::<u32>(),
            )
        {
            return Some((
                n..end,
                clock(self.late(n, hour(hours)), minutes),
                text.clone(),
            ));
        }
        if is_late.is_some()
            && let Ok(hours) = body.parse::<u32>()
        {
            if let ("uhr", Ok(minutes)) = (self.at(n + 1), self.at(n + 2).parse::<u32>()) {
                return Some((n..n + 3, clock(hours, minutes), text.clone()));
            }
            return Some((n..end, clock(hour(hours), 0), text.clone()));
        }
        let date = |year: &str, month: &str, day: &str| {
            let is_date = digits(month) && digits(day) && (year.is_empty() || digits(year));
            let numbers = (month.parse::<u32>().ok()?, day.parse::<u32>().ok()?);
            let is_date = is_date && (1..=12).contains(&numbers.0) && (1..=31).contains(&numbers.1);
            is_date.then(|| format!("{:02}-{:02}", numbers.0, numbers.1))
        };
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        let written = match parts.as_slice() {
            [year, month, day] if year.len() == 4 => date(year, month, day),
            [day, month, year] if year.len() == 4 => date(year, month, day),
            [month, day] if text.contains('/') => date("", month, day),
            // `3.5.` in German
            [day, month]
                if text.contains('.')
                    && self.is_german
                    && self.touches(n)
                    && self.at(n + 1) == "." =>
            {
                date("", month, day).filter(|_| {
                    matches!(
                        before,
                        "am" | "vom" | "zum" | "bis" | "den" | "auf" | "dem" | "ab"
                    )
                })
            }
            _ => None,
        };
        if let Some(amount) = written {
            return Some((
                n..n + 1,
                Form::Date {
                    dimension: DATE,
                    amount: amount.clone(),
                },
                amount,
            ));
        }
        if let Some(found) = self.day(n, &text) {
            return Some(found);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let length = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
            let (number, unit) = (text.get(..length)?, text.get(length..)?);
            return match unit {
                "" => self.counted(n, n + 1, number, None),
                "st" | "nd" | "rd" | "th" => match self.is_content(n + 1) && !self.is_cue(n + 1) {
                    true => {
                        let key = stem(self.at(n + 1));
                        Some((n..n + 2, Form::Name { key }, number.to_owned()))
                    }
                    false => {
                        let amount = format!("-{number}");
                        Some((
                            n..n + 1,
                            Form::Date {
                                dimension: "day",
                                amount,
                            },
                            number.to_owned(),
                        ))
                    }
                },
                _ if LEXICON.units.contains_key(unit) || LEXICON.scales.contains_key(unit) => {
                    self.counted(n, n + 1, number, Some(unit))
                }
                // `7b` and `12-3` name as whole words.
                _ => {
                    let key = self.before_label(n).unwrap_or_default();
                    Some((n..n + 1, Form::Label { key }, text))
                }
            };
        }
        // A code, such as `worker-3`, `v2` or `LH123`.
        let length = text.find(|c: char| c.is_ascii_digit())?;
        let key = text.get(..length)?.trim_end_matches(['-', '_', '.']);
        let number = text.get(length..)?.to_owned();
        let short = key.chars().count() < 2 && !LEXICON.alias.contains_key(key);
        let label = if short { self.before_label(n) } else { None };
        match label {
            Some(label) => Some((n..n + 1, Form::Label { key: label }, text)),
            None if !LEXICON.alias.contains_key(key) => Some((
                n..n + 1,
                Form::Code {
                    key: stem(key),
                    text,
                },
                number,
            )),
            None => Some((n..n + 1, Form::Label { key: stem(key) }, number)),
        }
    }

    /// Returns an hour, moved to the afternoon if the words before it say so.
    fn late(&self, n: usize, hour: u32) -> u32 {
        let late = ["下午", "晚上", "傍晚"]
            .iter()
            .any(|word| self.before(n, 1).ends_with(word));
        if late && hour < 12 { hour + 12 } else { hour }
    }

    /// Reads the day of a date: `3 March`, `3. Mai`, `5月3日`, and the time `9点半`.
    fn day(&self, n: usize, text: &str) -> Option<(Range<usize>, Form, String)> {
        let number: u32 = text
            .trim_end_matches(|c: char| c.is_ascii_lowercase())
            .parse()
            .ok()?;
        let date = |month: u32, day: u32| Form::Date {
            dimension: DATE,
            amount: format!("{month:02}-{day:02}"),
        };
        let mut month = n + 1;
        while matches!(self.at(month), "." | "of") {
            month += 1;
        }
        let is_month = |n: usize| self.tokens.get(n).is_some_and(|token| token.is_capital);
        if let Some(of) = LEXICON
            .months
            .get(self.at(month))
            .filter(|_| is_month(month))
            && (1..=31).contains(&number)
        {
            return Some((n..month + 1, date(*of, number), format!("{of}-{number}")));
        }
        // An ordinal of German: `1. Quartal`.
        if self.at(n + 1) == "."
            && self.touches(n)
            && !self.touches(n + 1)
            && self.is_german
            && self
                .tokens
                .get(n + 2)
                .is_some_and(|token| token.is_capital && token.kind == Kind::Word)
        {
            let key = stem(self.at(n + 2));
            return Some((n..n + 3, Form::Name { key }, text.to_owned()));
        }
        let next = self.at(n + 1);
        if next.starts_with('月') && (1..=12).contains(&number) {
            let after = self.at(n + 2);
            if next == "月"
                && (self.at(n + 3).starts_with(['日', '号']))
                && let Ok(day) = after.parse::<u32>()
            {
                return Some((n..n + 3, date(number, day), format!("{number}-{day}")));
            }
            let form = Form::Date {
                dimension: "month",
                amount: number.to_string(),
            };
            return Some((n..n + 1, form, number.to_string()));
        }
        let is_clock =
            next.starts_with('点') || (next.starts_with('时') && !next.starts_with("时间"));
        if is_clock && number < 25 {
            let hour = self.late(n, number);
            let minute = match next {
                _ if next.starts_with("点半") => 30,
                "点" => self
                    .at(n + 2)
                    .parse()
                    .ok()
                    .filter(|minute| *minute < 60)
                    .unwrap_or(0),
                _ => 0,
            };
            let end = if minute > 0 && minute != 30 {
                n + 3
            } else {
                n + 1
            };
            return Some((n..end, clock(hour, minute), text.to_owned()));
        }
        None
    }

    /// Reads a number with its unit, with what it counts, or with its label. `end` is the token after the number.
    fn counted(
        &self,
        n: usize,
        end: usize,
        number: &str,
        unit: Option<&str>,
    ) -> Option<(Range<usize>, Form, String)> {
        if let Some(found) = self.day(n, number).filter(|_| unit.is_none()) {
            return Some(found);
        }
        let before = self.before(n, 1);
        let amount = amount_of(number);
        let next = self.at(end);
        let quantity = |dimension: &str, size: f64, end: usize| {
            let amount = amount.map_or_else(|| number.to_owned(), |amount| written(amount * size));
            let dimension = dimension.to_owned();
            Some((n..end, Form::Value { dimension, amount }, number.to_owned()))
        };
        let money = matches!(before, "$" | "€" | "£" | "¥" | "￥");
        // The unit, and the size of the words before it, such as `万` in `80万元`.
        let (mut scale, mut end_of_unit) = (1.0, end);
        let mut rest = unit.map_or_else(|| next.to_owned(), str::to_owned);
        let is_number_of_unit = unit.is_some();
        let is_han_next = rest.starts_with(is_han);
        if is_han_next {
            if let Some((word, size)) = LEXICON.han_scales.longest(&rest) {
                scale = size;
                rest = rest.get(word.len()..).unwrap_or("").to_owned();
            }
            if let Some((unit, (dimension, size))) = LEXICON.han_units.longest(&rest) {
                let is_year = unit == "年" && number.len() == 4;
                if is_year {
                    let key = "year".to_owned();
                    return Some((n..end, Form::Name { key }, number.to_owned()));
                }
                return quantity(dimension, size * scale, end);
            }
            if scale > 1.0 && !money {
                let counter = LEXICON
                    .counters
                    .longest(&rest)
                    .map(|(word, _)| word)
                    .unwrap_or("");
                return quantity(counter, scale, end);
            }
            if rest.starts_with("分之") {
                return quantity("share", 1.0, end);
            }
        } else if let Some(size) = LEXICON.scales.get(rest.as_str()) {
            scale = *size;
            if !is_number_of_unit {
                end_of_unit = end + 1;
            }
            rest = self.at(end_of_unit).to_owned();
        }
        let currency = LEXICON.units.get(rest.as_str()).filter(|_| {
            rest.chars().count() > 1
                || is_number_of_unit
                || matches!(rest.as_str(), "%" | "€" | "$" | "°" | "m" | "h" | "g" | "s")
        });
        if let Some((dimension, size)) = currency
            && !(rest == "h" || rest == "s")
                | is_number_of_unit
                | self.touches(end.saturating_sub(1))
                | (rest == "h")
        {
            let end = match is_number_of_unit && scale <= 1.0 {
                true => end,
                false => end_of_unit + 1,
            };
            return quantity(dimension, size * scale, end);
        }
        if money {
            let end = end_of_unit.max(end);
            return quantity("money", scale, end)
                .map(|(tokens, form, number)| (tokens.start - 1..tokens.end, form, number));
        }
        // Years.
        let is_year = number.len() == 4
            && (number.starts_with("19") || number.starts_with("20"))
            && amount.is_some();
        let start = n == 0 || self.kind(n - 1) == Some(Kind::Mark);
        let is_model = matches!(before, "the" | "our" | "my" | "das" | "der" | "die")
            && self.is_content(end)
            && !next.ends_with('s');
        if is_year
            && scale <= 1.0
            && (start
                || is_model
                || matches!(
                    before,
                    "in" | "for"
                        | "of"
                        | "since"
                        | "until"
                        | "during"
                        | "im"
                        | "für"
                        | "von"
                        | "seit"
                        | "jahr"
                        | "jahres"
                        | "year"
                        | "from"
                        | "summer"
                        | "winter"
                        | "sommer"
                        | "fiscal"
                ))
        {
            let key = "year".to_owned();
            return Some((n..end, Form::Label { key }, number.to_owned()));
        }
        if next.starts_with(is_han) {
            // What follows directly may be counted or named.
            let label = self.before_label(n);
            if next.starts_with('号') {
                let after: String = next.chars().skip(1).collect();
                let first: String = after
                    .chars()
                    .take_while(|c| !LEXICON.empty_chars.contains(c))
                    .take(HAN_KEY)
                    .collect();
                let namer = LEXICON
                    .namers
                    .longest(&after)
                    .map(|(word, _)| word)
                    .filter(|namer| !first.is_empty() && namer.chars().count() > 0);
                let key = match namer {
                    Some(namer) => namer.to_owned(),
                    None if first.is_empty() => "号".to_owned(),
                    None => first,
                };
                return Some((n..end, Form::Label { key }, number.to_owned()));
            }
            if label.is_none() || LEXICON.namers.longest(next).map(|(word, _)| word).is_some() {
                if let Some(namer) =
                    LEXICON
                        .namers
                        .longest(next)
                        .map(|(word, _)| word)
                        .filter(|namer| {
                            LEXICON
                                .counters
                                .longest(next)
                                .map(|(word, _)| word)
                                .is_none_or(|counter| counter.len() < namer.len())
                        })
                {
                    return Some((
                        n..end,
                        Form::Label {
                            key: namer.to_owned(),
                        },
                        number.to_owned(),
                    ));
                }
                if let Some(counter) = LEXICON.counters.longest(next).map(|(word, _)| word) {
                    return quantity(counter, scale, end);
                }
                let is_noun = next.chars().next().is_some_and(|c| {
                    !LEXICON.empty_chars.contains(&c) && !"，。有没不也还再最已现分".contains(c)
                });
                if is_noun
                    && !LEXICON
                        .han_phrases(next)
                        .any(|(_, cue)| cue & cue::MOVES != 0)
                    && label.is_none()
                    && self.kind(n.wrapping_sub(1)) != Some(Kind::Han)
                {
                    return Some((
                        n..end,
                        Form::Label {
                            key: self.han_key(end),
                        },
                        number.to_owned(),
                    ));
                }
            } else if let Some(counter) = LEXICON.counters.longest(next).map(|(word, _)| word) {
                // `保留5份` has a verb before the number, and `等级2份额` is rare.
                return quantity(counter, scale, end);
            }
        }
        let follows = self.is_content(end) && !self.is_cue(end) && scale <= 1.0;
        let count = || {
            let key = stem(self.at(end_of_unit));
            quantity(&format!("count {key}"), scale, end_of_unit)
        };
        if let Some(key) = self.before_label(n)
            && scale <= 1.0
            && self.is_label(n, end, follows)
        {
            return Some((n..end, Form::Label { key }, number.to_owned()));
        }
        if follows || (scale > 1.0 && self.is_content(end_of_unit) && !self.is_cue(end_of_unit)) {
            return count();
        }
        if scale > 1.0 {
            return quantity(PLAIN, scale, end_of_unit);
        }
        let form = match number.matches('.').count() {
            0 | 1 => plain(number),
            _ => Form::Value {
                dimension: PLAIN.to_owned(),
                amount: number.to_owned(),
            },
        };
        Some((n..end, form, number.to_owned()))
    }

    /// Returns what the word before a number says that it numbers.
    fn before_label(&self, n: usize) -> Option<String> {
        let mut at = n.checked_sub(1)?;
        let mut is_number = false;
        while matches!(
            self.at(at),
            "." | "nr" | "no" | "number" | "nummer" | "num" | "id" | "号" | "-"
        ) {
            // `Flight number 12` is a flight.
            is_number = true;
            let Some(before) = at.checked_sub(1) else {
                return Some("number".to_owned());
            };
            at = before;
        }
        match self.kind(at)? {
            Kind::Word | Kind::Mark if is_number && !self.is_content(at) => {
                Some("number".to_owned())
            }
            Kind::Word
                if self.is_content(at)
                    && !self.is_cue(at)
                    && !LEXICON.ordinals.contains_key(self.at(at)) =>
            {
                Some(stem(self.at(at)))
            }
            Kind::Han if at + 1 == n => {
                let text = self.at(at);
                let last = text.chars().next_back()?;
                if LEXICON.empty_chars.contains(&last)
                    || "有是为成到至于，过超达共少多高低花卖涨降要付收存留限坐容第每约近满在"
                        .contains(last)
                {
                    return None;
                }
                let end = self.tokens.get(at).map_or(0, |token| token.range.end);
                if self.han_cues.iter().any(|range| range.end == end) || text.ends_with("限制") {
                    return None;
                }
                let key: Vec<char> = text
                    .chars()
                    .rev()
                    .take_while(|c| !LEXICON.empty_chars.contains(c))
                    .take(HAN_KEY)
                    .collect();
                let key: String = key.into_iter().rev().collect();
                Some(LEXICON.alias.get(key.as_str()).map_or(key, |key| stem(key)))
            }
            _ => None,
        }
    }

    /// Returns whether the word before a number is its label, and not a verb whose object the number counts.
    fn is_label(&self, n: usize, end: usize, follows: bool) -> bool {
        let Some(before) = n.checked_sub(1).and_then(|n| self.tokens.get(n)) else {
            return false;
        };
        if before.kind != Kind::Word {
            return true;
        }
        let word = before.text.as_str();
        if self.is_german {
            let noun = |token: Option<&Token>| {
                token.is_some_and(|token| token.is_capital && token.kind == Kind::Word)
            };
            return before.is_capital && !noun(self.tokens.get(end));
        }
        if LEXICON.ambiguous.contains(word) {
            let long = self.at(n).len() > 2;
            return long || !follows || n == 1 && self.has_number_after(end);
        }
        let verb = word.len() > 3 && word.ends_with("ed") && !word.ends_with("eed")
            || word.ends_with("ing")
            || (word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us"));
        !verb && !LEXICON.amount.contains(word)
    }

    fn has_number_after(&self, n: usize) -> bool {
        (n..self.tokens.len()).any(|n| self.kind(n) == Some(Kind::Number))
    }

    /// Returns whether a word belongs to a phrase that says how the sentence relates to others.
    fn is_cue(&self, n: usize) -> bool {
        self.has_cue(n, cue::EMPTY & !cue::NEGATES)
    }

    fn has_cue(&self, n: usize, cue: u16) -> bool {
        self.cues.get(n).is_some_and(|own| own & cue != 0)
    }

    fn cues(&self) -> Cues {
        let end = self.text.trim_end();
        let asks = end.ends_with(['?', '？']) || end.trim_end_matches('。').ends_with('吗');
        let has = |cue: u16| self.all_cues & cue != 0;
        Cues {
            moves: has(cue::MOVES),
            now: has(cue::NOW),
            rule: has(cue::RULE),
            same: has(cue::SAME),
            past: has(cue::PAST),
            open: asks || has(cue::OPEN),
            drops: has(cue::DROPS),
            assigns: has(cue::ASSIGNS),
        }
    }

    /// Splits the sentence into parts with a value of their own.
    fn parts(&self, items: &[Item]) -> Vec<Range<usize>> {
        let mut cuts: Vec<usize> = Vec::new();
        for (n, token) in self.tokens.iter().enumerate() {
            let cut = match token.kind {
                Kind::Mark => matches!(
                    token.text.as_str(),
                    "," | ";"
                        | ":"
                        | "，"
                        | "；"
                        | "："
                        | "、"
                        | "—"
                        | "–"
                        | "("
                        | ")"
                        | "（"
                        | "）"
                ),
                Kind::Word => matches!(
                    token.text.as_str(),
                    "and" | "und" | "but" | "aber" | "while" | "sondern"
                ),
                _ => false,
            };
            if cut && !items.iter().any(|item| item.tokens.contains(&n)) {
                cuts.push(n);
            }
        }
        cuts.push(self.tokens.len());
        let is_value = |item: &Item| matches!(item.form, Form::Value { .. } | Form::Date { .. });
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut start = 0;
        for end in cuts {
            let own = || {
                items
                    .iter()
                    .filter(|item| (start..end).contains(&item.tokens.start))
            };
            let begins = match parts.last() {
                None => true,
                Some(last) => {
                    let before = items
                        .iter()
                        .filter(|item| last.contains(&item.tokens.start));
                    let before: Vec<&Item> = before.collect();
                    let said = before.len() > 1 || before.iter().any(|item| is_value(item));
                    said && own().any(is_value)
                }
            };
            match parts.last_mut() {
                Some(last) if !begins => last.end = end,
                _ => parts.push(start..end),
            }
            start = end;
        }
        parts
    }

    fn clause(&self, part: &Range<usize>, own: &[&Item], all: &[Item]) -> Clause {
        let mut clause = Clause::default();
        let is_value = |item: &&&Item| matches!(item.form, Form::Value { .. });
        let has_value = own.iter().any(|item| is_value(&item) && !item.is_former);
        let has_date = own
            .iter()
            .any(|item| matches!(item.form, Form::Date { .. }));
        // The last number with a label is the value if the clause has no other.
        let last = own.iter().rposition(|item| {
            matches!(item.form, Form::Label { .. } | Form::Code { .. })
                && !self.is_owned(part, item)
        });
        let last = last.filter(|_| !has_value && !has_date);
        for (at, item) in own.iter().enumerate() {
            let name = |key: &str, is_place: bool| Name {
                key: key.to_owned(),
                number: item.number.clone(),
                is_place,
                range: item.range.clone(),
            };
            let value = |dimension: &str, amount: &str| Value {
                dimension: dimension.to_owned(),
                amount: amount.to_owned(),
                number: item.number.clone(),
                is_former: item.is_former,
                range: item.range.clone(),
            };
            match &item.form {
                Form::Name { key } => clause.names.push(name(key, false)),
                Form::Label { key } if Some(at) == last || item.is_former => {
                    clause
                        .values
                        .push(value(&format!("of {key}"), &item.number));
                }
                Form::Code { text, .. } if Some(at) == last || item.is_former => {
                    clause.values.push(Value {
                        number: text.clone(),
                        ..value("code", text)
                    });
                }
                Form::Label { key } | Form::Code { key, .. } => {
                    let is_place = !self.is_owned(part, item) && self.is_in_place(item);
                    clause.names.push(name(key, is_place));
                }
                Form::Date { amount, dimension }
                    if has_value && !item.is_former && self.is_dated(part, item) =>
                {
                    clause.names.push(Name {
                        number: amount.clone(),
                        ..name(dimension, false)
                    });
                }
                Form::Date { dimension, amount } => clause.values.push(value(dimension, amount)),
                Form::Value { dimension, amount } => clause.values.push(value(dimension, amount)),
            }
        }
        self.terms(part, all, &mut clause);
        clause.head = own
            .iter()
            .find_map(|item| self.head(part, item, all, &clause));
        clause
    }

    /// Returns the noun of which a name is a part or owner: `baggage` in `baggage on flight 12`.
    fn head(
        &self,
        part: &Range<usize>,
        item: &Item,
        all: &[Item],
        clause: &Clause,
    ) -> Option<String> {
        if !clause.names.iter().any(|name| name.range == item.range) {
            return None;
        }
        let mut n = self.start_of(item);
        let links =
            |n: usize| LEXICON.place.contains(self.at(n)) || LEXICON.owner.contains(self.at(n));
        if n > part.start + 1 && self.is_content(n - 1) && links(n - 2) {
            n -= 1;
        }
        let mut is_linked = false;
        while n > part.start && LEXICON.empty.contains(self.before(n, 1)) {
            n -= 1;
            is_linked |= links(n);
        }
        let before = n.checked_sub(1).filter(|n| part.contains(n))?;
        let is_number = all.iter().any(|item| item.tokens.contains(&before));
        let word = self.term(self.at(before));
        let gerund = self.at(before).ends_with("ing");
        ((is_linked || gerund) && !is_number && clause.terms.contains(&word)).then_some(word)
    }

    /// Returns whether a date names what the clause is about: at its beginning, or after a word such as `of`.
    fn is_dated(&self, part: &Range<usize>, item: &Item) -> bool {
        let before = self.before(item.tokens.start, 1);
        let is_owner = LEXICON.owner.contains(before) || before == "from";
        is_owner || self.is_topic(part, item)
    }

    /// Returns the first token of a number with its label.
    fn start_of(&self, item: &Item) -> usize {
        let start = item.tokens.start;
        let is_label = matches!(item.form, Form::Label { .. })
            && self.kind(start.wrapping_sub(1)) == Some(Kind::Word)
            && self.before_label(start).is_some();
        start - usize::from(is_label)
    }

    /// Returns whether a number is at the beginning of its clause, before any verb or other noun.
    fn is_topic(&self, part: &Range<usize>, item: &Item) -> bool {
        let start = self.start_of(item);
        // One more noun may describe the label: `branch release-1.2`.
        let noun = start.checked_sub(1).filter(|n| {
            let word = self.at(*n);
            self.is_content(*n)
                && self.touches_word(*n)
                && !self.is_cue(*n)
                && !LEXICON.amount.contains(word)
                && !LEXICON.ambiguous.contains(word)
                && matches!(item.form, Form::Label { .. } | Form::Code { .. })
                && item.tokens.end < part.end
        });
        self.begins(part, item, start) || noun.is_some_and(|n| self.begins(part, item, n))
    }

    /// Returns whether only a space is between a token and the next one.
    fn touches_word(&self, n: usize) -> bool {
        let end = self.tokens.get(n).map(|token| token.range.end + 1);
        end.is_some() && end == self.tokens.get(n + 1).map(|token| token.range.start)
    }

    /// Returns whether only words that say nothing are between the beginning of a clause and a token.
    fn begins(&self, part: &Range<usize>, item: &Item, start: usize) -> bool {
        // A clause after a colon or a comma begins anew.
        let mark = (part.start..start).rev().find(|n| {
            matches!(self.at(*n), "," | ":" | "，" | "：" | "、")
                && self.kind(*n) == Some(Kind::Mark)
        });
        let from = mark.map_or(part.start, |n| n + 1);
        (from..start).all(|n| match self.kind(n) {
            Some(Kind::Word) => {
                LEXICON.empty.contains(self.at(n)) && !LEXICON.predicate.contains(self.at(n))
                    || self.is_cue(n)
                    || n + 2 == start && self.before(start, 1) == "number"
            }
            Some(Kind::Han) => {
                // In `服务42` the label is before the number.
                let text = self.without_cues(n);
                let length = text
                    .chars()
                    .filter(|c| is_han(*c) && !LEXICON.empty_chars.contains(c))
                    .count();
                let most = match &item.form {
                    Form::Label { key } if !key.starts_with(is_han) => 2,
                    Form::Code { .. } => 2,
                    _ => 4,
                };
                n + 1 == start
                    && length <= most
                    && !text.contains(['在', '到', '用', '去', '是', '我', '有'])
            }
            Some(Kind::Number) => false,
            _ => true,
        })
    }

    /// Returns whether a number names by its place: at the beginning of the clause, or after a word such as `of`.
    fn is_owned(&self, part: &Range<usize>, item: &Item) -> bool {
        let n = item.tokens.start;
        let mut start = n;
        while start > 0
            && (self.is_content(start - 1)
                || matches!(
                    self.at(start - 1),
                    "the"
                        | "our"
                        | "den"
                        | "dem"
                        | "der"
                        | "die"
                        | "das"
                        | "no"
                        | "nr"
                        | "."
                        | "unser"
                        | "unsere"
                        | "#"
                ))
            && start + 3 > n
        {
            start -= 1;
        }
        let owner = start > 0 && LEXICON.owner.contains(self.at(start - 1))
            || n > 1 && LEXICON.owner.contains(self.before(n, 2))
            || matches!(self.before(n, 1), "of" | "for" | "für");
        let owns =
            self.at(item.tokens.end) == "'" || self.at(item.tokens.end).starts_with('的') || {
                let after: String = self.at(item.tokens.end).chars().take(6).collect();
                after.contains('的') && self.kind(item.tokens.end) == Some(Kind::Han)
            };
        self.is_topic(part, item) || owner || owns
    }

    /// Returns whether a word of a place is before a number and its label.
    fn is_in_place(&self, item: &Item) -> bool {
        let n = item.tokens.start;
        if self.kind(n.wrapping_sub(1)) == Some(Kind::Han) {
            let text = self.before(n, 1);
            return LEXICON
                .place
                .iter()
                .any(|word| word.starts_with(is_han) && text.contains(*word));
        }
        (1..=3).any(|places| LEXICON.place.contains(self.before(n, places)))
    }

    /// Returns the text of a token with spaces instead of phrases that say how the sentence relates to others.
    fn without_cues(&self, n: usize) -> String {
        let token = self.tokens.get(n);
        let start = token.map_or(0, |token| token.range.start);
        let chars = token.map_or("", |token| token.text.as_str()).char_indices();
        let is_cue = |at: usize| {
            self.han_cues
                .iter()
                .any(|range| range.contains(&(start + at)))
        };
        chars
            .map(|(at, c)| if is_cue(at) { ' ' } else { c })
            .collect()
    }

    /// Returns the beginning of a word of a subject by which it is compared.
    fn term(&self, word: &str) -> String {
        if !self.is_german || LEXICON.alias.contains_key(word) {
            return stem(word);
        }
        let ends = ["en", "et", "st", "t", "e", "n"];
        let bare = ends.iter().filter_map(|end| word.strip_suffix(end));
        let bare = bare.into_iter().find(|bare| bare.chars().count() >= 4);
        let plain = |c: char| match c {
            'ä' => 'a',
            'ö' => 'o',
            'ü' => 'u',
            _ => c,
        };
        stem(&bare.unwrap_or(word).chars().map(plain).collect::<String>())
    }

    /// Adds the words of the subject to a clause.
    fn terms(&self, part: &Range<usize>, items: &[Item], clause: &mut Clause) {
        let keys: BTreeSet<&str> = clause.names.iter().map(|name| name.key.as_str()).collect();
        let of: BTreeSet<&str> = clause
            .values
            .iter()
            .filter_map(|value| value.dimension.strip_prefix("of "))
            .collect();
        let mut terms = BTreeSet::new();
        let mut last: Option<(usize, String)> = None;
        for n in part.clone() {
            if items.iter().any(|item| item.tokens.contains(&n)) {
                continue;
            }
            let text = self.at(n);
            if let Some(side) = LEXICON.opposite.get(text) {
                clause.opposites.insert(*side);
            }
            match self.kind(n) {
                Some(Kind::Word) => {
                    clause.negated |= self.has_cue(n, cue::NEGATES);
                    let is_unit = LEXICON.units.contains_key(text);
                    if self.is_content(n)
                        && !self.is_cue(n)
                        && !is_unit
                        && text.chars().count() > 1
                        && !self.has_cue(n, cue::NEGATES)
                    {
                        let term = self.term(text);
                        if let Some((before, last)) = last.replace((n, term.clone()))
                            && before + 1 == n
                            && (!self.is_german
                                || self.tokens.get(n).is_some_and(|token| token.is_capital))
                        {
                            clause.pairs.insert((last, term.clone()));
                        }
                        terms.insert(term);
                    }
                }
                Some(Kind::Han) => {
                    for (at, _) in text.char_indices() {
                        let rest = text.get(at..).unwrap_or("");
                        clause
                            .opposites
                            .extend(LEXICON.han_opposites.all(rest).map(|(_, side)| side));
                        let mut cues = LEXICON.han_phrases(rest);
                        clause.negated |= cues.any(|(_, cue)| cue & cue::NEGATES != 0);
                    }
                    let mut text = self.without_cues(n);
                    let after_number = n > 0 && items.iter().any(|item| item.tokens.end == n);
                    if after_number {
                        let units = LEXICON.han_units.longest(&text).map(|(unit, _)| unit.len());
                        let scales = LEXICON
                            .han_scales
                            .longest(&text)
                            .map(|(unit, _)| unit.len());
                        let words = LEXICON.counters.all(&text).chain(LEXICON.namers.all(&text));
                        let unit = words
                            .map(|(word, ())| word.len())
                            .chain(units)
                            .chain(scales)
                            .max();
                        text = text.get(unit.unwrap_or(0)..).unwrap_or("").to_owned();
                    }
                    for run in text.split(|c: char| !is_han(c) || LEXICON.empty_chars.contains(&c))
                    {
                        terms.extend(run.chars().map(String::from));
                    }
                }
                _ => {}
            }
        }
        terms.retain(|term| !keys.contains(term.as_str()) && !of.contains(term.as_str()));
        clause.terms = terms;
    }
}

/// Returns what a number measures, if it is a value.
fn dimension(item: &Item) -> Option<&str> {
    match &item.form {
        Form::Name { .. } => None,
        Form::Label { key } => Some(key),
        Form::Code { .. } => Some("code"),
        Form::Date { dimension, .. } => Some(dimension),
        Form::Value { dimension, .. } => Some(dimension),
    }
}
