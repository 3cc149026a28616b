//! Plans, jobs and stop reasons of compactions, as plain data. A job is one change of a view, such as one summary to
//! write.

use memory_model::{Child, Purpose, Seq, SeqRange, Span, ViewName, ViewVersion};
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// One change to a view: replaces the spans over a range of messages by other spans. A span is a range of messages and
/// the form in which the view shows them.
///
/// A job is applied only if the view still contains the spans in [`Job::expect`]. If several writers change the range,
/// the first one to publish wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Kind of the job, named by the planner. Reports count the applied jobs by kind.
    pub kind: Label,
    /// Range of messages over which the job replaces the spans.
    pub range: SeqRange,
    /// Spans over `range` when the job was planned. The view (the compacted log) must still contain them when the job
    /// is published.
    pub expect: Vec<Span>,
    /// The replacement: a new summary, or given spans.
    pub work: Work,
    /// Request to the summarizer. `None` requests a summary of the default length, to replace its sources in the view
    /// (the compacted log). Ignored for [`Work::Replace`], which needs no summarizer.
    pub request: Option<Request>,
    /// Cost of the replaced spans, in tokens.
    pub source_tokens: u64,
    /// Reason for the job, as one sentence for people.
    pub why: String,
}

/// The replacement for the spans of a job: a new summary, or given spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// Writes one new summary. This may call a model, and needs a lease (an exclusive claim on the job).
    Summarize {
        /// Messages and summaries to summarize, in the order in which the summarizer reads them.
        sources: Vec<Child>,
        /// Children of the new summary, which together cover the job's range without overlaps. `None` if they are the
        /// same as the sources.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        children: Option<Vec<Child>>,
        /// Depth of the summary: 0 for a summary of messages only, otherwise 1 + the depth of its deepest child.
        depth: u32,
    },
    /// Shows given spans, which together cover the job's range. They are messages, shortened messages, omissions, or
    /// existing summaries of the conversation. Needs no model and no lease.
    Replace(Vec<Span>),
}

impl Work {
    /// Returns the work of writing a summary of `sources`. The sources are also the summary's children, so together
    /// they must cover the job's range without overlaps.
    pub fn summarize(sources: Vec<Child>, depth: u32) -> Self {
        Self::Summarize {
            sources,
            children: None,
            depth,
        }
    }
}

impl Job {
    /// Returns the messages and summaries that the summarizer reads. Empty for [`Work::Replace`].
    pub fn sources(&self) -> &[Child] {
        match &self.work {
            Work::Summarize { sources, .. } => sources,
            Work::Replace(_) => &[],
        }
    }

    /// Returns the ranges of messages before the job's range that the summarizer reads as context.
    pub fn before(&self) -> &[SeqRange] {
        self.request.as_ref().map_or(&[], |request| &request.before)
    }

    /// Returns the children of the new summary. Empty for [`Work::Replace`].
    pub fn children(&self) -> &[Child] {
        match &self.work {
            Work::Summarize {
                sources, children, ..
            } => children.as_ref().unwrap_or(sources),
            Work::Replace(_) => &[],
        }
    }

    /// Returns the depth of the new summary. `None` for [`Work::Replace`].
    pub fn depth(&self) -> Option<u32> {
        match &self.work {
            Work::Summarize { depth, .. } => Some(*depth),
            Work::Replace(_) => None,
        }
    }
}

/// Settings of a request to a summarizer: everything except the sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Purpose of the summary: to replace its sources, or to replace only the beginning of a turn.
    pub purpose: Purpose,
    /// Text of the summary before the sources. The summarizer reads it as context and does not summarize it.
    pub previous: Option<String>,
    /// Ranges of messages before the job's range, in order. The summarizer reads them as context and does not summarize
    /// them. They are recorded among the sources of the summary, so that an erasure of these messages erases it. Ignored
    /// for [`Work::Replace`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<SeqRange>,
    /// Desired length of the summary, in tokens. With 0, the runner (its ladder of methods) chooses the length.
    pub target_tokens: u64,
    /// Maximum cost of the summary's text, in tokens, including the lines of [`Details`](crate::Details). With 0, only
    /// the tolerance of the runner's ladder limits the text.
    pub max_tokens: u64,
    /// Name and version of the rule by which [`Planner::details`](crate::Planner::details) extends the summary. The
    /// rule is recorded in the recipe, which identifies how a summary was made. `None` adds no details.
    pub details: Option<String>,
    /// Prompts to use instead of the summarizer's prompts. `None` uses the summarizer's prompts.
    pub prompts: Option<Prompts>,
}

/// Prompts of one request. The texts may contain these slots of the summarizer's templates: `{source}`, `{previous}`,
/// `{instructions}`, `{length}`, `{brevity}` and `{data_rule}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Name and version of the prompts, such as `handoff@1`. The id is recorded in the recipe of the summary, so change
    /// it whenever the text changes.
    pub id: String,
    /// Text of the system prompt.
    pub system: String,
    /// Text of the user message after the system prompt. Its slots are filled with the data of the request.
    pub user: String,
}

/// The changes of a view that one iteration of a compaction plans, as a list of [`Job`]s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Name of the view (the compacted log) to change.
    pub view: ViewName,
    /// Version of the view (the compacted log) for which the plan was made.
    pub version: ViewVersion,
    /// Position of the last entry in the log when the plan was made.
    pub head: Seq,
    /// Cost of the view (the compacted log) before the jobs, in tokens.
    pub tokens: u64,
    /// Planned jobs in the order of their ranges, which do not overlap.
    pub jobs: Vec<Job>,
}

/// Reason why a compaction stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The planner found no further span to compact.
    NothingEligible,
    /// The view (the compacted log) fits its maximum cost. The policy may allow further changes of the view.
    Fits,
    /// All passes (planning rounds) of the planner were run once. The policy may allow further changes of the view (the
    /// compacted log).
    PassesDone,
    /// The maximum number of iterations was reached. The policy may allow further changes of the view (the compacted
    /// log).
    IterationCap,
    /// The planner planned changes of the view (the compacted log), but none of them could be applied.
    NoProgress,
    /// The summarizer failed to write a summary.
    SummarizerFailed,
    /// Another writer changed the same ranges of the view (the compacted log) first.
    LostRace,
    /// Another owner is working on the planned summaries: it has leases (exclusive claims) on them.
    Held,
    /// The view (the compacted log) fits, and the planned summaries wait for the model: it failed in a way that may pass,
    /// or summaries are to be rewritten first.
    WaitsForModel,
    /// An earlier compaction with the same policy failed to shorten the same view.
    Exhausted,
    /// The caller cancelled the compaction.
    Cancelled,
    /// The view (the compacted log) costs at most the caller's threshold.
    BelowThreshold,
    /// The caller requested only a plan.
    DryRun,
}
