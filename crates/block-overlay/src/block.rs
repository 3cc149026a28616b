//! Blocks: what a context shows in the place of a loop's messages.

use memory_model::Timestamp;
use serde::{Deserialize, Serialize};

use crate::omission::Omission;
use crate::turn_range::TurnRange;

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
