//! Names of the passes and of their jobs.

use compaction_plan::Label;

/// Name of the pass over messages, and of its jobs: summaries of messages.
pub const LEAF: Label = Label::from_static("leaf");
/// Name of the pass over summaries, and of its jobs: summaries of summaries.
pub const CONDENSED: Label = Label::from_static("condensed");
