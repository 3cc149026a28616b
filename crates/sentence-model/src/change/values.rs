//! Finds values in sentences.

use std::ops::Range;

/// Kind of a value. A value can only replace a value of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    Number,
    Time,
    Date,
    /// A mixture of letters and digits, a path, a name with underscores or inner capitals, or a quoted text.
    Name,
    /// A word that is a value only by its place, such as `main` in `is main`.
    Place,
    /// A word from the list of values with this index.
    Word(usize),
}

/// A value in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) range: Range<usize>,
    pub(super) kind: ValueKind,
    pub(super) text: String,
    pub(super) is_quoted: bool,
}

/// Pairs of opening and closing quotation marks.
const QUOTES: [(char, char); 10] = [
    ('\'', '\''),
    ('"', '"'),
    ('`', '`'),
    ('‘', '’'),
    ('‘', '\''),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
];

/// Returns whether a character is a quotation mark.
pub(super) fn is_quote(c: char) -> bool {
    QUOTES
        .iter()
        .any(|(open, close)| [*open, *close].contains(&c))
}

/// Maximum length of a value in quotation marks, in characters.
const QUOTED_CHARS: usize = 32;

/// Minimum number of letters of a value that consists only of capitals.
const CAPITALS: usize = 5;

/// Returns the values in a sentence, quoted values first. Values that are written as words are not included.
pub(super) fn written(text: &str) -> Vec<Written> {
    let mut out = quoted(text);
    let is_value = |c: char| c.is_ascii_alphanumeric() || "_./:-@%+".contains(c);
    let mut at = 0;
    while let Some(begin) = text.get(at..).and_then(|rest| rest.find(is_value)) {
        let begin = at + begin;
        let rest = text.get(begin..).unwrap_or_default();
        let end = begin + rest.find(|c| !is_value(c)).unwrap_or(rest.len());
        at = end;
        let run = text.get(begin..end).unwrap_or_default();
        let value = run.trim_matches(|c: char| ".:-/+@".contains(c));
        let first = begin + run.find(value).unwrap_or_default();
        let range = first..first + value.len();
        if out.iter().any(|quoted| quoted.range.contains(&first)) {
            continue;
        }
        if let Some(kind) = kind_of(value) {
            let text = value.to_lowercase();
            out.push(Written {
                range,
                kind,
                text,
                is_quoted: false,
            });
        }
    }
    out
}

/// Returns the quoted values in a text.
fn quoted(text: &str) -> Vec<Written> {
    let mut out: Vec<Written> = Vec::new();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut end = 0;
    for (at, open) in text.char_indices() {
        if !QUOTES.iter().any(|(one, _)| *one == open) {
            continue;
        }
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let inside = at + open.len_utf8();
        if at < end || open.is_ascii() && is_word(before) {
            continue;
        }
        let rest = text.get(inside..).unwrap_or_default();
        let closes = rest.char_indices().take(QUOTED_CHARS + 1).find(|(at, c)| {
            let next = rest
                .get(at + c.len_utf8()..)
                .and_then(|rest| rest.chars().next());
            QUOTES.contains(&(open, *c)) && !(c.is_ascii() && is_word(next))
        });
        let Some((length, _)) = closes else { continue };
        let value = rest.get(..length).unwrap_or_default();
        if value.trim().is_empty() || value.split_whitespace().count() > 3 {
            continue;
        }
        let marked = value.trim_matches(|c: char| c.is_ascii_punctuation() && c != '_');
        let closing = rest.get(length..).and_then(|rest| rest.chars().next());
        end = inside + length + closing.map_or(0, char::len_utf8);
        out.push(Written {
            range: at..end,
            kind: ValueKind::Name,
            text: if marked.is_empty() { value } else { marked }.to_lowercase(),
            is_quoted: true,
        });
    }
    out
}

fn kind_of(value: &str) -> Option<ValueKind> {
    let has = |test: fn(char) -> bool| value.chars().any(test);
    let letters = has(|c| c.is_ascii_alphabetic());
    let digits = has(|c| c.is_ascii_digit());
    let is_joined = value.matches('-').count() >= 2;
    let inner = is_joined || value.contains(['_', '/']) || value.contains('.') && letters;
    let marks = value.chars().filter(|c| "-/.".contains(*c)).count();
    match (letters, digits) {
        (true, false) if !inner && has_capitals(value) => Some(ValueKind::Name),
        (_, false) if !inner || !letters => None,
        (true, _) => Some(ValueKind::Name),
        (false, _) if value.contains(':') => Some(ValueKind::Time),
        (false, _) if marks >= 2 => Some(ValueKind::Date),
        (false, _) => Some(ValueKind::Number),
    }
}

/// Returns whether a word contains small letters and a capital after its first character, or at least five capitals and
/// no small letter. An `s` at the end does not count.
fn has_capitals(value: &str) -> bool {
    // The plural of a short name is still a short name.
    let letters = value.strip_suffix('s').unwrap_or(value).as_bytes();
    let capitals = letters.iter().filter(|c| c.is_ascii_uppercase()).count();
    let small = letters.iter().filter(|c| c.is_ascii_lowercase()).count();
    let behind = letters.iter().skip(1).any(u8::is_ascii_uppercase);
    small > 0 && behind || capitals >= CAPITALS && small == 0
}
