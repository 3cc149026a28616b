#![doc = include_str!("../README.md")]

mod activity;
mod assembly;
mod assembly_exact;
mod assembly_input;
mod auto_handoff;
mod builder;
mod by_runner;
mod compact;
mod copied;
mod defaults;
mod deferred;
mod embedding;
mod error;
mod hand_over_options;
mod handing_over;
mod history;
mod identity;
#[cfg(feature = "import")]
mod import;
mod in_use;
mod indexing;
mod ingest;
mod kept_states;
mod known_states;
mod memory;
mod open_calls;
mod open_session;
#[cfg(feature = "opencode")]
mod opencode;
mod per_session;
#[cfg(feature = "import")]
mod placement;
mod process_owner;
mod proof;
mod purge;
#[cfg(feature = "replay")]
pub mod replay;
mod requested;
mod requests;
mod runner;
mod sent;
mod session;
#[cfg(feature = "conventions")]
mod session_files;
mod sessions;
mod settings;
mod spawner;
mod state;
mod strategy;
pub mod summaries;
mod system_prompt;
#[cfg(feature = "testing")]
pub mod testing;
mod tree;
mod turn_policy;
mod turns;
mod usage;
mod verify;
mod without_store;
mod writers;

pub use builder::Builder;
pub use compact::CompactRequest;
pub use error::{Error, ErrorKind, Result};
pub use memory::Memory;
pub use open_session::OpenSession;
pub use session::Session;
pub use strategy::Strategy;
pub use turn_policy::{TurnPolicy, Window};
pub use turns::{PreparedContext, TurnReport};
pub use verify::VerifyReport;

pub use compaction_plan::Mode;
pub use context_assembler::{Budget, Context};
pub use dag_compactor::DagPolicy;
pub use handoff_compactor::HandoffPolicy;
pub use memory_model::{
    Message, Part, RawJson, Reply, Role, Seq, SeqRange, SessionKey, ToolCall, ToolDefinition,
};
pub use retrieval_tools::Retrieval;
pub use summarize_escalation::Summarizer;

/// Compaction of views: policies, planners, plans, hooks and outcomes.
pub mod compaction {
    pub use block_overlay::planner::{BlockPlanner, BlockPolicy, Digest};
    pub use compaction_plan::{
        AtomReader, BoxError, CLEAR, CLEAR_TO_FIT, ClearFigures, ClearingPlanner, CompactionResult,
        Details, EntryReader, Goal, InMemoryView, Job, JobSink, JobSource, Label, LabelCounts,
        Live, Overlay, PassInput, Plan, Planner, Prompts, Request, Room, SpanReader, StopReason,
        Tail, ViewSource, Work, WrittenText,
    };
    pub use compaction_runner::{
        CancellationToken, Cause, CauseCount, CompactionDecision, CompactionReason, Event,
        HookList, Hooks, JobDecision, LeaseHolder, Measure, ModelReport, Outcome, PlannedJob,
        PrefetchReport, Recorder, RedoCandidate, RedoFailure, RedoPlan, RedoPolicy, RedoReport,
        RedoStop, ReplacedSummary, RunnerPolicy, SkipReason, Trigger, WindowUse,
    };
    pub use dag_compactor::{DagPlanner, FreshTail};
    pub use handoff_compactor::{
        COMPACT_PRESERVE_COUNT, CutPolicy, FileLedger, FileOwner, HandoffPlanner, LeftOut,
        LiveHandoffPolicy, Preparation, prepare,
    };
    pub use turn_map::{ClearPolicy, TrimPolicy};

    pub use crate::auto_handoff::AutoHandoff;
    pub use crate::compact::{CallGuards, RedoRequest};
    pub use crate::deferred::Recovery;
    pub use crate::hand_over_options::HandOver;
    pub use crate::handing_over::{HandOverOutcome, HandOverSkip, Handoff};
    pub use crate::process_owner::ProcessOwner;
    pub use crate::runner::Runner;
    pub use crate::spawner::{Background, Task};
    pub use crate::turn_policy::{Action, LiveTurnPolicy};
    pub use crate::without_store::compact;

