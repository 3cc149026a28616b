#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod extract;
mod fixtures;
mod laws;
mod numbered;
mod prose;
mod state;
mod strategies;

use memory_model::{Hash, LogEntry, Message, Seq};
use token_estimate::TokenEstimator;

/// Log entries of the messages from position 1 on, each with the cost of its text.
fn log(messages: Vec<Message>, estimator: &dyn TokenEstimator) -> Vec<LogEntry> {
    let entry = |(message, seq): (Message, u32)| {
        let tokens = estimator.text(&message.text());
        LogEntry {
            seq: Seq(seq),
            message,
            tokens,
            running: 0,
            hash: Hash::ZERO,
        }
    };
    messages.into_iter().zip(1..).map(entry).collect()
}
