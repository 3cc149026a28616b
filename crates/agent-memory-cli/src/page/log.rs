//! The columns of a log: a letter, a number of tokens and a time for each entry.

use agent_memory::model::{EntryKind, LogEntry};
use agent_memory::{Part, Role};
use serde::Serialize;

use super::requests::is_injected;

/// Columns with one value for each entry of the log, so that the page knows them before it reads the messages.
#[derive(Debug, Default, Serialize)]
pub(super) struct Log {
    /// One letter for each entry: see [`letter`].
    pub(super) letters: String,
    pub(super) tokens: Vec<u64>,
    /// Times in milliseconds since the Unix epoch; 0 if unknown.
    times: Vec<i64>,
}

impl Log {
    pub(super) fn push(&mut self, entry: &LogEntry) {
        self.letters.push(letter(entry));
        self.tokens.push(entry.tokens);
        self.times
            .push(entry.message.created_at.0.div_euclid(1_000));
    }

    /// Returns the cost of all entries, in tokens.
    pub(super) fn total(&self) -> u64 {
        let tokens = self.tokens.iter();
        tokens.fold(0, |sum: u64, one| sum.saturating_add(*one))
    }
}

/// Returns the letter of an entry: `n` for a note, `c` for calls, `t` for results, `r` for reasoning alone, `p` for a
/// user's message that a program wrote, and the first letter of the role otherwise.
fn letter(entry: &LogEntry) -> char {
    let message = &entry.message;
    let has = |kind: fn(&Part) -> bool| message.parts.iter().any(kind);
    if message.kind == EntryKind::Note {
        'n'
    } else if has(|part| matches!(part, Part::ToolCall { .. })) {
        'c'
    } else if has(|part| matches!(part, Part::ToolResult { .. })) {
        't'
    } else {
        match message.role {
            Role::User if is_injected(message) => 'p',
            Role::User => 'u',
            Role::System => 's',
            Role::Tool => 't',
            _ if has(|part| !matches!(part, Part::Reasoning { .. })) => 'a',
            _ => 'r',
        }
    }
}
