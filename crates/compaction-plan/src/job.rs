//! Plans, jobs and stop reasons, as plain data.

use memory_model::{Child, Purpose, Seq, SeqRange, Span, ViewName, ViewVersion};
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// One change to a view, which replaces the spans over a range.
///
/// A job is applied only while the view still holds [`Job::expect`]. If several writers change its range, the first one
/// to publish wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The planner's name for this kind of job. Reports count published jobs by it.
    pub kind: Label,
    /// Range of the messages with replaced spans.
    pub range: SeqRange,
    /// The spans that the view must still hold over `range`.
    pub expect: Vec<Span>,
    /// The replacement.
    pub work: Work,
    /// Request to the summarizer; `None` asks for a summary that replaces its sources, of the length that the ladder
    /// chooses. Ignored for [`Work::Replace`], which calls no summarizer.
    pub request: Option<Request>,
    /// Cost of the replaced spans, in tokens.
    pub source_tokens: u64,
    /// Reason for the job, in one sentence.
    pub why: String,
}

/// The replacement of a job's spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// One summary. Making it may call a model and needs a lease.
    Summarize {
        /// Sources in the order in which the summarizer sees them.
        sources: Vec<Child>,
        /// Children of the summary: a partition of the job's range. `None` for the sources.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        children: Option<Vec<Child>>,
        /// Depth of the summary: 1 + the depth of its deepest child. Messages count as -1.
        depth: u32,
    },
    /// These spans, which tile the job's range: messages, shortened messages, omissions, or stored summaries of the
    /// conversation. Needs no model and no lease.
    Replace(Vec<Span>),
}

impl Work {
    /// Returns the work for a summary of these sources, which are also its children. They partition the job's range.
    pub fn summarize(sources: Vec<Child>, depth: u32) -> Self {
        Self::Summarize {
            sources,
            children: None,
            depth,
        }
    }
}

impl Job {
    /// The sources that the summarizer sees; empty for [`Work::Replace`].
    pub fn sources(&self) -> &[Child] {
        match &self.work {
            Work::Summarize { sources, .. } => sources,
            Work::Replace(_) => &[],
        }
    }

    /// The children of the new summary; empty for [`Work::Replace`].
    pub fn children(&self) -> &[Child] {
        match &self.work {
            Work::Summarize {
                sources, children, ..
            } => children.as_ref().unwrap_or(sources),
            Work::Replace(_) => &[],
        }
    }

    /// The depth of the new summary; `None` for [`Work::Replace`].
    pub fn depth(&self) -> Option<u32> {
        match &self.work {
            Work::Summarize { depth, .. } => Some(*depth),
            Work::Replace(_) => None,
        }
    }
}

/// A request to a summarizer, apart from the sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What the summary will be used for.
    pub purpose: Purpose,
    /// Text of the summary that precedes the sources. It gives context and is not a source.
    pub previous: Option<String>,
    /// Length that the summary should have, in tokens; 0 leaves it to the ladder.
    pub target_tokens: u64,
    /// Maximum cost of the summary's text, in tokens, lines of [`Details`](crate::Details) included; overrides the
    /// tolerance of the ladder. 0 leaves it to the ladder.
    pub max_tokens: u64,
    /// Name and version of the rule by which [`Planner::details`](crate::Planner::details) extends the summary. Part of
    /// the summary's recipe. `None` adds no details.
    pub details: Option<String>,
    /// Prompts that replace the summarizer's prompts.
    pub prompts: Option<Prompts>,
}

/// Prompts for one request, as text with the slots of the summarizer's templates: `{source}`,
/// `{previous}`, `{instructions}`, `{length}`, `{brevity}` and `{data_rule}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Name and version, such as `handoff@1`. It is part of the summary's recipe, so it must change with every change
    /// of the text.
    pub id: String,
    /// The system prompt.
    pub system: String,
    /// The user message that follows it and holds the request's data.
    pub user: String,
}

/// The jobs of one iteration of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Name of the view.
    pub view: ViewName,
    /// Version of the view when the plan was made.
    pub version: ViewVersion,
    /// Head of the log when the plan was made.
    pub head: Seq,
    /// Cost of the view, in tokens.
    pub tokens: u64,
    /// The jobs: disjoint ranges, in ascending order.
    pub jobs: Vec<Job>,
}

/// Reason why a compaction stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The policy finds no further span to compact.
    NothingEligible,
    /// The view fits the room that it was compacted for; more may be eligible.
    Fits,
    /// The passes of the mode are done; more may be eligible.
    PassesDone,
    /// The maximum number of iterations was reached; more may be eligible.
    IterationCap,
    /// A pass with planned jobs did not change the view.
    NoProgress,
    /// A summary could not be made, and its job was not published.
    SummarizerFailed,
    /// Another writer published over the planned ranges first.
    LostRace,
    /// Another owner holds the leases on the planned jobs.
    Held,
    /// The same policy already tried the same state and could not shorten it.
    Exhausted,
    /// The caller cancelled the compaction.
    Cancelled,
    /// The cost of the view is at most the threshold of the caller.
    BelowThreshold,
    /// The caller asked only for a plan.
    DryRun,
}