    /// Compaction of a running agent's messages by blocks, without a store: see the crate `block-overlay`.
    /// [`Strategy::Blocks`](crate::Strategy::Blocks) keeps the same blocks as a view of a session.
    pub mod blocks {
        pub use block_overlay::{
            AgentContext, BlockCompactionStrategy, CompactedSection, CompactionBlock,
            CompactionConfig, CompactionEvent, CompactionHooks, CompactionOutcome, CompactionScope,
            CompactionStrategy, Compactor, ContextConfig, DefaultBlockCompaction,
            DefaultCompaction, Error, LoopContext, LoopRecord, LoopRun, LoopSession, Omission,
            Result, Shown, SummarizingBlockCompaction, TurnMap, TurnRange, TurnShown,
            build_context_from_session, compact_messages, compact_session_loops, resolve_scope,
        };
        pub use token_estimate::UsageTracker;
    }
}

/// Assembly of contexts from views: policies, budgets and receipts.
pub mod context {
    pub use context_assembler::{
        AssemblyPolicy, ContextAccounting, ContextMessage, Degradation, DegradationStep, Dropped,
        Form, MessageOrigin, MovedResult, Receipt, RenamedCall, ShortenedSummary, render_text,
    };

    pub use retrieval_tools::IdentityFiles;

    pub use crate::assembly::AssembleRequest;
    pub use crate::identity::Identity;
}

/// The data model: messages, views, summaries, ids and hashes.
pub mod model {
    pub use memory_model::conventions::{AgentConventions, GenericConventions};
    pub use memory_model::{
        Accounting, Child, Clock, ConversationId, EntryKind, EntryRef, Hash, LogEntry, Media,
        MediaSource, Purpose, ResultContent, Span, SpanBody, StepClock, Summary, SummaryBody,
        SummaryId, SystemClock, Timestamp, TurnId, View, ViewName, ViewVersion, Zone,
        without_half_pairs,
    };
}

/// Clients of models, and guards around their calls.
pub mod models {
    #[cfg(feature = "genai")]
    pub use model_client::GenAi;
    #[cfg(feature = "tokio")]
    pub use model_client::TokioTimer;
    pub use model_client::guard::{
        AttemptEvent, AttemptKind, BreakerPolicy, BreakerState, CallObserver, GuardPolicy, Guards,
        RetryPolicy, SessionGuard, SpendPolicy, Spent,
    };
    #[cfg(feature = "clients")]
    pub use model_client::{
        ANTHROPIC_BASE_URL, AnthropicMessages, ApiKey, GEMINI_BASE_URL, GeminiGenerate,
        MIN_OUTPUT_TOKENS, OLLAMA_BASE_URL, OPENAI_BASE_URL, OpenAiCompatible, OpenAiEmbeddings,
        OpenAiResponses, OutputLimit, ReasoningEffort, is_this_machine, public_url,
    };
    pub use model_client::{
        AnswerObserver, AnswerProgress, ChatModel, ChatPrompt, Completion, EmbeddingModel,
        Embeddings, Failure, FailureKind, ModelUsage, Stop, Timer, is_context_overflow, observed,
        report_progress,
    };
}

/// Conversion of messages, replies and tools to and from the formats of OpenAI, Anthropic and Gemini.
#[cfg(feature = "providers")]
pub mod providers {
    pub use provider_shapes::{
        Error, ErrorKind, LIMITS, Provider, RequestLimits, anthropic, gemini, openai, responses,
    };
}

/// The retrieval tools: grep, recall, files, requests, describe and expand.
pub mod retrieval {
    #[cfg(feature = "mcp")]
    pub use retrieval_tools::mcp;
    pub use retrieval_tools::{
        Description, Error, ErrorKind, ExpandAnswer, ExpandArgs, ExpandedChild, ExpandedMessage,
        ExpandedSummary, FileUse, FilesAnswer, FilesArgs, GrepAnswer, GrepArgs, GrepHit, HitKind,
        ListedMessage, Notes, Passage, PassageChange, RecallAnswer, RecallArgs, RequestsAnswer,
        RequestsArgs, RetrievalLimits, RetrievalSet, SessionHit, SessionsAnswer, Target, Tool,
        ToolAnswer, ToolNames, UseKind, UseOutcome,
    };
}

