//! A value that a pattern found, and the text around it.

use regex::Captures;

use super::signs;

/// A test that a found value has to pass.
pub(super) type Test = fn(&Found<'_>) -> bool;

/// Number of bytes before a value that its test sees, so that a long line takes no longer for each value in it.
const BEFORE: usize = 80;

/// A value that a pattern found, and the text on both sides of it.
pub(super) struct Found<'t> {
    pub(super) start: usize,
    pub(super) before: &'t str,
    pub(super) value: &'t str,
    pub(super) after: &'t str,
    pub(super) is_quoted: bool,
}

impl<'t> Found<'t> {
    /// Returns the match of a pattern in a text.
    pub(super) fn of(text: &'t str, groups: &Captures<'t>) -> Option<Self> {
        let quoted = groups.name("q");
        let value = quoted.or(groups.name("v")).or(groups.get(0))?;
        let before = text.get(..value.start())?;
        // The letter of an escape, such as `\n`, does not belong to a value that begins there.
        let is_first = groups
            .get(0)
            .is_some_and(|all| all.start() == value.start());
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let escape = match value.as_str().chars().next() {
            Some(letter) if is_first && backslashes % 2 == 1 => 1 + 4 * usize::from(letter == 'u'),
            _ => 0,
        };
        let mut end = value.end();
        if quoted.is_none() && groups.name("v").is_some() {
            // The end of a sentence.
            end -= value.as_str().len() - value.as_str().trim_end_matches(['.', ':']).len();
        }
        let found = Self::at(text, value.start() + escape, end)?;
        let is_quoted = quoted.is_some() || found.after.trim_start().starts_with("</");
        Some(Self { is_quoted, ..found })
    }

    /// Returns a part of a text.
    pub(super) fn at(text: &'t str, start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start,
            before: text.get(text.floor_char_boundary(start.saturating_sub(BEFORE))..start)?,
            value: text.get(start..end)?,
            after: text.get(end..)?,
            is_quoted: false,
        })
    }

    /// Returns a string of a JSON object under its key.
    pub(super) fn of_key(key: &'t str, value: &'t str) -> Self {
        Self {
            start: 0,
            before: key,
            value,
            after: "",
            is_quoted: true,
        }
    }
}

/// Returns whether a character ends a word: white space, and signs, because the marks in their places have spaces.
pub(super) fn is_gap(c: char) -> bool {
    c.is_whitespace() || signs::is_sign(c)
}
