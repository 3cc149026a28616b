//! Target and maximum length of a summary.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Target length of a summary: a share of its source, but not below a minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetRule {
    /// Divisor of the source's tokens; the quotient is rounded down.
    pub divide_by: u64,
    /// Smallest target, in tokens.
    pub at_least: u64,
}

impl TargetRule {
    /// Default for a summary of messages: a third, at least 10.
    pub const LEAF: Self = Self {
        divide_by: 3,
        at_least: 10,
    };
    /// Default for a summary of summaries: half, at least 10.
    pub const CONDENSED: Self = Self {
        divide_by: 2,
        at_least: 10,
    };

    /// Returns the target for a source of `source_tokens` tokens.
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

/// Largest accepted length of a summary: `target × numerator / denominator` tokens, rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Factor of the target.
    pub numerator: u64,
    /// Divisor of the product; not 0.
    pub denominator: u64,
}

impl Tolerance {
    /// The default: 150 percent of the target.
    pub const DEFAULT: Self = Self {
        numerator: 3,
        denominator: 2,
    };

    /// None: the target is a budget, which no summary exceeds.
    pub const NONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// Returns the largest accepted cost for a target, in tokens, inclusive.
    pub fn limit(&self, target: u64) -> u64 {
        let wide = u128::from(target) * u128::from(self.numerator);
        let limit = wide.checked_div(u128::from(self.denominator)).unwrap_or(0);
        u64::try_from(limit).unwrap_or(u64::MAX)
    }
}
