#![doc = include_str!("../README.md")]

mod activity;
mod assembly;
mod assembly_exact;
mod assembly_input;
mod builder;
mod compact;
mod deferred;
#[cfg(feature = "import")]
mod earlier;
mod embedding;
mod error;
mod handing_over;
mod history;
mod identity;
#[cfg(feature = "import")]
mod import;
mod indexing;
mod ingest;
mod memory;
mod open_calls;
mod per_session;
#[cfg(feature = "import")]
mod placement;
mod process_owner;
mod purge;
#[cfg(feature = "replay")]
pub mod replay;
mod requested;
mod requests;
mod runner;
mod session;
#[cfg(feature = "import")]
mod session_files;
mod sessions;
mod spawner;
mod state;
mod strategy;
pub mod summaries;
mod supplied;
mod system_prompt;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod turn_policy;
mod turns;
mod usage;
mod verify;
mod writers;

pub use builder::Builder;
pub use deferred::Recovery;
pub use embedding::ModelEmbedder;
pub use error::{Error, ErrorKind, Result};
pub use handing_over::{HandOver, HandOverOutcome, HandOverSkip, Handoff};
pub use history::{Change, ViewAtVersion};
pub use identity::IdentityFiles;
#[cfg(feature = "import")]
pub use import::{ImportReport, SessionImport, SummaryImport};
pub use ingest::IngestReport;
pub use memory::Memory;
pub use process_owner::ProcessOwner;
pub use purge::PurgeReport;
pub use runner::Runner;
pub use session::{Session, SessionInfo};
pub use spawner::Task;
pub use strategy::Strategy;
pub use tree::{NodeKind, Tree, TreeNode, TreeRequest};
pub use turn_policy::{Action, LiveTurnPolicy, TurnPolicy, Window};
pub use turns::{PreparedContext, TurnReport};
pub use usage::ObservedUsage;
pub use verify::VerifyReport;

/// Plans of compactions: jobs, labels, and the traits of a planner.
pub mod plan {
    pub use compaction_plan::*;
}

/// Execution of plans: policies, outcomes, triggers, hooks, leases.
pub mod compaction {
    pub use compaction_runner::*;
}

/// Assembly of contexts: budgets, policies, receipts, rendering.
pub mod context {
    pub use context_assembler::*;
}

/// The planner of summary DAGs.
pub mod dag {
    pub use dag_compactor::*;
}

/// Compaction by blocks: the planner, and the blocks of agent loops without a store.
pub mod blocks {
    pub use block_overlay::*;
}

/// The planner of handoffs, and the files that a conversation used.
pub mod handoff {
    pub use handoff_compactor::*;
}

/// Old results as placeholders: policies, the planner around a planner, and what it saves.
pub mod clearing {
    pub use compaction_plan::{CLEAR, CLEAR_TO_FIT, ClearFigures, ClearingPlanner};
    pub use turn_map::{ClearPolicy, TrimPolicy};
}

/// Messages, views, summaries, ids and hashes.
pub mod model {
    pub use memory_model::*;
}

/// Queries, hits, the search over a store, its index, and embedders.
pub mod search {
    pub use memory_search::*;
}

/// The traits of a store, their arguments and results, the in-memory store, and verification.
pub mod store {
    pub use memory_store::*;
}

/// The store on SQLite.
#[cfg(feature = "sqlite")]
pub mod sqlite {
    pub use store_sqlite::*;
}

/// Transcripts of other agents: their formats, and how to read them.
#[cfg(any(feature = "import", feature = "providers"))]
pub mod transcripts {
    pub use message_formats::*;
}

/// Messages, usage and tools in the shapes of OpenAI, Anthropic and Gemini, both ways.
#[cfg(feature = "providers")]
pub mod providers {
    pub use message_formats::providers::*;
}

/// Clients of chat models, and guards around their calls.
pub mod models {
    pub use model_client::*;
}

/// The retrieval tools: grep, describe, expand, recall and files.
pub mod retrieval {
    pub use retrieval_tools::*;
}

/// Token estimators, and usage that providers report.
pub mod tokens {
    pub use token_estimate::*;
}

pub use compaction_plan::{Job, LabelCounts, Mode, Plan, Planner, StopReason};
pub use compaction_runner::{
    CancellationToken, CompactionReason, Event, HookList, Hooks, JobDecision, LeaseHolder, Measure,
    ModelReport, Outcome, PlannedJob, Recorder, RedoFailure, RedoPlan, RedoPolicy, RedoReport,
    RedoStop, ReplacedSummary, RunnerPolicy, Trigger, WindowUse,
};
pub use context_assembler::{
    AssemblyPolicy, Budget, Context, ContextMessage, MessageOrigin, Receipt,
};
pub use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
pub use handoff_compactor::{HandoffPlanner, HandoffPolicy};
pub use memory_model::{
    Child, Clock, ConversationId, EntryKind, LogEntry, Media, MediaSource, Message, Part, RawJson,
    ResultContent, Role, Seq, SeqRange, SessionKey, Span, SpanBody, Summary, SummaryId, Timestamp,
    ToolCall, ToolDefinition, ViewName, ViewVersion,
};
pub use memory_search::{HitOrder, SearchMode, SearchScope};
pub use memory_store::{
    Conversation, ConversationFilter, ConversationPatch, EntryOutcome, Erased, ErasedRange,
    FullStore, InMemoryStore, Order, Origin, Publication, Published, Violation, ViolationKind,
};
pub use model_client::ChatModel;
pub use model_client::guard::{
    AttemptEvent, AttemptKind, BreakerPolicy, CallObserver, GuardPolicy, RetryPolicy, SpendPolicy,
};
pub use retrieval_tools::{
    ExpandArgs, GrepArgs, RecallArgs, Retrieval, RetrievalLimits, ToolAnswer,
};
#[cfg(feature = "sqlite")]
pub use store_sqlite::{Durability, LockObserver, LockWait, SqliteOptions, SqliteStore};
pub use summarize_escalation::{
    ExtractiveSummarizer, Gate, Ladder, LlmSummarizer, Summarizer, SummarizerResponse,
    SummaryRequest,
};
pub use token_estimate::{
    ResponseStatus, SafetyFactor, TokenEstimator, Usage as ResponseUsage, default_estimator,
    estimator, estimator_names,
};
