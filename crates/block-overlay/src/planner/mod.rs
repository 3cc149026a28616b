//! The planner that keeps blocks as a view of a log.

mod desired;
mod entry;
mod jobs;
mod pass;
mod policy;

pub use pass::BlockPlanner;
pub use policy::{BlockPolicy, Digest};

use compaction_plan::Label;

/// Name of the planner's pass, and of the view.
pub const BLOCKS: Label = Label::from_static("blocks");
/// Name of the jobs that make a summary.
pub const SUMMARIZE: Label = Label::from_static("summarize");
/// Name of the jobs that shorten the tool output of a turn.
pub const TRIM: Label = Label::from_static("trim");
/// Name of the jobs that leave turns out.
pub const OMIT: Label = Label::from_static("omit");
/// Name of the jobs that show messages again, so that other jobs can replace a span with outdated bounds.
pub const UNFOLD: Label = Label::from_static("unfold");
