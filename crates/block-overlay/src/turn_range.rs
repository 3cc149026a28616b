//! Ranges of turns.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Turns of a loop, from the first to the last, both inclusive, counted from 0 by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnRange {
    /// First turn.
    #[serde(rename = "startTurn", alias = "start_turn")]
    pub start_turn: u32,
    /// Last turn.
    #[serde(rename = "endTurn", alias = "end_turn")]
    pub end_turn: u32,
}

impl TurnRange {
    /// Returns the range; `None` when it would end before it begins.
    pub fn new(start_turn: u32, end_turn: u32) -> Option<Self> {
        (start_turn <= end_turn).then_some(Self {
            start_turn,
            end_turn,
        })
    }

    /// Returns the range of turns `turns.start` to `turns.end − 1`; `None` when there are none.
    pub(crate) fn from_indices(turns: std::ops::Range<usize>) -> Option<Self> {
        let index = |turn: usize| u32::try_from(turn).ok();
        Self::new(index(turns.start)?, index(turns.end.checked_sub(1)?)?)
    }

    /// The turns as indices, the end exclusive.
    pub fn indices(&self) -> std::ops::Range<usize> {
        self.start_turn as usize..(self.end_turn as usize).saturating_add(1)
    }

    /// Number of turns.
    pub fn len(&self) -> usize {
        self.indices().len()
    }

    /// Whether it has no turns; only a range that was read from elsewhere may have none.
    pub fn is_empty(&self) -> bool {
        self.indices().is_empty()
    }

    /// Whether the turn is in the range.
    pub fn contains(&self, turn: usize) -> bool {
        self.indices().contains(&turn)
    }
}

impl fmt::Display for TurnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.start_turn == self.end_turn {
            true => write!(f, "turn {}", self.start_turn),
            false => write!(f, "turns {}-{}", self.start_turn, self.end_turn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inclusive() {
        let range = TurnRange::new(2, 14).unwrap();
        assert_eq!((range.len(), range.indices()), (13, 2..15));
        assert!(range.contains(14) && !range.contains(15) && !range.is_empty());
        assert_eq!(TurnRange::new(3, 2), None);
        assert_eq!(TurnRange::from_indices(4..4), None);
        assert_eq!(TurnRange::from_indices(4..5).unwrap().to_string(), "turn 4");
        assert_eq!(range.to_string(), "turns 2-14");
    }
}
