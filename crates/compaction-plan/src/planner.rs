//! The traits that a planner implements.

use std::fmt;

use memory_model::{Accounting, LogEntry, Seq, SeqRange, Span, Summary, ViewName};
use serde::{Deserialize, Serialize};

use crate::details::{Details, WrittenText};
use crate::job::{Job, Request};
use crate::label::Label;

/// How far a compaction goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Each pass of the planner once.
    #[default]
    Incremental,
    /// All passes again and again until nothing is left to do.
    Full,
}

/// How many of the newest log entries a planner must see before a pass.
///
/// The entries reach back until they hold at least `messages` messages and cost at least `tokens`
/// tokens, and then to the beginning of an atom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tail {
    /// Minimum number of messages; notes do not count.
    pub messages: usize,
    /// Minimum cost of the messages, in tokens.
    pub tokens: u64,
}

impl Tail {
    /// No entries at all.
    pub const NONE: Self = Self {
        messages: 0,
        tokens: 0,
    };

    /// Returns a tail of at least `messages` messages.
    pub fn messages(messages: usize) -> Self {
        Self {
            messages,
            tokens: 0,
        }
    }

    /// Returns a tail of at least `tokens` tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self {
            messages: 0,
            tokens,
        }
    }
}

/// How much of a view the contexts that are assembled from it have room for.
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

/// What a pass is planned for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// Everything that the policy would compact.
    #[default]
    Policy,
    /// A view that fits its [`Room`]: nothing is planned that cannot make it fit.
    Fit,
}

/// What a planner is told when a pass begins.
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// The pass: one of [`Planner::passes`].
    pub pass: &'a Label,
    /// The log's head.
    pub head: Seq,
    /// Cost of the whole view, in tokens.
    pub tokens: u64,
    /// The newest entries of the log, oldest first, as far back as [`Planner::tail`] asks for.
    pub newest: &'a [LogEntry],
    /// The room that contexts have; `None` when the view is compacted for no particular window.
    pub room: Option<Room>,
    /// What the pass is planned for.
    pub goal: Goal,
    /// What things cost.
    pub accounting: &'a dyn Accounting,
}

impl PassInput<'_> {
    /// Cost of the view beyond its room, in tokens; 0 without a room.
    pub fn excess(&self) -> u64 {
        let excess = |room: Room| self.tokens.saturating_sub(room.tokens);
        self.room.map_or(0, excess)
    }
}

/// Decides what a compaction does. Pure: whoever drives it reads the log and the view, and feeds
/// them.
pub trait Planner: Send + Sync + fmt::Debug {
    /// The view that it compacts.
    fn view(&self) -> ViewName;

    /// Name, version and values of the policy on one line. Two planners that may decide differently
    /// have different fingerprints.
    fn fingerprint(&self) -> String;

    /// The passes of one iteration, in order.
    fn passes(&self) -> &[Label];

    /// Maximum number of iterations of a full compaction; `None` goes on until nothing is eligible.
    fn max_iterations(&self) -> Option<u32> {
        None
    }

    /// The newest entries that it must see before a pass.
    fn tail(&self, _pass: &Label) -> Tail {
        Tail::NONE
    }

    /// Begins a pass over a view.
    fn begin(&self, input: PassInput<'_>) -> Box<dyn Pass>;

    /// Returns what the summary of a job keeps beside its text. Asked where [`Request::details`] names a rule;
    /// the same arguments must give the same answer.
    fn details(&self, _written: &WrittenText<'_>) -> Details {
        Details::default()
    }

    /// Returns what a summarizer is asked for when a summary of this planner's is made anew from its
    /// sources. `None` asks for a summary that replaces them, of the length that the ladder chooses.
    fn request_again(&self, _summary: &Summary) -> Option<Request> {
        None
    }
}

/// What a [`Pass`] reads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadRequest {
    /// The view's spans that touch the range, oldest first.
    Spans(SeqRange),
    /// The log's entries in the range, oldest first.
    Entries(SeqRange),
    /// The summaries that the view shows in the range, oldest first. All at once, without those that are not stored yet:
    /// there may be none.
    Summaries(SeqRange),
}

/// One pass under way: it says what to read next, is fed it page by page, and returns jobs.
///
/// A reader serves [`Pass::next_read`] until it is `None`, then calls [`Pass::finish`]. A page may hold
/// less than was asked for; the pass then asks for the rest. What a pass wants next never depends
/// on what becomes of its jobs.
pub trait Pass: Send + fmt::Debug {
    /// What to read next; `None` when nothing is left to read.
    fn next_read(&mut self) -> Option<ReadRequest>;

    /// Takes the next spans of [`ReadRequest::Spans`], whole, raw ones with the cost of their messages, and
    /// returns the jobs that they complete.
    fn feed_spans(&mut self, _spans: &[Span], _accounting: &dyn Accounting) -> Vec<Job> {
        Vec::new()
    }

    /// Takes the next entries of [`ReadRequest::Entries`] and returns the jobs that they complete.
    fn feed_entries(&mut self, _entries: &[LogEntry], _accounting: &dyn Accounting) -> Vec<Job> {
        Vec::new()
    }

    /// Takes the summaries of [`ReadRequest::Summaries`] and returns the jobs that they complete.
    fn feed_summaries(&mut self, _summaries: &[Summary], _accounting: &dyn Accounting) -> Vec<Job> {
        Vec::new()
    }

    /// Returns the jobs that are left once it wants nothing more.
    fn finish(&mut self, _accounting: &dyn Accounting) -> Vec<Job> {
        Vec::new()
    }
}
