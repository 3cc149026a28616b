//! Limits of the host for all calls.

use serde::{Deserialize, Serialize};

use crate::grep::DEFAULT_LIMIT;

/// Limits on the answers of the tools, set by the host. They apply even if the arguments of a call ask for more. An
/// answer that a limit shortened is incomplete and has a cursor.
///
/// An answer goes into the context of the next call and stays there for a while. The default suits
/// windows of 128,000 tokens and more; for a smaller one take [`for_window`](Self::for_window).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrievalLimits {
    /// Maximum number of hits in an answer of `grep`. Default 100; 0 counts as 1.
    pub hits: usize,
    /// Maximum number of tokens of content in an answer of `expand`. Default 20,000; 0 counts as 1.
    pub expand_tokens: u64,
    /// Maximum number of tokens in the text of an answer of `describe`. Default 20,000. The summary's id and the fixed
    /// lines are always included.
    pub describe_tokens: u64,
    /// Maximum number of tokens in the text of an answer of `grep` or `files`, and in the passages of an answer of
    /// `recall`. Default 8,000. At least one hit is always included, shortened if needed.
    pub answer_tokens: u64,
}

impl Default for RetrievalLimits {
    fn default() -> Self {
        Self {
            hits: 100,
            expand_tokens: 20_000,
            describe_tokens: 20_000,
            answer_tokens: 8_000,
        }
    }
}

impl RetrievalLimits {
    /// Returns settings without limits, for a host that is the only caller.
    pub fn none() -> Self {
        Self {
            hits: usize::MAX,
            expand_tokens: u64::MAX,
            describe_tokens: u64::MAX,
            answer_tokens: u64::MAX,
        }
    }

    /// Returns the default limits for a model with a window of `tokens` tokens: the content of an answer takes at most
    /// about an eighth of it. A hit of `grep` has up to 500 characters and counts as 150 tokens.
    pub fn for_window(tokens: u64) -> Self {
        let default = Self::default();
        let part = (tokens / 8).max(1);
        let hits = usize::try_from(part / 150).unwrap_or(usize::MAX);
        Self {
            hits: default.hits.min(hits.max(1)),
            expand_tokens: default.expand_tokens.min(part),
            describe_tokens: default.describe_tokens.min(part),
            answer_tokens: default.answer_tokens.min(part),
        }
    }

    /// The number of hits in an answer to a call that requests some; 0 requests the default.
    pub(crate) fn hits(&self, asked: usize) -> usize {
        let asked = if asked == 0 { DEFAULT_LIMIT } else { asked };
        asked.min(self.hits.max(1))
    }

    /// The lower of each pair of limits.
    pub(crate) fn within(&self, other: &Self) -> Self {
        Self {
            hits: self.hits.min(other.hits),
            expand_tokens: self.expand_tokens.min(other.expand_tokens),
            describe_tokens: self.describe_tokens.min(other.describe_tokens),
            answer_tokens: self.answer_tokens.min(other.answer_tokens),
        }
    }
}
