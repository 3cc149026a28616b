//! The moments of an agent's turn, and what is done in them.
//!
//! An agent loop calls [`Session::before_turn`] when a user speaks, [`Session::before_call`] for
//! each context that it sends to a model, and [`Session::after_turn`] when it has answered. The
//! [`TurnPolicy`] says which of them compacts, and when.

use compaction_plan::Mode;
use compaction_runner::{Cancel, ModelReport, Outcome, PrefetchReport, Trigger, WindowUse};
use context_assembler::{Budget, Context};
use memory_store::Snapshot;
use serde::{Deserialize, Serialize};

use crate::background::MadeAhead;
use crate::error::Result;
use crate::session::Session;

/// How often one moment compacts at most while its trigger still fires.
const ROUNDS: usize = 4;

/// A model's window, and how much of it a context may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The model's window, in tokens.
    pub tokens: u64,
    /// What is kept free for the answer, in tokens. 8,192 (pi's document), but no more than a
    /// quarter of the window.
    pub reserve: u64,
    /// What the host's own system prompt and its tools cost, in tokens.
    #[serde(default)]
    pub system_tokens: u64,
}

impl Window {
    /// A window with the default reserve, and nothing of the host's own in it.
    pub fn new(tokens: u64) -> Self {
        Self {
            tokens,
            reserve: (tokens / 4).min(8_192),
            system_tokens: 0,
        }
    }

    /// Sets what is kept free for the answer.
    pub fn with_reserve(mut self, tokens: u64) -> Self {
        self.reserve = tokens;
        self
    }

    /// Sets what the host puts beside the context.
    pub fn with_system_tokens(mut self, tokens: u64) -> Self {
        self.system_tokens = tokens;
        self
    }

    /// What is left for a context.
    pub fn budget(&self) -> Budget {
        let taken = self.reserve.saturating_add(self.system_tokens);
        Budget::tokens(self.tokens.saturating_sub(taken))
    }
}

/// What a moment does about compaction.
///
/// The hard threshold also counts as crossed while the view costs more than the window's
/// [`budget`](Window::budget). Where a call begins and a view that is over the budget stays so, any
/// action but `Nothing` publishes extracts until it fits, without calling a model, so that a context
/// leaves out nothing that a summary can stand for. A ladder without the extractive tier publishes
/// none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// Nothing.
    #[default]
    Nothing,
    /// Above the hard threshold, publishes what is ready; waits for no model.
    Publish,
    /// As `Publish`; and above the soft threshold makes summaries ahead, beside the turns where
    /// the memory has somewhere to run them, and before it returns where it has not.
    Prepare,
    /// Above the hard threshold, compacts and waits for the model (anna's and koda's rule).
    Compact,
}

/// When and how an agent's turns compact.
///
/// By default summaries are made ahead, after the turn, from half of the window on; they are
/// published from three quarters on (anna's threshold), where a turn or a call begins.
///
/// Thresholds and the budget are compared with one figure, [`WindowUse::tokens`]: the estimate of
/// the view and the identity times the factor that budgets are divided by
/// ([`Session::safety_factor`]), or what a provider's last figure says when that is more. The
/// system prompt is counted once: a provider's figure includes it, and `tokens` does not. A soft
/// threshold that only a view over the budget could cross counts as crossed at two thirds of the
/// budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TurnPolicy {
    /// From when on summaries are made ahead. Above 0.5 of the window.
    pub soft: Trigger,
    /// From when on the view is compacted. Above 0.75 of the window, anna's default.
    pub hard: Trigger,
    /// What is done when a user's turn begins.
    pub before_turn: Action,
    /// What is done before each call of the model.
    pub before_call: Action,
    /// What is done when the turn is over.
    pub after_turn: Action,
}

impl Default for TurnPolicy {
    fn default() -> Self {
        Self {
            soft: Trigger::Fraction { of_window: 0.5 },
            hard: Trigger::default(),
            before_turn: Action::Publish,
            before_call: Action::Publish,
            after_turn: Action::Prepare,
        }
    }
}

