use compaction_plan::Label;

/// Kind of the jobs that replace all entries before the kept messages by one summary. If the kept messages begin inside
/// a turn, the summary ends before that turn.
pub const HANDOFF: Label = Label::from_static("handoff");

/// Kind of the jobs that summarize the beginning of a turn of which the end is kept.
pub const TURN_PREFIX: Label = Label::from_static("turn_prefix");
