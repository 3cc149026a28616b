//! Terms of a text, such as paths and error codes, that a summary should repeat verbatim.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head as first_bytes, tail as last_bytes};
use memchr::memmem;
use memory_model::{EntryKind, Part, Role};
use serde::{Deserialize, Serialize};

/// Class of terms that a summary should repeat verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Term {
    /// Names in code, and commit ids.
    Identifiers,
    /// Numbers with two or more digits.
    Numbers,
    /// Paths of files.
    Paths,
    /// Addresses (URLs).
    Urls,
    /// Codes, such as error codes and ticket numbers.
    Codes,
}

impl Term {
    /// All classes of terms.
    pub const ALL: [Self; 5] = [
        Self::Identifiers,
        Self::Numbers,
        Self::Paths,
        Self::Urls,
        Self::Codes,
    ];

    /// Returns the name of the class in the plural, such as `identifiers`.
    pub fn as_str(self) -> &'static str {
        match self {
            Term::Identifiers => "identifiers",
            Term::Numbers => "numbers",
            Term::Paths => "paths",
            Term::Urls => "addresses",
            Term::Codes => "codes",
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Number of bytes that are read of a long text: at its start, and at its end.
const WINDOW: (usize, usize) = (16 * 1024, 4 * 1024);
/// Length in bytes above which an argument of a tool call counts as a body of text and not as a name.
const ARGUMENT_BYTES: usize = 300;

/// Kind of a byte that ends a word.
const ENDS: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 1 << 1;
/// Kind of a digit, or of a character that occurs only inside names, paths and numbers.
const TELLING: u8 = 1 << 2;
const OTHER: u8 = 1 << 3;

const KINDS: [u8; 256] = {
    let mut kinds = [ENDS; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        // Constants cannot use `get_mut`, which Clippy suggests.
        #[allow(clippy::indexing_slicing)]
        {
            kinds[byte as usize] = match byte {
                b'a'..=b'z' => LOWER,
                b'A'..=b'Z' => UPPER,
                b'0'..=b'9' | b'/' | b'_' | b':' => TELLING,
                b'\t'..=b'\r'
                | b' '
                | b'`'
                | b'('
                | b')'
                | b'"'
                | b'\''
                | b','
                | b';'
                | b'<'
                | b'>'
                | b'|'
                | b'['
                | b']'
                | b'{'
                | b'}' => ENDS,
                _ => OTHER,
            };
        }
        byte += 1;
    }
    kinds
};

/// Calls `f` with each term of a text.
pub(super) fn visit<'a>(text: &'a str, f: &mut dyn FnMut(Term, &'a str)) {
    let (head, tail) = match text.len() > WINDOW.0 + WINDOW.1 {
        true => (first_bytes(text, WINDOW.0), last_bytes(text, WINDOW.1)),
        false => (text, ""),
    };
    for part in [head, tail] {
        // State of the current word: its start, whether it can be a term, and the kind of the byte before. Most words
        // are no terms: they have letters of one case only, and no character of a name.
        let (mut start, mut telling, mut before) = (0, false, ENDS);
        for (at, byte) in part.bytes().chain([b' ']).enumerate() {
            let kind = KINDS.get(usize::from(byte)).copied().unwrap_or(ENDS);
            if kind != ENDS {
                telling |= kind == TELLING || (before == LOWER && kind == UPPER);
                before = kind;
                continue;
            }
            if telling {
                let word = part.get(start..at).unwrap_or_default();
                let word = word.trim_matches(['.', ':', '*', '!', '?', '=', '\\', '#', '$']);
                if let Some(class) = class(word) {
                    f(class, word);
                }
            }
            (start, telling, before) = (at + 1, false, ENDS);
        }
    }
}

fn class(word: &str) -> Option<Term> {
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let upper = bytes.iter().filter(|b| b.is_ascii_uppercase()).count();
    if !(2..=200).contains(&bytes.len()) {
        return None;
    }
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(Term::Urls);
    }
    if letters == 0 {
        let plain = bytes
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'%' | b'-' | b':'));
        return (digits >= 2 && plain).then_some(Term::Numbers);
    }
    if bytes.len() < 4 {
        return None;
    }
    if digits > 0 && upper == letters && letters <= 6 && bytes.len() <= 14 && !word.contains('/') {
        // E0382, ENT-221, SIGSEGV11.
        return Some(Term::Codes);
    }
    if word.contains('/') && !word.contains("://") && letters > 2 {
        return (word.starts_with(['/', '.', '~'])
            || word.matches('/').count() > 1
            || word.contains('.'))
        .then_some(Term::Paths);
    }
    let name = bytes
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':'));
    let hump = bytes
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let inner = word.trim_matches('_').contains('_') || word.contains("::");
    let commit = (7..=40).contains(&bytes.len())
        && digits > 1
        && bytes
            .iter()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    (name && (hump || inner || commit)).then_some(Term::Identifiers)
}

