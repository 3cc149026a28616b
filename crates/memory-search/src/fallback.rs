//! Replacements for queries that could not be answered as they were.

use std::fmt;

/// Maximum length of a pattern, in characters. It bounds the time of a search: a question of a million words would keep
/// a server busy for a minute.
pub const MAX_PATTERN_CHARS: usize = 10_000;

/// Replacement for a search that was impossible or had no hits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The pattern is not a valid regular expression. Its text was searched for literally.
    InvalidRegex {
        /// Error of the regular expression, in one line.
        reason: String,
    },
    /// The pattern contains no word. Its text was searched for literally.
    NoWords,
    /// No text contains the exact phrase. Texts with all of its words were searched for.
    AllWords,
    /// No text contains all words of the pattern. Texts with any of its words were ranked.
    AnyWord,
    /// The pattern is longer than [`MAX_PATTERN_CHARS`]. Texts with any word of its beginning were ranked.
    LongPattern {
        /// Length of the pattern, in characters.
        chars: usize,
    },
}

impl Fallback {
    /// Returns whether the pattern itself was the reason for the fallback, rather than a search without hits.
    pub fn is_of_pattern(&self) -> bool {
        match self {
            Fallback::InvalidRegex { .. } | Fallback::NoWords | Fallback::LongPattern { .. } => {
                true
            }
            Fallback::AllWords | Fallback::AnyWord => false,
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::InvalidRegex { reason } => write!(
                f,
                "the pattern is no regular expression ({reason}): it was searched for literally"
            ),
            Fallback::NoWords => {
                f.write_str("the pattern has no word: it was searched for literally")
            }
            Fallback::AllWords => {
                f.write_str("nothing has the exact phrase: all of its words were searched for")
            }
            Fallback::AnyWord => {
                f.write_str("nothing has all words of the pattern: any of them was searched for")
            }
            Fallback::LongPattern { chars } => write!(
                f,
                "the pattern has {chars} characters: any word of its first {MAX_PATTERN_CHARS} was searched for"
            ),
        }
    }
}
