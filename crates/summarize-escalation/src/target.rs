//! Target and maximum length of a summary.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Rule for the target length of a summary: a fraction of the source's cost, but at least a minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRule {
    /// Number by which the cost of the source is divided. The quotient is rounded down.
    pub divide_by: u64,
    /// Minimum target length, in tokens.
    pub at_least: u64,
}

impl TargetRule {
    /// Default rule for summaries of messages: a third of the source, at least 10 tokens.
    pub const LEAF: Self = Self {
        divide_by: 3,
        at_least: 10,
    };
    /// Default rule for summaries of summaries: half of the source, at least 10 tokens.
    pub const CONDENSED: Self = Self {
        divide_by: 2,
        at_least: 10,
    };

    /// Returns the target length for a source of `source_tokens` tokens, in tokens.
    pub fn target(&self, source_tokens: u64) -> u64 {
        let share = source_tokens.checked_div(self.divide_by);
        share.unwrap_or(source_tokens).max(self.at_least)
    }
}

impl fmt::Display for TargetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1/{}>={}", self.divide_by, self.at_least)
    }
}

/// Factor that gives the maximum length of a summary: its target length × `numerator` / `denominator`, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Number by which the target length is multiplied.
    pub numerator: u64,
    /// Number by which the product is divided; not 0.
    pub denominator: u64,
}

impl Tolerance {
    /// The default tolerance: a summary may cost 150 percent of its target length.
    pub const DEFAULT: Self = Self {
        numerator: 3,
        denominator: 2,
    };

    /// No tolerance: a summary must not cost more than its target length.
    pub const NONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// Returns the maximum cost of a summary with this target length, in tokens.
    pub fn limit(&self, target: u64) -> u64 {
        let wide = u128::from(target) * u128::from(self.numerator);
        let limit = wide.checked_div(u128::from(self.denominator)).unwrap_or(0);
        u64::try_from(limit).unwrap_or(u64::MAX)
    }
}
