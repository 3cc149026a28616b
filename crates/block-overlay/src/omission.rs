//! Omissions: what a context does not show, counted.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::turn_range::TurnRange;

/// Reason for which turns are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OmissionReason {
    /// Their loop is older than the scope reaches.
    Scope,
    /// Their lines did not fit into the tokens for a summary.
    SummaryBudget,
    /// The context would have cost more than it may.
    ContextBudget,
    /// They were too long for the model that digested the others.
    TooLong,
}

/// Turns that a context does not show. The loop still has their messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    /// Id of the loop.
    pub loop_id: String,
    /// The turns; `None` for all turns of a loop that is not read because it is out of scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnRange>,
    /// Number of messages, notes included.
    pub messages: usize,
    /// Cost of the messages in tokens; `None` where the loop is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Why they are left out.
    pub reason: OmissionReason,
}

impl fmt::Display for Omission {
    /// Such as `turns 9-14 of loop s1.2: 12 messages, 4120 tokens`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.turns {
            Some(turns) => write!(f, "{turns} of loop {}", self.loop_id)?,
            None => write!(f, "loop {}", self.loop_id)?,
        }
        write!(f, ": {} messages", self.messages)?;
        match self.tokens {
            Some(tokens) => write!(f, ", {tokens} tokens"),
            None => Ok(()),
        }
    }
}

/// Omissions in a row, as far as the text in their place names them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    first: Option<Omission>,
    last_loop: String,
    parts: usize,
    messages: usize,
}

impl Tally {
    pub(crate) fn push(&mut self, omission: &Omission) {
        if self.first.is_none() {
            self.first = Some(omission.clone());
        }
        self.last_loop.clone_from(&omission.loop_id);
        self.parts += 1;
        self.messages += omission.messages;
    }

    /// Text that names the first and the last omission and counts all; `None` when there are none.
    pub(crate) fn text(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        if self.parts == 1 {
            return Some(format!("[… left out: {first} …]"));
        }
        let Self {
            last_loop,
            parts,
            messages,
            ..
        } = self;
        let from = &first.loop_id;
        Some(match from == last_loop {
            true => format!("[… left out: {parts} parts of loop {from}, {messages} messages …]"),
            false => format!(
                "[… left out: {parts} parts, from loop {from} to loop {last_loop}, {messages} \
                 messages …]"
            ),
        })
    }
}

/// The text in the place of one omission.
pub(crate) fn marker(omission: &Omission) -> String {
    format!("[… left out: {omission} …]")
}
