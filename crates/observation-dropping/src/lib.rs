#![doc = include_str!("../README.md")]

mod drop_pass;
mod facts;
mod planner;
mod policy;
mod request;

pub use planner::DroppingPlanner;
pub use policy::DropPolicy;

use compaction_plan::Label;

/// Name of the pass that leaves out lines of summaries, and of its jobs.
pub const DROP: Label = Label::from_static("drop");
/// Name and version of the rule by which summaries without some of their lines keep facts. It is in their recipe.
pub const RULE: &str = "drop-lines@1";
