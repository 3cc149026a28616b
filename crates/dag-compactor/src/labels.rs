//! Names of the passes and of their jobs.

use compaction_plan::Label;

/// Name of the pass that summarizes messages, and kind of its jobs.
pub const LEAF: Label = Label::from_static("leaf");
/// Name of the pass that summarizes summaries, and kind of its jobs.
pub const CONDENSED: Label = Label::from_static("condensed");
