//! Terms of a text, such as paths and error codes, that a summary should repeat verbatim.

use std::borrow::Cow;
use std::collections::HashMap;

use extractive_summarizer::Source;
use extractive_summarizer::text::{head as first_bytes, tail as last_bytes};
use memchr::memmem;
use memory_model::{EntryKind, Part, Role};

use crate::criteria::Term;
use crate::request::SummaryRequest;

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
                let word = match is_placeholder(part.as_bytes(), start, at) {
                    true => "",
                    false => part.get(start..at).unwrap_or_default(),
                };
                let word = word.trim_matches(['.', ':', '*', '!', '?', '=', '\\', '#', '$']);
                if let Some(class) = class(word) {
                    f(class, word);
                }
            }
            (start, telling, before) = (at + 1, false, ENDS);
        }
    }
}

/// Returns whether the word from `start` to `end` is a placeholder: it stands alone between angle brackets or braces.
fn is_placeholder(text: &[u8], start: usize, end: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| text.get(at));
    matches!(
        (before, text.get(end)),
        (Some(b'<'), Some(b'>')) | (Some(b'{'), Some(b'}'))
    )
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

/// Calls `f` with each word of a text that has the form of a file's name, such as `index.html`.
pub(super) fn file_names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    words
        .map(|word| word.trim_matches(['.', '-']))
        .filter(|word| {
            word.rsplit_once('.').is_some_and(|(stem, ending)| {
                stem.len() >= 3
                    && stem.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && (1..=5).contains(&ending.len())
                    && ending.bytes().all(|b| b.is_ascii_lowercase())
            })
        })
}

/// Number of texts from which a term is important, if nobody named it in words of their own.
const REPEATED: u32 = 2;

/// Facts about a term: the sum of the weights of its places, the number of texts that have it, the last of them,
/// and whether somebody named it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    weight: u32,
    texts: u32,
    last: usize,
    named: bool,
}

/// Returns the terms of a source that a reader would miss, at most `most` of each class: those that the user or the
/// assistant named, and those that occur in several texts. The terms with the largest sum of weights come first.
pub(super) fn salient<'a>(texts: &'a [WeightedText<'a>], most: usize) -> [Vec<&'a str>; 5] {
    let mut places: HashMap<(Term, &str), Place> = HashMap::new();
    for (at, text) in (1..).zip(texts) {
        visit(&text.text, &mut |class, term| {
            let place = places.entry((class, term)).or_default();
            place.weight += text.weight;
            place.texts += u32::from(place.last != at);
            place.last = at;
            place.named |= text.named;
        });
    }
    let mut by_class: [Vec<(u32, &str)>; 5] = Default::default();
    #[expect(clippy::iter_over_hash_type, reason = "each class is sorted below")]
    for ((class, term), place) in places {
        if !place.named && place.texts < REPEATED {
            continue;
        }
        if let Some(terms) = by_class.get_mut(class as usize) {
            terms.push((place.weight, term));
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

/// A text of a source that may contain terms.
pub(super) struct WeightedText<'a> {
    text: Cow<'a, str>,
    /// Weight of its terms.
    weight: u32,
    /// Whether a person or the assistant wrote it in words of their own.
    named: bool,
}

/// Length above which a user's text was pasted, in bytes. A template or a document has many names that nobody misses.
const PASTED_BYTES: usize = 2_000;

/// Returns the texts of a source that may contain terms.
pub(super) fn weighted<'a>(request: &SummaryRequest<'a>) -> Vec<WeightedText<'a>> {
    let mut texts = Vec::new();
    let mut add = |text: Cow<'a, str>, weight: u32, named: bool| {
        texts.push(WeightedText {
            text,
            weight,
            named,
        });
    };
    for piece in request.source {
        match piece {
            Source::Summary(summary) => add(Cow::Borrowed(summary.text), 4, true),
            Source::Message(entry) if entry.kind == EntryKind::Message => {
                for part in &entry.parts {
                    match part {
                        Part::Text { text } if entry.role == Role::User => {
                            let said = request.conventions.user_text(text, entry.meta.as_ref());
                            let pasted = said.is_document || said.typed.len() > PASTED_BYTES;
                            let weight = if pasted { 1 } else { 8 };
                            add(said.typed, weight, !pasted);
                        }
                        Part::Text { text } => {
                            add(
                                Cow::Borrowed(text.as_str()),
                                3,
                                entry.role == Role::Assistant,
                            );
                        }
                        Part::ToolCall { arguments, .. } => {
                            add(Cow::Owned(names(&arguments.decoded_strings())), 2, false);
                        }
                        Part::ToolResult {
                            content,
                            is_error: Some(true),
                            ..
                        } => add(content.text(), 2, false),
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

/// Returns which of the given terms, by class, a text contains as whole words. A path is also contained by the name of
/// its file, and an address by its host.
pub(super) fn held(text: &str, terms: &[Vec<&str>; 5]) -> [Vec<bool>; 5] {
    let text = text.as_bytes();
    let whole = |term: &str| {
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
        .map(|terms| terms.iter().map(|term| whole(told_as(term))).collect())
}

/// Returns the part of a term by which a summary may name it.
fn told_as(term: &str) -> &str {
    let host = term.split_once("://").map(|(_, rest)| rest);
    match host {
        Some(rest) => rest.split(['/', '?', '#']).next().unwrap_or(rest),
        None => {
            let path = term.trim_end_matches('/');
            path.rsplit('/')
                .next()
                .filter(|name| name.len() > 1)
                .unwrap_or(term)
        }
    }
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
            "In <file_name> of {the_folder}: src/lexer.rs (see https://a.b/c), `next_token` gave E0502 at 10:42, 1,200 of 98.5% \
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
            held(text, &[vec![term], vec![], vec![], vec![], vec![]])[0] == [true]
        };
        assert!(holds("at src/a.rs.", "src/a.rs"));
        assert!(!holds("12345", "234"));
        assert!(holds("12345 234", "234"));
        assert!(holds("/code/src/a.rs", "src/a.rs"));
        assert!(holds("を23", "23") && holds("23を", "23"));
        let terms = [vec!["bc", "b_c"], vec![], vec!["a.b", "cc"], vec![], vec![]];
        let counted =
            held("b_c bc a.b bc", &terms).map(|held| held.iter().filter(|held| **held).count());
        assert_eq!(counted, [2, 0, 1, 0, 0]);
        assert!(holds("fixed in lexer.rs", "/code/src/lexer.rs"));
        assert!(holds("see docs.rs", "https://docs.rs/memchr/latest"));
        assert!(!holds("fixed in plexer.rs", "/code/src/lexer.rs"));
        assert!(!holds("", "23") && !holds("2", "23") && !holds("_23", "23"));
    }
}
