#![doc = include_str!("../README.md")]

mod block;
mod compactor;
mod config;
mod context;
mod error;
mod lines;
mod orchestration;
pub mod planner;
mod session;
mod strategy;
#[cfg(feature = "summarize")]
mod summarize;
mod turns;

pub use block::{CompactedSection, CompactionBlock, Omission, TurnRange};
pub use compactor::{AgentContext, CompactionEvent, CompactionHooks, CompactionOutcome, Compactor};
pub use config::{
    BlockCompactionStrategy, CompactionConfig, CompactionScope, CompactionStrategy, ContextConfig,
};
pub use context::{LoopContext, LoopRun, Shown, TurnShown, build_context_from_session};
pub use error::{Error, Result};
pub use orchestration::{compact_session_loops, resolve_scope};
pub use session::{LoopRecord, LoopSession};
pub use strategy::{DefaultBlockCompaction, DefaultCompaction, compact_messages};
#[cfg(feature = "summarize")]
pub use summarize::{OneLineSummarizer, SummarizingBlockCompaction};
pub use turns::TurnMap;
