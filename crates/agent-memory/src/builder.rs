//! The builder of a memory.

use std::sync::{Arc, Mutex};

use block_overlay::planner::{BlockPolicy, Digest};
use compaction_plan::Planner;
use compaction_runner::{
    CancellationToken, Hooks, InFlight, Liveness, NoHooks, RunnerPolicy, Trigger,
};
use context_assembler::AssemblyPolicy;
use dag_compactor::DagPolicy;
use handoff_compactor::{HandoffPolicy, LiveHandoffPolicy};
use memory_model::{Clock, SystemClock};
use memory_search::{Embedder, Search, SegmentSearch};
use memory_store::{FullStore, InMemoryStore, Owner};
use model_client::Timer;
#[cfg(feature = "tokio")]
use model_client::TokioTimer;
use model_client::guard::{CallObserver, GuardPolicy, Guards};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer};
use token_estimate::{TokenEstimator, default_estimator};
use turn_map::{ClearPolicy, CutPolicy};

use crate::activity::Activities;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::{Identity, IdentityFiles};
use crate::memory::{Inner, Memory};
use crate::per_session::PerSession;
use crate::process_owner::{self, SystemProcesses};
use crate::requests::Requests;
use crate::spawner::{Prefetches, Spawner, Task};
use crate::strategy::{Planners, Strategy};
use crate::turn_policy::{Action, LiveTurnPolicy, TurnPolicy};
use crate::writers::Writers;

/// Returns an extractive summarizer that knows the agents whose transcripts can be imported.
fn default_extractive() -> ExtractiveSummarizer {
    #[cfg(feature = "import")]
    let extracts =
        ExtractiveSummarizer::new().with_conventions(Arc::new(message_formats::KnownAgents));
    #[cfg(not(feature = "import"))]
    let extracts = ExtractiveSummarizer::new();
    extracts
}

/// The conventions of the agents whose transcripts can be imported.
fn default_conventions() -> Arc<dyn memory_model::conventions::AgentConventions> {
    #[cfg(feature = "import")]
    let conventions = message_formats::KnownAgents;
    #[cfg(not(feature = "import"))]
    let conventions = memory_model::conventions::GenericConventions;
    Arc::new(conventions)
}

/// Where conversations are stored.
#[derive(Debug)]
enum StoreConfig {
    #[cfg(feature = "sqlite")]
    Sqlite(std::path::PathBuf, store_sqlite::SqliteOptions),
    Store(Arc<dyn FullStore>),
}

/// Builds a [`Memory`]. By default conversations are kept in memory, tokens are counted by the
/// calibrated estimator, and extractive summaries are compacted into a DAG: no key and no model is
/// needed.
#[derive(Debug)]
pub struct Builder {
    store: StoreConfig,
    /// A search of the application, in place of the store's.
    search: Option<Arc<dyn Search>>,
    keeps_index: bool,
    embedder: Option<Arc<dyn Embedder>>,
    estimator: Arc<dyn TokenEstimator>,
    summarizer: Option<Arc<dyn Summarizer>>,
    extractive: ExtractiveSummarizer,
    fallbacks: Vec<Arc<dyn Summarizer>>,
    guards: Option<Guards>,
    observer: Option<Arc<dyn CallObserver>>,
    ladder: Ladder,
    dag: DagPolicy,
    handoff: LiveHandoffPolicy,
    blocks: Option<BlockPolicy>,
    strategy: Strategy,
    /// A planner of the application, in place of the strategy's.
    planner: Option<Arc<dyn Planner>>,
    clear_results: Option<ClearPolicy>,
    assembly: AssemblyPolicy,
    fresh_tail: Option<usize>,
    runner: RunnerPolicy,
    identity: Option<String>,
    identity_files: Option<IdentityFiles>,
    clock: Arc<dyn Clock>,
    hooks: Arc<dyn Hooks>,
    owner: Option<String>,
    liveness: Arc<dyn Liveness>,
    turns: LiveTurnPolicy,
    /// `None` for the Tokio runtime that the memory is opened in, `Some(None)` for no background tasks.
    spawner: Option<Option<Spawner>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            store: StoreConfig::Store(Arc::new(InMemoryStore::new())),
            search: None,
            keeps_index: true,
            embedder: None,
            estimator: default_estimator(),
            summarizer: None,
            extractive: default_extractive(),
            fallbacks: Vec::new(),
            guards: None,
            observer: None,
            ladder: Ladder::default(),
            dag: DagPolicy::default(),
            handoff: HandoffPolicy::default().into(),
            blocks: None,
            strategy: Strategy::default(),
            planner: None,
            clear_results: None,
            assembly: AssemblyPolicy::default(),
            fresh_tail: None,
            runner: RunnerPolicy::default(),
            identity: None,
            identity_files: None,
            clock: Arc::new(SystemClock),
            hooks: Arc::new(NoHooks),
            owner: None,
            liveness: Arc::new(SystemProcesses::new()),
            turns: TurnPolicy::default().into(),
            spawner: None,
        }
    }
}

