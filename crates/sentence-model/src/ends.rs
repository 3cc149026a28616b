//! Ends of sentences.

use crate::numbered::is_point_of_number;

/// Returns the sentences of one line, in any script, without the spaces between them.
pub fn sentences(line: &str) -> Vec<&str> {
    sentences_with_notes(line, |_| None)
}

/// Returns the sentences of one line. `note` returns the length in bytes of a note at the start of a text, which belongs to the
/// sentence before it.
pub fn sentences_with_notes(line: &str, note: impl Fn(&str) -> Option<usize>) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let behind = line.get(at + c.len_utf8()..).unwrap_or("");
        let mut end = at + c.len_utf8();
        let ends = match c {
            _ if note(behind).is_some() => false,
            ' ' => {
                let length = note(line.get(at..).unwrap_or(""));
                end = at + length.unwrap_or(0);
                length.is_some()
            }
            // Full stops of Devanagari and Urdu, and the Arabic question mark.
            '।' | '۔' | '؟' => true,
            // A mark before a closing quote does not end the sentence: of a quoted question and its answer, the answer
            // is more informative.
            '。' | '！' | '？' | '．' => !matches!(
                chars.peek(),
                Some((_, '」' | '』' | '）' | '。' | '"' | '”'))
            ),
            '.' | '!' | '?' => {
                let word = line.get(start..at).unwrap_or("");
                let word = word.rsplit(' ').next().unwrap_or("");
                // Initials, `e.g.` and `1.` do not end a sentence.
                matches!(chars.peek(), None | Some((_, ' ')))
                    && !(c == '.' && is_point_of_number(line, at))
                    && word.chars().count() > 1
                    && !word.contains('.')
            }
            _ => false,
        };
        if ends {
            while chars.next_if(|(next, _)| *next < end).is_some() {}
            found.extend(line.get(start..end));
            start = end;
        }
    }
    found.extend(line.get(start..));
    let found = found.into_iter().map(str::trim);
    found.filter(|sentence| !sentence.is_empty()).collect()
}
