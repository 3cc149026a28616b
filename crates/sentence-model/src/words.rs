//! Splits texts into words, and words into the terms by which a search finds them.
//!
//! A word is a run of letters, digits and their combining marks, in lower case. Texts are read in composed Unicode form
//! ([`composed`](crate::fold::composed)). The terms of a word depend on its script:
//!
//! - in scripts with spaces between words, its stem, if the language has stemming rules;
//! - in Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese, its pairs of neighbouring
//!   characters, or its single character;
//! - for a pictograph, the pictograph itself.
//!
//! An apostrophe ends a word. An English ending after it, such as `'s` or `n't`, is dropped.

mod chars;
mod language;
mod lists;

use std::ops::Range;

use crate::fold::fold_case;
use chars::kind_of;

pub use chars::WordKind;
pub use language::Language;
pub use lists::{WordLists, is_stop_word};

/// Endings after an apostrophe that are dropped.
const ENDINGS: [&str; 7] = ["s", "t", "d", "m", "ll", "re", "ve"];

/// Maximum length of a term, in bytes. Longer words are shortened. No language has longer words, but data written in
/// letters may have.
const LONGEST_TERM: usize = 64;

/// Returns the term of a very long word: its beginning, and a hash of the whole word.
fn shortened(word: &str) -> String {
    let mut end = LONGEST_TERM / 2;
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    // FNV-1a.
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let head = word.get(..end).unwrap_or_default();
    format!("{head}\0{hash:016x}")
}

/// A word in a text, as a byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Byte range of the word in the text.
    pub range: Range<usize>,
    /// Kind of the word, by its characters.
    pub kind: WordKind,
}

/// Calls `f` with each word of a text, in order.
pub fn visit_words(text: &str, f: &mut dyn FnMut(Word)) {
    let mut open: Option<Word> = None;
    let mut apostrophe_at = None;
    let mut close = |word: Word, apostrophe: Option<usize>| {
        let body = text.get(word.range.clone()).unwrap_or_default();
        let is_ending = apostrophe == Some(word.range.start)
            && ENDINGS.contains(&body.to_ascii_lowercase().as_str());
        if !is_ending {
            f(word);
        }
    };
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let kind = kind_of(c);
        match &mut open {
            Some(word) if kind == Some(word.kind) && word.kind != WordKind::Symbol => {
                word.range.end = end;
                continue;
            }
            _ => {}
        }
        let before = open.take();
        let follows_word = before
            .as_ref()
            .is_some_and(|word| word.kind == WordKind::Spaced);
        if let Some(word) = before {
            close(word, apostrophe_at);
        }
        open = kind.map(|kind| Word {
            range: at..end,
            kind,
        });
        if matches!(c, '\'' | '’') && follows_word {
            apostrophe_at = Some(end);
        }
    }
    if let Some(word) = open {
        close(word, apostrophe_at);
    }
}

/// Length after which a piece of a text ends at the next space or line break, in bytes.
const PIECE: usize = 1 << 16;

/// Splits a long text into pieces, and returns each with its byte offset. A piece ends before a line break or a space,
/// so that no word is split.
pub fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        let rest = text.get(begin..).filter(|rest| !rest.is_empty())?;
        let behind = rest.as_bytes().get(PIECE..).unwrap_or_default();
        let space = behind.iter().position(|byte| matches!(byte, b' ' | b'\n'));
        let end = space.map_or(rest.len(), |at| PIECE + at);
        let piece = (begin, rest.get(..end)?);
        begin += end;
        Some(piece)
    })
}

/// Turns words into the terms by which a search finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokenizer {
    /// Whether irregular and short forms are replaced by their usual forms.
    pub usual_forms: bool,
}

impl Tokenizer {
    /// Tokenizer for the mode `Prose` and for indexes.
    pub const RANKING: Self = Self { usual_forms: true };

    /// Tokenizer for the mode `Words`.
    pub const WORDS: Self = Self { usual_forms: false };

    /// Calls `f` with the byte range and text of each term in a text that is searched. A word in a script without
    /// spaces has a term for each character and for each pair of neighbouring characters.
    pub fn visit_text(self, text: &str, f: &mut dyn FnMut(Range<usize>, String)) {
        visit_words(text, &mut |word| {
            if word.kind == WordKind::Unspaced {
                self.visit_characters(text, &word, f);
            } else {
                let term = self.term(text.get(word.range.clone()).unwrap_or_default());
                f(word.range, term);
            }
        });
    }

    /// Calls `f` with each term of a word in a script without spaces: first its characters, then its pairs of
    /// neighbouring characters.
    pub fn visit_characters(
        self,
        text: &str,
        word: &Word,
        f: &mut dyn FnMut(Range<usize>, String),
    ) {
        let starts = starts(text, word);
        self.visit_runs(text, &starts, 1, f);
        self.visit_runs(text, &starts, 2, f);
    }

