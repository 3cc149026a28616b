#![doc = include_str!("../README.md")]

mod clear;
mod details;
mod in_memory;
mod job;
mod label;
mod live;
mod overlay;
mod planner;
mod result;
mod source;

pub use clear::{CLEAR, CLEAR_TO_FIT, ClearFigures, ClearingPlanner};
pub use details::{Details, JobSource, WrittenText};
pub use in_memory::InMemoryView;
pub use job::{Job, Plan, Prompts, Request, StopReason, Work};
pub use label::{Label, LabelCounts};
pub use live::Live;
pub use overlay::Overlay;
pub use planner::{Goal, Mode, PassInput, Planner, Room};
pub use result::CompactionResult;
pub use source::{AtomReader, BoxError, EntryReader, JobSink, SpanReader, Tail, ViewSource};
