//! What the planner promises: by example, and over random conversations that grow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod examples;
mod laws;
#[allow(dead_code)]
#[path = "../../../dag-compactor/tests/it/world.rs"]
mod world;

use compaction_plan::{Job, Room};
use handoff_compactor::{HANDOFF, HandoffPlanner, HandoffPolicy};
use memory_model::Seq;

impl world::World {
    pub(crate) fn head(&self) -> Seq {
        Seq(self.entries.len() as u32)
    }

    /// The jobs of a handoff, spans and entries read in pages.
    pub(crate) fn plan(&self, policy: &HandoffPolicy, room: Option<Room>, page: usize) -> Vec<Job> {
        self.plan_by(&HandoffPlanner::new(policy.clone()), room, &HANDOFF, page)
    }
}
