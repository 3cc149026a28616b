//! Contradictions that a verification finds.

use std::fmt;

use serde::Serialize;

/// Kind of a contradiction in the stored data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// An entry of a log is missing.
    EntryMissing,
    /// An entry is stored at another entry's position, or is stored twice.
    EntryMisplaced,
    /// An entry cannot be read.
    EntryUnreadable,
    /// An entry was changed: its hash does not match its content.
    EntryChanged,
    /// The chain hash of a log does not match the hashes of its entries.
    ChainBroken,
    /// The lookup by external id does not find the entry.
    ExternalIdWrong,
    /// A conversation's log segments or family do not match its origin, or a member of the family is missing or has
    /// another key.
    FamilyWrong,
    /// The stored record of a conversation was changed: its hash does not match its content.
    ConversationChanged,
    /// A view that was published at least once is missing.
    ViewMissing,
    /// A cost in tokens differs from the cost that the conversation's estimator counts.
    EstimatorMixed,
    /// A stored total in tokens is wrong: the cost of a log up to an entry, the cost of a summary's sources, or the
    /// tokens that a view saves.
    SumWrong,
    /// A view's spans overlap, or leave a position uncovered.
    SpansOverlap,
    /// A view's spans differ from the result of replaying its publications.
    ViewDiffers,
    /// The history of a view's publications was changed or is inconsistent.
    HistoryChanged,
    /// A view shows a summary that is missing or covers another range.
    SpanWrong,
    /// A summary was changed after it was stored.
    SummaryChanged,
    /// A summary's sources were changed after it was made.
    SourceChanged,
    /// The children of a summary do not cover exactly its range.
    ChildRangeWrong,
    /// The depth of a summary is not one more than that of its deepest child, so summaries may contain each other.
    Cycle,
    /// A child or source of a summary is missing from the conversation, or belongs to another conversation.
    ForeignLineage,
    /// The structure of the database itself is damaged: its pages, indices, foreign keys or triggers.
    Database,
    /// The search index does not match the messages and summaries, or a vector does not match its message.
    SearchIndex,
    /// A session is missing that a receipt, a certificate or a transcript names.
    SessionMissing,
    /// A log ends before the position that a receipt names.
    LogShortened,
    /// A log differs from the log that a receipt names.
    LogReplaced,
    /// An erasure is missing, so erased words may be back.
    ErasureMissing,
    /// A certificate is invalid, or names another view than the stored one.
    CertificateDiffers,
    /// Any other contradiction in the stored data.
    Other,
}

/// A contradiction in the stored data, found by a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Kind of the contradiction.
    pub kind: ViolationKind,
    /// Message that describes the contradiction and names the affected object.
    pub message: String,
}

impl Violation {
    /// Creates a violation. `message` describes the contradiction and names the affected object.
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

/// Result of verifying stored data: counts of the checked objects, and the contradictions found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of log entries read.
    pub messages: u64,
    /// Number of the log entries read that are notes. A note is kept in the log and never sent to a model.
    pub notes: u64,
    /// Number of summaries checked.
    pub summaries: u64,
    /// Number of views checked against their history of publications.
    pub views: u64,
    /// Contradictions found. Empty if the data is sound.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Returns whether the verification found no contradiction.
    pub fn is_ok(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn add(&mut self, kind: ViolationKind, message: impl Into<String>) {
        self.violations.push(Violation::new(kind, message));
    }
}
