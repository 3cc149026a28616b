//! Names of the two planning rounds (passes), which are also the kinds of the summaries that they plan.

use compaction_plan::Label;

/// Name of the planning round (pass) that summarizes messages, and kind of the summaries that it plans.
pub const LEAF: Label = Label::from_static("leaf");
/// Name of the planning round (pass) that summarizes summaries, and kind of the summaries that it plans.
pub const CONDENSED: Label = Label::from_static("condensed");
