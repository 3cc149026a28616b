//! How much the summaries of a view may cost together.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much the summaries of a view may cost together, as contexts render them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DropPolicy {
    /// Largest cost that needs no job, in tokens. 20,000, as Operator-Use's.
    pub max_tokens: u64,
    /// Cost that jobs aim at, in tokens; more than `max_tokens` counts as that. 10,000, as Operator-Use's. The further it
    /// is below `max_tokens`, the more seldom lines are chosen.
    pub target_tokens: u64,
}

impl Default for DropPolicy {
    fn default() -> Self {
        Self::operator_use()
    }
}

impl DropPolicy {
    /// Returns the preset of Operator-Use's observations: more than 20,000 tokens are brought down to 10,000. Its code asks
    /// a model from 10,000 tokens on, and never looks at its maximum.
    pub fn operator_use() -> Self {
        Self {
            max_tokens: 20_000,
            target_tokens: 10_000,
        }
    }

    /// Sets the largest cost that needs no job, in tokens.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Sets the cost that jobs aim at, in tokens.
    pub fn with_target_tokens(mut self, tokens: u64) -> Self {
        self.target_tokens = tokens;
        self
    }
}

impl fmt::Display for DropPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max={} target={}", self.max_tokens, self.target_tokens)
    }
}
