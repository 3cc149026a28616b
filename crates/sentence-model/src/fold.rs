//! Case folding and Unicode normalization for the comparison of texts.
//!
//! Unicode has two ways to write many letters: `é` is one character, or an `e` followed by a combining mark. macOS
//! writes file names in the second way. Texts are compared in composed form (NFC), in which a letter and its marks are
//! one character if Unicode has such a character.

use std::borrow::Cow;
use std::iter::once;
use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_canonical};
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Returns the text in the form for comparisons that ignore case: in lower case, in composed form (Unicode NFC), and
/// with `σ` in place of the final sigma `ς`.
pub fn fold_case(text: &str) -> String {
    Image::composed(text, true).into_text()
}

/// Returns the lower-case form of a character, which may be several characters. `ς` becomes `σ`.
pub fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().map(|c| if c == 'ς' { 'σ' } else { c })
}

/// Returns the text in composed form (Unicode NFC): a letter and its combining marks become one character if Unicode
/// has such a character. For example, `e` followed by U+0301 becomes `é`.
pub fn composed(text: &str) -> Cow<'_, str> {
    Image::composed(text, false).text
}

/// Returns a text in each form that a search compares: as written, in composed form, and composed after its letters
/// become lower case. Forms that differ only in case occur once, so most texts have only one form.
pub fn compared_forms(text: &str) -> Vec<Cow<'_, str>> {
    let mut forms = vec![Cow::Borrowed(text)];
    if is_plain(text) {
        return forms;
    }
    let written = Image::composed(text, false);
    if !written.is_as_written() {
        forms.push(written.text);
    }
    let folded = Image::composed(text, true);
    let is_lower = |form: &Cow<'_, str>| Image::as_written(form, true).text == folded.text;
    if !forms.iter().any(is_lower) {
        forms.push(folded.text);
    }
    forms
}

/// Returns whether every character of a text is in composed form and never composes with the one before. Such a text is
/// already composed.
fn is_plain(text: &str) -> bool {
    text.is_ascii() || text.chars().all(is_settled)
}

/// Returns whether a character is in composed form and never composes with the character before it.
fn is_settled(c: char) -> bool {
    match c {
        // Decided without Unicode tables: Latin, Cyrillic, dashes and quotation marks, arrows, symbols, Kana, Han,
        // Hangul, pictographs.
        '\0'..='\u{2ff}'
        | '\u{400}'..='\u{482}'
        | '\u{48a}'..='\u{530}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2190}'..='\u{2199}'
        | '\u{2500}'..='\u{27bf}'
        | '\u{3001}'..='\u{3029}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{ff01}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}' => true,
        _ => canonical_combining_class(c) == 0 && is_nfc_quick(once(c)) == IsNormalized::Yes,
    }
}

/// Returns whether a character begins a letter: it never composes with the character before it. Combining marks that
/// follow belong to its letter.
pub fn begins_letter(c: char) -> bool {
    is_settled(c) || {
        let mut first = None;
        decompose_canonical(c, |one| {
            first.get_or_insert(one);
        });
        first.is_some_and(|first| first != c && is_settled(first))
    }
}

/// A text in the form for comparisons, which maps its byte ranges to ranges of the original text.
#[derive(Debug)]
pub struct Image<'t> {
    text: Cow<'t, str>,
    /// The pieces that differ in length or were composed, in ascending order.
    pieces: Vec<Piece>,
    /// Whether composing left the text unchanged.
    is_as_written: bool,
}

/// A piece of an image: its byte range in the image, and the byte range of the original text from which it was made.
#[derive(Debug)]
struct Piece {
    image: Range<usize>,
    text: Range<usize>,
}

impl<'t> Image<'t> {
    /// Creates the image of a text in composed form. If `fold` is `true`, also in lower case.
    pub fn composed(text: &'t str, fold: bool) -> Self {
        Self::new(text, fold, true)
    }

