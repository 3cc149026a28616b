//! Omissions: what a context does not show, counted.

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// The text in the place of one omission.
pub(crate) fn marker(omission: &Omission) -> String {
    format!("[… left out: {omission} …]")
}
