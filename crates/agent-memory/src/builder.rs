//! Putting a memory together.

use std::sync::Arc;

use compaction_plan::Planner;
use compaction_runner::{Cancel, Hooks, InFlight, Liveness, NoHooks, RunnerPolicy};
use context_assembler::{AssemblyPolicy, render_identity};
use dag_compactor::{DagPlanner, DagPolicy};
use memory_model::{Clock, Timestamp};
use memory_search::{Search, SearchIndex};
use memory_store::{FullStore, InMemoryStore, IndexedSearch, ScanSearch};
use model_client::Timer;
#[cfg(feature = "tokio")]
use model_client::TokioTimer;
use model_client::guard::{CallObserver, GuardPolicy, Guards};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer};
use token_estimate::{HeuristicEstimator, TokenEstimator, default_estimator};

use crate::background::{Background, Preparing};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Inner, Memory};
use crate::process::{ProcessOwner, SystemProcesses};
use crate::turns::TurnPolicy;
use crate::writers::Writers;

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that asks the system"
    )]
    fn now(&self) -> Timestamp {
        let now = std::time::SystemTime::now();
        let since = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// An extractive summarizer that knows the agents whose transcripts can be imported.
fn default_extracts() -> ExtractiveSummarizer {
    #[cfg(feature = "import")]
    let extracts =
        ExtractiveSummarizer::new().with_conventions(Arc::new(message_formats::KnownAgents));
    #[cfg(not(feature = "import"))]
    let extracts = ExtractiveSummarizer::new();
    extracts
}

/// Where conversations are kept.
#[derive(Debug)]
enum Place {
    #[cfg(feature = "sqlite")]
    Sqlite(std::path::PathBuf, store_sqlite::SqliteOptions),
    Store(Arc<dyn FullStore>),
}

/// How conversations are searched.
#[derive(Debug)]
enum Searching {
    /// By reading them.
    Scan,
    /// By an index, and by reading what it does not reach.
    Index(Arc<dyn SearchIndex>),
    /// By another search.
    Other(Arc<dyn Search>),
}

impl Searching {
    fn over(self, store: &Arc<dyn FullStore>) -> Arc<dyn Search> {
        let store = Arc::clone(store);
        match self {
            Self::Scan => Arc::new(ScanSearch::new(store)),
            Self::Index(index) => Arc::new(IndexedSearch::new(index, store)),
            Self::Other(search) => search,
        }
    }
}

/// Puts a [`Memory`] together. Everything has a default: in memory, calibrated counts, extractive
/// summaries, the DAG policy; no key and no model is needed.
#[derive(Debug)]
pub struct Builder {
    place: Place,
    search: Searching,
    estimator: Arc<dyn TokenEstimator>,
    summarizer: Option<Arc<dyn Summarizer>>,
    extractive: ExtractiveSummarizer,
    fallbacks: Vec<Arc<dyn Summarizer>>,
    guards: Option<Guards>,
    observer: Option<Arc<dyn CallObserver>>,
    ladder: Ladder,
    planner: Planning,
    assembly: AssemblyPolicy,
    fresh_tail: Option<usize>,
    runner: RunnerPolicy,
    identity: Option<String>,
    clock: Arc<dyn Clock>,
    hooks: Arc<dyn Hooks>,
    owner: Option<String>,
    liveness: Arc<dyn Liveness>,
    turns: TurnPolicy,
    background: Beside,
}

/// What decides what is compacted.
#[derive(Debug)]
enum Planning {
    /// The DAG planner with this policy.
    Dag(DagPolicy),
    /// Another planner.
    Other(Arc<dyn Planner>),
}

/// Where work goes on beside the turns.
#[derive(Debug, Default)]
enum Beside {
    /// In the runtime that the memory is opened in, if it is one that we know.
    #[default]
    Ambient,
    Nowhere,
    There(Arc<dyn Background>),
}

impl Beside {
    fn settle(self) -> Option<Arc<dyn Background>> {
        match self {
            #[cfg(feature = "tokio")]
            Self::Ambient => {
                let current = crate::background::TokioBackground::current()?;
                Some(Arc::new(current))
            }
            #[cfg(not(feature = "tokio"))]
            Self::Ambient => None,
            Self::Nowhere => None,
            Self::There(background) => Some(background),
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            place: Place::Store(Arc::new(InMemoryStore::new())),
            search: Searching::Scan,
            estimator: default_estimator(),
            summarizer: None,
            extractive: default_extracts(),
            fallbacks: Vec::new(),
            guards: None,
            observer: None,
            ladder: Ladder::default(),
            planner: Planning::Dag(DagPolicy::default()),
            assembly: AssemblyPolicy::default(),
            fresh_tail: None,
            runner: RunnerPolicy::default(),
            identity: None,
            clock: Arc::new(SystemClock),
            hooks: Arc::new(NoHooks),
            owner: None,
            liveness: Arc::new(SystemProcesses::new()),
            turns: TurnPolicy::default(),
            background: Beside::default(),
        }
    }
}

impl Builder {
    /// Keeps conversations in this SQLite file, which is created if it does not exist.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(self, path: impl Into<std::path::PathBuf>) -> Self {
        self.sqlite_with(path, store_sqlite::SqliteOptions::default())
    }

    /// Keeps conversations in this SQLite file, opened with these options: durability, lock
    /// time-out, reading only.
    #[cfg(feature = "sqlite")]
    pub fn sqlite_with(
        mut self,
        path: impl Into<std::path::PathBuf>,
        options: store_sqlite::SqliteOptions,
    ) -> Self {
        self.place = Place::Sqlite(path.into(), options);
        self
    }

    /// Keeps conversations in this store.
    pub fn store(mut self, store: Arc<dyn FullStore>) -> Self {
        self.place = Place::Store(store);
        self
    }

    /// Sets the index that the retrieval tools search. What it does not reach is scanned, so
    /// answers are complete however far it lags. The application fills it.
    pub fn search_index(mut self, index: Arc<dyn SearchIndex>) -> Self {
        self.search = Searching::Index(index);
        self
    }

    /// Sets the search of the retrieval tools, in place of a scan. It must see what the store
    /// holds.
    pub fn search(mut self, search: Arc<dyn Search>) -> Self {
        self.search = Searching::Other(search);
        self
    }

    /// Counts new conversations with this estimator. Existing ones stay with theirs.
    pub fn estimator(mut self, estimator: Arc<dyn TokenEstimator>) -> Self {
        self.estimator = estimator;
        self
    }

    /// Lets this summarizer write summaries.
    pub fn summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.summarizer = Some(summarizer);
        self
    }

    /// Sets the extractive summarizer, which writes where no model is asked or none answers. By
    /// default it knows the conventions of the agents whose transcripts can be imported (feature
    /// `import`).
    pub fn extractive(mut self, extractive: ExtractiveSummarizer) -> Self {
        self.extractive = extractive;
        self
    }

    /// Lets this summarizer write what the one before it could not: a cheap model first, the main
    /// model after it. May be called more than once.
    pub fn fallback(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.fallbacks.push(summarizer);
        self
    }

    /// Puts guards around the summarizers: a circuit breaker for each session, time-outs, retries,
    /// spending limits, a cache, a limit on calls at the same time. Time is Tokio's.
    #[cfg(feature = "tokio")]
    pub fn guards(self, policy: GuardPolicy) -> Self {
        self.guards_with(policy, Arc::new(TokioTimer::new()))
    }

    /// Puts guards around the summarizers that take their time from this timer.
    pub fn guards_with(mut self, policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        self.guards = Some(Guards::new(policy, timer));
        self
    }

    /// Sets who observes the attempts that guards make: for progress and telemetry.
    pub fn observe_calls(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Sets what is tried until a summary is short enough.
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Compacts into a DAG of summaries by this policy.
    pub fn dag(mut self, policy: DagPolicy) -> Self {
        self.planner = Planning::Dag(policy);
        self
    }

    /// Lets this planner decide what is compacted.
    pub fn planner(mut self, planner: Arc<dyn Planner>) -> Self {
        self.planner = Planning::Other(planner);
        self
    }

    /// Sets how many of the newest messages are not compacted, and, where the assembly policy keeps
    /// a tail whole (as [`AssemblyPolicy::anna`] does), how many are whole in every context: one
    /// value for both (anna's `WithFreshTail`). It replaces the number in the DAG policy and in the
    /// assembly policy, whichever is set first; their limits in tokens stay.
    pub fn fresh_tail(mut self, messages: usize) -> Self {
        self.fresh_tail = Some(messages);
        self
    }

    /// Sets how contexts are chosen.
    pub fn assembly(mut self, policy: AssemblyPolicy) -> Self {
        self.assembly = policy;
        self
    }

    /// Sets how compactions are carried out.
    pub fn runner(mut self, policy: RunnerPolicy) -> Self {
        self.runner = policy;
        self
    }

    /// Puts this text before every context, as a system message inside `<memory>` tags, which it
    /// cannot close: who the agent is, whom it serves. It counts against the budget.
    pub fn identity(mut self, text: impl Into<String>) -> Self {
        self.identity = Some(text.into());
        self
    }

    /// Takes the time from this clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Tells these hooks what happens in compactions, and asks them before.
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Sets the owner of the leases that this memory takes. Every memory that shares a store needs
    /// another one. By default a new [`ProcessOwner`].
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets who decides whether the owner of a lease is gone, so that its work is taken over at
    /// once. By default [`SystemProcesses`].
    pub fn liveness(mut self, liveness: Arc<dyn Liveness>) -> Self {
        self.liveness = liveness;
        self
    }

    /// Sets which moments of an agent's turn compact, and when.
    pub fn turns(mut self, policy: TurnPolicy) -> Self {
        self.turns = policy;
        self
    }

    /// Makes summaries ahead there. By default it is the tokio runtime that the memory is opened
    /// in (feature `tokio`).
    pub fn background(mut self, background: Arc<dyn Background>) -> Self {
        self.background = Beside::There(background);
        self
    }

    /// Makes summaries ahead before [`after_turn`](crate::Session::after_turn) returns: the order
    /// of events is then the same in every run.
    pub fn no_background(mut self) -> Self {
        self.background = Beside::Nowhere;
        self
    }

    /// Sets the five presets named anna at once: estimator, DAG policy, ladder, assembly policy and
    /// turn policy. What is set afterwards replaces its part.
    pub fn anna(self) -> Self {
        self.estimator(Arc::new(HeuristicEstimator::Bytes4))
            .dag(DagPolicy::anna())
            .ladder(Ladder::anna())
            .assembly(AssemblyPolicy::anna())
            .turns(TurnPolicy::anna())
    }

    /// Opens the store.
    ///
    /// # Errors
    /// `Invalid` for a ladder that cannot be climbed, or a [`fresh_tail`](Self::fresh_tail) with
    /// a planner that is not the DAG planner; `Store` when the database cannot be opened,
    /// is not ours, or was written by a newer version.
    pub async fn open(self) -> Result<Memory> {
        if let Err(error) = self.ladder.validate() {
            return Err(Error::new(ErrorKind::Invalid, error.to_string()));
        }
        let (mut planner, mut assembly) = (self.planner, self.assembly);
        if let Some(messages) = self.fresh_tail {
            let Planning::Dag(policy) = &mut planner else {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "`fresh_tail` sets the tail of the DAG planner, and the memory has another \
                     planner: set the tail in that planner's policy",
                ));
            };
            policy.fresh_tail.messages = messages;
            assembly.whole_tail = assembly.whole_tail.map(|_| messages);
        }
        let planner = match planner {
            Planning::Dag(policy) => Arc::new(DagPlanner::new(policy)) as Arc<dyn Planner>,
            Planning::Other(planner) => planner,
        };
        let store = match self.place {
            #[cfg(feature = "sqlite")]
            Place::Sqlite(path, options) => {
                Arc::new(options.open(path).await?) as Arc<dyn FullStore>
            }
            Place::Store(store) => store,
        };
        let guards = match (self.guards, self.observer) {
            (Some(guards), Some(observer)) => Some(Arc::new(guards.with_observer(observer))),
            (guards, _) => guards.map(Arc::new),
        };
        let summarizer = self
            .summarizer
            .unwrap_or_else(|| Arc::new(self.extractive.clone()));
        Ok(Memory::new(Inner {
            search: self.search.over(&store),
            store,
            estimator: self.estimator,
            writers: Writers::new(summarizer, self.fallbacks, guards),
            extractive: self.extractive,
            ladder: self.ladder,
            planner,
            assembly,
            runner: self.runner,
            identity: self.identity.map(|text| render_identity(&text)),
            clock: self.clock,
            hooks: self.hooks,
            owner: self
                .owner
                .unwrap_or_else(|| ProcessOwner::current().to_string()),
            liveness: self.liveness,
            in_flight: InFlight::new(),
            turns: self.turns,
            background: self.background.settle(),
            preparing: Preparing::default(),
            closing: Cancel::new(),
        }))
    }
}
