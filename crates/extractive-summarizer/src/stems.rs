//! Words without their endings.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::rule_cues::{CHANGES, CHANGING, SAME, SINCE};
use crate::words::{VALUE, Word, is_little};

/// Stem of the words for a name.
pub(crate) const NAME: &str = "nam";

static SAME_AS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| SAME.iter().copied().collect());

/// Returns the informative words in one word of a sentence, without their endings.
pub(crate) fn stems<'w>(word: &'w Word<'_>, sentence: &str) -> &'w [String] {
    word.stems
        .get_or_init(|| stemmed(word.text, &word.lower, sentence))
}

fn stemmed(word: &str, lower: &str, sentence: &str) -> Vec<String> {
    let Some(first) = word.chars().next().filter(|_| word != VALUE) else {
        return Vec::new();
    };
    match first {
        // Hiragana: endings and particles.
        '\u{3040}'..='\u{309f}' => Vec::new(),
        '\u{30a0}'..='\u{30ff}' => vec![word.to_owned()],
        '\u{3400}'..='\u{9fff}' => {
            let japanese = sentence.contains(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
            let little =
                |c: char| !japanese && "的以为用是改成换在把将请要都从和与或不了我你".contains(c);
            let parts = word.split(little).filter(|part| !part.is_empty());
            parts
                .filter(|part| !CHANGES.contains(part) && !SINCE.contains(part))
                .map(str::to_owned)
                .collect()
        }
        '\u{ac00}'..='\u{d7af}' if CHANGES.contains(&word) || SINCE.contains(&word) => Vec::new(),
        '\u{ac00}'..='\u{d7af}' => {
            let bare = word.trim_end_matches([
                '은', '는', '이', '가', '을', '를', '에', '의', '로', '과', '와', '도',
            ]);
            let bare = if bare.is_empty() { word } else { bare };
            vec![bare.chars().take(2).collect()]
        }
        _ => {
            let whose = lower.strip_suffix("'s").unwrap_or(lower);
            if SAME_AS.contains_key(whose) {
                return vec![stem(whose)];
            }
            let telling = whose.split('-').filter(|part| {
                let little = part.contains('\'') || is_little(part) || CHANGING.contains(part);
                !little && part.chars().count() > 1
            });
            telling.map(stem).collect()
        }
    }
}

/// Returns an English word without its ending. `names` and `naming` give the same stem.
pub(crate) fn stem(word: &str) -> String {
    let same = |word: &str| SAME_AS.get(word).map(|same| (*same).to_owned());
    if let Some(same) = same(word) {
        return same;
    }
    let ends = ["ing", "ed", "es", "s", "e", "ly", "y"];
    let end = ends.iter().find_map(|end| word.strip_suffix(end));
    let bare = end.filter(|bare| bare.chars().count() > 2).unwrap_or(word);
    let bare = match bare.strip_suffix("ation") {
        Some(verb) if verb.len() > 2 => bare.get(..verb.len() + 2).unwrap_or(bare),
        _ => bare,
    };
    let mut chars = bare.chars().rev();
    let doubled = bare.len() < word.len() && chars.next() == chars.next() && bare.len() > 3;
    let bare = if doubled {
        bare.get(..bare.len() - 1).unwrap_or(bare)
    } else {
        bare
    };
    same(bare).unwrap_or_else(|| bare.to_owned())
}