impl TurnPolicy {
    /// anna's rule: after the turn, above three quarters of the window, compact and wait.
    pub fn anna() -> Self {
        Self {
            soft: Trigger::Never,
            hard: Trigger::default(),
            before_turn: Action::Nothing,
            before_call: Action::Nothing,
            after_turn: Action::Compact,
        }
    }

    /// No turn compacts; [`Session::compact`] does when it is asked to.
    pub fn manual() -> Self {
        Self {
            soft: Trigger::Never,
            hard: Trigger::Never,
            before_turn: Action::Nothing,
            before_call: Action::Nothing,
            after_turn: Action::Nothing,
        }
    }

    /// Sets the thresholds.
    pub fn with_thresholds(mut self, soft: Trigger, hard: Trigger) -> Self {
        (self.soft, self.hard) = (soft, hard);
        self
    }

    /// Sets what the three moments do: before a turn, before a call, after a turn.
    pub fn with_actions(mut self, actions: [Action; 3]) -> Self {
        [self.before_turn, self.before_call, self.after_turn] = actions;
        self
    }
}

/// What a moment did about compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnReport {
    /// What the view cost when the moment began, in tokens, beside the window.
    pub usage: WindowUse,
    /// The compactions that it ran, in order.
    pub compactions: Vec<Outcome>,
    /// Number of summaries, among those published, that are extracts because the view cost more
    /// than the budget and no summary was ready; no model was called for them.
    pub extracted: u64,
    /// What was made ahead: by this moment where it waited for it, else beside the turns since
    /// the moment before.
    pub prepared: Option<PrefetchReport>,
    /// How many summaries the model did not write, and why: those of `compactions` and of
    /// `prepared`. A summary that was made ahead is told of when it is made and when it is
    /// published.
    pub model: ModelReport,
    /// Whether summaries are being made beside the turns.
    pub preparing: bool,
    /// Why a compaction failed. The turn goes on with the history as it is.
    pub failure: Option<String>,
}

impl TurnReport {
    /// How many summaries were published.
    pub fn published(&self) -> u64 {
        self.compactions.iter().map(|c| c.published.total()).sum()
    }

    /// Adds what came of making summaries ahead.
    fn made_ahead(&mut self, made: MadeAhead) {
        match made {
            Ok(ahead) => {
                self.failure = ahead.failure.clone().or(self.failure.take());
                self.model.merge(&ahead.model);
                self.prepared = Some(ahead);
            }
            Err(error) => self.failure = Some(error),
        }
    }
}

/// A context for a call of the model, and what was done before it was assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The context.
    pub context: Context,
    /// What was done.
    pub upkeep: TurnReport,
}

/// What a session's view costs beside a window.
struct Load {
    snapshot: Snapshot,
    /// What the window leaves for a context, with the session's factor.
    budget: Budget,
    /// Largest cost of the view within the budget, in estimated tokens.
    room: u64,
    /// Cost of the context by a provider's last figure, in tokens; 0 without one.
    reported: u64,
    usage: WindowUse,
}

impl Load {
    /// By how much the context is over the budget, in tokens.
    fn excess(&self) -> u64 {
        self.usage.tokens.saturating_sub(self.budget.get())
    }

    /// The cost that the view must not exceed for the context to be within the budget, in
    /// estimated tokens: half of the room at least, whatever a provider's figure says.
    fn target(&self) -> u64 {
        let target = self.snapshot.tokens().saturating_sub(self.excess());
        target.max(self.room / 2).min(self.room)
    }

    fn crosses_soft(&self, policy: &TurnPolicy) -> bool {
        let budget = self.budget.get();
        let at = |tokens| {
            let usage = WindowUse {
                tokens,
                ..self.usage
            };
            policy.soft.fires(&usage)
        };
        let beyond_budget = !at(budget) && at(u64::MAX);
        at(self.usage.tokens) || (beyond_budget && self.usage.tokens > budget / 3 * 2)
    }
}

impl Session {
    /// Call at the start of a user's turn, before ingesting: does what the policy's `before_turn`
    /// says.
    ///
    /// # Errors
    /// When the store cannot be read. What fails in a compaction is in [`TurnReport::failure`].
    pub async fn before_turn(&self, window: &Window) -> Result<TurnReport> {
        let action = self.memory().inner.turns.before_turn;
        Ok(self.upkeep(action, window, false).await?.0)
    }

