//! Parts of a sentence in Japanese or Korean that may say that something changes.

use std::collections::BTreeSet;

use super::scripts::{Script, Token};

/// Returns the grams of a sentence: words in Latin letters and pairs of neighbours, ends and beginnings of words in Hangul, and up to
/// three characters of other scripts. A number is `0`.
pub(super) fn grams(chars: &[char], tokens: &[Token]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut before: Option<&str> = None;
    let is_run = |token: &Token| {
        matches!(
            token.script,
            Script::Han | Script::Hiragana | Script::Katakana
        )
    };
    for (n, token) in tokens.iter().enumerate() {
        let word = match token.script {
            Script::Digit => Some("0"),
            Script::Latin => Some(token.text.as_str()),
            _ => None,
        };
        if let Some(word) = word {
            out.insert(word.to_owned());
            out.extend(before.map(|before| format!("{before} {word}")));
        }
        before = word;
        if token.script == Script::Hangul {
            let chars: Vec<char> = token.text.chars().collect();
            out.insert(token.text.clone());
            for length in (1..=3).filter(|length| *length < chars.len()) {
                let end: String = chars.iter().skip(chars.len() - length).collect();
                out.insert(format!("{end}$"));
                if length < 3 {
                    let start: String = chars.iter().take(length).collect();
                    out.insert(format!("^{start}"));
                }
            }
        }
        // Of neighbours in these scripts, the first one begins a run.
        let touches = |one: &Token| is_run(one) && one.chars.end == token.chars.start;
        if is_run(token)
            && !n
                .checked_sub(1)
                .and_then(|n| tokens.get(n))
                .is_some_and(touches)
        {
            let mut end = token.chars.end;
            for next in tokens.iter().skip(n + 1) {
                if !is_run(next) || next.chars.start != end {
                    break;
                }
                end = next.chars.end;
            }
            let run = chars.get(token.chars.start..end).unwrap_or_default();
            for length in 1..=3 {
                out.extend(
                    run.windows(length)
                        .map(|part| part.iter().collect::<String>()),
                );
            }
        }
    }
    out
}
