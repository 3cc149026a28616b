//! The report on the reading of a source.

use std::collections::BTreeMap;

/// Maximum number of warnings that a report keeps.
const MAX_WARNINGS: usize = 100;

/// Counts of what was read and of what did not become messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Number of records in the source: lines for formats of lines, empty ones left out.
    pub lines: u64,
    /// Number of records that did not become messages, by kind. The formats of lines count a
    /// product's noise under its type (`progress`, `file-history-snapshot`, `queue-operation`),
    /// and `invalid_json`, `invalid_utf8`, `too_long`, `not_an_object`, `incomplete` (a last line
    /// that is still being written), `no_session` (lines of a source that does not yet name its
    /// session) and `unknown_role` (a plain line whose role is missing or unknown; a note keeps
    /// it).
    pub skipped: BTreeMap<String, u64>,
    /// The first 100 records that may have been part of a conversation and did not become
    /// messages.
    pub warnings: Vec<Warning>,
    /// Number of records that may have been part of a conversation and did not become messages.
    lost: u64,
}

impl Report {
    /// Creates a report that counts nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a record that is known to be no part of a conversation.
    pub fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// Counts a record that may have been part of a conversation, without saying where it is.
    pub fn lose(&mut self, kind: &str) {
        self.skip(kind);
        self.lost += 1;
    }

    /// Counts a record of which only later ones say whether it is part of the conversation, and names its line, counted from 1,
    /// under `reason`.
    pub fn await_more(&mut self, kind: &str, reason: &str, line: u64) {
        self.skip(kind);
        self.name(reason, line);
    }

    /// Counts a record that may have been part of a conversation, and warns of its line, counted
    /// from 1.
    pub fn warn(&mut self, kind: &str, line: u64) {
        self.lose(kind);
        self.name(kind, line);
    }

    fn name(&mut self, kind: &str, line: u64) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning {
                line,
                kind: kind.to_owned(),
            });
        }
    }

    /// Returns whether records that may have been part of a conversation did not become messages.
    #[must_use]
    pub fn lost_any(&self) -> bool {
        self.lost > 0
    }
}

/// A record that did not become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Its line in the source, counted from 1.
    pub line: u64,
    /// The kind under which [`Report::skipped`] counts it, or `queued`: words that a user typed while the program was busy, and of
    /// which no line says yet whether they were sent.
    pub kind: String,
}
