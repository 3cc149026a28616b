//! The opening of this crate: a compaction of one conversation, its settings and what it can do.

use compaction_plan::{Mode, Plan, Planner, Room};
use memory_model::{Accounting, Clock, ConversationId};
use memory_store::{Owner, Snapshot, Store};
use summarize_escalation::{ExtractiveSummarizer, Ladder, Summarizer};

use crate::cancel::CancellationToken;
use crate::environment::{Environment, Stage};
use crate::error::Result;
use crate::events::{Hooks, NoHooks};
use crate::exhausted::is_exhausted;
use crate::fit;
use crate::in_flight::InFlight;
use crate::iterate::{Iterations, run_iterations};
use crate::outcome::Outcome;
use crate::owners::{Liveness, NeverGone};
use crate::policy::RunnerPolicy;
use crate::prefetch::{self, PrefetchReport};
use crate::reason::CompactionReason;
use crate::redo::{self, RedoPlan, RedoPolicy, RedoReport};
use crate::view_reader::ViewReader;

/// The default of [`Compaction::with_extractive`].
static GENERIC_EXTRACTS: ExtractiveSummarizer = ExtractiveSummarizer::new();

/// The settings of a compaction of one conversation, and its runs.
///
/// No lock and no transaction is held while a model is called. Dropping a run leaves the store as
/// it was after the last summary that was published.
#[derive(Debug, Clone)]
pub struct Compaction<'a> {
    env: Environment<'a>,
}

