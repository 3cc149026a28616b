//! Words of a text as numbers, so that texts of any length and script can be compared in one pass.

use std::collections::HashSet;

/// A word of a text. In scripts that put no spaces between words, each character is a word, and so is each syllable of
/// Korean, whose words end differently in each sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    /// Hash of the word in lower case.
    pub(super) hash: u64,
    /// Number of characters.
    pub(super) chars: usize,
    /// Whether the word consists of one character of such a script.
    pub(super) single: bool,
    /// Whether the word has no digit and no underscore.
    pub(super) letters: bool,
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

fn step(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(PRIME)
}

/// Combines the hashes of consecutive words.
pub(super) fn joined(hashes: impl IntoIterator<Item = u64>) -> u64 {
    hashes.into_iter().fold(OFFSET, |hash, word| {
        step(step(hash, word & 0xffff_ffff), word >> 32)
    })
}

/// Returns whether a character is a word of its own.
fn is_single(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether a character occurs in words, names and numbers.
fn is_inside(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{d7f}')
}

/// Calls `f` with each word of a text, and whether something other than spaces stands between it and the word before.
pub(super) fn visit(text: &str, f: &mut dyn FnMut(Word, bool)) {
    let (mut open, mut apart) = (None::<Word>, false);
    for c in text.chars() {
        let single = is_single(c) && c.is_alphabetic();
        if !single && is_inside(c) {
            let word = open.get_or_insert(Word {
                hash: OFFSET,
                chars: 0,
                single: false,
                letters: true,
            });
            word.chars += 1;
            word.letters &= c != '_' && !c.is_numeric();
            for low in c.to_lowercase() {
                word.hash = step(word.hash, u64::from(low));
            }
            continue;
        }
        if let Some(word) = open.take() {
            f(word, apart);
            apart = false;
        }
        if single {
            let word = Word {
                hash: step(OFFSET, u64::from(c)),
                chars: 1,
                single: true,
                letters: true,
            };
            f(word, apart);
            apart = false;
        } else {
            apart |= !c.is_whitespace();
        }
    }
    if let Some(word) = open {
        f(word, apart);
    }
}

/// Returns the words of a text.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    visit(text, &mut |word, _| words.push(word));
    words
}

/// Returns the pairs of neighbouring single characters of a text, which stand for its words.
pub(super) fn pairs(text: &str) -> HashSet<u64> {
    let (mut pairs, mut before) = (HashSet::new(), None);
    visit(text, &mut |word, apart| {
        if let (Some(before), true, false) = (before, word.single, apart) {
            pairs.insert(joined([before, word.hash]));
        }
        before = word.single.then_some(word.hash);
    });
    pairs
}

/// Returns the runs of `length` consecutive words, each as one number.
pub(super) fn runs(words: &[Word], length: usize) -> impl Iterator<Item = u64> {
    words
        .windows(length)
        .map(|run| joined(run.iter().map(|word| word.hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_without_case_in_any_script() {
        let hashes =
            |text: &str| -> Vec<u64> { words(text).iter().map(|word| word.hash).collect() };
        assert_eq!(
            hashes("Der Zug, der"),
            [hashes("der"), hashes("zug"), hashes("der")].concat()
        );
        assert_eq!(hashes("Привет"), hashes("привет"));
        assert_eq!(words("parse_block(a1)").len(), 2);
        assert_eq!(words("寿司を買う").len(), 5);
        assert_eq!(pairs("寿司。買う").len(), 2);
        assert_eq!(pairs("寿司を買う").len(), 4);
        assert!(words("").is_empty() && pairs("x").is_empty());
    }

    #[test]
    fn letters_are_told_from_names() {
        let letters = |text: &str| words(text).first().map(|word| word.letters);
        assert_eq!(letters("harbour"), Some(true));
        assert_eq!((letters("a_b"), letters("v2")), (Some(false), Some(false)));
    }
}