    /// Creates the image of a text as it is written. If `fold` is `true`, in lower case.
    pub fn as_written(text: &'t str, fold: bool) -> Self {
        Self::new(text, fold, false)
    }

    fn new(text: &'t str, fold: bool, compose: bool) -> Self {
        let same = |text| Self {
            text,
            pieces: Vec::new(),
            is_as_written: true,
        };
        match fold {
            true if text.is_ascii() => return same(Cow::Owned(text.to_ascii_lowercase())),
            false if !compose || is_plain(text) => {
                return same(Cow::Borrowed(text));
            }
            _ => {}
        }
        let mut writer = Writer {
            fold,
            image: String::with_capacity(text.len()),
            pieces: Vec::new(),
        };
        let mut is_as_written = true;
        let (mut at, mut rest) = (0, text.chars().peekable());
        while let Some(c) = rest.next() {
            let mut end = at + c.len_utf8();
            // The combining marks that belong to the character.
            while compose && let Some(mark) = rest.next_if(|next| !begins_letter(*next)) {
                end += mark.len_utf8();
            }
            let letter = text.get(at..end).unwrap_or_default();
            match compose && !(letter.len() == c.len_utf8() && is_settled(c)) {
                true => is_as_written &= writer.compose(letter, at),
                false => writer.push(c, at),
            }
            at = end;
        }
        Self {
            text: Cow::Owned(writer.image),
            pieces: writer.pieces,
            is_as_written,
        }
    }

    /// Returns the text in the form for comparisons.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text in the form for comparisons.
    pub fn into_text(self) -> String {
        self.text.into_owned()
    }

    /// Returns whether composing left the text unchanged.
    pub fn is_as_written(&self) -> bool {
        self.is_as_written
    }

    /// Returns the byte range of the original text from which a range of the image was made, extended to whole pieces.
    pub fn source(&self, range: Range<usize>) -> Range<usize> {
        if self.pieces.is_empty() {
            return range;
        }
        self.begin(range.start)..self.end(range.end)
    }

    fn begin(&self, at: usize) -> usize {
        let before = self.pieces.partition_point(|piece| piece.image.start <= at);
        match before.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            Some(piece) if at < piece.image.end => piece.text.start,
            Some(piece) => piece.text.end + (at - piece.image.end),
            None => at,
        }
    }

    fn end(&self, at: usize) -> usize {
        let before = self.pieces.partition_point(|piece| piece.image.start < at);
        match before.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            Some(piece) if at <= piece.image.end => piece.text.end,
            Some(piece) => piece.text.end + (at - piece.image.end),
            None => at,
        }
    }
}

/// Writes an image of a text piece by piece.
struct Writer {
    fold: bool,
    image: String,
    pieces: Vec<Piece>,
}

impl Writer {
    /// Appends the character at the byte offset `at` of the original text.
    fn push(&mut self, c: char, at: usize) {
        if c.is_ascii() || !self.fold {
            self.image.push(match self.fold {
                true => c.to_ascii_lowercase(),
                false => c,
            });
            return;
        }
        let begin = self.image.len();
        self.image.extend(fold_char(c));
        if self.image.len() - begin != c.len_utf8() {
            self.pieces.push(Piece {
                image: begin..self.image.len(),
                text: at..at + c.len_utf8(),
            });
        }
    }

