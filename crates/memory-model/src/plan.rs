//! Plans: what a compaction is going to do, as plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::accounting::Accounting;
use crate::ids::{Seq, SeqRange, ViewName, ViewVersion};
use crate::message::LogEntry;
use crate::summary::Child;
use crate::view::Span;

/// How far a compaction goes (anna's modes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One pass over messages and one over summaries.
    #[default]
    Incremental,
    /// Passes until nothing is left to do.
    Full,
}

/// What a job makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// A summary of messages.
    Leaf,
    /// A summary of summaries.
    Condensed,
}

/// One summary to make, and the spans that it is to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The view costs no more than it was to be made to cost; more may be eligible.
    Fits,
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
    /// Somebody else is at work on the planned jobs.
    Held,
    /// The same state was tried before by the same policy, and nothing could be made shorter.
    Exhausted,
    /// The caller asked to stop.
    Cancelled,
    /// The view costs no more than the threshold that the caller compacts from.
    BelowThreshold,
    /// Only a plan was asked for.
    DryRun,
}

/// One kind of work that a compaction does over a whole view, such as making leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PassKind {
    /// Messages become summaries.
    Leaf,
    /// Summaries become fewer summaries.
    Condensed,
}

/// How much of a view the contexts have room for that are assembled from it.
///
/// A planner that is told protects no more of the view than leaves room for the rest, and while the
/// view costs more it plans whatever shrinks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Largest cost of the view that fits, in tokens.
    pub tokens: u64,
    /// Whether contexts show the newest messages whole whatever they cost. What a planner protects
    /// of them is then not limited.
    pub whole_tail: bool,
}

/// What a planner sees of a view before a pass.
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// Which pass.
    pub kind: PassKind,
    /// The log's head.
    pub head: Seq,
    /// All spans of the view, in order, raw ones with the cost of their messages.
    pub spans: &'a [Span],
    /// The newest entries of the log, oldest first, beginning at an atom: at least as many
    /// messages as [`Planner::window`] asks for, if there are so many.
    pub newest: &'a [LogEntry],
    /// What contexts have room for; `None` when the view is compacted for no particular window.
    pub room: Option<Room>,
    /// What things cost.
    pub accounting: &'a dyn Accounting,
}

impl PassInput<'_> {
    /// By how much the view costs more than there is room for, in tokens.
    pub fn excess(&self) -> u64 {
        let tokens = self.spans.iter().map(|span| span.tokens);
        let tokens = tokens.fold(0, u64::saturating_add);
        self.room
            .map_or(0, |room| tokens.saturating_sub(room.tokens))
    }
}

/// Decides what a compaction does. Pure: whoever drives it reads the log and feeds it.
pub trait Planner: Send + Sync + fmt::Debug {
    /// The view that it compacts.
    fn view(&self) -> ViewName;

    /// Name, version and values of the policy, as one line: two planners that may decide
    /// differently have different ones.
    fn fingerprint(&self) -> String;

    /// The passes of one iteration, in order.
    fn passes(&self) -> &[PassKind];

    /// The most iterations that a full compaction makes; `None` goes on until nothing is eligible.
    fn max_iterations(&self) -> Option<u32>;

    /// How many of the newest messages it must see to decide what stays.
    fn window(&self) -> usize;

    /// Begins a pass over a view.
    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass>;
}

/// One pass under way: it names stretches of the log, is fed their entries, and gives jobs.
pub trait Pass: Send + fmt::Debug {
    /// The next stretch of the log to feed, in rising order; `None` when nothing is left to read.
    fn wants(&self) -> Option<SeqRange>;

    /// Takes the entries at the beginning of what it wants, oldest first, and returns the jobs
    /// that they complete. `accounting` is the pass input's.
    fn feed(&mut self, entries: &[LogEntry], accounting: &dyn Accounting) -> Vec<Job>;

    /// Returns the jobs that are left once it wants nothing more.
    fn finish(&mut self, accounting: &dyn Accounting) -> Vec<Job>;
}
