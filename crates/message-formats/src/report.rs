//! The report on the reading of a source.

use std::collections::BTreeMap;

/// Maximum number of warnings that a report keeps.
const MAX_WARNINGS: usize = 100;

/// Counts of the records that were read, and of the records that did not become messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Number of records in the source. For formats of lines it is the number of lines that are not empty.
    pub lines: u64,
    /// Number of records that did not become messages, by kind.
    ///
    /// The formats of lines count a product's noise under its type (`progress`, `file-history-snapshot`,
    /// `queue-operation`). They also count these kinds:
    ///
    /// - `invalid_json`, `invalid_utf8`, `too_long` and `not_an_object`
    /// - `incomplete`: a last line that is still being written
    /// - `no_session`: lines of a source that does not name its session yet
    /// - `unknown_role`: a plain line with a missing or unknown role, which a note keeps
    pub skipped: BTreeMap<String, u64>,
    /// The first 100 warnings. Each is about a record that did not become a message and may be part of a conversation.
    pub warnings: Vec<Warning>,
    /// Number of records that did not become messages and may be part of a conversation.
    lost: u64,
}

impl Report {
    /// Creates an empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a record that is known not to be part of a conversation.
    pub fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// Counts a record that may be part of a conversation, without a warning.
    pub fn lose(&mut self, kind: &str) {
        self.skip(kind);
        self.lost += 1;
    }

    /// Counts a record that may still become part of the conversation: only later records decide.
    ///
    /// The warning has the kind `reason` and the record's line, counted from 1.
    pub fn await_more(&mut self, kind: &str, reason: &str, line: u64) {
        self.skip(kind);
        self.name(reason, line);
    }

    /// Counts a record that may be part of a conversation, and warns about its line, counted from 1.
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

    /// Returns whether records that may be part of a conversation did not become messages.
    #[must_use]
    pub fn lost_any(&self) -> bool {
        self.lost > 0
    }
}

/// A warning about a record that did not become a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Line of the record in the source, counted from 1.
    pub line: u64,
    /// Kind under which [`Report::skipped`] counts the record.
    ///
    /// The kind `queued` is an exception: a user typed these words while the program was busy, and no line says yet
    /// whether they were sent.
    pub kind: String,
}
