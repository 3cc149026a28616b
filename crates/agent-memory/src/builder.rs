//! The builder of a memory.

use std::sync::{Arc, Mutex};

use block_overlay::planner::{BlockPolicy, Digest};
use compaction_plan::Planner;
use compaction_runner::{CancellationToken, Hooks, InFlight, NoHooks, RunnerPolicy};
use context_assembler::AssemblyPolicy;
use dag_compactor::DagPolicy;
use handoff_compactor::{HandoffPolicy, LiveHandoffPolicy};
use memory_model::{Clock, SystemClock};
use memory_search::{Embedder, Search, SegmentSearch};
use memory_store::{FullStore, InMemoryStore};
use model_client::guard::Guards;
use summarize_escalation::{Ladder, Summarizer};
use token_estimate::{TokenEstimator, default_estimator};
use turn_map::{ClearPolicy, CutPolicy};

use crate::activity::Activities;
use crate::auto_handoff::AutoHandoff;
use crate::defaults::{default_conventions, default_extractive};
use crate::error::{Error, ErrorKind, Result};
use crate::hand_over_options::{HandOver, failing, model_only};
use crate::identity::Identity;
use crate::memory::{Inner, Memory};
use crate::per_session::PerSession;
use crate::process_owner::{self, SystemProcesses};
use crate::requests::Requests;
use crate::spawner::{Background, Prefetches};
use crate::strategy::{Planners, Strategy};
use crate::turn_policy::{LiveTurnPolicy, TurnPolicy};
use crate::writers::Writers;

/// Store of the conversations: an SQLite file that is still to be opened, or an open store.
#[derive(Debug)]
enum StoreConfig {
    #[cfg(feature = "sqlite")]
    Sqlite(std::path::PathBuf),
    Store(Arc<dyn FullStore>),
}

/// Builder of a [`Memory`]. A store must be set. By default, the calibrated estimator counts tokens, and sessions are
/// compacted into a DAG of extractive summaries. Extractive summaries quote the original messages, so that they need no
/// model and no key of a provider.
#[derive(Debug)]
pub struct Builder {
    store: Option<StoreConfig>,
    keeps_index: bool,
    embedder: Option<Arc<dyn Embedder>>,
    estimator: Arc<dyn TokenEstimator>,
    summarizers: Vec<Arc<dyn Summarizer>>,
    guards: Option<Guards>,
    /// Ladder of the application; `None` for the default ladders.
    ladder: Option<Ladder>,
    /// Whether handoffs publish only what a model wrote, in place of the ladder.
    model_only: bool,
    automatic: HandOver,
    dag: DagPolicy,
    handoff: LiveHandoffPolicy,
    blocks: Option<BlockPolicy>,
    strategy: Strategy,
    /// Planner of the application; replaces the planner of the strategy.
    planner: Option<Arc<dyn Planner>>,
    clear_results: Option<ClearPolicy>,
    assembly: AssemblyPolicy,
    fresh_tail: Option<usize>,
    runner: RunnerPolicy,
    identity: Identity,
    clock: Arc<dyn Clock>,
    hooks: Arc<dyn Hooks>,
    turns: LiveTurnPolicy,
    background: Background,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            store: None,
            keeps_index: true,
            embedder: None,
            estimator: default_estimator(),
            summarizers: Vec::new(),
            guards: None,
            ladder: None,
            model_only: false,
            automatic: HandOver::default(),
            dag: DagPolicy::default(),
            handoff: HandoffPolicy::default().into(),
            blocks: None,
            strategy: Strategy::default(),
            planner: None,
            clear_results: None,
            assembly: AssemblyPolicy::default(),
            fresh_tail: None,
            runner: RunnerPolicy::default(),
            identity: Identity::default(),
            clock: Arc::new(SystemClock),
            hooks: Arc::new(NoHooks),
            turns: TurnPolicy::default().into(),
            background: Background::default(),
        }
    }
}

impl Memory {
    /// Opens a memory in the SQLite file at `path`, with default settings. Creates the file if it does not exist.
    ///
    /// # Errors
    /// `Store` if the database cannot be opened, belongs to another program, or was written by a newer version.
    #[cfg(feature = "sqlite")]
    pub async fn open(path: impl Into<std::path::PathBuf>) -> Result<Self> {
        Self::builder().sqlite(path).open().await
    }

    /// Opens a memory in RAM, with default settings. All data is lost when the memory is dropped.
    ///
    /// # Errors
    /// None at present.
    pub async fn in_memory() -> Result<Self> {
        Self::builder().store(InMemoryStore::new()).open().await
    }

