//! The policy and the report of a redo.

use memory_model::{SeqRange, SummaryId};
use serde::{Deserialize, Serialize};

use crate::outcome::Measure;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Policy of a redo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoPolicy {
    /// Maximum number of calls of the summarizer; their summaries are kept for the next redo. No limit by default.
    /// Repeated calls by guards are not counted: limit the spending of the guards for these.
    pub max_calls: Option<u64>,
    /// Maximum number of consecutive failed summaries before the redo stops. Default 3.
    pub max_failures: u32,
    /// Whether to rewrite the extracts of older recipes, without a model, instead of all summaries that no model wrote.
    /// An extract that is a source of a model's summary stays. Default false.
    pub extracts: bool,
}

impl Default for RedoPolicy {
    fn default() -> Self {
        Self {
            max_calls: None,
            max_failures: 3,
            extracts: false,
        }
    }
}

/// Result of a redo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoReport {
    /// Size of the view before.
    pub before: Measure,
    /// Size of the view afterwards.
    pub after: Measure,
    /// Number of summaries without a model in the view's tree, before.
    pub provisional: u64,
    /// Number of such summaries afterwards.
    pub left: u64,
    /// Replaced summaries with their replacements, including the summaries above them.
    pub replaced: Vec<ReplacedSummary>,
    /// Number of calls of the summarizer, including failed ones.
    pub calls: u64,
    /// Number of summaries written in this run: published, or kept for the run that completes the summaries above them.
    pub written: u64,
    /// Summaries that could not be made, with errors.
    pub failures: Vec<RedoFailure>,
    /// Number of summaries requested from the model, with the causes of those not made.
    pub model: ModelReport,
    /// Minimum number of calls that a summary takes here; known if calls were limited.
    pub needed_calls: Option<u64>,
    /// Owner of the last summary that this run skipped because it was held.
    pub held: Option<LeaseHolder>,
    /// Reason for the end of the redo.
    pub stop_reason: RedoStop,
}

impl RedoReport {
    /// Whether a summary was written or published, so that the next run has less work.
    pub fn made_progress(&self) -> bool {
        self.written > 0 || !self.replaced.is_empty()
    }
}

/// A replaced summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplacedSummary {
    /// The old summary, which stays in the history.
    pub old: SummaryId,
    /// The new summary.
    pub new: SummaryId,
}

/// A summary that could not be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoFailure {
    /// Id of the summary, which stays.
    pub id: SummaryId,
    /// Range of the summary.
    pub range: SeqRange,
    /// Description of the error.
    pub error: String,
}

/// Reason why a redo stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedoStop {
    /// The view has no summaries without a model any more.
    Done,
    /// The summarizer is itself provisional: its summaries would need another redo.
    NoModel,
    /// Some summaries could not be made.
    SummarizerFailed,
    /// The allowed number of calls is used up.
    CallLimit,
    /// One summary takes more calls than allowed. No summary was written.
    CallLimitTooLow,
    /// Other writers changed the view several times in a row.
    LostRace,
    /// Another owner works on the remaining summaries.
    Held,
    /// The caller cancelled the redo.
    Cancelled,
}
