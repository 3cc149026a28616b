//! The condition for the index that every match of a regular expression satisfies.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

use super::regex_unbroken::unbroken;
use crate::segment::{CharSet, Need, char_set};

/// Maximum size of a set of characters in a condition. All digits of all scripts fit.
const MOST_CHARS: usize = 1_024;

/// Maximum number of adjacent characters in a condition. Further characters are left out.
const LONGEST_RUN: usize = 24;

/// Maximum number of parts of an expression that are read. Further parts are left out. A part that repeats counts once
/// for each repetition.
const MOST_PARTS: usize = 4_096;

/// Returns the condition for the index ([`Need`]) that every match of an expression satisfies. Case is ignored unless
/// `exact` is `true`.
pub(super) fn need_of(pattern: &str, exact: bool) -> Need {
    let mut parser = ParserBuilder::new()
        .multi_line(true)
        .case_insensitive(!exact)
        .build();
    let Ok(hir) = parser.parse(pattern) else {
        return Need::Nothing;
    };
    let mut parts = MOST_PARTS;
    need_of_hir(&hir, &mut parts)
}

fn need_of_hir(hir: &Hir, parts: &mut usize) -> Need {
    let mut reader = Reader {
        parts,
        needs: Vec::new(),
        run: Vec::new(),
        prefix: String::new(),
    };
    reader.read(hir);
    reader.cut();
    let Reader {
        mut needs, prefix, ..
    } = reader;
    if needs.is_empty() {
        if !prefix.is_empty() {
            needs.push(Need::of_literal(&prefix));
        }
        needs.push(Need::of_unbroken(unbroken(hir)));
    }
    Need::all(needs)
}

/// Reads the parts of an expression that follow each other.
struct Reader<'p> {
    /// Number of parts that may still be read.
    parts: &'p mut usize,
    needs: Vec<Need>,
    /// The sets of possible characters directly before the current part.
    run: Vec<CharSet>,
    /// The longest run of one or two required characters.
    prefix: String,
}

impl Reader<'_> {
    fn read(&mut self, hir: &Hir) {
        let Some(left) = self.parts.checked_sub(1) else {
            return self.cut();
        };
        *self.parts = left;
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => text.chars().for_each(|c| self.push(char_set([c]))),
                Err(_) => self.cut(),
            },
            HirKind::Class(Class::Unicode(class)) => self.push(chars_of(class)),
            HirKind::Class(Class::Bytes(class)) => {
                self.push(class.to_unicode_class().as_ref().and_then(chars_of));
            }
            HirKind::Capture(capture) => self.read(&capture.sub),
            HirKind::Concat(parts) => parts.iter().for_each(|part| self.read(part)),
            HirKind::Alternation(parts) => {
                self.cut();
                let each = parts.iter().map(|part| need_of_hir(part, self.parts));
                match Need::any(each.collect()) {
                    Need::Nothing => {}
                    any => self.needs.push(any),
                }
            }
            HirKind::Repetition(repetition) => {
                let times = repetition.min.min(LONGEST_RUN as u32);
                (0..times).for_each(|_| self.read(&repetition.sub));
                if repetition.max != Some(times) {
                    self.cut();
                }
            }
        }
    }

    /// Adds a character from a set. `None` means any character, or several characters.
    fn push(&mut self, set: Option<CharSet>) {
        match set {
            Some(set) => self.run.push(set),
            None => self.cut(),
        }
        if self.run.len() == LONGEST_RUN {
            self.cut();
        }
    }

    /// Ends the run of adjacent characters, and adds its condition.
    fn cut(&mut self) {
        let run = std::mem::take(&mut self.run);
        let one = |set: &CharSet| match set.as_slice() {
            [c] => Some(*c),
            _ => None,
        };
        let text: Option<String> = run.iter().map(one).collect();
        match text {
            Some(text) if run.len() >= 3 => self.needs.push(Need::of_literal(&text)),
            None if run.len() >= 3 => self.needs.push(Need::SideBySide(run)),
            Some(text) if text.chars().count() > self.prefix.chars().count() => self.prefix = text,
            _ => {}
        }
    }
}

/// Returns the characters of a class. `None` if there are too many, or if the lower-case form of one has several
/// characters.
fn chars_of(class: &ClassUnicode) -> Option<CharSet> {
    let size: usize = class.iter().map(|range| range.len()).sum();
    if size > MOST_CHARS {
        return None;
    }
    char_set(class.iter().flat_map(|range| range.start()..=range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::gram_key;

    fn grams(all: &[&str]) -> Need {
        Need::Grams(all.iter().map(|gram| gram_key(gram)).collect())
    }

    #[test]
    fn what_is_needed_is_read_off() {
        let need = |pattern: &str| need_of(pattern, false);
        assert_eq!(need(r"fn.+Main\("), grams(&["ain", "in(", "mai"]));
        assert_eq!(
            need("error|failed"),
            Need::Any(vec![
                grams(&["err", "ror", "rro"]),
                grams(&["ail", "fai", "ile", "led"])
            ])
        );
        assert_eq!(
            need(r"(?-u:\d)x{2}[abC]"),
            Need::SideBySide(vec![
                ('0'..='9').collect(),
                vec!['x'],
                vec!['x'],
                vec!['a', 'b', 'c']
            ])
        );
        assert_eq!(need("abc.*x[yz]Z"), {
            let sets = vec![vec!['x'], vec!['y', 'z'], vec!['z']];
            Need::All(vec![grams(&["abc"]), Need::SideBySide(sets)])
        });
        // If case is ignored, the Kelvin sign and the long s are equal to letters.
        assert_eq!(need("ſ\u{212a}y"), grams(&["sky"]));
        assert_eq!(need("a{2,}b"), Need::GramPrefix(gram_key("aa")));
        assert_eq!(need("(ab){2}c"), grams(&["aba", "abc", "bab"]));
        for nothing in [
            "",
            "x*",
            "abc|",
            r"\w+\s",
            ".",
            "(?:abc)?",
            r"[^a]\D\D",
            "(",
        ] {
            assert_eq!(need(nothing), Need::Nothing, "{nothing}");
        }
        assert_eq!(need(r"\S{40}"), Need::Unbroken(40));
        assert_eq!(need(r"\S{15}"), Need::Nothing);
        assert_eq!(need(r"\w{999}|\S{16}"), {
            Need::Any(vec![Need::Unbroken(255), Need::Unbroken(16)])
        });
        assert_eq!(need(r"q\S{19}"), {
            Need::All(vec![Need::GramPrefix(gram_key("q")), Need::Unbroken(20)])
        });
    }

    #[test]
    fn large_expressions_are_read_in_part() {
        for pattern in ["(?:(?:a|bc){20}){20}", "(?:x{20}[yz]{20}){20}"] {
            assert_ne!(need_of(pattern, true), Need::Nothing);
        }
    }
}
