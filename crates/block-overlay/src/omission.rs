//! Omissions: what a context does not show, counted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::session::LoopRun;
use crate::turn_range::TurnRange;

/// Reason for which turns are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OmissionReason {
    /// Their lines did not fit into the tokens for a summary.
    SummaryBudget,
    /// The context would have cost more than it may.
    ContextBudget,
    /// They were too long for the model that digested the others.
    TooLong,
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
    /// Why they are left out.
    pub reason: OmissionReason,
}

impl fmt::Display for Omission {
    /// Such as `turns 9-14 of loop s1.2: 12 messages, 4120 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            loop_id,
            turns,
            messages,
            tokens,
            ..
        } = self;
        write!(
            f,
            "{turns} of loop {loop_id}: {messages} messages, {tokens} tokens"
        )
    }
}

/// What is left out before the first turn that is shown, as far as the text in its place names it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// The text of the only part.
    only: String,
    first_loop: String,
    last_loop: String,
    parts: usize,
    messages: usize,
}

impl Tally {
    /// Counts from the loops out of scope.
    pub(crate) fn new(older: Option<&LoopRun>) -> Self {
        older.map_or_else(Self::default, |older| Self {
            only: older.to_string(),
            first_loop: older.first_loop_id.clone(),
            last_loop: older.last_loop_id.clone(),
            parts: 1,
            messages: older.messages,
        })
    }

    pub(crate) fn push(&mut self, omission: &Omission) {
        if self.parts == 0 {
            self.only = omission.to_string();
            self.first_loop.clone_from(&omission.loop_id);
        }
        self.last_loop.clone_from(&omission.loop_id);
        self.parts += 1;
        self.messages += omission.messages;
    }

    /// Text that names where it begins and ends and counts all; `None` when nothing is left out.
    pub(crate) fn text(&self) -> Option<String> {
        let Self {
            only,
            first_loop,
            last_loop,
            parts,
            messages,
        } = self;
        match parts {
            0 => None,
            1 => Some(format!("[… left out: {only} …]")),
            _ if first_loop == last_loop => Some(format!(
                "[… left out: {parts} parts of loop {first_loop}, {messages} messages …]"
            )),
            _ => Some(format!(
                "[… left out: from loop {first_loop} to loop {last_loop}, {messages} messages …]"
            )),
        }
    }
}

/// The text in the place of one omission.
pub(crate) fn marker(omission: &Omission) -> String {
    format!("[… left out: {omission} …]")
}
