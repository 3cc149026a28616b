//! How much summaries may cost, and what is asked of those that leave out lines.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::Request;
use crate::label::Label;

/// Name of the pass that leaves out lines of summaries, and of its jobs.
pub const DROP: Label = Label::from_static("drop");

/// Name and version of the rule by which summaries without some of their lines keep facts. It is in their recipe.
pub const DROP_RULE: &str = "drop-lines@1";

/// How much the summaries of a view may cost together, as contexts render them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DropPolicy {
    /// Largest cost that needs no job, in tokens. Default 20,000.
    pub max_tokens: u64,
    /// Cost that jobs aim at, in tokens; more than `max_tokens` counts as that. Default 10,000. The further it
    /// is below `max_tokens`, the more seldom lines are chosen.
    pub target_tokens: u64,
}

impl Default for DropPolicy {
    fn default() -> Self {
        Self {
            max_tokens: 20_000,
            target_tokens: 10_000,
        }
    }
}

impl fmt::Display for DropPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max={} target={}", self.max_tokens, self.target_tokens)
    }
}

/// A request to leave out lines until the text costs about `target` tokens, and at most `most`.
pub(super) fn request(target: u64, most: u64) -> Request {
    Request {
        target_tokens: target,
        max_tokens: most,
        details: Some(DROP_RULE.to_owned()),
        drop_lines: true,
        ..Request::default()
    }
}
