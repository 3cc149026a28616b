//! Regular expressions, and the literal text that each match of one contains.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

use super::regex_need::need_of;
use super::snippet::near_first;
use crate::fold::{Image, composed};
use crate::segment::Need;

/// A regular expression that is ready to be compared with texts. Matching takes time linear in the text.
///
/// `^` and `$` match at line breaks. Case is ignored by Unicode's simple case folding, unless `exact`. The expression
/// and the text are matched in composed form; if that finds no match, both are matched as written.
#[derive(Debug, Clone)]
pub(super) struct RegexPattern {
    regex: Regex,
    /// The expression as written, if `regex` is compiled from another, composed form.
    written: Option<Regex>,
    /// A text that every matching text in ASCII contains, in lower case.
    literal: Option<String>,
    need: Need,
}

impl RegexPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why the pattern is not a regular expression, in one line.
    pub(super) fn new(pattern: &str, exact: bool) -> Result<Self, String> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(!exact)
                .multi_line(true)
                .build()
        };
        let written = build(pattern).map_err(|error| one_line(&error))?;
        let form = composed(pattern);
        // A mark behind a bracket may be a part of another character once they are composed.
        let changed = (form != pattern).then(|| build(&form).ok());
        let Some(regex) = changed.flatten() else {
            return Ok(Self {
                regex: written,
                written: None,
                literal: required_literal(pattern),
                need: need_of(pattern, exact),
            });
        };
        Ok(Self {
            regex,
            written: Some(written),
            literal: None,
            need: Need::any(vec![need_of(&form, exact), need_of(pattern, exact)]),
        })
    }

    /// The condition of an index that every matching text meets.
    pub(super) fn need(&self) -> &Need {
        &self.need
    }

    /// Returns the byte ranges of the matches in a text, in order and without overlaps: the first, and those that a
    /// snippet of `chars` characters may show with it.
    pub(super) fn spans(&self, text: &str, chars: usize) -> Vec<Range<usize>> {
        let may_match = match &self.literal {
            Some(literal) if text.is_ascii() => text.to_ascii_lowercase().contains(literal),
            _ => true,
        };
        if !may_match {
            return Vec::new();
        }
        let image = Image::composed(text, false);
        let spans = found_in(&self.regex, image.text()).map(|span| image.source(span));
        let spans = near_first(spans, chars);
        if !spans.is_empty() || (self.written.is_none() && image.is_as_written()) {
            return spans;
        }
        let written = self.written.as_ref().unwrap_or(&self.regex);
        near_first(found_in(written, text), chars)
    }
}

fn found_in(regex: &Regex, text: &str) -> impl Iterator<Item = Range<usize>> {
    regex.find_iter(text).map(|found| found.range())
}

/// The last line of the error's text, which says what is wrong; the others show the position.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Returns a text that every match of a regular expression contains, in any case: the longest that can be derived from
/// the expression, in lower case. `None` if there is none, or if it is not ASCII.
///
/// Texts in ASCII without it need not be matched. A text that has the letter `ſ` (U+017F) may match without it: that
/// letter is an `s` if case is ignored. The condition for an index covers more, such as classes and alternatives:
/// [`Need`].
pub(super) fn required_literal(pattern: &str) -> Option<String> {
    let mut parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
    let hir = parser.parse(pattern).ok()?;
    let literal = longest(&hir)?.to_ascii_lowercase();
    literal.is_ascii().then_some(literal)
}

/// The longest literal that every match of an expression contains.
fn longest(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok(),
        HirKind::Capture(capture) => longest(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => longest(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(longest).max_by_key(String::len),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_off() {
        for (pattern, expected) in [
            (r"fn\s+Main\(", Some("main(")),
            ("(abc)+x*", Some("abc")),
            ("a|b", None),
            ("(?i)abc", None),
            ("x*", None),
            ("é+", None),
            ("(", None),
            ("ab?cd", Some("cd")),
        ] {
            assert_eq!(required_literal(pattern).as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn texts_without_the_literal_do_not_match() {
        let pattern = RegexPattern::new("main\\b", false).unwrap();
        let spans = |text: &str| pattern.spans(text, 100);
        assert_eq!(spans("fn MAIN() é main"), [3..7, 13..17]);
        assert_eq!(spans("fn MAIN(), main"), [3..7, 11..15]);
        assert_eq!(spans("domain-is").len(), 1);
        assert!(spans("mai n").is_empty());
    }

    #[test]
    fn letters_match_however_they_are_written() {
        for (pattern, text, span) in [
            (r"caf[éè]\b", "un cafe\u{301}", 3..9),
            ("cafe\u{301}+s", "cafés", 0..6),
            ("^.af.$", "cafe\u{301}", 0..6),
            (
                "[가-힣]{3}",
                "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}\u{110b}\u{1165}",
                0..24,
            ),
            ("CAFÉ|x", "cafe\u{301}", 0..6),
            // As they are written.
            (r"e\p{M}", "cafe\u{301}", 3..6),
            ("caf[e\u{301}]", "cafe", 0..4),
            ("e\\x{301}", "e\u{301}", 0..3),
        ] {
            let regex = RegexPattern::new(pattern, false).unwrap();
            assert_eq!(regex.spans(text, 100), [span], "{pattern}");
        }
        let exact = RegexPattern::new("É", true).unwrap();
        assert_eq!(exact.spans("e\u{301} E\u{301}", 100).first(), Some(&(4..7)));
    }

    #[test]
    fn errors_are_one_line() {
        assert_eq!(
            RegexPattern::new("a(b", false).unwrap_err(),
            "unclosed group"
        );
        let large = RegexPattern::new(r"\w{1000}{1000}", false).unwrap_err();
        assert!(!large.contains('\n'), "{large}");
    }
}
