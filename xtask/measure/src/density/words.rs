//! Words and lines of a text, as the scorer of densities compares them.

use std::collections::BTreeSet;

/// Returns a text in one line, with single spaces and without the escapes that colour a terminal.
pub(super) fn folded(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(uncoloured).collect();
    words.join(" ")
}

/// Removes `ESC [ … m`.
fn uncoloured(word: &str) -> String {
    let mut parts = word.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match rest.strip_prefix('m') {
            Some(rest) => out.push_str(rest),
            None => out.push_str(part),
        }
    }
    out
}

/// Returns the first `characters` characters, without white space at the end.
pub(super) fn head(text: &str, characters: usize) -> String {
    let head: String = text.chars().take(characters).collect();
    head.trim_end().to_owned()
}

/// Returns the words of ASCII letters, digits and underscores.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

/// Whether a word is a number of at least two digits.
pub(super) fn is_number(word: &str) -> bool {
    word.len() >= 2 && word.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the sentences of a line.
pub(super) fn sentences(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let ends = match c {
            '.' | '!' | '?' => line[end..].starts_with(' '),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            out.push(line[start..end].trim());
            start = end;
        }
    }
    out.push(line[start..].trim());
    out.retain(|sentence| !sentence.is_empty());
    out
}

/// Returns what tells a sentence from others, in lower case: its words of at least four characters,
/// and pairs of neighbouring characters where the script has no spaces.
pub(super) fn telling_words(sentence: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let lower = sentence.to_lowercase();
    for word in lower.split(|c: char| !(c.is_alphanumeric() || c == '_') || is_unspaced(c)) {
        let word = word.trim_start_matches('_');
        if word.chars().count() >= 4 {
            out.insert(word.to_owned());
        }
    }
    for run in lower.split(|c: char| !is_unspaced(c)) {
        let characters: Vec<char> = run.chars().collect();
        out.extend(characters.windows(2).map(String::from_iter));
    }
    out
}

/// Whether a character is of a script without spaces between words: Thai, Lao, Khmer, Burmese,
/// Japanese, Chinese.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retention::gold::is_identifier;

    #[test]
    fn colours_and_spaces_are_folded() {
        assert_eq!(folded(" a\n\t\u{1b}[1;31mred\u{1b}[0m  b "), "a red b");
        assert_eq!(head("one two", 4), "one");
    }

    #[test]
    fn identifiers_and_numbers() {
        let words = "read_file readFile sha256 README plain 42 7 x1 _private";
        let identifiers: Vec<&str> = names(words).filter(|w| is_identifier(w)).collect();
        assert_eq!(identifiers, ["read_file", "readFile", "sha256"]);
        let numbers: Vec<&str> = names(words).filter(|w| is_number(w)).collect();
        assert_eq!(numbers, ["42"]);
    }

    #[test]
    fn sentences_end_at_stops() {
        assert_eq!(
            sentences("Fix a.rs now. Then test! 続けて。次へ"),
            ["Fix a.rs now.", "Then test!", "続けて。", "次へ"]
        );
    }

    #[test]
    fn scripts_without_spaces_count_by_pairs() {
        let words = |s| telling_words(s).into_iter().collect::<Vec<_>>();
        assert_eq!(words("Run the Tests, run"), ["tests"]);
        assert_eq!(words("続けて"), ["けて", "続け"]);
        assert_eq!(words("PRをready"), ["ready"]);
    }
}
