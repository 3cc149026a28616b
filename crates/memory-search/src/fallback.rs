//! What a search did instead of what was asked.

use std::fmt;

/// How an answer was found when the query could not be answered as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The pattern is no regular expression: it was searched for literally.
    InvalidRegex {
        /// Why it is none, in one line.
        reason: String,
    },
    /// The pattern has no word: it was searched for literally.
    NoWords,
    /// Nothing has the exact phrase: texts with all of its words were searched.
    AllWords,
    /// Nothing has all words of the pattern: texts with any of them were ranked.
    AnyWord,
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
        }
    }
}
