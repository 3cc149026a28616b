use compaction_plan::Label;

/// Jobs that replace all entries before the kept messages, or before the turn that these begin in, by one summary.
pub const HANDOFF: Label = Label::from_static("handoff");

/// Jobs that summarize the beginning of a turn if its end is kept.
pub const TURN_PREFIX: Label = Label::from_static("turn_prefix");
