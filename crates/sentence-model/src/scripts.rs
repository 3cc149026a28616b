//! Scripts of characters.

/// Returns whether a character belongs to a script that is written without spaces between words, or with particles joined
/// to the words: Kana, Han or Hangul.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}
