//! What a compaction did, and the size of its view.

use std::time::Duration;

use compaction_plan::{Label, LabelCounts, StopReason};
use memory_model::SummaryId;
use memory_store::Snapshot;
use serde::Serialize;

use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The view before.
    pub before: Measure,
    /// The view after.
    pub after: Measure,
    /// Number of published jobs, by the planner's label.
    pub published: LabelCounts,
    /// Number of messages that the view showed as they are and does not any more.
    pub messages_compacted: u64,
    /// Calls of the summarizer, failed and cancelled ones too. A ladder's own extracts do not count.
    pub calls: u64,
    /// The published summaries, in order.
    pub summaries: Vec<SummaryId>,
    /// Number of them that no model wrote.
    pub provisional: u64,
    /// Why the last failed job failed.
    pub failure: Option<String>,
    /// The planner's name for the kind of job that failed last.
    pub failed_kind: Option<Label>,
    /// What the summarizer said when it last failed, be it that a summary was made without it.
    pub summarizer_error: Option<String>,
    /// How many of the summaries the model did not write, and why. Summaries that were prepared
    /// and not published count too.
    pub model: ModelReport,
    /// Who was at work on a job that this run therefore passed over, last.
    pub held: Option<LeaseHolder>,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// How long it took, by the clock of the compaction.
    #[serde(skip)]
    pub elapsed: Duration,
    /// State of the view that `after` is the size of.
    #[serde(skip)]
    pub snapshot: Snapshot,
}

impl Outcome {
    /// The outcome of two runs, one directly after the other: what both published, and why the later one stopped.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        self.published.merge(&later.published);
        self.model.merge(&later.model);
        let mut summaries = self.summaries;
        summaries.extend(later.summaries);
        Self {
            before: self.before,
            published: self.published,
            messages_compacted: self.messages_compacted + later.messages_compacted,
            calls: self.calls + later.calls,
            summaries,
            provisional: self.provisional + later.provisional,
            failure: later.failure.or(self.failure),
            failed_kind: later.failed_kind.or(self.failed_kind),
            summarizer_error: later.summarizer_error.or(self.summarizer_error),
            model: self.model,
            held: later.held.or(self.held),
            after: later.after,
            stop_reason: later.stop_reason,
            elapsed: self.elapsed.saturating_add(later.elapsed),
            snapshot: later.snapshot,
        }
    }
}

/// The size of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Measure {
    /// Log entries.
    pub messages: u64,
    /// Spans.
    pub spans: u64,
    /// What the view costs, in tokens.
    pub tokens: u64,
}

impl From<&Snapshot> for Measure {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            messages: u64::from(snapshot.head.0),
            spans: snapshot.spans,
            tokens: snapshot.tokens(),
        }
    }
}
