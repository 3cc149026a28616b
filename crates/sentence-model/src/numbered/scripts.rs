//! Tokens of a sentence in Japanese or Korean, by the scripts of its characters.

use std::ops::Range;

use super::lexicon::is_han;

/// Maximum length of a sentence that is read, in tokens.
pub(super) const LONGEST: usize = 60;

/// Kind of a character, by which a sentence is divided into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Digit,
    Latin,
    Hangul,
    Han,
    Katakana,
    Hiragana,
    Other,
}

impl Script {
    pub(super) fn of(c: char) -> Self {
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
pub(super) fn plain(c: char) -> char {
    let c = match c {
        '！'..='～' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        c => c,
    };
    c.to_lowercase().next().unwrap_or(c)
}

/// A token of a sentence: its text, script, and place in characters.
pub(super) struct Token {
    pub(super) text: String,
    pub(super) script: Script,
    pub(super) chars: Range<usize>,
}

pub(super) fn tokens(chars: &[char]) -> Vec<Token> {
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