impl<'a> Compaction<'a> {
    /// A compaction with the default runner policy, without hooks.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        store: &'a dyn Store,
        conversation: ConversationId,
        planner: &'a dyn Planner,
        summarizer: &'a dyn Summarizer,
        ladder: &'a Ladder,
        accounting: &'a dyn Accounting,
        clock: &'a dyn Clock,
    ) -> Self {
        let env = Environment {
            store,
            conversation,
            planner,
            summarizer,
            extractive: &GENERIC_EXTRACTS,
            ladder,
            accounting,
            clock,
            policy: RunnerPolicy::default(),
            hooks: &NoHooks,
            cancel: CancellationToken::new(),
            owner: Owner("compaction".to_owned()),
            in_flight: InFlight::new(),
            liveness: &NeverGone,
            instructions: None,
            room: None,
            stage: Stage::Whole,
            reason: CompactionReason::Manual,
            start: None,
        };
        Self { env }
    }

    /// Sets the summarizer that the ladder's tier `extractive` asks, and that makes a view fit. By
    /// default it knows no agent's conventions.
    pub fn with_extractive(mut self, extractive: &'a dyn Summarizer) -> Self {
        self.env.extractive = extractive;
        self
    }

    /// Sets why it is run. By default because somebody asked for it.
    pub fn with_reason(mut self, reason: CompactionReason) -> Self {
        self.env.reason = reason;
        self
    }

    /// Sets another summarizer.
    pub fn with_summarizer(mut self, summarizer: &'a dyn Summarizer) -> Self {
        self.env.summarizer = summarizer;
        self
    }

    /// Sets another ladder.
    pub fn with_ladder(mut self, ladder: &'a Ladder) -> Self {
        self.env.ladder = ladder;
        self
    }

    /// Sets how the plan is carried out.
    pub fn with_policy(mut self, policy: RunnerPolicy) -> Self {
        self.env.policy = policy;
        self
    }

    /// Sets the hooks.
    pub fn with_hooks(mut self, hooks: &'a dyn Hooks) -> Self {
        self.env.hooks = hooks;
        self
    }

    /// Sets the token that cancels it.
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.env.cancel = cancel;
        self
    }

    /// Sets the name under which it takes leases. Two compactions that may run at the same time need
    /// different names, or one [`InFlight`]: see [`Compaction::with_in_flight`].
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.env.owner = Owner(owner.into());
        self
    }

    /// Shares the jobs in progress with other compactions of the same owner.
    pub fn with_in_flight(mut self, in_flight: InFlight) -> Self {
        self.env.in_flight = in_flight;
        self
    }

    /// Sets who decides whether the owner of a lease is gone.
    pub fn with_liveness(mut self, liveness: &'a dyn Liveness) -> Self {
        self.env.liveness = liveness;
        self
    }

    /// Sets additional instructions for the summarizer.
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.env.instructions = Some(instructions.into());
        self
    }

    /// Sets what the contexts assembled from the view have room for: the planner then leaves no
    /// more of the view as it is than fits.
    pub fn with_room(mut self, room: Option<Room>) -> Self {
        self.env.room = room;
        self
    }

    /// Sets the state of the view that a run, [`Compaction::publish_ready`] and
    /// [`Compaction::extract_to_fit`] begin with, for a caller that has just read it. By default they
    /// read it. A state of another conversation or view is ignored, and an outdated one costs a lost
    /// race.
    pub fn with_snapshot(mut self, snapshot: Snapshot) -> Self {
        self.env.start = Some(snapshot);
        self
    }

    /// What the next iteration would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan(&self) -> Result<Plan> {
        let snapshot = self.env.snapshot().await?;
        let mut reader = ViewReader::new(&self.env, snapshot);
        let jobs = reader.all_jobs().await?;
        let snapshot = reader.snapshot;
        Ok(Plan {
            tokens: snapshot.tokens(),
            view: snapshot.view,
            version: snapshot.version,
            head: snapshot.head,
            jobs,
        })
    }

    /// Whether a run would have anything to do: reads and plans, calls no model, writes nothing. False in a state in
    /// which nothing could be made shorter before.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn has_work(&self) -> Result<bool> {
        let snapshot = self.env.snapshot().await?;
        if is_exhausted(&self.env, &snapshot).await? {
            return Ok(false);
        }
        ViewReader::new(&self.env, snapshot).has_jobs().await
    }

    /// Compacts, and says what was done and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is not an error but a stop reason: whatever was
    /// published before stays, and nothing else changed.
    pub async fn run(&self, mode: Mode) -> Result<Outcome> {
        let most = match mode {
            Mode::Incremental => Some(1),
            Mode::Full => None,
        };
        let is_enough = &|_| false;
        run_iterations(&self.env, &Iterations { most, is_enough }).await
    }

    /// Runs up to `most` incremental iterations, until `is_enough` holds for the view's cost in
    /// tokens. What no model is called for is published once, after the last iteration.
    ///
    /// # Errors
    /// As [`Compaction::run`].
    pub async fn run_until(
        &self,
        most: u32,
        is_enough: &(dyn Fn(u64) -> bool + Send + Sync),
    ) -> Result<Outcome> {
        let most = Some(most);
        run_iterations(&self.env, &Iterations { most, is_enough }).await
    }

    /// Publishes extracts, which are provisional, until the view fits the room; calls no model. The
    /// oldest messages outside the fresh tail go first, then summaries are condensed, those of equal
    /// depth before others.
    ///
    /// Publishes nothing when the ladder has no extractive tier, or when the same head, version
    /// and policy were tried before in vain. [`Outcome::stop_reason`] is `Fits` when the view fits
    /// in the end.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn extract_to_fit(&self, room: Room) -> Result<Outcome> {
        fit::extract_to_fit(&self.env, room).await
    }

    /// Makes the summaries that a compaction would make, and publishes none: the view stays as it
    /// is. What is ready already is not made again; more is planned and made on top of it, up to
    /// [`RunnerPolicy::prefetch_jobs`] jobs a call. Drafts that the view has no place for any more
    /// are deleted.
    ///
    /// A summarizer whose work costs nothing (one that is provisional) has nothing to prepare.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is no error; what was made before it failed is
    /// kept.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        if self.env.summarizer.provisional() {
            return Ok(PrefetchReport::default());
        }
        prefetch::prefetch_summaries(&self.env).await
    }

    /// Publishes what [`Compaction::prefetch_summaries`] made, in one transaction, and never calls a
    /// model. With a summarizer whose work costs nothing it is an incremental [`Compaction::run`]. An
    /// extract that was published meanwhile for the same messages is replaced.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        if self.env.summarizer.provisional() {
            return self.run(Mode::Incremental).await;
        }
        prefetch::publish_ready(&self.env).await
    }

    /// What [`Compaction::redo`] would do: reads, calls no model, writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        redo::plan_redo(&self.env, policy).await
    }

    /// Replaces the summaries in the view that were written without a model, or [extracts](RedoPolicy::extracts) of an older
    /// recipe, by what the summarizer writes for the same sources, and all summaries that were made from them. The old ones stay in
    /// the history.
    ///
    /// A span of the view is replaced in one publish, with everything that it was made from, if the view still
    /// holds it. What was made before a crash, a lost race or a limit is kept and found again.
    /// Until a span is replaced it stays as it is: the view is valid at every moment. A summary
    /// that the summarizer cannot make stays, and those above it are made from it. It is
    /// remembered: the next redo by the same summarizer asks for all others first, and for the one
    /// that was refused most recently last.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        redo::redo(&self.env, policy).await
    }
}
