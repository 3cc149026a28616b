//! Findings of a verification.

use std::fmt;

use serde::Serialize;

/// Kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// An entry of the log is missing.
    EntryMissing,
    /// An entry is at another entry's position, or is there twice.
    EntryMisplaced,
    /// An entry cannot be read.
    EntryUnreadable,
    /// An entry was changed: its hash does not match its content.
    EntryChanged,
    /// The chain over a log's hashes does not match the log.
    ChainBroken,
    /// An entry is not found by its external id.
    ExternalIdWrong,
    /// A conversation's segments or family do not match its origin, or a member of a family is missing or has another
    /// key.
    FamilyWrong,
    /// A conversation's head row was changed: its hash differs.
    ConversationChanged,
    /// A view that was published is missing.
    ViewMissing,
    /// A token figure differs from that of the conversation's estimator.
    EstimatorMixed,
    /// A sum of token figures is wrong.
    SumWrong,
    /// A view's spans do not cover every position exactly once.
    SpansOverlap,
    /// A view's spans differ from the result of its publications.
    ViewDiffers,
    /// The history of publications was changed or does not follow the rules.
    HistoryChanged,
    /// A view shows a summary that is missing or covers another range.
    SpanWrong,
    /// A summary was changed after it was stored.
    SummaryChanged,
    /// A summary's sources were changed after it was made.
    SourceChanged,
    /// A summary's children do not tile its range.
    ChildRangeWrong,
    /// A summary is not deeper than its children.
    Cycle,
    /// A summary's child or source is missing from the conversation, or belongs to another.
    ForeignLineage,
    /// The database's own structure is damaged: pages, indices, keys, triggers.
    Database,
    /// The search index does not match the messages and summaries, or a vector does not match its message.
    SearchIndex,
    /// Any other contradiction.
    Other,
}

/// A contradiction in the stored data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The kind.
    pub kind: ViolationKind,
    /// Message that names the object.
    pub message: String,
}

impl Violation {
    /// Creates a violation. `message` names the object.
    pub fn new(kind: ViolationKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of log entries read.
    pub messages: u64,
    /// Number of them that are notes.
    pub notes: u64,
    /// Number of summaries checked.
    pub summaries: u64,
    /// Number of views replayed.
    pub views: u64,
    /// The contradictions found; empty if the data is sound.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether there are no violations.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn add(&mut self, kind: ViolationKind, message: impl Into<String>) {
        self.violations.push(Violation::new(kind, message));
    }
}
