//! The outcome of a compaction, and the size of its view.

use std::time::Duration;

use compaction_plan::{Label, LabelCounts, StopReason};
use memory_model::SummaryId;
use memory_store::Snapshot;
use serde::Serialize;

use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Outcome of a compaction: the changes of the view (such as new summaries), and its size before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Size of the view (the compacted log) before the compaction.
    pub before: Measure,
    /// Size of the view (the compacted log) after the compaction.
    pub after: Measure,
    /// Number of published changes of the view (the compacted log), such as new summaries, of each kind. The planner
    /// names the kinds.
    pub published: LabelCounts,
    /// Number of messages that the view showed unchanged before the compaction and does not show unchanged after it.
    pub messages_compacted: u64,
    /// Number of calls of the summarizer. Failed and cancelled calls count. Extracts of the ladder count as no call.
    pub calls: u64,
    /// Ids of the published summaries, in the order of publication.
    pub summaries: Vec<SummaryId>,
    /// Number of published summaries that were written without a model.
    pub provisional: u64,
    /// Error of the last change of the view (the compacted log) that failed, such as a summary that could not be
    /// written. `None` if none failed.
    pub failure: Option<String>,
    /// Kind of the last change of the view (the compacted log) that failed, as named by the planner. `None` if none
    /// failed.
    pub failed_kind: Option<Label>,
    /// Last error of the summarizer. `None` if the summarizer did not fail. Set even if the summary was then written
    /// without the model.
    pub summarizer_error: Option<String>,
    /// Number of requested summaries that the model did not write, with the causes. Summaries that were prepared and
    /// not published are counted too.
    pub model: ModelReport,
    /// Owner of the lease on the last summary that was skipped because another owner is writing it. `None` if no
    /// summary was skipped for this reason.
    pub held: Option<LeaseHolder>,
    /// Reason why the run stopped.
    pub stop_reason: StopReason,
    /// Duration of the run, by the compaction's clock.
    #[serde(skip)]
    pub elapsed: Duration,
    /// State of the view (the compacted log) at the end of the run. Its size is `after`.
    #[serde(skip)]
    pub snapshot: Snapshot,
}

impl Outcome {
    /// Combines the outcomes of two successive runs. `later` is the outcome of the second run. The combined outcome
    /// counts the changes of the view of both runs, and has the stop reason of the second run.
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

/// Size of a view (the compacted form of a log) in entries, spans and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Measure {
    /// Number of entries in the log.
    pub messages: u64,
    /// Number of spans in the view (the compacted log). A span is a range of messages and the form in which the view
    /// shows them.
    pub spans: u64,
    /// Cost of the view (the compacted log), in tokens.
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
