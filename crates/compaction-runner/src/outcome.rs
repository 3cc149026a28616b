//! The outcome of a compaction, and the size of its view.

use std::time::Duration;

use compaction_plan::{Label, LabelCounts, StopReason};
use memory_model::SummaryId;
use memory_store::Snapshot;
use serde::Serialize;

use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Outcome of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Size of the view before.
    pub before: Measure,
    /// Size of the view afterwards.
    pub after: Measure,
    /// Number of published jobs, by the planner's label.
    pub published: LabelCounts,
    /// Number of messages that the view showed unchanged before and no longer does.
    pub messages_compacted: u64,
    /// Number of calls of the summarizer, including failed and cancelled ones. Extracts that the ladder makes by itself
    /// do not count.
    pub calls: u64,
    /// Ids of the published summaries, in order.
    pub summaries: Vec<SummaryId>,
    /// Number of published summaries without a model.
    pub provisional: u64,
    /// Error of the last failed job.
    pub failure: Option<String>,
    /// The planner's name for the kind of the last failed job.
    pub failed_kind: Option<Label>,
    /// Last error of the summarizer, even if a summary was made without it.
    pub summarizer_error: Option<String>,
    /// Number of summaries that the model did not write, with causes. Summaries that were prepared and not published
    /// also count.
    pub model: ModelReport,
    /// Owner of the last job that this run skipped because it was held.
    pub held: Option<LeaseHolder>,
    /// Reason for the end of the run.
    pub stop_reason: StopReason,
    /// Duration by the compaction's clock.
    #[serde(skip)]
    pub elapsed: Duration,
    /// State of the view with the size `after`.
    #[serde(skip)]
    pub snapshot: Snapshot,
}

impl Outcome {
    /// Combines the outcomes of two consecutive runs: the publishes of both, with the stop reason of the later one.
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
    /// Number of log entries.
    pub messages: u64,
    /// Number of spans.
    pub spans: u64,
    /// Cost of the view, in tokens.
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
