#![doc = include_str!("../README.md")]

mod block;
mod compactor;
mod config;
mod context;
mod context_config;
mod error;
mod events;
mod layout;
mod limits;
mod loops;
mod message;
mod omission;
mod one_liner;
mod orchestrate;
pub mod planner;
mod prune;
mod reduce;
mod session;
mod strategy;
#[cfg(feature = "summarize")]
mod summarize;
mod tally;
mod time;
mod trim;
mod turn_range;

pub use block::{CompactedSection, CompactionBlock};
pub use compactor::{AgentContext, Compactor, EventSender};
pub use config::{
    BlockCompactionStrategy, BlockInput, CompactionConfig, CompactionScope, FOCUS_PREFIX,
};
pub use context::{LoopContext, Shown, TurnShown, build_context_from_session};
pub use context_config::{ContextConfig, NamedConfigs};
pub use error::{Error, ErrorKind, Result};
pub use events::{
    BeforeCompaction, CompactionDecision, CompactionEvent, CompactionHooks, CompactionOutcome,
    EventRecorder,
};
pub use layout::{LoopLayout, Sections, TurnRule};
pub use limits::{ExecutionLimits, ExecutionTracker, LimitReached};
pub use loops::{ContinuationKind, LoopRecord, LoopStatus, LoopTurnId, ParallelGroup, TurnRecord};
pub use message::LoopMessage;
pub use omission::{Omission, OmissionReason};
pub use one_liner::{ONE_LINER_BYTES, OneLiners, SUMMARY_PREFIX, one_liner};
pub use orchestrate::{BlockMade, BlockSettings, compact_session_loops, resolve_scope};
pub use prune::{MEMO_PREFIX, PruneOrder, PruneRecord, Pruning};
pub use reduce::{
    CompactionStrategy, DefaultCompaction, Reduced, ReductionLevel, ReductionPolicy,
    compact_messages,
};
pub use session::{LoopRun, LoopSession};
pub use strategy::DefaultBlockCompaction;
#[cfg(feature = "summarize")]
pub use summarize::{OneLineSummarizer, SummarizingBlockCompaction};
pub use token_estimate::TokenEstimator as TokenCounter;
pub use turn_range::TurnRange;
