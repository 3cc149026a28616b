//! The planner that keeps blocks as a view of a log.

mod desired;
mod entry;
mod jobs;
mod pass;
mod policy;

pub use pass::BlockPlanner;
pub use policy::{BlockPolicy, Digest};

use compaction_plan::Label;

/// Name of the planner's only pass, and of the view that the planner compacts.
pub const BLOCKS: Label = Label::from_static("blocks");
/// Kind of the jobs that write a summary.
pub const SUMMARIZE: Label = Label::from_static("summarize");
/// Kind of the jobs that shorten the tool output of turns.
pub const TRIM: Label = Label::from_static("trim");
/// Kind of the jobs that leave turns out of the view.
pub const OMIT: Label = Label::from_static("omit");
/// Kind of the jobs that show messages unchanged again, so that other jobs can replace a span with outdated bounds.
pub const UNFOLD: Label = Label::from_static("unfold");
