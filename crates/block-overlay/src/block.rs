//! Blocks: overlays that a context shows instead of a loop's messages.

use std::fmt;
use std::ops::Range;

use memory_model::{Message, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A range of turns of one loop, both ends inclusive. Turns are counted from 0 in the order of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnRange {
    /// Index of the first turn of the range.
    #[serde(rename = "startTurn", alias = "start_turn")]
    pub start_turn: u32,
    /// Index of the last turn of the range, inclusive.
    #[serde(rename = "endTurn", alias = "end_turn")]
    pub end_turn: u32,
}

impl TurnRange {
    /// Converts a half-open range of turn indices: the result ends at turn `turns.end − 1`. Returns `None` if `turns`
    /// is empty.
    pub fn from_indices(turns: Range<usize>) -> Option<Self> {
        let index = |turn: usize| u32::try_from(turn).ok();
        let (start_turn, end_turn) = (index(turns.start)?, index(turns.end.checked_sub(1)?)?);
        (start_turn <= end_turn).then_some(Self {
            start_turn,
            end_turn,
        })
    }

    /// Returns the range as half-open range of turn indices.
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

/// Turns of a loop that a context leaves out. The loop itself still holds their messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Id of the loop that holds the turns.
    pub loop_id: String,
    /// Range of the turns that are left out.
    pub turns: TurnRange,
    /// Number of messages in the turns, including notes.
    pub messages: usize,
    /// Cost of the messages that are left out, in tokens.
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

/// A range of turns with the messages that a context shows in their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedSection {
    /// Range of the turns that the section replaces.
    pub range: TurnRange,
    /// Messages that a context shows in place of the turns.
    pub messages: Vec<Message>,
    /// Turns of the range that no message of the section covers; `None` if the messages cover them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omission>,
}

/// Compacted form of one loop, for contexts to show. The loop itself keeps its original messages.
///
/// The block of a chain's last loop has up to three sections. The block of an older loop has only
/// [`keep_compacted`](Self::keep_compacted), which covers all of its turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionBlock {
    /// Turns at the beginning of the loop that are shown with their original messages; `None` in an older loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<TurnRange>,
    /// Summary of the turns between the other two sections; in an older loop, of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_compacted: Option<CompactedSection>,
    /// Turns at the end of the loop, with shortened tool output; `None` in an older loop.
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
    /// Number of messages that the loop had when the block was made. Later messages are shown unchanged. If it is
    /// `None`, all messages after the last turn of the block are shown unchanged.
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
