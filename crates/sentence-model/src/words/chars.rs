//! Classes of characters that form words.

/// Kind of a word, by its characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// A word of letters, digits and their marks, in a script with spaces between words.
    Spaced,
    /// A run of characters in a script without spaces between words, or with particles joined to the words.
    Unspaced,
    /// A pictograph, which is a word by itself.
    Symbol,
}

/// Returns the kind of word to which a character belongs. `None` for a character that ends a word.
pub(super) fn kind_of(c: char) -> Option<WordKind> {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric().then_some(WordKind::Spaced);
    }
    if is_pictograph(c) {
        return Some(WordKind::Symbol);
    }
    let is_part = c.is_alphanumeric() || is_mark(c);
    is_part.then(|| match is_unspaced(c) {
        true => WordKind::Unspaced,
        false => WordKind::Spaced,
    })
}

/// Returns whether a character is Thai, Lao, Burmese, Khmer, Kana, Bopomofo, Hangul or Han. Korean has spaces, but
/// joins particles to its words. Its words are therefore found by their parts too.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether a character is a combining mark, such as an accent, a vowel sign or a tone mark. The Unicode blocks
/// of Indic scripts have 128 characters each, with marks at the same places.
pub(super) fn is_mark(c: char) -> bool {
    let indic = |c: char| {
        matches!(u32::from(c) % 0x80,
            0x00..=0x03 | 0x3c | 0x3e..=0x4d | 0x51..=0x57 | 0x62 | 0x63)
    };
    match c {
        '\u{900}'..='\u{dff}' => indic(c),
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{489}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'
        | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}'
        | '\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e8}'
        | '\u{6ea}'..='\u{6ed}'
        | '\u{e31}'
        | '\u{e34}'..='\u{e3a}'
        | '\u{e47}'..='\u{e4e}'
        | '\u{eb1}'
        | '\u{eb4}'..='\u{ebc}'
        | '\u{ec8}'..='\u{ece}'
        | '\u{102b}'..='\u{103e}'
        | '\u{17b4}'..='\u{17d3}'
        | '\u{17dd}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{3099}'
        | '\u{309a}'
        | '\u{fe20}'..='\u{fe2f}' => true,
        _ => false,
    }
}

/// Returns whether a character is in a Unicode block of pictographs.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}
