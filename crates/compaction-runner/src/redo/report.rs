//! The policy and the report of a redo.

use memory_model::{SeqRange, SummaryId};
use serde::{Deserialize, Serialize};

use crate::outcome::Measure;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Settings of a redo: which summaries it rewrites, and when it stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoPolicy {
    /// Maximum number of calls of the summarizer; `None` (the default) sets no limit. Summaries that were written
    /// before the limit was reached are kept for the next redo. Calls that guards repeat are not counted: limit the
    /// spending of the guards for these.
    pub max_calls: Option<u64>,
    /// Maximum number of consecutive summaries that fail before the redo stops. Default 3.
    pub max_failures: u32,
    /// Which summaries to rewrite. If true, the extracts of older recipes, without a model; an extract that is a source
    /// of a model's summary stays. If false, all summaries that were written without a model. Default false.
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

/// Report of a redo: the replaced summaries, and the summaries that are left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoReport {
    /// Size of the view before the redo.
    pub before: Measure,
    /// Size of the view after the redo.
    pub after: Measure,
    /// Number of summaries below the view's spans that were to be rewritten before the redo.
    pub provisional: u64,
    /// Number of summaries below the view's spans that still are to be rewritten after the redo.
    pub left: u64,
    /// Ids of the replaced summaries and of their replacements, including the summaries above them.
    pub replaced: Vec<ReplacedSummary>,
    /// Number of calls of the summarizer, including failed ones.
    pub calls: u64,
    /// Number of summaries that this run wrote: summaries that were published, and summaries that are kept until a
    /// later run completes the summaries above them.
    pub written: u64,
    /// Summaries that could not be rewritten, with their errors.
    pub failures: Vec<RedoFailure>,
    /// Number of summaries that were requested from the model, with the causes for which some were not written.
    pub model: ModelReport,
    /// Minimum number of calls that one summary takes. `None` if the calls were not limited.
    pub needed_calls: Option<u64>,
    /// Owner that holds the lease on the last summary that this run skipped for that reason; `None` if no summary was
    /// held.
    pub held: Option<LeaseHolder>,
    /// Reason for which the redo stopped.
    pub stop_reason: RedoStop,
}

impl RedoReport {
    /// Returns whether a summary was written or published, so that the next redo has less work.
    pub fn made_progress(&self) -> bool {
        self.written > 0 || !self.replaced.is_empty()
    }
}

/// Ids of a replaced summary and of its replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplacedSummary {
    /// Id of the old summary, which stays in the history.
    pub old: SummaryId,
    /// Id of the new summary.
    pub new: SummaryId,
}

/// A summary that could not be rewritten, with its error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoFailure {
    /// Id of the old summary, which stays in the view.
    pub id: SummaryId,
    /// Range of messages that the summary covers.
    pub range: SeqRange,
    /// Description of the error, in one sentence.
    pub error: String,
}

/// Reason for which a redo stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedoStop {
    /// No summary is left to rewrite.
    Done,
    /// The summarizer calls no model, so its summaries would have to be rewritten too.
    NoModel,
    /// Some summaries could not be rewritten.
    SummarizerFailed,
    /// The maximum number of calls was reached.
    CallLimit,
    /// A single summary takes more calls than the maximum. No summary was written.
    CallLimitTooLow,
    /// Other writers changed the view several times in succession.
    LostRace,
    /// Another owner holds the leases on the remaining summaries.
    Held,
    /// The caller cancelled the redo.
    Cancelled,
}
