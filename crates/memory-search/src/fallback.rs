//! Replacements for queries that could not be answered as they were.

use std::fmt;

/// Maximum length of a pattern, in characters. It bounds the cost of a search: a question of a million words would keep
/// a server busy for a minute.
pub const MAX_PATTERN_CHARS: usize = 10_000;

/// How an answer was found when the query could not be answered as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The pattern is not a regular expression: it was searched for literally.
    InvalidRegex {
        /// The reason, in one line.
        reason: String,
    },
    /// The pattern has no word: it was searched for literally.
    NoWords,
    /// No text has the exact phrase: texts with all of its words were searched.
    AllWords,
    /// No text has all words of the pattern: texts with any of them were ranked.
    AnyWord,
    /// The pattern is too long: texts with any word of its beginning were ranked.
    LongPattern {
        /// Number of its characters.
        chars: usize,
    },
}

impl Fallback {
    /// Whether the pattern itself could not be read as asked. This does not depend on the matches.
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
