//! What the planner promises: by example, and over random conversations compacted to the end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod examples;
mod full;
mod world;

use compaction_plan::{Job, Label};
use dag_compactor::{DagPlanner, DagPolicy};

impl world::World {
    /// The jobs of a pass of the DAG's planner, spans and entries read in pages.
    pub(crate) fn plan(&self, policy: &DagPolicy, pass: &Label, page: usize) -> Vec<Job> {
        self.plan_by(&DagPlanner::new(policy.clone()), None, pass, page)
    }
}
