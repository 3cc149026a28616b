//! Blocks: what a context shows in the place of a loop's messages.

use std::fmt;

use memory_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::omission::Omission;

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

/// Turns, and the messages that a context shows in their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedSection<M> {
    /// Turns that the section stands for.
    pub range: TurnRange,
    /// Messages in their place.
    pub messages: Vec<M>,
    /// Those of the turns that no message stands for, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omission>,
}

/// An overlay of one loop. The loop's own messages stay as they are beside it.
///
/// The newest loop has up to three sections. An older loop has only
/// [`keep_compacted`](Self::keep_compacted), over all of its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(serialize = "M: Serialize", deserialize = "M: Deserialize<'de>"))]
pub struct CompactionBlock<M> {
    /// Turns at the beginning whose original messages are shown; newest loop only.
    #[serde(default, alias = "keepFirst", skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<TurnRange>,
    /// Turns at the end, with shortened tool output; newest loop only.
    #[serde(default, alias = "keepRecent", skip_serializing_if = "Option::is_none")]
    pub keep_recent: Option<CompactedSection<M>>,
    /// Summary of the turns between, or of the whole of an older loop.
    #[serde(
        default,
        alias = "keepCompacted",
        skip_serializing_if = "Option::is_none"
    )]
    pub keep_compacted: Option<CompactedSection<M>>,
    /// Time at which the block was made.
    #[serde(rename = "createdAt", alias = "created_at", with = "crate::time")]
    pub created_at: Timestamp,
    /// Number of the loop's messages when the block was made: those behind it are shown as they are.
    /// `None` for a block of a program that does not record it; then all turns behind the block's last
    /// one are.
    #[serde(
        rename = "coveredMessages",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub covered_messages: Option<usize>,
}

impl<M> CompactionBlock<M> {
    /// Creates a block without sections.
    pub fn new(created_at: Timestamp) -> Self {
        Self {
            keep_first: None,
            keep_recent: None,
            keep_compacted: None,
            created_at,
            covered_messages: None,
        }
    }

    /// Whether it stands for all `turns` turns and all `messages` messages of a loop as an older loop's
    /// block does, with one summary and nothing else.
    pub fn is_whole(&self, turns: usize, messages: usize) -> bool {
        let covers = |section: &CompactedSection<M>| section.range.indices() == (0..turns);
        self.keep_first.is_none()
            && self.keep_recent.is_none()
            && self.keep_compacted.as_ref().is_some_and(covers)
            && self
                .covered_messages
                .is_none_or(|covered| covered == messages)
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