    /// Returns a builder with default settings. The store must still be set.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Sets the SQLite file in which conversations are stored. It is created if it does not exist. For other settings
    /// of durability, time-outs or read-only access, open a [`SqliteStore`](crate::store::SqliteStore) and pass it to
    /// [`Builder::store`].
    #[cfg(feature = "sqlite")]
    pub fn sqlite(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.store = Some(StoreConfig::Sqlite(path.into()));
        self
    }

    /// Sets the store of the conversations, such as an [`InMemoryStore`].
    pub fn store(mut self, store: impl FullStore + 'static) -> Self {
        self.store = Some(StoreConfig::Store(Arc::new(store)));
        self
    }

    /// Disables the search index. The retrieval tools then read all messages to find a text. An existing index in the
    /// store stays unchanged and is not extended.
    pub fn without_index(mut self) -> Self {
        self.keeps_index = false;
        self
    }

    /// Sets the embedder. Questions then also find messages with a similar meaning, not only messages with the same
    /// words. Exact search modes are not affected. By default there is no embedder. See
    /// [`SessionIndex::embed`](crate::search::SessionIndex::embed).
    pub fn embedder(mut self, embedder: impl Embedder + 'static) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Sets the estimator that counts the tokens of new conversations. An existing conversation keeps its estimator.
    pub fn estimator(mut self, estimator: impl TokenEstimator + 'static) -> Self {
        self.estimator = Arc::new(estimator);
        self
    }

    /// Adds a summarizer that writes summaries. It is asked if all summarizers that were added earlier failed, such as a
    /// stronger model after a cheap one. Without this call, summaries are extractive and need no model.
    pub fn summarizer(mut self, summarizer: impl Summarizer + 'static) -> Self {
        self.summarizers.push(Arc::new(summarizer));
        self
    }

    /// Adds guards to the summarizers' model calls: a circuit breaker for each session, time-outs, retries, spending
    /// limits, a cache, and a limit on concurrent calls. A [`GuardPolicy`](crate::models::GuardPolicy) uses Tokio's
    /// timer. [`Guards`] can have another timer and an observer.
    pub fn guards(mut self, guards: impl Into<Guards>) -> Self {
        self.guards = Some(guards.into());
        self
    }

    /// Sets the ladder: the methods of summarizing that are tried in order until a summary is accepted. Without this
    /// call, extracts replace the summaries that a model fails to write, except for
    /// [handoffs](Self::handoff).
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = Some(ladder);
        self.model_only = false;
        self
    }

    /// Compacts sessions into a DAG (a graph of summaries, and of summaries of summaries) with this policy. A session
    /// that has stored a strategy by [`Session::use_strategy`](crate::Session::use_strategy) keeps that strategy.
    pub fn dag(mut self, policy: DagPolicy) -> Self {
        self.dag = policy;
        self.strategy(Strategy::Dag)
    }

    /// Compacts sessions by handoff with this policy: one summary replaces all older messages and the previous
    /// summary. A session that has stored a strategy by [`Session::use_strategy`](crate::Session::use_strategy) keeps
    /// that strategy. A [`LiveHandoffPolicy`] is evaluated for each plan: use it for settings that change while the
    /// program runs.
    ///
    /// If a model writes summaries, one that failed or is empty is an error, no extract replaces it, and the session
    /// stays unchanged. [`ladder`](Self::ladder) sets another rule, unless it changes the gate alone.
    pub fn handoff(mut self, policy: impl Into<LiveHandoffPolicy>) -> Self {
        self.handoff = policy.into();
        self.strategy(Strategy::Handoff)
    }

    /// Compacts sessions by handoff before a turn, if the view (the compacted log) is larger than this setting allows.
    /// The turn waits for the model that writes the summary. Sets both the policy for handoffs and the policy for turns.
    ///
    /// If a model writes summaries, no handoff publishes an extract, also where a summary is refused. A later call of
    /// [`ladder`](Self::ladder) sets another rule.
    pub fn auto_handoff(mut self, setting: AutoHandoff) -> Self {
        self.model_only = true;
        self.handoff(HandoffPolicy::from(setting))
            .turns(TurnPolicy::from(setting))
    }

    /// Sets the options of automatic handoffs: those of [`Action::Compact`](crate::compaction::Action::Compact), of a
    /// [requested compaction](crate::Session::request_compaction), and after an overflow. With a
    /// [`runner`](HandOver::runner), the agent's own runner writes the summaries and is then reset. `reason` and
    /// `cancel` have no effect.
    pub fn handoff_options(mut self, request: HandOver) -> Self {
        self.automatic = request;
        self
    }

