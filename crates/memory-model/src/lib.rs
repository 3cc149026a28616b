#![doc = include_str!("../README.md")]

mod accounting;
mod borrowed;
pub mod conventions;
mod hash;
mod ids;
mod json;
mod message;
mod part;
pub mod raw;
mod reply;
mod summary;
mod summary_body;
mod time;
mod tool;
mod transcode;
mod view;

pub use accounting::{Accounting, summary_overhead};
pub use hash::{FieldHasher, Hash, short_hash};
pub use ids::{
    ConversationId, EntryRef, RangeEnds, RenderingId, Seq, SeqRange, SessionKey, SummaryId,
    TrimPolicyId, ViewName, ViewVersion,
};
pub use json::{RawJson, decoded_strings, text_without_bytes, without_half_pairs};
pub use message::{EntryKind, ExportEntry, LogEntry, Message, TurnId};
pub use part::{
    MAX_PART_DEPTH, Media, MediaSource, Part, ResultContent, inner_part_from_raw, part_from_raw,
    parts_from_json,
};
pub use reply::Reply;
pub use summary::{Child, Purpose, Recipe, SourceHasher, Summary, SummaryFigures, summary_id};
pub use summary_body::{RankCountError, RankedLine, SummaryBody};
pub use time::{Clock, StepClock, SystemClock, Timestamp, Zone};
pub use token_estimate::{MessageView, PartView, Role};
pub use tool::{ToolCall, ToolDefinition};
pub use view::{
    Span, SpanBody, SpanRange, SpanStart, SpliceError, SpliceRows, View, clip_starts, spans_of,
    splice_starts,
};
