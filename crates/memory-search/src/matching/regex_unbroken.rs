//! Minimum length of the stretches without white space in every match of a regular expression.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};

/// Minimum lengths of stretches without white space in the matches of an expression, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretches {
    /// Whether no match contains white space. The other three fields are then the length of the shortest match.
    unbroken: bool,
    /// Minimum length of the stretch at the beginning of a match.
    first: u64,
    /// Minimum length of the stretch at the end of a match.
    last: u64,
    /// Minimum length of the longest stretch in a match.
    longest: u64,
}

impl Stretches {
    /// Returns the lengths for matches of `chars` characters without white space.
    fn solid(chars: u64) -> Self {
        Self {
            unbroken: true,
            first: chars,
            last: chars,
            longest: chars,
        }
    }

    /// The lengths for any text, even an empty one.
    const UNKNOWN: Self = Self {
        unbroken: false,
        first: 0,
        last: 0,
        longest: 0,
    };

    fn of_char(is_space: bool) -> Self {
        match is_space {
            true => Self::UNKNOWN,
            false => Self::solid(1),
        }
    }

    fn then(self, next: Self) -> Self {
        let across = self.last.saturating_add(next.first);
        Self {
            unbroken: self.unbroken && next.unbroken,
            first: match self.unbroken {
                true => across,
                false => self.first,
            },
            last: match next.unbroken {
                true => across,
                false => next.last,
            },
            longest: self.longest.max(next.longest).max(across),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            unbroken: self.unbroken && other.unbroken,
            first: self.first.min(other.first),
            last: self.last.min(other.last),
            longest: self.longest.min(other.longest),
        }
    }

    fn times(self, min: u32) -> Self {
        match (min, self.unbroken) {
            (0, true) => Self::solid(0),
            (0, false) => Self::UNKNOWN,
            (_, true) => Self::solid(self.longest.saturating_mul(min.into())),
            (1, false) => self,
            (_, false) => Self {
                longest: self.longest.max(self.last.saturating_add(self.first)),
                ..self
            },
        }
    }

    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::solid(0),
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => {
                    let chars = text.chars().map(|c| Self::of_char(c.is_whitespace()));
                    chars.fold(Self::solid(0), Self::then)
                }
                Err(_) => Self::UNKNOWN,
            },
            HirKind::Class(class) => Self::of_char(may_be_space(class)),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Concat(parts) => {
                let parts = parts.iter().map(Self::of);
                parts.fold(Self::solid(0), Self::then)
            }
            HirKind::Alternation(parts) => {
                let parts = parts.iter().map(Self::of);
                parts.reduce(Self::or).unwrap_or(Self::UNKNOWN)
            }
            HirKind::Repetition(repetition) => Self::of(&repetition.sub).times(repetition.min),
        }
    }
}

/// All Unicode white space characters.
static SPACES: LazyLock<ClassUnicode> = LazyLock::new(|| {
    let spaces = regex_syntax::parse(r"\s").map(Hir::into_kind);
    match spaces {
        Ok(HirKind::Class(Class::Unicode(spaces))) => spaces,
        _ => ClassUnicode::empty(),
    }
});

fn may_be_space(class: &Class) -> bool {
    let chars = match class {
        Class::Unicode(class) => Some(class.clone()),
        Class::Bytes(class) => class.to_unicode_class(),
    };
    // Bytes beyond ASCII are parts of a character.
    chars.is_none_or(|mut chars| {
        chars.intersect(&SPACES);
        !chars.ranges().is_empty()
    })
}

/// Returns the minimum length of the longest stretch without white space in every match, in characters.
pub(super) fn unbroken(hir: &Hir) -> u64 {
    Stretches::of(hir).longest
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::ClassUnicodeRange;

    use super::*;

    #[test]
    fn lengths_are_read_off() {
        let of = |pattern: &str| {
            let hir = regex_syntax::Parser::new().parse(pattern).unwrap();
            unbroken(&hir)
        };
        for (pattern, expected) in [
            (r"\S{40}", 40),
            (r"\b[0-9a-f]{7,40}\b", 7),
            (r"(?:\S{3} )*\S{9,}x?\s", 9),
            (r"\w+\s\w{4}", 4),
            (r"(?:a\sbc){3}", 3),
            (r"(?:a\sbc){0,3}d", 1),
            (r"\S{5}|ab", 2),
            (r"(?:\S{5}|a b)\S", 2),
            (r"x[^\s,]{8}(y|zz)w", 11),
            ("a b", 1),
            ("a.b", 1),
            (r"[^x]{9}", 0),
            (r"\d{4}-\d\d-\d\d", 10),
            ("(?-u:[a-z]{5})", 5),
            ("", 0),
        ] {
            assert_eq!(of(pattern), expected, "{pattern}");
        }
        assert_eq!(of(r"(?:(?:\S{1000}){1000}){1000}"), 1_000_000_000);
    }

    #[test]
    fn white_space_is_what_unicode_says() {
        let is_space = |c: char| {
            let alone = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            may_be_space(&Class::Unicode(alone))
        };
        assert!(('\0'..=char::MAX).all(|c| is_space(c) == c.is_whitespace()));
    }
}
