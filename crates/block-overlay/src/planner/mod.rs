//! A planner that compacts the runs of an agent's loop into blocks, and keeps the blocks as a view of the log in a
//! store.

mod desired;
mod entry;
mod jobs;
mod pass;
mod policy;

pub use pass::BlockPlanner;
pub use policy::{BlockPolicy, Digest};

use compaction_plan::Label;

/// Name of the planner's only pass (planning round), and of the view (the compacted log) that the planner changes.
pub const BLOCKS: Label = Label::from_static("blocks");
/// Kind of the changes of the view (jobs) that replace turns by a summary.
pub const SUMMARIZE: Label = Label::from_static("summarize");
/// Kind of the changes of the view (jobs) that shorten the tool output of turns.
pub const TRIM: Label = Label::from_static("trim");
/// Kind of the changes of the view (jobs) that remove turns.
pub const OMIT: Label = Label::from_static("omit");
/// Kind of the changes of the view (jobs) that show messages unchanged again. For example, they are needed if a span of
/// the view has outdated bounds, before other jobs can replace its messages.
pub const UNFOLD: Label = Label::from_static("unfold");