impl Memory {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Stores conversations in the SQLite file at `path`, which is created if it does not exist.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(self, path: impl Into<std::path::PathBuf>) -> Self {
        self.sqlite_with(path, store_sqlite::SqliteOptions::default())
    }

    /// Stores conversations in the SQLite file at `path`, opened with these options: durability,
    /// lock time-out, read-only.
    #[cfg(feature = "sqlite")]
    pub fn sqlite_with(
        mut self,
        path: impl Into<std::path::PathBuf>,
        options: store_sqlite::SqliteOptions,
    ) -> Self {
        self.store = StoreConfig::Sqlite(path.into(), options);
        self
    }

    /// Stores conversations in this store.
    pub fn store(mut self, store: Arc<dyn FullStore>) -> Self {
        self.store = StoreConfig::Store(store);
        self
    }

    /// Keeps no search index in the store: the retrieval tools scan everything. One that is there stays as
    /// it is, and is not extended.
    pub fn without_index(mut self) -> Self {
        self.keeps_index = false;
        self
    }

    /// Sets the search of the retrieval tools, in place of the store's own. It must search the messages
    /// and summaries of the same store.
    pub fn search(mut self, search: Arc<dyn Search>) -> Self {
        self.search = Some(search);
        self.keeps_index = false;
        self
    }

    /// Sets the embedder: questions find messages that mean nearly what is asked, beside those that have
    /// its words; exact modes answer as without. By default there is none. A search of the application
    /// does not use it. See [`Session::embed`](crate::Session::embed).
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// Sets the estimator that counts new conversations. Existing conversations keep theirs.
    pub fn estimator(mut self, estimator: Arc<dyn TokenEstimator>) -> Self {
        self.estimator = estimator;
        self
    }

