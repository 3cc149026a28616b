//! Words, numbers and marks of a sentence.

use std::ops::Range;

use super::lexicon::{LEXICON, is_han};

/// A word, a run of Han characters, a number or a mark.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The text in lower case.
    pub(super) text: String,
    pub(super) range: Range<usize>,
    pub(super) is_capital: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Han,
    Number,
    Mark,
}

pub(super) fn is_number_word(token: &Token) -> bool {
    let word = token.text.as_str();
    token.kind == Kind::Word
        && (word
            .split('-')
            .any(|part| LEXICON.digits.contains_key(part))
            || LEXICON.ordinals.contains_key(word)
            || LEXICON.times.contains_key(word)
            || matches!(word, "noon" | "midday" | "midnight" | "mitternacht")
            || LEXICON.weekdays.contains_key(word)
            || LEXICON.months.contains_key(word))
}

/// Splits a text into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token> {
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
        if !(is_part(c) || joins && is_part(last)) {
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
        // `三周一次` is once in three weeks.
        let rest = text.get(day.len()..).unwrap_or("");
        return (!rest.starts_with(['次', '个', '天', '回'])).then_some(day.len());
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
        && (digits != "一" || after.starts_with("人")))
        || LEXICON.han_units.longest(after).is_some()
        || (LEXICON.namers.longest(after).is_some() && digits != "一")
        || after.starts_with('万')
        || (after.starts_with(['点', '月']) && !after.starts_with("点儿") && digits != "一");
    counts.then_some(length)
}

/// Returns the number that a text in digits of any script writes.
pub(super) fn han_value(text: &str) -> Option<u32> {
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
