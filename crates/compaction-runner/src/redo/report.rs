//! How far a redo goes, and what it did.

use memory_model::{SeqRange, SummaryId};
use serde::{Deserialize, Serialize};

use crate::outcome::Measure;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// How far a redo goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedoPolicy {
    /// Maximum number of calls of the summarizer; what they wrote is kept for the next redo. No
    /// limit. Calls that guards make again are not seen here: limit what the guards may spend.
    pub max_calls: Option<u64>,
    /// Maximum number of consecutive failed summaries before it stops. Default 3.
    pub max_failures: u32,
    /// Makes the extracts of older recipes anew, without a model, instead of all summaries that no model wrote. An extract
    /// from which a model made a summary stays. Default false.
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

/// What a redo did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoReport {
    /// The view before.
    pub before: Measure,
    /// The view after.
    pub after: Measure,
    /// Summaries in the view's tree that were written without a model, before.
    pub provisional: u64,
    /// Those that are still there.
    pub left: u64,
    /// Which summary took the place of which, those above included.
    pub replaced: Vec<ReplacedSummary>,
    /// Calls of the summarizer, failed ones too.
    pub calls: u64,
    /// Summaries that were written in this run: published, or kept for the run that completes the
    /// summaries above them.
    pub written: u64,
    /// The summaries that could not be made, and why.
    pub failures: Vec<RedoFailure>,
    /// How many summaries the model was asked for, and why some were not made.
    pub model: ModelReport,
    /// Fewest calls that a summary takes here; known where calls were limited.
    pub needed_calls: Option<u64>,
    /// Who was at work on a summary that this run therefore passed over, last.
    pub held: Option<LeaseHolder>,
    /// Why it stopped.
    pub stop_reason: RedoStop,
}

impl RedoReport {
    /// Whether something was written or published: the next run has less to do.
    pub fn made_progress(&self) -> bool {
        self.written > 0 || !self.replaced.is_empty()
    }
}

/// A summary that took the place of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplacedSummary {
    /// The one before; it stays in the history.
    pub old: SummaryId,
    /// The one in its place.
    pub new: SummaryId,
}

/// A summary that could not be made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RedoFailure {
    /// The summary, which stays.
    pub id: SummaryId,
    /// What it covers.
    pub range: SeqRange,
    /// Why.
    pub error: String,
}

/// Why a redo stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RedoStop {
    /// Nothing in the view is left that was written without a model.
    Done,
    /// The summarizer needs no model itself: what it writes would have to be redone again.
    NoModel,
    /// Some summaries could not be made.
    SummarizerFailed,
    /// The calls it was allowed are made.
    CallLimit,
    /// The calls it was allowed are fewer than one summary takes; nothing was written.
    CallLimitTooLow,
    /// Somebody else changed the view again and again.
    LostRace,
    /// Somebody else is at work on the rest.
    Held,
    /// The caller asked to stop.
    Cancelled,
}
