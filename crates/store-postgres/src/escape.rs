//! Texts in a form that PostgreSQL can store.
//!
//! A `text` of PostgreSQL cannot contain the character NUL. NUL is stored as U+0001 and `0`, and U+0001, which no usual
//! text contains, as U+0001 and `1`. All other texts are stored as they are.

use std::borrow::Cow;

const NUL: char = '\0';
const MARK: char = '\u{1}';

/// Returns the stored form of a text.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL, MARK]) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            NUL => stored.extend([MARK, '0']),
            MARK => stored.extend([MARK, '1']),
            c => stored.push(c),
        }
    }
    Cow::Owned(stored)
}

/// Returns the text of a stored form. Returns `None` if no text has this form.
pub(crate) fn unescaped(stored: String) -> Option<String> {
    if !stored.contains(MARK) {
        return Some(stored);
    }
    let mut text = String::with_capacity(stored.len());
    let mut chars = stored.chars();
    while let Some(c) = chars.next() {
        text.push(match (c, c == MARK) {
            (c, false) => c,
            (_, true) => match chars.next()? {
                '0' => NUL,
                '1' => MARK,
                _ => return None,
            },
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_has_no_nul() {
        for text in ["", "plain", "\0", "\u{1}", "a\0\u{1}0\u{1}1b\0", "\u{1}\0"] {
            let stored = escaped(text);
            assert!(!stored.contains('\0'), "{text:?}");
            assert_eq!(unescaped(stored.into_owned()).as_deref(), Some(text));
        }
        assert!(matches!(escaped("plain"), Cow::Borrowed(_)));
        for stored in ["\u{1}", "\u{1}x"] {
            assert_eq!(unescaped(stored.to_owned()), None);
        }
    }
}
