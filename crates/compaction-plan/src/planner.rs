//! The trait that a planner implements.

use std::fmt;

use async_trait::async_trait;
use memory_model::{Accounting, Seq, Summary, ViewName};
use serde::{Deserialize, Serialize};

use crate::details::{Details, WrittenText};
use crate::job::Request;
use crate::label::Label;
use crate::source::{BoxError, JobSink, ViewSource};

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

/// What a planner is told about a pass.
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// The pass: one of [`Planner::passes`].
    pub pass: &'a Label,
    /// The log's head.
    pub head: Seq,
    /// Cost of the whole view, in tokens.
    pub tokens: u64,
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

/// Decides what a compaction does: reads the view and the log, and plans jobs. Does nothing else, so what it plans
/// depends on what it is told and reads alone.
#[async_trait]
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

    /// Plans a pass: reads as much of the view as it needs, and pushes the jobs in the order of the log. A
    /// planner that keeps no more than a page and what its next job needs plans long logs in little memory.
    ///
    /// # Errors
    /// Those of the source, which end the pass.
    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError>;

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
