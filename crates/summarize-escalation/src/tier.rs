//! The tiers of a ladder.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One tier of a [`Ladder`](crate::Ladder).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tier {
    /// Asks the summarizer in the normal style.
    Normal,
    /// Asks the summarizer in the aggressive style.
    Aggressive,
    /// Makes an extract, without a model.
    Extractive,
    /// Cuts the text of the tier before, or else the source itself.
    Cut,
}

impl Tier {
    /// Returns the tier's name, as a summary records it.
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