    /// Compacts sessions by blocks with this policy. A block shows one run of an agent (such as a prompt and the turns
    /// up to its answer): the last run as its first turns, a summary, and its recent turns, and an earlier run as a
    /// summary. A session that has stored a strategy by
    /// [`Session::use_strategy`](crate::Session::use_strategy) keeps that strategy. Without this call, the memory's
    /// summarizer writes the summaries. A summarizer that calls a model extends the previous summary, so that the
    /// model reads every message only once.
    pub fn blocks(mut self, policy: BlockPolicy) -> Self {
        self.blocks = Some(policy);
        self.strategy(Strategy::Blocks)
    }

    /// Sets the strategy for sessions that have no stored strategy. The default is [`Strategy::Dag`].
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self.planner = None;
        self
    }

    /// Sets a planner for sessions that have no stored strategy. A planner selects the messages to compact. It
    /// replaces the builder's strategy.
    pub fn planner(mut self, planner: impl Planner + 'static) -> Self {
        self.planner = Some(Arc::new(planner));
        self
    }

    /// Shows old tool results as placeholders, in the views of all strategies, according to this policy. Each
    /// compaction replaces results in the messages that its strategy leaves unchanged. Placeholders can be expanded,
    /// and summaries are written from the full results. By default no result is replaced.
    /// [`Session::plan`](crate::Session::plan) returns the tokens that the next compaction saves, as
    /// [`ClearFigures`](crate::compaction::ClearFigures).
    pub fn clear_results(mut self, policy: ClearPolicy) -> Self {
        self.clear_results = Some(policy);
        self
    }

    /// Sets the number of last messages that are not compacted, in the DAG policy, in the handoff policy, and in the
    /// assembly policy if it has an [`AssemblyPolicy::whole_tail`]. The order of calls does not matter. In the handoff
    /// policy it replaces the rule for the kept messages, and a handoff has no minimum cost. Limits of the other
    /// policies in tokens stay in effect.
    pub fn fresh_tail(mut self, messages: usize) -> Self {
        self.fresh_tail = Some(messages);
        self
    }

    /// Sets the policy for assembling contexts: how their content is selected and shortened.
    pub fn assembly(mut self, policy: AssemblyPolicy) -> Self {
        self.assembly = policy;
        self
    }

    /// Sets the policy for carrying out compactions: the number of concurrent summaries, the duration of leases
    /// (exclusive claims on summaries to write), and the limits of prefetching.
    pub fn runner(mut self, policy: RunnerPolicy) -> Self {
        self.runner = policy;
        self
    }

    /// Sets the identity, which begins every context: a text such as who the agent is and whom it serves,
    /// [`IdentityFiles`](crate::context::IdentityFiles), or both. It is a system message between `<memory>` tags. Its
    /// text cannot close the tags, and its cost is part of the budget.
    pub fn identity(mut self, identity: impl Into<Identity>) -> Self {
        self.identity = identity.into();
        self
    }

    /// Sets the clock for timestamps. The default is the system's clock. Leases, which reserve a compaction job for one
    /// process, use the store's clock instead.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Registers hooks. Hooks observe compactions, and may prevent single changes of the view (the compacted log), such
    /// as a summary.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Arc::new(hooks);
        self
    }

    /// Sets the policy for compacting during an agent's turns: an action for the beginning of a turn, for each model
    /// call and for the end of a turn, and the thresholds of these actions. A [`LiveTurnPolicy`] is evaluated each
    /// time: use it for settings that change while the program runs.
    pub fn turns(mut self, policy: impl Into<LiveTurnPolicy>) -> Self {
        self.turns = policy.into();
        self
    }

    /// Sets how summaries are prefetched (written before they are needed) in the background. By default, tasks of the
    /// Tokio runtime in which the memory is opened do this (feature `tokio`).
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// Opens the store and returns the memory.
    ///
    /// # Errors
    /// `Invalid` if no store is set, if the ladder is invalid, or if [`fresh_tail`](Self::fresh_tail) is combined with
    /// a planner of the application. `Store` if the database cannot be opened, belongs to another program, or
    /// was written by a newer version.
    pub async fn open(mut self) -> Result<Memory> {
        let ladder = self.ladder.clone().unwrap_or_default();
        if let Err(error) = ladder.validate() {
            return Err(Error::new(ErrorKind::Invalid, error.to_string()));
        }
        self.apply_fresh_tail()?;
        let store = open_store(self.store.take()).await?;
        let extractive = default_extractive();
        let mut summarizers = std::mem::take(&mut self.summarizers).into_iter();
        let summarizer = summarizers
            .next()
            .unwrap_or_else(|| Arc::new(extractive.clone()));
        let by_model = !summarizer.provisional()
            || self.automatic.runner.is_some()
            || self.automatic.summarizer.is_some();
        let handoff_ladder = self.handoff_ladder(by_model);
        let search = self.search(&store);
        let blocks = self.blocks.unwrap_or_else(|| BlockPolicy {
            digest: match summarizer.provisional() {
                true => Digest::Summarizer,
                false => Digest::Rolling,
            },
            ..BlockPolicy::default()
        });
        let planners = Planners::new(
            self.dag,
            self.handoff,
            blocks,
            self.strategy,
            self.planner,
            self.clear_results.as_ref(),
        );
        let mut runner = self.runner;
        runner.owner.get_or_insert_with(process_owner::current);
        Ok(Memory::new(Inner {
            keeps_index: self.keeps_index,
            not_indexed: Mutex::default(),
            search,
            embedder: self.embedder,
            store,
            estimator: self.estimator,
            writers: Writers::new(summarizer, summarizers.collect(), self.guards.map(Arc::new)),
            extractive,
            ladder,
            handoff_ladder,
            automatic: self.automatic,
            planners,
            assembly: self.assembly,
            runner,
            identity: self.identity,
            clock: self.clock,
            hooks: self.hooks,
            liveness: Arc::new(SystemProcesses::new()),
            in_flight: InFlight::new(),
            turns: self.turns,
            spawner: self.background.into_spawner(),
            prefetches: Prefetches::default(),
            activities: Activities::default(),
            conventions: default_conventions(),
            requests: Requests::default(),
            upgraded: PerSession::default(),
            kept_states: PerSession::default(),
            states: PerSession::default(),
            sent: PerSession::default(),
            closing: CancellationToken::new(),
        }))
    }

    /// Puts the number of [`fresh_tail`](Self::fresh_tail) into the policies.
    fn apply_fresh_tail(&mut self) -> Result<()> {
        let Some(messages) = self.fresh_tail else {
            return Ok(());
        };
        if self.planner.is_some() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "`fresh_tail` sets the tail of the strategies' planners, and the memory has another \
                 planner: set the tail in that planner's policy",
            ));
        }
        self.dag.fresh_tail.messages = messages;
        let live = self.handoff.clone();
        self.handoff = LiveHandoffPolicy::new(move || HandoffPolicy {
            keep: CutPolicy::LastMessages { messages },
            min_tokens: 0,
            ..live.get()
        });
        self.assembly.whole_tail = self.assembly.whole_tail.map(|_| messages);
        Ok(())
    }

    /// Returns the ladder of handoffs. If `by_model` is true, a model writes them.
    fn handoff_ladder(&self, by_model: bool) -> Ladder {
        match &self.ladder {
            _ if by_model && self.model_only => model_only(),
            None if by_model => failing(),
            Some(given) if by_model && changes_gate_alone(given) => Ladder {
                gate: given.gate.clone(),
                ..failing()
            },
            given => given.clone().unwrap_or_default(),
        }
    }

    fn search(&self, store: &Arc<dyn FullStore>) -> Arc<dyn Search> {
        let search = match self.keeps_index {
            true => SegmentSearch::new(Arc::clone(store)),
            false => SegmentSearch::without_index(Arc::clone(store)),
        };
        match &self.embedder {
            Some(embedder) => Arc::new(search.with_embedder(Arc::clone(embedder))),
            None => Arc::new(search),
        }
    }
}

async fn open_store(store: Option<StoreConfig>) -> Result<Arc<dyn FullStore>> {
    match store {
        #[cfg(feature = "sqlite")]
        Some(StoreConfig::Sqlite(path)) => {
            Ok(Arc::new(store_sqlite::SqliteStore::open(path).await?))
        }
        Some(StoreConfig::Store(store)) => Ok(store),
        None => Err(Error::new(
            ErrorKind::Invalid,
            "the memory has no store: set a file with `sqlite`, or `store(InMemoryStore::new())` to lose \
             everything when the program ends",
        )),
    }
}

/// Returns whether a ladder differs from the default by its gate, and by nothing else.
fn changes_gate_alone(ladder: &Ladder) -> bool {
    let default = Ladder::default();
    let changed = Ladder {
        gate: ladder.gate.clone(),
        ..default.clone()
    };
    *ladder == changed && changed != default
}
