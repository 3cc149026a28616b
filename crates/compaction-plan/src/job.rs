//! What a compaction is going to do, and why it stopped, as plain data.

use memory_model::{Child, Purpose, Seq, SeqRange, Span, ViewName, ViewVersion};
use serde::{Deserialize, Serialize};

use crate::label::Label;

/// One change to a view: the spans over a range are replaced by others.
///
/// A job is applied only while the view still holds [`Job::expect`]; whoever publishes over its
/// range first wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The planner's name for this kind of job. Reports count published jobs by it.
    pub kind: Label,
    /// The messages whose spans are replaced.
    pub range: SeqRange,
    /// The spans that the view must still hold over `range`.
    pub expect: Vec<Span>,
    /// What takes their place.
    pub work: Work,
    /// What a summarizer is asked for; `None` asks for a summary that replaces its sources, of the
    /// length that the ladder chooses. [`Work::Replace`] calls no summarizer and ignores it.
    pub request: Option<Request>,
    /// Cost of the replaced spans, in tokens.
    pub source_tokens: u64,
    /// Reason for the job, in one sentence.
    pub why: String,
}

/// What takes the place of a job's spans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// One summary. Making it may call a model and needs a lease.
    Summarize {
        /// What the summarizer sees, in this order.
        sources: Vec<Child>,
        /// What the summary unfolds to: a partition of the job's range. `None` for the sources.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        children: Option<Vec<Child>>,
        /// Depth of the summary: 1 + its deepest child, where messages count as -1.
        depth: u32,
    },
    /// These spans, which tile the job's range: messages, shortened messages, nothing, or summaries
    /// that the conversation already has. Needs no model and no lease.
    Replace(Vec<Span>),
}

impl Work {
    /// A summary of these sources that unfolds to them; they partition the job's range.
    pub fn summarize(sources: Vec<Child>, depth: u32) -> Self {
        Self::Summarize {
            sources,
            children: None,
            depth,
        }
    }
}

impl Job {
    /// What the summarizer sees; empty for [`Work::Replace`].
    pub fn sources(&self) -> &[Child] {
        match &self.work {
            Work::Summarize { sources, .. } => sources,
            Work::Replace(_) => &[],
        }
    }

    /// What the summary to make unfolds to; empty for [`Work::Replace`].
    pub fn children(&self) -> &[Child] {
        match &self.work {
            Work::Summarize {
                sources, children, ..
            } => children.as_ref().unwrap_or(sources),
            Work::Replace(_) => &[],
        }
    }

    /// The depth of the summary to make; `None` for [`Work::Replace`].
    pub fn depth(&self) -> Option<u32> {
        match &self.work {
            Work::Summarize { depth, .. } => Some(*depth),
            Work::Replace(_) => None,
        }
    }
}

/// What a summarizer is asked for, beside the sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// What the summary will be used for.
    pub purpose: Purpose,
    /// Text of the summary that precedes the sources. It is context and not a source.
    pub previous: Option<String>,
    /// Length that the summary should have, in tokens; 0 leaves it to the ladder.
    pub target_tokens: u64,
    /// Largest cost of the summary's text, in tokens, whatever the ladder tolerates, lines of
    /// [`Details`](crate::Details) included; 0 leaves it to the ladder.
    pub max_tokens: u64,
    /// Name and version of the rule by which [`Planner::details`](crate::Planner::details) adds to the summary;
    /// part of its recipe. `None` adds nothing.
    pub details: Option<String>,
    /// Prompts that take the place of the summarizer's own.
    pub prompts: Option<Prompts>,
}

/// Prompts for one request, as text with the slots of the summarizer's templates: `{source}`,
/// `{previous}`, `{instructions}`, `{length}`, `{brevity}` and `{data_rule}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Name and version, such as `handoff@1`; part of the summary's recipe, so it changes with
    /// every word of the text.
    pub id: String,
    /// The system prompt.
    pub system: String,
    /// The message that is sent with it, which holds the request's data.
    pub user: String,
}

/// What one iteration of a compaction is going to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The view.
    pub view: ViewName,
    /// The view's version when the plan was made.
    pub version: ViewVersion,
    /// The log's head when the plan was made.
    pub head: Seq,
    /// Cost of the view, in tokens.
    pub tokens: u64,
    /// The jobs: disjoint ranges, in rising order.
    pub jobs: Vec<Job>,
}

/// Why a compaction stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// Nothing is left that the policy would compact.
    NothingEligible,
    /// The view costs no more than the room it was compacted for; more may be eligible.
    Fits,
    /// The mode's passes are done; more may be eligible.
    PassesDone,
    /// The maximum number of iterations was reached; more may be eligible.
    IterationCap,
    /// A pass changed nothing although jobs were planned.
    NoProgress,
    /// A summary could not be made, and nothing was published for it.
    SummarizerFailed,
    /// Another writer published over the planned ranges first.
    LostRace,
    /// Another owner holds the leases on the planned jobs.
    Held,
    /// The same state was tried before by the same policy, and nothing could be made shorter.
    Exhausted,
    /// The caller cancelled the compaction.
    Cancelled,
    /// The view costs no more than the threshold that the caller compacts from.
    BelowThreshold,
    /// Only a plan was asked for.
    DryRun,
}
