//! The settings and the report of a redo.

use memory_model::{SeqRange, SummaryId};
use serde::{Deserialize, Serialize};

use crate::outcome::Measure;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Settings of a redo, which rewrites existing summaries: the summaries to rewrite, and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoPolicy {
    /// Maximum number of calls of the summarizer. `None`, the default, sets no limit. Summaries that were written
    /// before the limit was reached are kept for the next redo. Retries by the guards of a model client do not count.
    /// Use the spending limits of the guards for these.
    pub max_calls: Option<u64>,
    /// Maximum number of failed summaries in succession before the redo stops. Default 3.
    pub max_failures: u32,
    /// Which summaries to rewrite. If true, rewrites the extracts of older recipes, without a model. An extract that is
    /// the source of a model's summary is not rewritten. If false, rewrites all summaries that were written without a
    /// model. Default false.
    pub extracts: bool,
    /// Summaries that should not have been accepted. If there are any, the redo rewrites these and earlier rejected ones,
    /// and no others. They stay rejected until they are rewritten: until then every redo selects them, and no other
    /// summary of summaries is made from them while the view fits without it. Default: none.
    pub again: Vec<SummaryId>,
}

impl Default for RedoPolicy {
    fn default() -> Self {
        Self {
            max_calls: None,
            max_failures: 3,
            extracts: false,
            again: Vec::new(),
        }
    }
}

/// Report of a redo: the replaced summaries, and the number of summaries that are left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoReport {
    /// Size of the view (the compacted log) before the redo.
    pub before: Measure,
    /// Size of the view (the compacted log) after the redo.
    pub after: Measure,
    /// Number of summaries to rewrite before the redo, in the view (the compacted log) and below it.
    pub provisional: u64,
    /// Number of summaries to rewrite that are left after the redo, in the view (the compacted log) and below it.
    pub left: u64,
    /// Ids of the replaced summaries and of their replacements. Includes summaries that were rewritten because their
    /// sources were.
    pub replaced: Vec<ReplacedSummary>,
    /// Number of calls of the summarizer. Failed calls count.
    pub calls: u64,
    /// Number of summaries that this run wrote. Includes summaries that are not published yet, because a summary made
    /// from them is missing.
    pub written: u64,
    /// Summaries that could not be rewritten, with their errors.
    pub failures: Vec<RedoFailure>,
    /// Number of summaries that were requested from the model, with the causes for which some were not written.
    pub model: ModelReport,
    /// Minimum number of calls for one summary. `None` if the number of calls was not limited, or if the summarizer was
    /// not needed.
    pub needed_calls: Option<u64>,
    /// Owner of the lease on the last summary that was skipped because another owner held it. `None` if no summary was
    /// skipped for this reason.
    pub held: Option<LeaseHolder>,
    /// Reason why the redo stopped.
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
    /// Id of the old summary, which stays in the view (the compacted log).
    pub id: SummaryId,
    /// Range of messages that the summary covers.
    pub range: SeqRange,
    /// Error in one sentence.
    pub error: String,
}

/// Reason why a redo stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedoStop {
    /// No summary is left to rewrite.
    Done,
    /// The summarizer calls no model, so its summaries would have to be rewritten again.
    NoModel,
    /// Some summaries could not be rewritten.
    SummarizerFailed,
    /// The maximum number of calls was reached.
    CallLimit,
    /// One summary needs more calls than the maximum. No summary was written.
    CallLimitTooLow,
    /// Other writers changed the view (the compacted log) several times in succession.
    LostRace,
    /// Another owner has the leases on the remaining summaries.
    Held,
    /// The caller cancelled the redo.
    Cancelled,
}
