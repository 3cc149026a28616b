//! Findings of a verification.

use std::fmt;

use serde::Serialize;

/// Kind of a contradiction in the stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// An entry of a log is missing.
    EntryMissing,
    /// An entry is at another entry's position, or is there twice.
    EntryMisplaced,
    /// An entry cannot be read.
    EntryUnreadable,
    /// An entry was changed: its hash does not match its content.
    EntryChanged,
    /// The chain hash of a log does not match the hashes of its entries.
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
    /// A cost in tokens differs from the one that the conversation's estimator counts.
    EstimatorMixed,
    /// A sum of costs in tokens is wrong.
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
    /// Any other contradiction in the stored data.
    Other,
}

/// A contradiction in the stored data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Kind of the contradiction.
    pub kind: ViolationKind,
    /// Message that describes the contradiction and names its object.
    pub message: String,
}

impl Violation {
    /// Creates a violation. `message` names the object of the contradiction.
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

/// Result of verifying stored data: counts, and the contradictions found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of log entries read.
    pub messages: u64,
    /// Number of the read entries that are notes.
    pub notes: u64,
    /// Number of summaries checked.
    pub summaries: u64,
    /// Number of views checked against their histories.
    pub views: u64,
    /// Contradictions found; empty if the data is sound.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Returns whether no contradiction was found.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn add(&mut self, kind: ViolationKind, message: impl Into<String>) {
        self.violations.push(Violation::new(kind, message));
    }
}
