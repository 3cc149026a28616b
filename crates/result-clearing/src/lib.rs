#![doc = include_str!("../README.md")]

mod clear_pass;
mod cleared;
mod figures;
mod lens;
mod planner;
mod rewrite;

pub use figures::ClearFigures;
pub use planner::{ClearingPlanner, UnsupportedTrim};

use compaction_plan::Label;

/// Name of the pass that clears what the inner planner left, and of the jobs that clear.
pub const CLEAR: Label = Label::from_static("clear");
/// Name of the pass that clears before the inner planner's passes where a view must fit its room.
pub const CLEAR_TO_FIT: Label = Label::from_static("clear_to_fit");
