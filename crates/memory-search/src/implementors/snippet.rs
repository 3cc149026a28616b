//! The text around a match.

use std::ops::Range;

use crate::fold::{fold_case, fold_char};

fn folded_len(c: char) -> usize {
    match c.is_ascii() {
        true => 1,
        false => fold_char(c).map(char::len_utf8).sum(),
    }
}

/// The text around the first match, and where it matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) text: String,
    pub(super) matches: Vec<Range<usize>>,
}

impl Snippet {
    /// Finds `pattern` (folded) in a text and cuts `chars` characters around the first match;
    /// `None` when it does not occur.
    pub(super) fn find(text: &str, pattern: &str, chars: usize) -> Option<Self> {
        let folded = fold_case(text);
        let at = folded.find(pattern)?;
        let mut folded_bytes = 0;
        let first = text
            .chars()
            .take_while(|c| {
                folded_bytes += folded_len(*c);
                folded_bytes <= at
            })
            .count();
        let shown = window(text, first, pattern.chars().count(), chars.max(1));
        let body = text.get(shown.clone()).unwrap_or_default();
        let matches = or_all(occurrences(body, pattern), body);
        Some(Self::new(text, shown, matches))
    }

    /// Cuts `chars` characters around the match number `focus` of `spans`, which are in order;
    /// `None` when there is no such match.
    pub(super) fn cut(
        text: &str,
        spans: &[Range<usize>],
        focus: usize,
        chars: usize,
    ) -> Option<Self> {
        let focus = spans.get(focus)?;
        let before = text.get(..focus.start)?.chars().count();
        let length = text.get(focus.clone())?.chars().count();
        let shown = window(text, before, length, chars.max(1));
        let mut end = 0;
        let mut matches = Vec::new();
        for span in spans {
            let inside = shown.start <= span.start && span.end <= shown.end;
            if inside && !span.is_empty() && end <= span.start {
                end = span.end;
                matches.push(span.start - shown.start..span.end - shown.start);
            }
        }
        if !focus.is_empty() {
            matches = or_all(matches, text.get(shown.clone())?);
        }
        Some(Self::new(text, shown, matches))
    }

    /// The first `chars` characters of a text, without a match.
    pub(super) fn head(text: &str, chars: usize) -> Self {
        let shown = window(text, 0, 0, chars.max(1));
        Self::new(text, shown, Vec::new())
    }

    /// The bytes `shown` of a text, with ellipses where it is cut. `matches` are ranges of what is
    /// shown.
    fn new(text: &str, shown: Range<usize>, mut matches: Vec<Range<usize>>) -> Self {
        let body = text.get(shown.clone()).unwrap_or_default();
        let mut out = String::with_capacity(body.len() + 6);
        if shown.start > 0 {
            out.push('…');
        }
        let prefix = out.len();
        out.push_str(body);
        if shown.end < text.len() {
            out.push('…');
        }
        for found in &mut matches {
            *found = found.start + prefix..found.end + prefix;
        }
        Self { text: out, matches }
    }
}

/// The matches in what is shown; all of it where the match is longer than that.
fn or_all(mut matches: Vec<Range<usize>>, body: &str) -> Vec<Range<usize>> {
    if matches.is_empty() {
        matches.push(0..body.len());
    }
    matches
}

/// The bytes of `text` to show: `width` characters with the match in their middle, which begins at
/// character `first` and has `length` characters.
fn window(text: &str, first: usize, length: usize, width: usize) -> Range<usize> {
    let before = (width - length.min(width)) / 2;
    let total = text.chars().count();
    let from = first
        .saturating_sub(before)
        .min(total.saturating_sub(width));
    let byte = |chars: usize| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(byte, _)| byte)
    };
    byte(from)..byte(from.saturating_add(width))
}

/// Where `pattern` (folded) occurs in a text, as ranges of whole characters that do not overlap.
fn occurrences(text: &str, pattern: &str) -> Vec<Range<usize>> {
    // Where each character begins, in the folded text and in the text; and both ends.
    let mut bounds = vec![(0, 0)];
    let mut folded_at = 0;
    for (byte, c) in text.char_indices() {
        folded_at += folded_len(c);
        bounds.push((folded_at, byte + c.len_utf8()));
    }
    let byte = |bound: usize| bounds.get(bound).map_or(text.len(), |(_, byte)| *byte);
    let mut out: Vec<Range<usize>> = Vec::new();
    for (first, matched) in fold_case(text).match_indices(pattern) {
        let last = first + matched.len();
        let begin = bounds.partition_point(|(folded, _)| *folded <= first);
        let end = bounds.partition_point(|(folded, _)| *folded < last);
        let earliest = out.last().map_or(0, |before| before.end);
        let found = byte(begin.saturating_sub(1)).max(earliest)..byte(end);
        if !found.is_empty() {
            out.push(found);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, pattern: &str, chars: usize) -> Option<String> {
        Snippet::find(text, &fold_case(pattern), chars).map(|snippet| snippet.text)
    }

    /// The snippet with its matches in brackets.
    fn marked(text: &str, pattern: &str, chars: usize) -> String {
        let mut snippet = Snippet::find(text, &fold_case(pattern), chars).unwrap();
        for found in snippet.matches.iter().rev() {
            snippet.text.insert(found.end, ']');
            snippet.text.insert(found.start, '[');
        }
        snippet.text
    }

    #[test]
    fn case_is_ignored_in_every_script() {
        for (text, pattern) in [
            ("The Tests are GREEN", "tests ARE green"),
            ("Привет МИР", "мир"),
            ("ΟΔΟΣ", "οδο"),
            ("İstanbul today", "TODAY"),
            ("テストは緑", "緑"),
            ("100% done_now", "0% DONE_"),
        ] {
            assert!(cut(text, pattern, 500).is_some(), "{pattern} in {text}");
        }
        assert!(cut("100 done", "100%", 500).is_none());
    }

    #[test]
    fn snippets_are_cut_around_the_match() {
        let text = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(cut(&text, "needle", 20).unwrap(), "…aaaaaaaneedlebbbbbbb…");
        assert_eq!(cut("needle", "needle", 20).unwrap(), "needle");
        assert_eq!(cut("needle bbbb", "needle", 8).unwrap(), "needle b…");
        assert_eq!(cut("aaaa needle", "needle", 8).unwrap(), "…a needle");
        // Lower case may be longer than the original; the window still holds the match.
        let text = format!("{}needle", "İ".repeat(50));
        assert!(cut(&text, "needle", 10).unwrap().contains("needle"));
    }

    #[test]
    fn matches_are_marked_in_the_snippet() {
        assert_eq!(
            marked("a Needle, a NEEDLE", "needle", 500),
            "a [Needle], a [NEEDLE]"
        );
        assert_eq!(marked("aaaa", "aa", 500), "[aa][aa]");
        assert_eq!(marked("xx needle yy", "needle", 8), "… [needle] …");
        assert_eq!(
            marked("İİneedleİ NEEDLE", "needle", 500),
            "İİ[needle]İ [NEEDLE]"
        );
        // The folded text begins with `i` and a combining dot: half a character matches whole.
        assert_eq!(marked("İx", "i", 500), "[İ]x");
        assert_eq!(marked("İİİ", "\u{307}i", 500), "[İİ][İ]");
        assert_eq!(marked("…needle…", "…", 500), "[…]needle[…]");
        assert_eq!(marked("a needle", "needle", 3), "…[nee]…");
    }
}
