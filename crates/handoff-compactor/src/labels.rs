use compaction_plan::Label;

/// Kind of the change of the view (job) that replaces all entries before the kept messages by one summary. If the kept
/// messages begin inside a turn, the summary ends before that turn.
pub const HANDOFF: Label = Label::from_static("handoff");

/// Kind of the change of the view (job) that summarizes the beginning of a turn if the end of the turn is kept.
pub const TURN_PREFIX: Label = Label::from_static("turn_prefix");
