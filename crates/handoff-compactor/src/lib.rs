#![doc = include_str!("../README.md")]

mod boundary;
mod facts;
mod files;
mod labels;
mod left_out;
mod pass;
mod planner;
mod policy;
mod preparation;
mod removals;
mod tasks;

pub use facts::purpose;
pub use files::{FileLedger, FileOwner};
pub use labels::{HANDOFF, TURN_PREFIX};
pub use left_out::{LeftOut, left_out};
pub use planner::HandoffPlanner;
pub use policy::{COMPACT_PRESERVE_COUNT, HandoffPolicy, LiveHandoffPolicy};
pub use preparation::{Preparation, prepare};
pub use turn_map::CutPolicy;
