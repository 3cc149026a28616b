//! Plans: what a compaction is going to do, as plain data.

use serde::Serialize;

use crate::ids::{Seq, SeqRange, ViewName, ViewVersion};
use crate::summary::Child;
use crate::view::Span;

/// How far a compaction goes (anna's modes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One pass over messages and one over summaries.
    #[default]
    Incremental,
    /// Passes until nothing is left to do.
    Full,
}

/// What a job makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A summary of messages.
    Leaf,
    /// A summary of summaries.
    Condensed,
}

/// One summary to make, and the spans that it is to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Job {
    /// What to make.
    pub kind: JobKind,
    /// The messages that it will cover.
    pub range: SeqRange,
    /// The spans that it replaces; publishing checks that the view still holds them.
    pub expect: Vec<Span>,
    /// What it is made from.
    pub children: Vec<Child>,
    /// The depth that the summary gets.
    pub depth: u32,
    /// What the replaced spans cost, in tokens.
    pub source_tokens: u64,
    /// How long the summary should be, in tokens.
    pub target_tokens: u64,
    /// Why, in a sentence.
    pub why: String,
}

/// What one pass of a compaction is going to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The view.
    pub view: ViewName,
    /// The view's version when the plan was made.
    pub version: ViewVersion,
    /// The log's head when the plan was made.
    pub head: Seq,
    /// What the view cost, in tokens.
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
    /// The mode's passes are done; more may be eligible.
    PassesDone,
    /// The cap on iterations was reached; more may be eligible (anna's full mode: 10).
    IterationCap,
    /// A pass changed nothing although jobs were planned.
    NoProgress,
    /// A summary could not be made, and nothing was published for it.
    SummarizerFailed,
    /// Somebody else published over the planned ranges first.
    LostRace,
    /// The caller asked to stop.
    Cancelled,
    /// Only a plan was asked for.
    DryRun,
}
