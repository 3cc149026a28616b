//! Plans, jobs and stop reasons, as plain data.

use memory_model::{Child, Purpose, Seq, SeqRange, Span, ViewName, ViewVersion};
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// One change to a view: replaces the spans in a range of messages by other spans.
///
/// A job is applied only while the view still holds [`Job::expect`]. If several writers change its range, the first one
/// to publish wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Name that the planner gives to this kind of job. Reports count published jobs by it.
    pub kind: Label,
    /// Range of messages of which the job replaces the spans.
    pub range: SeqRange,
    /// Spans that the view must still hold over `range` when the job is published.
    pub expect: Vec<Span>,
    /// The spans or the summary that replace the old spans.
    pub work: Work,
    /// Request to the summarizer; `None` asks for a summary that replaces its sources, of the length that the ladder
    /// chooses. Ignored for [`Work::Replace`], which calls no summarizer.
    pub request: Option<Request>,
    /// Cost of the spans that the job replaces, in tokens.
    pub source_tokens: u64,
    /// Reason for the job, in one sentence for people.
    pub why: String,
}

/// The spans or the summary that a job puts in the place of the old spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// One new summary. Writing it may call a model, and the writer needs a lease.
    Summarize {
        /// Messages and summaries to summarize, in the order in which the summarizer sees them.
        sources: Vec<Child>,
        /// Children of the new summary, which partition the job's range. `None` if they are the sources.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        children: Option<Vec<Child>>,
        /// Depth of the summary: 1 + the depth of its deepest child. Messages count as -1.
        depth: u32,
    },
    /// Spans that tile the job's range: messages, shortened messages, omissions, or stored summaries of the
    /// conversation. Needs no model and no lease.
    Replace(Vec<Span>),
}

impl Work {
    /// Returns the work of writing a summary of `sources`. The sources are also the summary's children, so they must
    /// partition the job's range.
    pub fn summarize(sources: Vec<Child>, depth: u32) -> Self {
        Self::Summarize {
            sources,
            children: None,
            depth,
        }
    }
}

impl Job {
    /// Returns the messages and summaries that the summarizer sees; empty for [`Work::Replace`].
    pub fn sources(&self) -> &[Child] {
        match &self.work {
            Work::Summarize { sources, .. } => sources,
            Work::Replace(_) => &[],
        }
    }

    /// Returns the children of the new summary; empty for [`Work::Replace`].
    pub fn children(&self) -> &[Child] {
        match &self.work {
            Work::Summarize {
                sources, children, ..
            } => children.as_ref().unwrap_or(sources),
            Work::Replace(_) => &[],
        }
    }

    /// Returns the depth of the new summary; `None` for [`Work::Replace`].
    pub fn depth(&self) -> Option<u32> {
        match &self.work {
            Work::Summarize { depth, .. } => Some(*depth),
            Work::Replace(_) => None,
        }
    }
}

/// Settings of a request to a summarizer: everything but the sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What the summary will be used for.
    pub purpose: Purpose,
    /// Text of the summary that precedes the sources. The summarizer reads it as context and does not summarize it.
    pub previous: Option<String>,
    /// Desired length of the summary, in tokens; 0 lets the ladder choose it.
    pub target_tokens: u64,
    /// Maximum cost of the summary's text, in tokens, with the lines of [`Details`](crate::Details). It overrides the
    /// ladder's tolerance; 0 keeps the ladder's tolerance.
    pub max_tokens: u64,
    /// Name and version of the rule by which [`Planner::details`](crate::Planner::details) extends the summary. It is
    /// part of the summary's recipe. `None` adds no details.
    pub details: Option<String>,
    /// Prompts to use instead of the summarizer's own prompts; `None` keeps them.
    pub prompts: Option<Prompts>,
}

/// Prompts for one request: text with the slots of the summarizer's templates, which are `{source}`, `{previous}`,
/// `{instructions}`, `{length}`, `{brevity}` and `{data_rule}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Name and version, such as `handoff@1`. It is part of the summary's recipe, so it must change with every change
    /// of the text.
    pub id: String,
    /// Text of the system prompt.
    pub system: String,
    /// Text of the user message that follows the system prompt. Its slots hold the data of the request.
    pub user: String,
}

/// The jobs that one iteration of a compaction will carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Name of the view that the jobs change.
    pub view: ViewName,
    /// Version of the view from which the plan was made.
    pub version: ViewVersion,
    /// Position of the log's last entry when the plan was made.
    pub head: Seq,
    /// Cost of the view before the jobs, in tokens.
    pub tokens: u64,
    /// The planned jobs, in ascending order of their ranges, which are disjoint.
    pub jobs: Vec<Job>,
}

/// Reason for which a compaction stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The policy found no further span to compact.
    NothingEligible,
    /// The view fits the room for which it was compacted. The policy may allow more jobs.
    Fits,
    /// All passes of the mode were run. The policy may allow more jobs.
    PassesDone,
    /// The maximum number of iterations was reached. The policy may allow more jobs.
    IterationCap,
    /// A pass planned jobs, but none of them changed the view.
    NoProgress,
    /// The summarizer could not write a summary, so its job was not published.
    SummarizerFailed,
    /// Another writer changed the planned ranges first.
    LostRace,
    /// Another owner holds the leases on the planned jobs.
    Held,
    /// An earlier compaction with the same policy and the same view could not shorten it.
    Exhausted,
    /// The caller cancelled the compaction.
    Cancelled,
    /// The view costs no more than the caller's threshold.
    BelowThreshold,
    /// The caller asked for a plan only.
    DryRun,
}