    /// Calls `f` with the byte range and text of each term in a query. A text that contains a word of the query
    /// contains all terms of this word.
    pub fn visit_query(self, text: &str, f: &mut dyn FnMut(Range<usize>, String)) {
        visit_words(text, &mut |word| {
            if word.kind == WordKind::Unspaced {
                let starts = starts(text, &word);
                let length = if starts.len() > 2 { 2 } else { 1 };
                self.visit_runs(text, &starts, length, f);
            } else {
                let term = self.term(text.get(word.range.clone()).unwrap_or_default());
                f(word.range, term);
            }
        });
    }

    /// Returns the possible first ASCII characters, in lower case, of words with these terms. Words that begin with
    /// another character are not covered. The rules for English change only the endings of words, and no words of one
    /// letter.
    pub fn first_letters(self, terms: &[String]) -> Vec<u8> {
        let of_terms = terms.iter().filter_map(|term| term.bytes().next());
        let mut first: Vec<u8> = of_terms.collect();
        if self.usual_forms {
            let forms = WordLists::of(Language::English).forms();
            let of_terms = first.clone();
            first.extend(forms.filter_map(|(form, usual)| {
                let usual = usual.bytes().next()?;
                of_terms.contains(&usual).then(|| form.bytes().next())?
            }));
        }
        first.sort_unstable();
        first.dedup();
        first
    }

    /// Returns the term of a word in a script with spaces, or of a pictograph.
    pub fn term(self, word: &str) -> String {
        let folded = fold_case(word);
        if folded.len() > LONGEST_TERM {
            return shortened(&folded);
        }
        match Language::of_word(&folded) {
            Some(language) if self.usual_forms => {
                language.stem(WordLists::of(language).usual_form(&folded))
            }
            Some(language) => language.stem(&folded),
            None => folded,
        }
    }

    fn visit_runs(
        self,
        text: &str,
        starts: &[usize],
        length: usize,
        f: &mut dyn FnMut(Range<usize>, String),
    ) {
        for window in starts.windows(length + 1) {
            if let (Some(first), Some(last)) = (window.first(), window.last()) {
                let body = text.get(*first..*last).unwrap_or_default();
                f(*first..*last, fold_case(body));
            }
        }
    }
}

/// Returns the byte offset of each character of a word, followed by the end offset of the word.
fn starts(text: &str, word: &Word) -> Vec<usize> {
    let body = text.get(word.range.clone()).unwrap_or_default();
    let starts = body.char_indices().map(|(at, _)| word.range.start + at);
    starts.chain([word.range.end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_text(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        Tokenizer::WORDS.visit_text(text, &mut |range, term| {
            assert!(!text[range].is_empty());
            terms.push(term);
        });
        terms
    }

    #[test]
    fn words_are_stemmed_where_languages_stem() {
        assert_eq!(in_text("Running the TESTS"), ["run", "the", "test"]);
        assert_eq!(in_text("собаки бегают"), ["собак", "бега"]);
        assert_eq!(
            in_text("snake_case, a/b.rs v1.2"),
            ["snake", "case", "a", "b", "rs", "v1", "2"]
        );
        assert_eq!(in_text("हिन्दी שָׁלוֹם"), ["हिन्दी", "שָׁלוֹם"]);
    }

    #[test]
    fn endings_behind_an_apostrophe_are_dropped() {
        assert_eq!(
            in_text("Ann's dog didn’t, l'eau 's"),
            ["ann", "dog", "didn", "l", "eau", "s"]
        );
    }

    #[test]
    fn pieces_have_whole_words() {
        let text = format!(
            "{} 数据 {}\n{}",
            "ä".repeat(PIECE),
            "it's ".repeat(PIECE),
            "z"
        );
        let mut words = Vec::new();
        visit_words(&text, &mut |word| words.push(word.range));
        let (mut of_pieces, mut count) = (Vec::new(), 0);
        for (begin, piece) in pieces(&text) {
            count += 1;
            visit_words(piece, &mut |word| {
                of_pieces.push(begin + word.range.start..begin + word.range.end);
            });
        }
        assert_eq!(of_pieces, words);
        assert!(count > 4, "{count}");
        assert_eq!(pieces("").count(), 0);
    }

    #[test]
    fn english_stems_begin_as_their_words() {
        let mut rng = fastrand::Rng::with_seed(3);
        let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyzy".chars().collect();
        for _ in 0..20_000 {
            let length = 1 + rng.usize(..9);
            let mut word: String = (0..length).map(|_| letters[rng.usize(..27)]).collect();
            word += ["", "s", "ing", "ied", "ly", "ational"][rng.usize(..6)];
            let stem = Language::English.stem(&word);
            assert_eq!(stem.chars().next(), word.chars().next(), "{word}");
        }
    }

    #[test]
    fn usual_forms_replace_irregular_ones() {
        let mut terms = Vec::new();
        Tokenizer::RANKING.visit_text("went going", &mut |_, term| terms.push(term));
        assert_eq!(terms, ["go", "go"]);
    }
}