    /// Assembles the context for the next model call within `window.budget()`, after doing what the
    /// policy's `before_call` says.
    ///
    /// # Errors
    /// `BudgetTooSmall`; or when the store cannot be read. What fails in a compaction is in
    /// [`TurnReport::failure`].
    pub async fn before_call(&self, window: &Window) -> Result<Call> {
        let action = self.memory().inner.turns.before_call;
        let (mut upkeep, load) = self.upkeep(action, window, true).await?;
        let Some(mut load) = load else {
            let context = self.assemble(window.budget()).await?;
            return Ok(Call { context, upkeep });
        };
        let mut in_vain = false;
        if load.excess() > 0 && load.room > 0 {
            in_vain = !self
                .extract(load.target(), &mut load, &mut upkeep, window)
                .await?;
        }
        let policy = self.memory().inner.assembly.clone();
        let mut context = self
            .assemble_snapshot(&load.snapshot, load.budget, &policy)
            .await?;
        if !in_vain && leaves_out(&context) {
            // Rendering adds to what the view says that things cost.
            let less = load.snapshot.tokens().saturating_sub(1);
            if self
                .extract(load.room.min(less), &mut load, &mut upkeep, window)
                .await?
            {
                context = self
                    .assemble_snapshot(&load.snapshot, load.budget, &policy)
                    .await?;
            }
        }
        Ok(Call { context, upkeep })
    }

    /// Call at the end of a turn: does what the policy's `after_turn` says.
    ///
    /// # Errors
    /// As [`Session::before_turn`].
    pub async fn after_turn(&self, window: &Window) -> Result<TurnReport> {
        let action = self.memory().inner.turns.after_turn;
        Ok(self.upkeep(action, window, false).await?.0)
    }

