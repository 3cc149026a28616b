//! Blocks: overlays that a context shows instead of a loop's messages.

use std::fmt;
use std::ops::Range;

use memory_model::{Message, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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
    /// Returns the range of turns `turns.start` to `turns.end − 1`; `None` if it is empty.
    pub fn from_indices(turns: Range<usize>) -> Option<Self> {
        let index = |turn: usize| u32::try_from(turn).ok();
        let (start_turn, end_turn) = (index(turns.start)?, index(turns.end.checked_sub(1)?)?);
        (start_turn <= end_turn).then_some(Self {
            start_turn,
            end_turn,
        })
    }

    /// The turns as indices, the end exclusive.
    pub fn indices(&self) -> Range<usize> {
        self.start_turn as usize..(self.end_turn as usize).saturating_add(1)
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

/// Turns of a loop that a context does not show. The loop still has their messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Id of the loop.
    pub loop_id: String,
    /// The turns.
    pub turns: TurnRange,
    /// Number of messages, notes included.
    pub messages: usize,
    /// Cost of the messages in tokens.
    pub tokens: u64,
}

impl fmt::Display for Omission {
    /// Such as `turns 9-14 of loop s1.2: 12 messages, 4120 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            loop_id,
            turns,
            messages,
            tokens,
        } = self;
        write!(f, "{turns}")?;
        if !loop_id.is_empty() {
            write!(f, " of loop {loop_id}")?;
        }
        write!(f, ": {messages} messages, {tokens} tokens")
    }
}

/// Turns, and the messages that a context shows instead of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedSection {
    /// Turns that the section replaces.
    pub range: TurnRange,
    /// Messages that replace the turns.
    pub messages: Vec<Message>,
    /// Turns of the range that none of the messages covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omission>,
}

/// An overlay of one loop. The loop keeps its own messages.
///
/// The last loop of a chain has up to three sections. An older loop has only [`keep_compacted`](Self::keep_compacted),
/// over all of its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionBlock {
    /// Turns at the beginning with their original messages; last loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<TurnRange>,
    /// Summary of the turns between, or of the whole of an older loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_compacted: Option<CompactedSection>,
    /// Turns at the end, with shortened tool output; last loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_recent: Option<CompactedSection>,
    /// Time at which the block was made.
    #[serde(
        rename = "createdAt",
        alias = "created_at",
        serialize_with = "write_time",
        deserialize_with = "read_time"
    )]
    pub created_at: Timestamp,
    /// Number of the loop's messages when the block was made; later ones are shown unchanged. With `None`, only the
    /// turns after the block's last one are shown unchanged.
    #[serde(
        rename = "coveredMessages",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub covered_messages: Option<usize>,
}

fn write_time<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(time)
}

fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(from)?;
    Timestamp::parse(&text).ok_or_else(|| {
        de::Error::custom(format!(
            "{text:?} is not a time such as 2026-02-08T09:16:52Z"
        ))
    })
}
