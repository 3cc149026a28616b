//! Matching of literal patterns.

use std::ops::Range;

use super::snippet::near_first;
use crate::segment::Need;
use sentence_model::fold::Image;

/// A literal pattern. Letters with marks match in composed and in decomposed Unicode form.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    /// Whether case is ignored.
    fold: bool,
    /// The pattern in composed form, for texts in composed form.
    composed: String,
    /// The pattern as written, for texts as written.
    written: String,
}

impl Literal {
    pub(super) fn new(pattern: &str, exact: bool) -> Self {
        Self {
            fold: !exact,
            composed: Image::composed(pattern, !exact).into_text(),
            written: Image::as_written(pattern, !exact).into_text(),
        }
    }

    /// Returns the condition for the index ([`Need`]) that every matching text satisfies.
    pub(super) fn need(&self) -> Need {
        let mut needs = vec![Need::of_literal(&self.composed)];
        if self.written != self.composed {
            needs.push(Need::of_literal(&self.written));
        }
        Need::any(needs)
    }

    /// Returns the byte ranges of matches in a text, in order and without overlaps: the first match, and the later
    /// matches that a snippet of `chars` characters may show with it.
    pub(super) fn spans(&self, text: &str, chars: usize) -> Vec<Range<usize>> {
        let image = Image::composed(text, self.fold);
        let spans = spans(&image, &self.composed, chars);
        // The pattern may be a part of a letter, such as the letter without its marks. A text in composed form has no
        // further matches.
        if spans.is_empty() && !image.is_as_written() {
            return self::spans(&Image::as_written(text, self.fold), &self.written, chars);
        }
        spans
    }
}

fn spans(image: &Image<'_>, pattern: &str, chars: usize) -> Vec<Range<usize>> {
    let mut end = 0;
    let spans = image.text().match_indices(pattern).map(|(at, found)| {
        let span = image.source(at..at + found.len());
        // Two matches may share a character if its lower-case form has several characters.
        let begin = span.start.max(end);
        end = span.end.max(end);
        begin..span.end
    });
    near_first(spans.filter(|span| !span.is_empty()), chars)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: &str, text: &str, exact: bool) -> Option<Range<usize>> {
        Literal::new(pattern, exact)
            .spans(text, 100)
            .into_iter()
            .next()
    }

    #[test]
    fn matches_are_where_the_text_has_them_as_it_is_written() {
        assert_eq!(first("fe\u{301} n", "cafe\u{301} noir", false), Some(2..8));
        assert_eq!(first("fé n", "cafe\u{301} noir", true), Some(2..8));
        assert_eq!(first("É", "cafe\u{301} E\u{301}", true), Some(7..10));
        // The pattern is a part of a letter as written.
        assert_eq!(first("q\u{301}", "q\u{301}\u{323}", false), Some(0..3));
        for (pattern, text) in [("cafe", "café"), ("ガ", "ｶﾞ"), ("É", "e\u{301}")] {
            assert_eq!(first(pattern, text, true), None, "{pattern} in {text}");
        }
    }
}
