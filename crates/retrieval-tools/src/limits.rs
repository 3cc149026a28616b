//! Limits that the host sets for the answers of all calls.

use serde::{Deserialize, Serialize};

use crate::grep::DEFAULT_LIMIT;

/// Limits on the answers of the tools, set by the host application. They apply even if the arguments of a call ask for
/// more. An answer that a limit shortened is incomplete and has a cursor for the rest. Only answers of `describe`, and
/// answers of `recall` for a position, have no cursor.
///
/// An answer becomes a part of the model's context and takes room there. The default values suit models with a context
/// window of at least 128,000 tokens. For a smaller window, use [`for_window`](Self::for_window).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrievalLimits {
    /// Maximum number of hits in an answer of `grep`, and of tool calls in an answer of `files`. Default 100. 0 counts
    /// as 1.
    pub hits: usize,
    /// Maximum number of tokens of content in an answer of `expand`. Default 20,000. 0 counts as 1.
    pub expand_tokens: u64,
    /// Maximum number of tokens in the text of an answer of `describe`. Default 20,000. The id of the summary and the
    /// fixed lines are always included.
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
    /// Returns settings without any limit. They suit an application that makes all calls itself.
    pub fn none() -> Self {
        Self {
            hits: usize::MAX,
            expand_tokens: u64::MAX,
            describe_tokens: u64::MAX,
            answer_tokens: u64::MAX,
        }
    }

    /// Returns the default limits for a model with a context window of `tokens` tokens. An answer then has content of
    /// at most about one eighth of the window. A hit of `grep` has up to 500 characters, which count as 150 tokens.
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

    /// Returns the number of hits for a call that requests `asked` hits. 0 requests the default number.
    pub(crate) fn hits(&self, asked: usize) -> usize {
        let asked = if asked == 0 { DEFAULT_LIMIT } else { asked };
        asked.min(self.hits.max(1))
    }

    /// Returns the lower value of each limit.
    pub(crate) fn within(&self, other: &Self) -> Self {
        Self {
            hits: self.hits.min(other.hits),
            expand_tokens: self.expand_tokens.min(other.expand_tokens),
            describe_tokens: self.describe_tokens.min(other.describe_tokens),
            answer_tokens: self.answer_tokens.min(other.answer_tokens),
        }
    }
}
