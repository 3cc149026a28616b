//! The outcome of a compaction, and the size of its view.

use std::time::Duration;

use compaction_plan::{Label, LabelCounts, StopReason};
use memory_model::SummaryId;
use memory_store::Snapshot;
use serde::Serialize;

use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Outcome of a compaction: the published jobs, and the view before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Size of the view before the compaction.
    pub before: Measure,
    /// Size of the view after the compaction.
    pub after: Measure,
    /// Number of published jobs, by the label that the planner gives to each kind of job.
    pub published: LabelCounts,
    /// Number of messages that the view showed unchanged before the compaction and does not show unchanged after it.
    pub messages_compacted: u64,
    /// Number of calls of the summarizer, including failed and cancelled ones. Extracts that the ladder makes without
    /// the summarizer do not count.
    pub calls: u64,
    /// Ids of the published summaries, in the order of publishing.
    pub summaries: Vec<SummaryId>,
    /// Number of published summaries that were written without a model.
    pub provisional: u64,
    /// Text of the last failed job's error; `None` if no job failed.
    pub failure: Option<String>,
    /// Name that the planner gives to the kind of the last failed job; `None` if no job failed.
    pub failed_kind: Option<Label>,
    /// Text of the summarizer's last error; `None` if it did not fail. Set even if the summary was then written without
    /// the model.
    pub summarizer_error: Option<String>,
    /// Number of summaries that the model did not write, with the causes. Summaries that were prepared and not
    /// published are counted too.
    pub model: ModelReport,
    /// Owner that holds the lease on the last job that this run skipped for that reason; `None` if no job was held.
    pub held: Option<LeaseHolder>,
    /// Reason for which the run stopped.
    pub stop_reason: StopReason,
    /// Time that the run took, by the compaction's clock.
    #[serde(skip)]
    pub elapsed: Duration,
    /// State of the view at the end of the run. Its size is `after`.
    #[serde(skip)]
    pub snapshot: Snapshot,
}

impl Outcome {
    /// Combines this outcome with the outcome of a run that followed it. The result counts the published jobs of both
    /// runs and has the stop reason of the later one.
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

/// Size of a view: its entries, spans and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Measure {
    /// Number of entries in the log.
    pub messages: u64,
    /// Number of spans in the view.
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