/// Searches, the search index of a session, and embedders.
pub mod search {
    pub use memory_search::{
        Embedder, Error, ErrorKind, HitOrder, IndexCheck, IndexProgress, SearchMode, SearchScope,
        SearchStop, VectorProgress,
    };
    #[cfg(feature = "static-embeddings")]
    pub use memory_search::{StaticTable, TableError};

    pub use crate::embedding::ModelEmbedder;
    pub use crate::indexing::{IndexSize, SessionIndex};
}

/// Stores of conversations, and the metadata of these conversations.
pub mod store {
    pub use memory_store::{
        ChangedConversation, Conversation, ConversationFilter, ConversationPatch, ConversationRef,
        EntryOutcome, Erased, ErasedRange, Erasure, Erasures, Error, ErrorKind, FullStore,
        InMemoryStore, Maintain, Order, Origin, Owner, Page, Publication, Published, Snapshot,
        Store, Usage, ViewInfo, Violation, ViolationKind, WorkQueue, read_conversations,
    };
    #[cfg(feature = "postgres")]
    pub use store_postgres::{PostgresOptions, PostgresStore};
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub use store_sql::Copied;
    #[cfg(feature = "sqlite")]
    pub use store_sqlite::{
        BackupReport, Durability, LaterErasure, LockObserver, LockWait, LostEntries, PlainExport,
        Replaced, Restore, SqliteOptions, SqliteStore,
    };

    pub use crate::ingest::IngestReport;
    pub use crate::purge::PurgeReport;
    pub use crate::session::SessionInfo;

    /// Anchors outside of a database: receipts of logs, certificates of compactions, and comparisons with transcripts.
    ///
    /// They show later what [`Memory::verify`](crate::Memory::verify) cannot find in the database alone: a lost end of a
    /// log, a restored older copy, a missing session, or erased words that are back.
    pub mod proof {
        pub use crate::proof::{
            Certificate, CertifiedSpan, CertifiedSummary, Receipt, check_receipts,
        };
        #[cfg(feature = "import")]
        pub use crate::proof::{TranscriptCheck, check_transcript};
    }
}

/// Token estimators, and token usage that providers report.
pub mod tokens {
    pub use token_estimate::{
        ContextTokens, EstimatorId, HeuristicEstimator, ResponseStatus, SafetyFactor,
        TokenEstimator, TokenEstimatorExt, Usage, default_estimator, estimator, estimator_names,
        models,
    };

    pub use crate::usage::{ObservedUsage, SessionUsage};
}

/// The conventions of other agents, and with the feature `import` their transcripts, and functions to read and import them.
#[cfg(feature = "conventions")]
pub mod transcripts {
    pub use agent_conventions::{KnownAgents, SessionFile};
    #[cfg(feature = "import")]
    pub use message_formats::{
        AgentHome, CalledName, CountedInput, EntryHead, Error, ErrorKind, Format, Formats,
        NAME_KINDS, NamePatterns, Origin, OwnCompaction, PlainLines, ReadOptions, Report,
        SessionBuilder, SessionLog, Shown, SourceScope, SourceSummary, Transcript, Warning,
        own_compactions, read, read_file,
    };

    #[cfg(feature = "import")]
    pub use crate::import::{ImportReport, KnownRun, SessionImport, StoredSession, SummaryImport};
    #[cfg(feature = "opencode")]
    pub use crate::opencode::OpenCodeDatabase;
    #[cfg(feature = "import")]
    pub use crate::placement::take_reserved;
}

/// Versions of a session's view, and the tree of its summaries.
pub mod view {
    pub use crate::history::{Change, ViewAtVersion};
    pub use crate::tree::{NodeKind, Tree, TreeNode, TreeRequest};
}

/// Tests the examples of the page that compares systems.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/compare.md")]
struct Compare;
