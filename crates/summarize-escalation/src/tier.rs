//! The tiers of a ladder.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One method of summarizing that a [`Ladder`](crate::Ladder) tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tier {
    /// The summarizer writes a summary in the normal style.
    Normal,
    /// The summarizer writes a summary in the aggressive style.
    Aggressive,
    /// The most important sentences are extracted, without a model.
    Extractive,
    /// The last refused summary that was too long is cut to the target length. Without one, the source itself is cut.
    Cut,
}

impl Tier {
    /// Returns the name of the tier that a summary records, such as `normal`.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Normal => "normal",
            Tier::Aggressive => "aggressive",
            Tier::Extractive => "extractive",
            Tier::Cut => "cut",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
