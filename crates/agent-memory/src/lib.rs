#![doc = include_str!("../README.md")]

mod background;
mod builder;
mod error;
mod history;
#[cfg(feature = "import")]
mod import;
mod material;
mod memory;
mod process;
#[cfg(feature = "replay")]
pub mod replay;
mod session;
pub mod summaries;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod turns;
mod usage;
mod writers;

#[cfg(feature = "tokio")]
pub use background::TokioBackground;
pub use background::{Background, Work};
pub use builder::{Builder, SystemClock};
pub use error::{Error, ErrorKind, Result};
pub use history::{Change, SnapshotView};
#[cfg(feature = "import")]
pub use import::{Imported, SessionImport};
pub use memory::{Memory, Verified};
pub use process::{NotAProcess, ProcessOwner, SystemProcesses};
pub use session::{Ingested, Session, SessionInfo};
pub use tree::{Tree, TreeNode};
pub use turns::{Action, Call, TurnPolicy, TurnReport, Window};
pub use usage::ObservedUsage;

pub use compaction_plan::{
    Job, Label, LabelCounts, Mode, Plan, Planner, Prompts, Request as JobRequest, StopReason, Tail,
    Work as JobWork,
};
pub use compaction_runner::{
    Before, Cancel, Cause, CauseCount, Event, HeldBy, Hooks, Liveness, Measure, ModelReport,
    NoHooks, Outcome, PrefetchReport, Recorder, RedoFailure, RedoNode, RedoPlan, RedoPolicy,
    RedoStop, Redone, Replaced, RunnerPolicy, SkipReason, Trigger, UnknownLiveness, WindowUse,
};
pub use context_assembler::{
    AssemblyPolicy, Budget, Context, ContextMessage, Eviction, MovedResult, Receipt, RenamedCall,
    Source,
};
pub use dag_compactor::{DagPlanner, DagPolicy, FreshTail};
pub use memory_model::{
    Body, Child, Clock, ConversationId, EntryKind, LogEntry, Media, MediaSource, Message, Part,
    RawJson, ResultContent, Role, Seq, SeqRange, SessionKey, Span, StepClock, Summary, SummaryId,
    Timestamp, TurnId, ViewName, ViewVersion,
};
pub use memory_search::{
    Cursor, Hit, HitOrder, HitTarget, Hits, IndexedHits, Query, Search, SearchIndex, SearchMode,
    SearchScope, Watermark,
};
pub use memory_store::{
    Conversation, ConversationFilter, ConversationPatch, EntryOutcome, FullStore, InMemoryStore,
    Origin, Owner, Page, Publication, Published, Snapshot, Violation, ViolationKind,
};
#[cfg(feature = "tokio")]
pub use model_client::TokioTimer;
pub use model_client::guard::{
    AttemptEvent, AttemptKind, BreakerPolicy, CallObserver, GuardPolicy, RetryPolicy, SpendPolicy,
    Spent,
};
pub use model_client::{ChatModel, Timer};
pub use retrieval_tools::{ExpandArgs, GrepArgs, Retrieval, RetrievalLimits};
#[cfg(feature = "sqlite")]
pub use store_sqlite::{
    Durability, LockObserver, LockWait, PlainExport, SqliteOptions, SqliteStore,
};
pub use summarize_escalation::{
    Chain, ExtractiveSummarizer, Gate, Ladder, LlmSummarizer, Summarizer, SummaryRequest,
    SummaryText,
};
pub use token_estimate::{
    ContextTokens, Outcome as ResponseOutcome, SafetyFactor, TokenEstimator,
    Usage as ResponseUsage, default_estimator, estimator, estimator_names,
};