    /// Makes the summaries that a compaction would make, and publishes none of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        let cancel = self.memory().inner.closing.clone();
        Ok(self.compaction(cancel).prefetch_summaries().await?)
    }

    /// As [`Session::prefetch_summaries`], for contexts with this room for the view, in tokens.
    async fn prepare_within(&self, room: u64) -> Result<PrefetchReport> {
        let cancel = self.memory().inner.closing.clone();
        Ok(self
            .compaction_within(cancel, room)
            .prefetch_summaries()
            .await?)
    }

    /// Publishes the summaries that were made ahead, and calls no model. With a summarizer whose
    /// work costs nothing it is an incremental compaction.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn publish_ready(&self) -> Result<Outcome> {
        Ok(self.compaction(Cancel::new()).publish_ready().await?)
    }

    /// Measures the view beside the window.
    async fn measure(&self, window: &Window) -> Result<Load> {
        let snapshot = self.snapshot().await?;
        let (size, factor) = self.size_and_factor(&snapshot).await?;
        let budget = window.budget().with_safety_factor(factor);
        let fixed = self.fixed_tokens();
        let estimated = budget.with_limit(snapshot.tokens().saturating_add(fixed));
        let reported = match size.reported_at {
            // A provider counts the system prompt in.
            Some(_) => size
                .reported
                .saturating_sub(window.system_tokens)
                .saturating_add(budget.with_limit(size.estimated)),
            None => 0,
        };
        Ok(Load {
            room: budget.limit().saturating_sub(fixed),
            reported,
            usage: WindowUse {
                tokens: estimated.max(reported),
                window: window.tokens,
                system_tokens: window.system_tokens,
            },
            budget,
            snapshot,
        })
    }

    /// Measures the view after a compaction. A provider's figure ends with the view that it was
    /// about: less what the compaction saved, it is still the best there is.
    async fn measure_after(&self, window: &Window, before: &Load, done: &Outcome) -> Result<Load> {
        let mut load = self.measure(window).await?;
        if load.reported == 0 {
            let saved = done.before.tokens.saturating_sub(done.after.tokens);
            load.reported = before.reported.saturating_sub(saved);
            load.usage.tokens = load.usage.tokens.max(load.reported);
        }
        Ok(load)
    }

    /// Carries an action out, and returns the load after it; `None` for `Nothing`. `fits_after` says
    /// that the caller makes a view fit which is still over the budget then.
    async fn upkeep(
        &self,
        action: Action,
        window: &Window,
        fits_after: bool,
    ) -> Result<(TurnReport, Option<Load>)> {
        let mut upkeep = TurnReport::default();
        if let Some(ended) = self.memory().inner.preparing.ended(self.id()) {
            upkeep.made_ahead(ended);
        }
        if action == Action::Nothing {
            return Ok((upkeep, None));
        }
        let mut load = self.measure(window).await?;
        upkeep.usage = load.usage;
        for round in 0..ROUNDS {
            let turns = &self.memory().inner.turns;
            let over = load.excess() > 0;
            if over && round > 0 && fits_after && self.needs_no_model() {
                // The caller makes it fit, by the same kind of summaries, in fewer steps.
                break;
            }
            if !over && !turns.hard.fires(&load.usage) {
                break;
            }
            let compaction = self.compaction_within(Cancel::new(), load.room);
            let compacted = match action {
                Action::Compact => compaction.run(Mode::Incremental).await,
                _ => compaction.publish_ready().await,
            };
            let Some(outcome) = self.noted(compacted, &mut upkeep) else {
                return Ok((upkeep, Some(load)));
            };
            let published = outcome.published.total();
            if published > 0 {
                load = self.measure_after(window, &load, &outcome).await?;
            }
            upkeep.failure = outcome.failure.clone().or(upkeep.failure.take());
            upkeep.model.merge(&outcome.model);
            upkeep.compactions.push(outcome);
            if published == 0 {
                break;
            }
        }
        if action == Action::Prepare && load.crosses_soft(&self.memory().inner.turns) {
            self.prepare_beside(load.room, &mut upkeep).await;
        }
        Ok((upkeep, Some(load)))
    }

    /// Publishes extracts until the view costs at most `target` tokens; returns whether any were
    /// published.
    async fn extract(
        &self,
        target: u64,
        load: &mut Load,
        upkeep: &mut TurnReport,
        window: &Window,
    ) -> Result<bool> {
        let compaction = self.compaction(Cancel::new());
        let extracted = compaction.extract_to_fit(self.room(target)).await;
        let Some(outcome) = self.noted(extracted, upkeep) else {
            return Ok(false);
        };
        let published = outcome.published.total();
        if published > 0 {
            tracing::info!(session = %self.key(), published, "extracts stand in for summaries");
            *load = self.measure_after(window, load, &outcome).await?;
            upkeep.extracted += published;
            upkeep.compactions.push(outcome);
        }
        Ok(published > 0)
    }

    /// The outcome of a compaction; `None` when it failed, which is in the report then.
    fn noted(
        &self,
        compacted: compaction_runner::Result<Outcome>,
        upkeep: &mut TurnReport,
    ) -> Option<Outcome> {
        match compacted {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                tracing::warn!(session = %self.key(), %error, "a compaction failed");
                upkeep.failure = Some(error.to_string());
                None
            }
        }
    }

    /// Makes summaries ahead: beside the turns where that can be, here where it cannot.
    async fn prepare_beside(&self, room: u64, upkeep: &mut TurnReport) {
        let inner = &self.memory().inner;
        if self.needs_no_model() {
            return;
        }
        let Some(alone) = inner.preparing.begin(self.id()) else {
            upkeep.preparing = true;
            return;
        };
        if let Some(background) = &inner.background {
            let session = self.clone();
            background.spawn(Box::pin(async move {
                let Some(running) = alone.run() else {
                    return;
                };
                let made = session.prepare_within(room).await;
                if let Err(error) = &made {
                    tracing::warn!(session = %session.key(), %error, "nothing was made ahead");
                }
                running.ended(made.map_err(|error| error.to_string()));
            }));
            upkeep.preparing = true;
            return;
        }
        match self.prepare_within(room).await {
            Ok(ahead) => upkeep.made_ahead(Ok(ahead)),
            Err(error) => {
                tracing::warn!(session = %self.key(), %error, "nothing was made ahead");
                upkeep.made_ahead(Err(error.to_string()));
            }
        }
    }
}

/// Whether a context leaves out or shortens anything for its budget.
fn leaves_out(context: &Context) -> bool {
    !context.receipt.dropped.is_empty() || !context.receipt.degraded.is_empty()
}
