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
    /// All passes, repeated until no pass finds a job.
    Full,
}

/// The part of a view that fits into contexts assembled from it.
///
/// With a room, a planner limits the messages that it protects, so that the rest fits too. While the view costs more
/// than the room, it plans every job that shrinks the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Maximum cost of a view that fits, in tokens.
    pub tokens: u64,
    /// Whether contexts show the last messages whole at any cost. The planner then does not limit the messages that it
    /// protects.
    pub whole_tail: bool,
}

/// The purpose of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// Compact everything that the policy allows.
    #[default]
    Policy,
    /// Make the view fit its [`Room`]: jobs that cannot do so are not planned.
    Fit,
}

/// The input of a pass.
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// The pass: one of [`Planner::passes`].
    pub pass: &'a Label,
    /// Head of the log.
    pub head: Seq,
    /// Cost of the whole view, in tokens.
    pub tokens: u64,
    /// Room of the contexts; `None` if the view is compacted for no particular window.
    pub room: Option<Room>,
    /// Purpose of the pass.
    pub goal: Goal,
    /// Counts tokens.
    pub accounting: &'a dyn Accounting,
}

impl PassInput<'_> {
    /// Cost of the view beyond its room, in tokens; 0 without a room.
    pub fn excess(&self) -> u64 {
        let excess = |room: Room| self.tokens.saturating_sub(room.tokens);
        self.room.map_or(0, excess)
    }
}

/// Plans the jobs of a compaction from a view and its log. A plan depends only on the planner, the input of the pass
/// and the pages that it reads.
#[async_trait]
pub trait Planner: Send + Sync + fmt::Debug {
    /// Name of the view that the planner compacts.
    fn view(&self) -> ViewName;

    /// Name, version and values of the policy on one line. Two planners that may decide differently
    /// have different fingerprints.
    fn fingerprint(&self) -> String;

    /// The passes of one iteration, in order.
    fn passes(&self) -> &[Label];

    /// Maximum number of iterations of a full compaction; `None` sets no limit.
    fn max_iterations(&self) -> Option<u32> {
        None
    }

    /// Plans a pass: reads the needed parts of the view, and pushes the jobs in the order of the log. A planner that
    /// keeps only a page and the state of its next job plans long logs in little memory.
    ///
    /// # Errors
    /// The errors of the source, which end the pass.
    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError>;

    /// Returns the facts and lines that the summary of a job keeps besides its text. Called if [`Request::details`]
    /// names a rule. The same arguments must give the same result.
    fn details(&self, _written: &WrittenText<'_>) -> Details {
        Details::default()
    }

    /// Returns the request for a summary of this planner that is rewritten from its sources. `None` asks for a summary
    /// that replaces them, of the length that the ladder chooses.
    fn request_again(&self, _summary: &Summary) -> Option<Request> {
        None
    }
}
