//! What stands in a text to the letter: identifiers, numbers, paths, addresses, codes.

use std::collections::BTreeMap;

use memory_model::{EntryKind, Part, Role};

use crate::Source;
use crate::cut::{ceil_tail, floor};

/// How much of the start and the end of a text is looked through, in bytes.
const WINDOW: (usize, usize) = (16 * 1024, 4 * 1024);
/// A call's argument longer than this is a body, not a name, in bytes.
const ARGUMENT_BYTES: usize = 300;

/// A class of terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Identifier,
    Number,
    Path,
    Url,
    Code,
}

/// Calls `f` with each term of a text.
pub(super) fn visit<'a>(text: &'a str, f: &mut dyn FnMut(Class, &'a str)) {
    let (head, tail) = match text.len() > WINDOW.0 + WINDOW.1 {
        true => (floor(text, WINDOW.0), ceil_tail(text, WINDOW.1)),
        false => (text, ""),
    };
    for part in [head, tail] {
        for word in part.split(|c: char| {
            c.is_whitespace()
                || !c.is_ascii()
                || matches!(
                    c,
                    '`' | '('
                        | ')'
                        | '"'
                        | '\''
                        | ','
                        | ';'
                        | '<'
                        | '>'
                        | '|'
                        | '['
                        | ']'
                        | '{'
                        | '}'
                )
        }) {
            let word = word.trim_matches(['.', ':', '*', '!', '?', '=', '\\', '#', '$']);
            if let Some(class) = class(word) {
                f(class, word);
            }
        }
    }
}

fn class(word: &str) -> Option<Class> {
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let upper = bytes.iter().filter(|b| b.is_ascii_uppercase()).count();
    if !(2..=200).contains(&bytes.len()) {
        return None;
    }
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some(Class::Url);
    }
    if letters == 0 {
        let plain = bytes
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'%' | b'-' | b':'));
        return (digits >= 2 && plain).then_some(Class::Number);
    }
    if bytes.len() < 4 {
        return None;
    }
    if digits > 0 && upper == letters && letters <= 6 && bytes.len() <= 14 && !word.contains('/') {
        // E0382, ENT-221, SIGSEGV11.
        return Some(Class::Code);
    }
    if word.contains('/') && !word.contains("://") && letters > 2 {
        return (word.starts_with(['/', '.', '~'])
            || word.matches('/').count() > 1
            || word.contains('.'))
        .then_some(Class::Path);
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
    (name && (hump || inner || commit)).then_some(Class::Identifier)
}

/// The terms of a source that matter most, at most `most` of a class: those that users and errors
/// name before those that only calls and answers do, often named before rarely named.
pub(super) fn salient<'a>(source: &'a [Source<'a>], most: usize) -> BTreeMap<Class, Vec<String>> {
    let mut weights: BTreeMap<(Class, String), u32> = BTreeMap::new();
    let mut add = |text: &str, weight: u32| {
        visit(text, &mut |class, term| {
            *weights.entry((class, term.to_owned())).or_default() += weight;
        });
    };
    for piece in source {
        match piece {
            Source::Summary(summary) => add(summary.text, 4),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                for part in &entry.parts {
                    match part {
                        Part::Text { text } => {
                            add(text, if entry.role == Role::User { 8 } else { 3 })
                        }
                        Part::ToolCall { arguments, .. } => {
                            let texts = arguments.decoded_strings();
                            texts
                                .lines()
                                .filter(|line| line.len() <= ARGUMENT_BYTES)
                                .take(4)
                                .for_each(|line| add(line, 2));
                        }
                        Part::ToolResult {
                            content,
                            is_error: Some(true),
                            ..
                        } => add(&content.text(), 2),
                        _ => {}
                    }
                }
            }
            Source::Message(_) => {}
        }
    }
    let mut by_class: BTreeMap<Class, Vec<(u32, String)>> = BTreeMap::new();
    for ((class, term), weight) in weights {
        by_class.entry(class).or_default().push((weight, term));
    }
    let first = |mut terms: Vec<(u32, String)>| {
        terms.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        terms.truncate(most);
        terms.into_iter().map(|(_, term)| term).collect()
    };
    by_class
        .into_iter()
        .map(|(class, terms)| (class, first(terms)))
        .collect()
}

/// Whether a text holds a term that is not a part of a longer word.
pub(super) fn holds(text: &str, term: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(term).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text
            .get(at + term.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_a_class() {
        let mut found = Vec::new();
        visit(
            "In src/lexer.rs (see https://a.b/c), `next_token` gave E0502 at 10:42, 1,200 of 98.5% \
             and readAll in 4f2a91c; and/or nothing, a cafe, 7.",
            &mut |class, term| found.push((class, term.to_owned())),
        );
        let all = |wanted: Class| -> Vec<&str> {
            let found = found.iter().filter(|(class, _)| *class == wanted);
            found.map(|(_, term)| term.as_str()).collect()
        };
        assert_eq!(all(Class::Path), ["src/lexer.rs"]);
        assert_eq!(all(Class::Url), ["https://a.b/c"]);
        assert_eq!(all(Class::Identifier), ["next_token", "readAll", "4f2a91c"]);
        assert_eq!(all(Class::Code), ["E0502"]);
        assert_eq!(all(Class::Number), ["10:42", "200", "98.5%"]);
    }

    #[test]
    fn a_term_is_whole() {
        assert!(holds("at src/a.rs.", "src/a.rs"));
        assert!(!holds("12345", "234"));
        assert!(holds("12345 234", "234"));
    }
}
