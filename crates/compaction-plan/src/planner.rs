//! The trait for planners of compactions.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use memory_model::{Accounting, RawJson, Seq, Summary, ViewName};
use serde::{Deserialize, Serialize};

use crate::details::{Details, WrittenText};
use crate::job::Request;
use crate::label::Label;
use crate::source::{BoxError, JobSink, ViewSource};

/// Number of times that a compaction runs the passes of its planner. A pass is one planning round, and a planner has a
/// fixed list of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Runs each pass (planning round) of the planner once.
    #[default]
    Incremental,
    /// Repeats all passes (planning rounds) until no pass plans a change of the view (the compacted log).
    Full,
}

/// Maximum cost of a view so that contexts can show all of it.
///
/// A planner that knows the maximum protects only as many messages as leave enough tokens for the rest of the view.
/// While the view costs more, the planner plans every change that makes the view smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Maximum cost of the view (the compacted log), in tokens.
    pub tokens: u64,
    /// Whether contexts always show the last messages in full. If true, the planner always protects these messages.
    pub whole_tail: bool,
}

/// Extent to which a planner compacts the view (the compacted log).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// Plans every change of the view (the compacted log) that the policy allows.
    #[default]
    Policy,
    /// Plans only the changes that are needed to fit the view (the compacted log) into its [`Room`].
    Fit,
}

/// Input of a planner for one pass (planning round).
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// Name of the pass, which is one of [`Planner::passes`].
    pub pass: &'a Label,
    /// Position of the last entry in the log.
    pub head: Seq,
    /// Cost of the whole view (the compacted form of the log), in tokens.
    pub tokens: u64,
    /// Maximum cost of the view (the compacted log) after the compaction. `None` if the size of the context window is
    /// not known.
    pub room: Option<Room>,
    /// Extent to which the view (the compacted log) is compacted.
    pub goal: Goal,
    /// Counts the tokens of texts and messages.
    pub accounting: &'a dyn Accounting,
}

impl PassInput<'_> {
    /// Returns the tokens by which the view (the compacted log) exceeds its [`room`](Self::room). 0 if the view fits or
    /// if the room is not known.
    pub fn excess(&self) -> u64 {
        let excess = |room: Room| self.tokens.saturating_sub(room.tokens);
        self.room.map_or(0, excess)
    }
}

/// Plans a compaction from a view and its log. The result is a list of [`Job`](crate::Job)s: changes of the view, such
/// as summaries to write. The list depends only on the planner, its input, and the pages of the view and the log that
/// it reads.
#[async_trait]
pub trait Planner: Send + Sync + fmt::Debug {
    /// Returns the name of the view that the planner compacts. A view is a compacted form of a log.
    fn view(&self) -> ViewName;

    /// Returns one line with the planner's name, its version, and the values of its policy. Two planners that may plan
    /// different changes of a view have different fingerprints.
    fn fingerprint(&self) -> String;

    /// Returns the names of the passes of one iteration, in order. A pass is one planning round, for example over
    /// messages or over summaries.
    fn passes(&self) -> &[Label];

    /// Returns the maximum number of iterations of a full compaction. `None` sets no limit.
    fn max_iterations(&self) -> Option<u32> {
        None
    }

    /// Runs one pass (planning round): reads the necessary parts of the view, and pushes the planned changes of the
    /// view (jobs) in the order of the log. A planner needs little memory for a long log if it keeps only one page and
    /// the next job.
    ///
    /// # Errors
    /// An error of reading from `view`. The error ends the pass.
    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError>;

    /// Returns the data and lines to add to a summary that the planner planned. Called only if [`Request::details`]
    /// names a rule. Must return the same details for the same arguments.
    fn details(&self, _written: &WrittenText<'_>) -> Details {
        Details::default()
    }

    /// Returns a planner that plans one summary for everything before `kept_from`, with these additional fields in the
    /// summary's metadata. `None`, the default, if this planner's views have no such summary.
    fn keeping(
        &self,
        _kept_from: Seq,
        _facts: &BTreeMap<String, RawJson>,
    ) -> Option<Box<dyn Planner>> {
        None
    }

    /// Returns the request for rewriting one of this planner's summaries from its sources. `None` requests a summary of
    /// the default length, to replace its sources in the view.
    fn request_again(&self, _summary: &Summary) -> Option<Request> {
        None
    }
}
