//! Signs that stand for marks while a text is redacted.
//!
//! A sign is a number in noncharacters of Unicode, which are for a program's own use. They are taken out of a text before
//! it is redacted, so no text can forge a sign, and no rule takes one for a part of a value.

use std::borrow::Cow;

use regex::{Captures, Regex};

/// Stands for the beginning of a mark that the text itself had.
pub(super) const EARLIER_MARK: &str = "\u{fdd0}";
/// Ends the number of a value.
const VALUE: char = '\u{fdd1}';
/// Ends the number of a color code.
const COLOR: char = '\u{fdd2}';
/// First of the sixteen digits.
const ZERO: char = '\u{fde0}';

/// Characters of signs as a part of a class of a pattern. No value has them.
pub(super) const ANY: &str = r"\x{FDD1}-\x{FDEF}";
/// The same for the signs of color codes, which may be between a name and its value.
pub(super) const COLORS: &str = r"\x{FDD2}-\x{FDEF}";

/// Color codes of terminals, as they are, escaped, and without their first character.
pub(super) const CODES: &str =
    r"(?i)(?:(?:\x1b|␛|\\+x1b|\\+u001b|\\+033|\\+e)\[|\x{9b})[0-9;:?]*[a-z]|\[[0-9;]+m";

pub(super) fn is_sign(c: char) -> bool {
    ('\u{fdd0}'..='\u{fdef}').contains(&c)
}

/// Returns whether a text has the sign of a value.
pub(super) fn has_value(text: &str) -> bool {
    text.contains(VALUE)
}

/// Returns a text without the characters of signs.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    match text.contains(is_sign) {
        true => Cow::Owned(text.replace(is_sign, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Returns the sign of a value.
pub(super) fn of(number: usize) -> String {
    sign(number, VALUE)
}

fn sign(number: usize, end: char) -> String {
    let digits = format!("{number:x}");
    let digits = digits
        .chars()
        .filter_map(|digit| char::from_u32(u32::from(ZERO) + digit.to_digit(16)?));
    digits.chain([end]).collect()
}

/// Replaces color codes by signs, and returns the codes.
pub(super) fn without_colors<'t>(text: &'t str, codes: &Regex) -> (Cow<'t, str>, Vec<&'t str>) {
    let mut found = Vec::new();
    for code in codes.find_iter(text) {
        found.push(code.as_str());
    }
    let mut number = 0..;
    let shown = codes.replace_all(text, |_: &Captures<'_>| {
        sign(number.next().unwrap_or_default(), COLOR)
    });
    (shown, found)
}

/// Puts color codes back in place of their signs.
pub(super) fn with_colors(text: &str, codes: &[&str]) -> String {
    resolved(text, |end, number| match end {
        COLOR => codes.get(number).map(|code| (*code).to_owned()),
        _ => None,
    })
}

/// Writes marks in place of the signs of values, and says of other marks that the text had them.
pub(super) fn with_marks(
    text: &str,
    earlier: &str,
    mut mark: impl FnMut(usize) -> String,
) -> String {
    let text = resolved(text, |end, number| (end == VALUE).then(|| mark(number)));
    text.replace(EARLIER_MARK, earlier)
}

/// Replaces signs by the result of a function for their ends and numbers. Without a result a sign stays.
fn resolved(text: &str, mut of: impl FnMut(char, usize) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut number = 0;
    for c in text.chars() {
        let digit = u32::from(c).checked_sub(u32::from(ZERO));
        match (c, digit) {
            (VALUE | COLOR, _) => {
                let shown = of(c, number).unwrap_or_else(|| sign(number, c));
                out.push_str(&shown);
                number = 0;
            }
            (_, Some(digit @ 0..16)) => number = number * 16 + digit as usize,
            _ => out.push(c),
        }
    }
    out
}
