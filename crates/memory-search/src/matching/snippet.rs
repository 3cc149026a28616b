//! Excerpts of text around matches.

use std::ops::Range;

use sentence_model::fold::begins_letter;

/// An excerpt of text around a match, and the byte ranges of the matches in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) text: String,
    pub(super) matches: Vec<Range<usize>>,
}

impl Snippet {
    /// Cuts an excerpt of `chars` characters around a match. `spans` are the ranges of all matches in order, and
    /// `focus` is the index of the match. `None` if there is no match with this index.
    pub(super) fn cut(
        text: &str,
        spans: &[Range<usize>],
        focus: usize,
        chars: usize,
    ) -> Option<Self> {
        let focus = spans.get(focus)?;
        let shown = window(text, focus.clone(), chars.max(1));
        let mut end = 0;
        let mut matches = Vec::new();
        for span in spans {
            let inside = shown.start <= span.start && span.end <= shown.end;
            if inside && !span.is_empty() && end <= span.start {
                end = span.end;
                matches.push(span.start - shown.start..span.end - shown.start);
            }
        }
        if !focus.is_empty() && matches.is_empty() {
            // The match is longer than the shown text.
            matches.push(0..shown.len());
        }
        Some(Self::new(text, shown, matches))
    }

    /// Returns the first `chars` characters of a text, without marked matches.
    pub(super) fn head(text: &str, chars: usize) -> Self {
        let shown = window(text, 0..0, chars.max(1));
        Self::new(text, shown, Vec::new())
    }

    /// Cuts the byte range `shown` out of a text, with an ellipsis at each cut. `matches` are ranges in the shown text.
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

/// Returns the byte range to show: `width` characters of `text` with the match in the middle. A letter is not separated
/// from its marks, unless the match itself separates them. The range may therefore have fewer characters.
fn window(text: &str, matched: Range<usize>, width: usize) -> Range<usize> {
    let count = |range: Range<usize>| text.get(range).unwrap_or_default().chars().count();
    let (first, length) = (count(0..matched.start), count(matched.clone()));
    let before = (width - length.min(width)) / 2;
    let total = first + length + count(matched.end..text.len());
    let from = first
        .saturating_sub(before)
        .min(total.saturating_sub(width));
    let byte = |chars: usize| {
        text.char_indices()
            .nth(chars)
            .map_or(text.len(), |(byte, _)| byte)
    };
    let (begin, end) = (byte(from), byte(from.saturating_add(width)));
    let rest = text.get(begin..).unwrap_or_default().char_indices();
    let mut letters = rest
        .filter(|(_, c)| begins_letter(*c))
        .map(|(at, _)| begin + at);
    let whole = letters.next().filter(|_| begin > 0);
    let begin = whole.map_or(begin, |letter| letter.min(matched.start).max(begin));
    let rest = text.get(end..).and_then(|rest| rest.chars().next());
    if rest.is_none_or(begins_letter) {
        return begin..end;
    }
    let shown = text.get(begin..end).unwrap_or_default().char_indices();
    let last = shown.rev().find(|(_, c)| begins_letter(*c));
    let whole = last.map(|(at, _)| (begin + at).max(matched.end));
    begin..whole.filter(|end| *end > begin).unwrap_or(end).min(end)
}

/// Returns the first match, and all matches that begin at most `4 * chars` bytes after its beginning. A snippet of
/// `chars` characters cannot show more.
pub(super) fn near_first(
    spans: impl Iterator<Item = Range<usize>>,
    chars: usize,
) -> Vec<Range<usize>> {
    let mut end = None;
    // A character takes at most four bytes.
    let near = |span: &Range<usize>| {
        let end = end.get_or_insert(span.start.saturating_add(chars.max(1).saturating_mul(4)));
        span.start <= *end
    };
    spans.take_while(near).collect()
}

#[cfg(test)]
mod tests {
    use super::super::literal::Literal;
    use super::*;

    #[test]
    fn a_long_text_is_read_up_to_the_end_of_its_snippet() {
        let mut last = 0;
        let spans = (0..1_000_000)
            .map(|at| at..at + 1)
            .inspect(|span| last = span.start);
        let near = near_first(spans, 10);
        assert_eq!((near.len(), last), (41, 41));
    }

    fn find(text: &str, pattern: &str, chars: usize) -> Option<Snippet> {
        let spans = Literal::new(pattern, false).spans(text, chars);
        Snippet::cut(text, &spans, 0, chars)
    }

    fn cut(text: &str, pattern: &str, chars: usize) -> Option<String> {
        find(text, pattern, chars).map(|snippet| snippet.text)
    }

    /// Returns the snippet with its matches in brackets.
    fn marked(text: &str, pattern: &str, chars: usize) -> String {
        let mut snippet = find(text, pattern, chars).unwrap();
        for found in snippet.matches.iter().rev() {
            snippet.text.insert(found.end, ']');
            snippet.text.insert(found.start, '[');
        }
        snippet.text
    }

    #[test]
    fn snippets_are_cut_around_the_match() {
        let text = format!("{}needle{}", "a".repeat(100), "b".repeat(100));
        assert_eq!(cut(&text, "needle", 20).unwrap(), "…aaaaaaaneedlebbbbbbb…");
        assert_eq!(cut("needle", "needle", 20).unwrap(), "needle");
        assert_eq!(cut("needle bbbb", "needle", 8).unwrap(), "needle b…");
        assert_eq!(cut("aaaa needle", "needle", 8).unwrap(), "…a needle");
        // The lower-case form may be longer than the original. The window still contains the match.
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
        // The folded text begins with `i` and a combining dot. A match of half a character extends to the whole
        // character.
        assert_eq!(marked("İx", "i", 500), "[İ]x");
        assert_eq!(marked("İİİ", "\u{307}i", 500), "[İİ][İ]");
        assert_eq!(marked("…needle…", "…", 500), "[…]needle[…]");
        assert_eq!(marked("a needle", "needle", 3), "…[nee]…");
    }
    #[test]
    fn letters_keep_their_marks() {
        let text = "ne\u{301}e\u{301} cafe\u{301} cle\u{301}s";
        assert_eq!(
            marked(text, "café", 500),
            "ne\u{301}e\u{301} [cafe\u{301}] cle\u{301}s"
        );
        assert_eq!(cut(text, "café", 7).unwrap(), "… cafe\u{301} …");
        assert_eq!(cut(text, "café", 8).unwrap(), "… cafe\u{301} c…");
        assert_eq!(cut(text, "café", 10).unwrap(), "… cafe\u{301} cl…");
        assert_eq!(cut(text, "café", 12).unwrap(), "…e\u{301} cafe\u{301} cl…");
        assert_eq!(Snippet::head(text, 2).text, "n…");
        assert_eq!(Snippet::head("e\u{301}\u{323}", 1).text, "e…");
    }
}
