//! Blocks. A block is the compacted form of one loop: a run of the agent's loop, with one prompt and the turns up to
//! its answer. A context shows the block instead of the loop's messages.

use std::fmt;
use std::ops::Range;

use memory_model::{Message, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A range of turns of one loop (a run of the agent, from a prompt to its answer). Both ends are inclusive. The first
/// turn of the loop has the index 0.
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

    /// Returns the range as half-open range of turn indices: `start_turn..end_turn + 1`.
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

/// Turns of a loop (a run of the agent) that a context does not show, with the number and cost of their messages. The
/// loop itself keeps these messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Id of the loop (run of the agent) that contains the turns. Empty for a list of messages without loops.
    pub loop_id: String,
    /// Range of the turns that are not shown.
    pub turns: TurnRange,
    /// Number of messages in these turns, including notes (log entries that are never sent to a model).
    pub messages: usize,
    /// Cost of these messages, in tokens.
    pub tokens: u64,
}

impl fmt::Display for Omission {
    /// Writes a text such as `turns 9-14 of loop s1.2: 12 messages, 4120 tokens`.
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

/// A part of a block: a range of turns, and the messages that a context shows instead of the turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedSection {
    /// Range of the turns that the messages replace.
    pub range: TurnRange,
    /// Messages that a context shows instead of the turns.
    pub messages: Vec<Message>,
    /// Turns of the range that the messages do not cover. `None` if the messages cover all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omission>,
}

/// Compacted form of one loop: a run of the agent's loop, with one prompt and the turns up to its answer. A context
/// shows the block instead of the loop's messages, which the loop keeps.
///
/// The block of a session's last loop has up to three sections. The block of an older loop has only
/// [`keep_compacted`](Self::keep_compacted), which covers all turns of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionBlock {
    /// First turns of the run, whose messages are shown unchanged, also if the summary covers them. `None` in the block
    /// of an older run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_first: Option<TurnRange>,
    /// Summary of the turns between the other two sections. In the block of an older run of the agent, a summary of all
    /// turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_compacted: Option<CompactedSection>,
    /// Last turns of the run, with shortened tool output. `None` in the block of an older run.
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
    /// Number of messages in the run of the agent when the block was made. Later messages are shown unchanged. `None`
    /// if the number is not known: then all messages after the last turn of the block are shown unchanged.
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
