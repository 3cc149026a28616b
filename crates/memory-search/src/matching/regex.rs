//! Regular expressions, and a literal text that every match of an expression contains.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};

use super::regex_need::need_of;
use super::snippet::near_first;
use crate::segment::Need;
use sentence_model::fold::{Image, composed};

/// A regular expression that is ready to be compared with texts. The time of matching is linear in the length of the
/// text.
///
/// `^` and `$` match at line breaks. Case is ignored by Unicode's simple case folding, unless the pattern was created
/// with `exact`. First the expression and the text are matched in composed form. If there is no match, both are matched
/// as written.
#[derive(Debug, Clone)]
pub(super) struct RegexPattern {
    regex: Regex,
    /// The expression as written, if `regex` is compiled from a different composed form.
    written: Option<Regex>,
    /// A text, in lower case, that every matching ASCII text contains.
    literal: Option<String>,
    need: Need,
}

impl RegexPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why the pattern is not a valid regular expression, in one line.
    pub(super) fn new(pattern: &str, exact: bool) -> Result<Self, String> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(!exact)
                .multi_line(true)
                .build()
        };
        let written = build(pattern).map_err(|error| one_line(&error))?;
        let form = composed(pattern);
        // Composing may join a mark after a bracket to another character. The composed expression may then be invalid.
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

    /// Returns the condition for the index ([`Need`]) that every matching text satisfies.
    pub(super) fn need(&self) -> &Need {
        &self.need
    }

    /// Returns the byte ranges of matches in a text, in order and without overlaps: the first match, and the later
    /// matches that a snippet of `chars` characters may show with it.
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

/// Returns the last line of an error's text, which states the error. The other lines show its location.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Returns a literal text, in lower case, that every match of a regular expression contains in upper or lower case: the
/// longest that was found. `None` if none was found, or if it is not ASCII.
///
/// An ASCII text that does not contain it need not be matched. A text with the letter `ſ` (U+017F) may match without
/// it, because this letter equals `s` if case is ignored. The condition for the index covers more, such as classes and
/// alternatives: see [`Need`].
pub(super) fn required_literal(pattern: &str) -> Option<String> {
    let mut parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
    let hir = parser.parse(pattern).ok()?;
    let literal = longest(&hir)?.to_ascii_lowercase();
    literal.is_ascii().then_some(literal)
}

/// Returns the longest literal in an expression that every match contains.
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
            // Matched as written.
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