/// Returns the most important terms of a source, at most `most` of each class. The terms with the largest sum of
/// weights come first.
pub(super) fn salient<'a>(texts: &'a [(Cow<'a, str>, u32)], most: usize) -> [Vec<&'a str>; 5] {
    let mut weights: HashMap<(Term, &str), u32> = HashMap::new();
    for (text, weight) in texts {
        visit(text, &mut |class, term| {
            *weights.entry((class, term)).or_default() += weight;
        });
    }
    let mut by_class: [Vec<(u32, &str)>; 5] = Default::default();
    #[expect(clippy::iter_over_hash_type, reason = "each class is sorted below")]
    for ((class, term), weight) in weights {
        if let Some(terms) = by_class.get_mut(class as usize) {
            terms.push((weight, term));
        }
    }
    by_class.map(|mut terms| {
        let order = |a: &(u32, &str), b: &(u32, &str)| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1));
        if terms.len() > most {
            terms.select_nth_unstable_by(most, order);
            terms.truncate(most);
        }
        terms.sort_unstable_by(order);
        terms.into_iter().map(|(_, term)| term).collect()
    })
}

/// Returns the texts of a source that may contain terms, each with the weight of its terms.
pub(super) fn weighted<'a>(source: &'a [Source<'a>]) -> Vec<(Cow<'a, str>, u32)> {
    let mut texts = Vec::new();
    for piece in source {
        match piece {
            Source::Summary(summary) => texts.push((Cow::Borrowed(summary.text), 4)),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                for part in &entry.parts {
                    match part {
                        Part::Text { text } => {
                            let weight = if entry.role == Role::User { 8 } else { 3 };
                            texts.push((Cow::Borrowed(text.as_str()), weight));
                        }
                        Part::ToolCall { arguments, .. } => {
                            texts.push((Cow::Owned(names(&arguments.decoded_strings())), 2));
                        }
                        Part::ToolResult {
                            content,
                            is_error: Some(true),
                            ..
                        } => texts.push((content.text(), 2)),
                        _ => {}
                    }
                }
            }
            Source::Message(_) => {}
        }
    }
    texts
}

/// Returns the first four lines in the strings of a call's arguments that are short enough for names.
fn names(arguments: &str) -> String {
    let short = |line: &&str| line.len() <= ARGUMENT_BYTES;
    let lines: Vec<&str> = arguments.lines().filter(short).take(4).collect();
    lines.join("\n")
}

/// Returns the number of the given terms, by class, that a text contains as whole words.
pub(super) fn held(text: &str, terms: &[Vec<&str>; 5]) -> [usize; 5] {
    let text = text.as_bytes();
    let whole = |term: &&&str| {
        let (finder, length) = (memmem::Finder::new(term.as_bytes()), term.len());
        let mut places = finder.find_iter(text);
        places.any(|at| {
            let before = at.checked_sub(1).and_then(|at| text.get(at));
            let around = [before, text.get(at + length)];
            !around.into_iter().flatten().any(|byte| is_inside(*byte))
        })
    };
    terms
        .each_ref()
        .map(|terms| terms.iter().filter(whole).count())
}

fn is_inside(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_a_class() {
        let mut terms = Vec::new();
        visit(
            "In src/lexer.rs (see https://a.b/c), `next_token` gave E0502 at 10:42, 1,200 of 98.5% \
             and readAll in 4f2a91c; and/or nothing, a cafe, 7.",
            &mut |class, term| terms.push((class, term.to_owned())),
        );
        let all = |wanted: Term| -> Vec<&str> {
            let terms = terms.iter().filter(|(class, _)| *class == wanted);
            terms.map(|(_, term)| term.as_str()).collect()
        };
        assert_eq!(all(Term::Paths), ["src/lexer.rs"]);
        assert_eq!(all(Term::Urls), ["https://a.b/c"]);
        assert_eq!(all(Term::Identifiers), ["next_token", "readAll", "4f2a91c"]);
        assert_eq!(all(Term::Codes), ["E0502"]);
        assert_eq!(all(Term::Numbers), ["10:42", "200", "98.5%"]);
    }

    #[test]
    fn a_term_is_whole() {
        let holds = |text: &str, term: &str| {
            held(text, &[vec![term], vec![], vec![], vec![], vec![]])[0] == 1
        };
        assert!(holds("at src/a.rs.", "src/a.rs"));
        assert!(!holds("12345", "234"));
        assert!(holds("12345 234", "234"));
        assert!(holds("/code/src/a.rs", "src/a.rs"));
        assert!(holds("を23", "23") && holds("23を", "23"));
        let terms = [vec!["bc", "b_c"], vec![], vec!["a.b", "cc"], vec![], vec![]];
        assert_eq!(held("b_c bc a.b bc", &terms), [2, 0, 1, 0, 0]);
        assert!(!holds("", "23") && !holds("2", "23") && !holds("_23", "23"));
    }
}