    /// Sets the summarizer. By default the extractive one.
    pub fn summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.summarizer = Some(summarizer);
        self
    }

    /// Sets the extractive summarizer, which writes summaries when there is no model or the model
    /// fails. By default it knows the conventions of the agents whose transcripts can be imported
    /// (feature `import`).
    pub fn extractive(mut self, extractive: ExtractiveSummarizer) -> Self {
        self.extractive = extractive;
        self
    }

    /// Adds a summarizer that is asked when those before it failed, such as a stronger model after
    /// a cheap one. May be called more than once.
    pub fn fallback(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.fallbacks.push(summarizer);
        self
    }

    /// Guards the summarizers' model calls: a circuit breaker for each session, time-outs, retries,
    /// spending limits, a cache, a limit on concurrent calls. Takes its time from Tokio.
    #[cfg(feature = "tokio")]
    pub fn guards(self, policy: GuardPolicy) -> Self {
        self.guards_with(policy, Arc::new(TokioTimer::new()))
    }

    /// As [`Builder::guards`], with the time of this timer.
    pub fn guards_with(mut self, policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        self.guards = Some(Guards::new(policy, timer));
        self
    }

    /// Sets the observer of each attempt at a model call, for progress and telemetry. Needs guards.
    pub fn observe_calls(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets the ladder: the ways of summarizing that are tried until a summary is short enough.
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Compacts into a DAG of summaries, by this policy, unless a session chose another strategy.
    pub fn dag(mut self, policy: DagPolicy) -> Self {
        self.dag = policy;
        self.strategy(Strategy::Dag)
    }

    /// Compacts by handoff, by this policy, unless a session chose another strategy. A
    /// [`LiveHandoffPolicy`](crate::handoff::LiveHandoffPolicy) is asked for at each plan, such as one that a settings file
    /// holds.
    pub fn handoff(mut self, policy: impl Into<LiveHandoffPolicy>) -> Self {
        self.handoff = policy.into();
        self.strategy(Strategy::Handoff)
    }

    /// Compacts by handoff before each turn whose view costs more than `max_tokens` tokens, and waits for the model; the newest
    /// `keep_tail` messages stay. 0 stands for 80,000 and 20. A negative `max_tokens` switches it off:
    /// [`Session::hand_over`](crate::Session::hand_over) still hands over.
    pub fn handoff_above(self, max_tokens: i64, keep_tail: usize) -> Self {
        let hard = match u64::try_from(max_tokens) {
            Err(_) => Trigger::Never,
            Ok(0) => Trigger::Absolute { tokens: 80_000 },
            Ok(tokens) => Trigger::Absolute { tokens },
        };
        let messages = if keep_tail == 0 { 20 } else { keep_tail };
        let handoff = HandoffPolicy {
            keep: CutPolicy::LastMessages { messages },
            split_turns: false,
            max_source_tokens: None,
            min_tokens: 0,
            list_files: false,
            ..HandoffPolicy::default()
        };
        self.handoff(handoff).turns(TurnPolicy {
            hard,
            before_turn: Action::Compact,
            ..TurnPolicy::manual()
        })
    }

    /// Compacts by blocks, by this policy, unless a session chose another strategy. By default the memory's summarizer
    /// writes what stands for the turns of a block; a model reads every message once.
    pub fn blocks(mut self, policy: BlockPolicy) -> Self {
        self.blocks = Some(policy);
        self.strategy(Strategy::Blocks)
    }

    /// Sets the strategy of sessions that chose none. By default the DAG.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self.planner = None;
        self
    }

    /// Sets the planner of compactions, in place of a strategy. Sessions that chose a strategy have its planner.
    pub fn planner(mut self, planner: Arc<dyn Planner>) -> Self {
        self.planner = Some(planner);
        self
    }

    /// Shows old results of tools as placeholders in the views of all strategies, by this policy. Each compaction clears
    /// what its strategy leaves as messages. Placeholders can be expanded, and summaries are made from the words
    /// themselves. By default nothing is cleared. [`ClearFigures`](crate::clearing::ClearFigures) of
    /// [`Session::plan`](crate::Session::plan) say what the next compaction saves.
    pub fn clear_results(mut self, policy: ClearPolicy) -> Self {
        self.clear_results = Some(policy);
        self
    }

    /// Sets the number of newest messages that are not compacted. If the assembly policy keeps a
    /// tail whole, with [`AssemblyPolicy::whole_tail`], that tail has the same number. It replaces the
    /// number in the DAG policy and in the assembly policy, whichever is set first; their limits in
    /// tokens stay. With the strategy handoff it replaces what the policy keeps.
    pub fn fresh_tail(mut self, messages: usize) -> Self {
        self.fresh_tail = Some(messages);
        self
    }

    /// Sets the policy by which contexts are assembled.
    pub fn assembly(mut self, policy: AssemblyPolicy) -> Self {
        self.assembly = policy;
        self
    }

    /// Sets the policy by which plans are carried out.
    pub fn runner(mut self, policy: RunnerPolicy) -> Self {
        self.runner = policy;
        self
    }

    /// Sets the identity: a text that begins every context, such as who the agent is and whom it
    /// serves. It is a system message inside `<memory>` tags, which it cannot close, and counts
    /// against the budget.
    pub fn identity(mut self, text: impl Into<String>) -> Self {
        self.identity = Some(text.into());
        self
    }

    /// Sets files whose texts belong to the identity. They are read for each context, behind the text of
    /// [`Builder::identity`].
    pub fn identity_files(mut self, files: IdentityFiles) -> Self {
        self.identity_files = Some(files);
        self
    }

    /// Sets the clock for timestamps. By default the system's. Leases end by the store's own clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Registers hooks that observe compactions and may veto their jobs.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the owner of this memory's leases, which must be unique among the memories that share a
    /// store. By default one that names this process.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets how to tell that the owner of a lease is gone, so that its jobs are taken over at once.
    /// By default by the processes of this machine, where it has `/proc`.
    pub fn liveness(mut self, liveness: Arc<dyn Liveness>) -> Self {
        self.liveness = liveness;
        self
    }

    /// Sets which steps of an agent's turn compact, and from which threshold on. A [`LiveTurnPolicy`] is asked for at each
    /// step, such as one that a settings file holds.
    pub fn turns(mut self, policy: impl Into<LiveTurnPolicy>) -> Self {
        self.turns = policy.into();
        self
    }

    /// Sets how background summarization is started, such as by the tasks of an async runtime: `spawn` returns at once. By
    /// default the Tokio runtime that the memory is opened in (feature `tokio`).
    pub fn spawner(mut self, spawn: impl Fn(Task) + Send + Sync + 'static) -> Self {
        self.spawner = Some(Some(Spawner(Arc::new(spawn))));
        self
    }

    /// Disables background summarization: [`after_turn`](crate::Session::after_turn) prefetches
    /// before it returns, so that the order of events is the same in every run.
    pub fn without_background(mut self) -> Self {
        self.spawner = Some(None);
        self
    }

    /// Opens the store, and returns the memory.
    ///
    /// # Errors
    /// `Invalid` for an invalid ladder, or a [`fresh_tail`](Self::fresh_tail) with a planner that is
    /// not the DAG planner; `Store` when the database cannot be opened, belongs to another
    /// program, or was written by a newer version.
    pub async fn open(self) -> Result<Memory> {
        if let Err(error) = self.ladder.validate() {
            return Err(Error::new(ErrorKind::Invalid, error.to_string()));
        }
        let (mut dag, mut handoff, mut assembly) = (self.dag, self.handoff, self.assembly);
        if let Some(messages) = self.fresh_tail {
            if self.planner.is_some() {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "`fresh_tail` sets the tail of the strategies' planners, and the memory has another \
                     planner: set the tail in that planner's policy",
                ));
            }
            dag.fresh_tail.messages = messages;
            if self.strategy == Strategy::Handoff {
                let live = handoff.clone();
                handoff = LiveHandoffPolicy::new(move || HandoffPolicy {
                    keep: CutPolicy::LastMessages { messages },
                    ..live.get()
                });
            }
            assembly.whole_tail = assembly.whole_tail.map(|_| messages);
        }
        #[cfg_attr(
            not(feature = "sqlite"),
            expect(
                clippy::infallible_destructuring_match,
                reason = "one variant is left without the feature"
            )
        )]
        let store = match self.store {
            #[cfg(feature = "sqlite")]
            StoreConfig::Sqlite(path, options) => {
                Arc::new(options.open(path).await?) as Arc<dyn FullStore>
            }
            StoreConfig::Store(store) => store,
        };
        let guards = match (self.guards, self.observer) {
            (Some(guards), Some(observer)) => Some(Arc::new(guards.with_observer(observer))),
            (guards, _) => guards.map(Arc::new),
        };
        let summarizer = self
            .summarizer
            .unwrap_or_else(|| Arc::new(self.extractive.clone()));
        let blocks = self.blocks.unwrap_or_else(|| BlockPolicy {
            digest: match summarizer.provisional() {
                true => Digest::Summarizer,
                false => Digest::Rolling,
            },
            ..BlockPolicy::default()
        });
        let planners = Planners::new(
            dag,
            handoff,
            blocks,
            self.strategy,
            self.planner,
            self.clear_results.as_ref(),
        );
        let search = self.search.unwrap_or_else(|| {
            let store = Arc::clone(&store);
            let search = match self.keeps_index {
                true => SegmentSearch::new(store),
                false => SegmentSearch::without_index(store),
            };
            match &self.embedder {
                Some(embedder) => Arc::new(search.with_embedder(Arc::clone(embedder))),
                None => Arc::new(search),
            }
        });
        Ok(Memory::new(Inner {
            keeps_index: self.keeps_index,
            not_indexed: Mutex::default(),
            search,
            embedder: self.embedder,
            store,
            estimator: self.estimator,
            writers: Writers::new(summarizer, self.fallbacks, guards),
            extractive: self.extractive,
            ladder: self.ladder,
            planners,
            assembly,
            runner: self.runner,
            identity: Identity::new(self.identity, self.identity_files),
            clock: self.clock,
            hooks: self.hooks,
            owner: Owner(self.owner.unwrap_or_else(process_owner::current)),
            liveness: self.liveness,
            in_flight: InFlight::new(),
            turns: self.turns,
            spawner: self.spawner.unwrap_or_else(Spawner::current),
            prefetches: Prefetches::default(),
            activities: Activities::default(),
            conventions: default_conventions(),
            requests: Requests::default(),
            upgraded: PerSession::default(),
            states: PerSession::default(),
            closing: CancellationToken::new(),
        }))
    }
}