    /// Appends the letter with its marks at the byte offset `at` of the original text. Returns whether composing left
    /// it unchanged.
    fn compose(&mut self, letter: &str, at: usize) -> bool {
        let folded: String = match self.fold {
            true => letter.chars().flat_map(fold_char).collect(),
            false => letter.to_owned(),
        };
        let composed: String = folded.nfc().collect();
        if composed == folded {
            let chars = letter.char_indices();
            chars.for_each(|(offset, c)| self.push(c, at + offset));
            return true;
        }
        let begin = self.image.len();
        self.image.push_str(&composed);
        self.pieces.push(Piece {
            image: begin..self.image.len(),
            text: at..at + letter.len(),
        });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(text: &str) -> String {
        text.chars().flat_map(fold_char).collect()
    }

    /// Characters that are composed in every way, some that are not, and their marks.
    const CHARS: &str = "aeEoOuJTqx \u{300}\u{301}\u{302}\u{303}\u{308}\u{30a}\u{30c}\u{323}\u{327}\u{338}éÅ\u{212b}İşὮ\u{345}\
        ᾳ=<≠カか\u{3099}\u{309a}ｶ\u{ff9e}한\u{1112}\u{1161}\u{11ab}가क\u{93c}\u{958}\u{915}\u{9cb}\u{9c7}\u{9be}שׁ\u{5bc}\u{5b8}\
        数\u{fa19}🎉\u{fe0f}\u{200d}\u{2000}\u{1d15e}";

    fn text(rng: &mut fastrand::Rng) -> String {
        let chars: Vec<char> = CHARS.chars().collect();
        (0..rng.usize(..10))
            .map(|_| chars[rng.usize(..chars.len())])
            .collect()
    }

    #[test]
    fn images_are_the_composed_form() {
        let rng = &mut fastrand::Rng::with_seed(4);
        let mut changed = 0;
        for _ in 0..40_000 {
            let text = text(rng);
            for fold in [false, true] {
                let written = if fold { lower(&text) } else { text.clone() };
                let expected: String = written.nfc().collect();
                let image = Image::composed(&text, fold);
                assert_eq!(image.text(), expected, "{text:?}");
                assert_eq!(image.is_as_written(), expected == written, "{text:?}");
                assert_eq!(Image::as_written(&text, fold).text(), written, "{text:?}");
                changed += usize::from(!image.is_as_written());
            }
            let apart: String = text.nfd().collect();
            assert_eq!(fold_case(&text), fold_case(&apart), "{text:?}");
        }
        assert!(changed > 10_000);
    }

    #[test]
    fn an_image_says_where_its_pieces_stand() {
        let rng = &mut fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let text = text(rng);
            for image in [Image::composed(&text, true), Image::as_written(&text, true)] {
                let bounds: Vec<usize> = image.text().char_indices().map(|(at, _)| at).collect();
                let from = rng.usize(..=bounds.len());
                let upto = rng.usize(from..=bounds.len());
                let at = |one: usize| bounds.get(one).copied().unwrap_or(image.text().len());
                let range = at(from)..at(upto);
                let source = image.source(range.clone());
                let found = text.get(source.clone()).unwrap();
                // The image of the source contains the whole range.
                let again = match image.is_as_written() {
                    true => lower(found),
                    false => fold_case(found),
                };
                assert!(
                    range.is_empty() || again.contains(&image.text()[range.clone()]),
                    "{text:?}"
                );
                assert_eq!(image.source(0..image.text().len()), 0..text.len());
            }
        }
        let image = Image::composed("un cafe\u{301} noir", false);
        assert_eq!(image.text(), "un café noir");
        assert_eq!(image.source(6..8), 6..9);
        assert_eq!(image.source(8..13), 9..14);
    }

    #[test]
    fn settled_characters_are_composed_and_join_nothing() {
        for c in '\0'..=char::MAX {
            if !is_settled(c) {
                continue;
            }
            assert_eq!(canonical_combining_class(c), 0, "{c:?}");
            assert_eq!(is_nfc_quick(once(c)), IsNormalized::Yes, "{c:?}");
            let folded: String = fold_char(c).collect();
            assert_eq!(folded.nfc().collect::<String>(), folded, "{c:?}");
            assert!(begins_letter(folded.chars().next().unwrap()), "{c:?}");
        }
    }

    #[test]
    fn an_index_has_the_forms_that_differ() {
        assert_eq!(compared_forms("naïve 数据 한국").len(), 1);
        assert_eq!(compared_forms("CAFE\u{301}"), ["CAFE\u{301}", "CAFÉ"]);
        assert_eq!(compared_forms("J\u{30c}a"), ["J\u{30c}a", "\u{1f0}a"]);
    }
}
