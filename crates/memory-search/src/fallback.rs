//! Replacements for requested searches that are impossible or have no hits.

use std::fmt;

/// Maximum length of a search pattern, in characters. The limit bounds the time of a search: a question of a million
/// words would keep a server busy for a minute.
pub const MAX_PATTERN_CHARS: usize = 10_000;

/// Search that was made in place of the requested search, because that search was impossible or had no hits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The pattern is not a valid regular expression. The search looked for the text of the pattern literally.
    InvalidRegex {
        /// Error message of the regular expression parser, in one line.
        reason: String,
    },
    /// The pattern contains no word, only characters such as punctuation. The search looked for these characters
    /// literally.
    NoWords,
    /// No text contains the exact phrase. The search looked for texts with all words of the phrase, in any order.
    AllWords,
    /// No text contains all words of the pattern. The search ranked texts with at least one of the words.
    AnyWord,
    /// The pattern is longer than [`MAX_PATTERN_CHARS`]. The search used only the first characters, up to this limit,
    /// and ranked texts with at least one word of them.
    LongPattern {
        /// Length of the whole pattern, in characters.
        chars: usize,
    },
}

impl Fallback {
    /// Returns `true` if the pattern caused the replacement: an invalid regular expression, a pattern without words, or
    /// a pattern that is too long. Returns `false` if the requested search had no hits.
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
