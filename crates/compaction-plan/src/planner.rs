//! The trait that a planner implements.

use std::fmt;

use async_trait::async_trait;
use memory_model::{Accounting, Seq, Summary, ViewName};
use serde::{Deserialize, Serialize};

use crate::details::{Details, WrittenText};
use crate::job::Request;
use crate::label::Label;
use crate::source::{BoxError, JobSink, ViewSource};

/// How often a compaction repeats the passes of its planner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Runs each pass of the planner once.
    #[default]
    Incremental,
    /// Repeats all passes until no pass plans a job.
    Full,
}

/// Maximum cost of a view of which contexts can show everything.
///
/// If a planner knows it, the planner protects only as many messages as leave space for the rest of the view. While the
/// view costs more, it plans every job that makes the view smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Maximum cost of the view, in tokens.
    pub tokens: u64,
    /// Whether contexts show the last messages whole at any cost. The planner then protects them at any cost too.
    pub whole_tail: bool,
}

/// Extent to which a pass compacts the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Goal {
    /// Plans every job that the policy allows.
    #[default]
    Policy,
    /// Plans only jobs that help the view to fit its [`Room`].
    Fit,
}

/// Input of a planner for one pass.
#[derive(Debug, Clone, Copy)]
pub struct PassInput<'a> {
    /// Name of the pass: one of [`Planner::passes`].
    pub pass: &'a Label,
    /// Position of the log's last entry.
    pub head: Seq,
    /// Cost of the whole view, in tokens.
    pub tokens: u64,
    /// Maximum cost of the view after the compaction; `None` if no context window is known.
    pub room: Option<Room>,
    /// Extent of the compaction.
    pub goal: Goal,
    /// Counts the tokens of texts and messages.
    pub accounting: &'a dyn Accounting,
}

impl PassInput<'_> {
    /// Returns by how many tokens the view costs more than its [`room`](Self::room); 0 if it fits or no room is set.
    pub fn excess(&self) -> u64 {
        let excess = |room: Room| self.tokens.saturating_sub(room.tokens);
        self.room.map_or(0, excess)
    }
}

/// Plans the jobs of a compaction from a view and its log. A plan depends only on the planner, the input of the pass
/// and the pages that it reads.
#[async_trait]
pub trait Planner: Send + Sync + fmt::Debug {
    /// Returns the name of the view that the planner compacts.
    fn view(&self) -> ViewName;

    /// Returns the planner's name and version and the values of its policy, on one line. Two planners that may plan
    /// different jobs have different fingerprints.
    fn fingerprint(&self) -> String;

    /// Returns the names of the passes of one iteration, in order.
    fn passes(&self) -> &[Label];

    /// Returns the maximum number of iterations of a full compaction; `None` sets no limit.
    fn max_iterations(&self) -> Option<u32> {
        None
    }

    /// Plans one pass: reads the necessary parts of the view, and pushes the jobs in the order of the log. A planner
    /// that holds only one page and its next job plans long logs in little memory.
    ///
    /// # Errors
    /// An error of reading from `view`. It ends the pass.
    async fn plan(
        &self,
        input: PassInput<'_>,
        view: &dyn ViewSource,
        jobs: &mut dyn JobSink,
    ) -> Result<(), BoxError>;

    /// Returns the data and lines that are added to the summary of a job. Called only if [`Request::details`] names a
    /// rule. Must return the same details for the same arguments.
    fn details(&self, _written: &WrittenText<'_>) -> Details {
        Details::default()
    }

    /// Returns the request for rewriting one of this planner's summaries from its sources. `None` requests a summary
    /// that replaces its sources, of the length that the ladder chooses.
    fn request_again(&self, _summary: &Summary) -> Option<Request> {
        None
    }
}
