//! The calls of a session during an agent's turn.
//!
//! An agent's loop passes on the user's message ([`Session::user`]), requests each context ([`Session::context`]), and
//! passes on each reply of the model ([`Session::reply`]). The [`TurnPolicy`] sets the compaction that each of these
//! calls may run.

use std::ops::Deref;

use compaction_plan::Mode;
use compaction_runner::{
    CancellationToken, Compaction, CompactionReason, ModelReport, Outcome, PrefetchReport, Trigger,
    WindowUse,
};
use context_assembler::{Budget, Context};
use memory_model::{Accounting as _, Message, Reply, ToolCall};
use memory_store::Snapshot;
use retrieval_tools::RetrievalLimits;

use crate::error::Result;
use crate::hand_over_options::HandOver;
use crate::handing_over::{HandOverSkip, HandoffRun, Rounds};
use crate::sent::SentContext;
use crate::session::Session;
use crate::spawner::PrefetchResult;
use crate::strategy::Strategy;
use crate::turn_policy::{Action, TurnPolicy, Window};
use crate::usage::{ObservedUsage, StoredUsage};

/// Maximum cost of a view after extracts were published, in tenths of the room for the view.
///
/// A view that just fits the budget is compacted again a few messages later, and each compaction changes the contexts
/// after the replaced position. With agents' transcripts in a window of 8,000 tokens, leaving a tenth free makes a
/// quarter of these compactions unnecessary.
const ROOM_AFTER_STEP: u64 = 9;

/// Maximum number of iterations of the compaction in one call of [`Session::before_turn`], [`Session::context`] or
/// [`Session::after_turn`]. The iterations end earlier if the threshold is no longer crossed.
const MAX_ROUNDS: u32 = 4;

/// Report of the compactions in one call of [`Session::before_turn`], [`Session::context`] or [`Session::after_turn`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnReport {
    /// Use of the model's window by the next request, in tokens, measured at the start of the call.
    pub usage: WindowUse,
    /// Whether the use of the window was above the policy's threshold for warnings, and not above the hard threshold.
    pub warned: bool,
    /// Outcomes of the compactions that this call of the session ran, in order. Empty if no compaction was due.
    pub compactions: Vec<Outcome>,
    /// Number of extracts (summaries written without a model) that the call published because the view (the compacted
    /// log) exceeded the budget and no prefetched summary was ready.
    pub extracted: u64,
    /// Report of a prefetch: of one that the call waited for, or of one in the background that ended since the previous
    /// call. `None` if there was none. A prefetch writes summaries as drafts, which a later call publishes.
    pub prefetched: Option<PrefetchReport>,
    /// Number of summaries in `compactions` and `prefetched` that the model did not write, with the causes. A
    /// prefetched summary is counted both when it is written and when it is published.
    pub model: ModelReport,
    /// Whether a background task is prefetching summaries now.
    pub prefetching: bool,
    /// Reason why a due or requested handoff was skipped; `None` if none was skipped.
    pub skipped: Option<HandOverSkip>,
    /// Error of a failed compaction; `None` if none failed. The turn continues with the view (the compacted log) as it
    /// is.
    pub failure: Option<String>,
}

impl TurnReport {
    /// Returns the number of changes of the view, such as new summaries, that the compactions in `compactions` made.
    pub fn published(&self) -> u64 {
        self.compactions.iter().map(|c| c.published.total()).sum()
    }

    /// Adds the result of a prefetch.
    fn add_prefetch(&mut self, result: PrefetchResult) {
        match result {
            Ok(prefetch) => {
                self.failure = prefetch.failure.clone().or(self.failure.take());
                self.model.merge(&prefetch.model);
                self.prefetched = Some(prefetch);
            }
            Err(error) => self.failure = Some(error),
        }
    }

    /// Returns the outcome of a compaction. If the compaction failed, records the error and returns `None`.
    fn outcome_of(
        &mut self,
        session: &Session,
        result: compaction_runner::Result<Outcome>,
    ) -> Option<Outcome> {
        match result {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                self.fail(session, error.to_string());
                None
            }
        }
    }

    /// Records and logs the error of a compaction.
    fn fail(&mut self, session: &Session, error: String) {
        tracing::warn!(session = %session.key(), %error, "a compaction failed");
        self.failure = Some(error);
    }

    /// Adds the outcome of a compaction.
    fn add(&mut self, session: &Session, outcome: Outcome) {
        if let Some(error) = outcome.failure.clone() {
            self.fail(session, error);
        }
        self.model.merge(&outcome.model);
        self.compactions.push(outcome);
    }
}

/// A context for a model call, with a report of the compaction that preceded it. It dereferences to its [`Context`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedContext {
    /// The context to send to the model.
    pub context: Context,
    /// Report of the compactions that ran before the context was assembled.
    pub report: TurnReport,
}

impl Deref for PreparedContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

/// Cost of a session's view and context, compared with a window.
struct Load {
    window: Window,
    snapshot: Snapshot,
    /// The window's budget, with the session's safety factor.
    budget: Budget,
    /// Maximum cost of the view for which the context is within the budget, in estimated tokens.
    room: u64,
    /// Cost of the other parts of each context, in estimated tokens: the system prompt, the tools and the identity.
    fixed: u64,
    /// Cost of the context according to the provider's last report, in tokens; 0 without a report.
    reported: u64,
    usage: WindowUse,
    stored: StoredUsage,
}

impl Load {
    /// Returns the number of tokens by which the context exceeds the budget.
    fn excess(&self) -> u64 {
        self.usage.tokens.saturating_sub(self.budget.get())
    }

    /// Returns the maximum cost of the view for which the context is within the budget, in estimated tokens. Considers
    /// the provider's last report. The result is at least half of the room.
    fn target(&self) -> u64 {
        let target = self.snapshot.tokens().saturating_sub(self.excess());
        target.max(self.room / 2).min(self.room)
    }

    /// Returns the use of the window if the view cost `tokens` tokens.
    fn usage_at(&self, tokens: u64) -> WindowUse {
        let estimated = self
            .budget
            .tokens_needed_for(tokens.saturating_add(self.fixed));
        let saved = self.snapshot.tokens().saturating_sub(tokens);
        WindowUse {
            tokens: estimated.max(self.reported.saturating_sub(saved)),
            stored_tokens: self.usage.stored_tokens.saturating_sub(saved),
            ..self.usage
        }
    }

    fn crosses_soft(&self, policy: &TurnPolicy) -> bool {
        let budget = self.budget.get();
        let fires_at = |tokens| {
            let usage = WindowUse {
                tokens,
                ..self.usage
            };
            policy.soft.fires(&usage)
        };
        let beyond_budget = !fires_at(budget) && fires_at(u64::MAX);
        fires_at(self.usage.tokens) || (beyond_budget && self.usage.tokens > budget / 3 * 2)
    }
}

impl Session {
    /// Begins a turn with the message of the user: a text, or a [`Message`] with pictures or an external id. If the
    /// session has a window, prefetched summaries are published first.
    ///
    /// # Errors
    /// The errors of [`Session::ingest`]. A failed compaction is not an error: it is in [`TurnReport::failure`].
    pub async fn user(&self, message: impl Into<Message>) -> Result<TurnReport> {
        let report = match self.has_window() {
            true => self.before_turn().await?,
            false => TurnReport::default(),
        };
        self.ingest(message.into()).await?;
        Ok(report)
    }

    /// Appends the model's reply to the last [`context`](Self::context), and records the usage that the provider
    /// reported. A reply without tool calls ends the turn; if the session has a window, summaries are then prefetched.
    ///
    /// # Errors
    /// The errors of [`Session::ingest`]. A failed compaction is not an error: it is in [`TurnReport::failure`].
    pub async fn reply(&self, reply: impl Into<Reply>) -> Result<TurnReport> {
        let reply = reply.into();
        let ends_turn = reply.calls().next().is_none();
        self.ingest_all(reply.messages).await?;
        // A later reply must not be compared with the context of this reply.
        let sent = self.memory().inner.sent.lock().remove(&self.id());
        if let Some(usage) = reply.usage {
            let mut observed = ObservedUsage::new(reply.model.unwrap_or_default(), usage);
            if let Some(sent) = sent {
                observed = observed.with_sent(sent);
            }
            self.observe_usage(&observed).await?;
        }
        match ends_turn && self.has_window() {
            true => self.after_turn().await,
            false => Ok(TurnReport::default()),
        }
    }

    /// Answers a call of one of the memory's own tools (such as `memory_grep`), within limits for the session's
    /// window, and appends the result to the log. Returns `false` for a call of any other tool, and appends no result.
    ///
    /// # Errors
    /// The errors of [`Session::ingest`]. A failed call is not an error: the model gets the failure's text as the
    /// result.
    pub async fn answer(&self, call: ToolCall<'_>) -> Result<bool> {
        let mut tools = self.retrieval();
        if let Some(files) = self.memory().inner.identity.files() {
            tools = tools.with_identity(files.clone());
        }
        if !tools.has_tool(call.name) {
            return Ok(false);
        }
        if let Ok(window) = self.window() {
            tools = tools.with_limits(RetrievalLimits::for_window(window.tokens));
        }
        let answer = tools.call(call.name, call.arguments.as_str()).await;
        let result = match answer.is_error {
            true => call.failed(answer.text),
            false => call.result(answer.text),
        };
        self.ingest(result).await?;
        Ok(true)
    }

    /// Begins a turn. Call it before you append the turn's messages. Runs the policy's action `before_turn`, which by
    /// default publishes prefetched summaries. [`Session::user`] calls this method.
    ///
    /// # Errors
    /// `Invalid` if the session has no window, and `Store` if the store cannot be read. A failed compaction is not an
    /// error: it is in [`TurnReport::failure`].
    pub async fn before_turn(&self) -> Result<TurnReport> {
        let window = self.window()?;
        self.memory().inner.activities.begin_turn(self.id());
        let action = self.memory().inner.turns.get().before_turn;
        Ok(self.take_action(action, window, false).await?.0)
    }

    /// Runs the policy's action `before_call`, then assembles the context for the next model call, within the budget
    /// of the session's window.
    ///
    /// # Errors
    /// `Invalid` if the session has no window. `BudgetTooSmall` or `TooFewBytes` if the last messages do not fit the
    /// budget even if they are shortened. `Store` if the store cannot be read. A failed compaction is not an error: it
    /// is in [`TurnReport::failure`].
    pub async fn context(&self) -> Result<PreparedContext> {
        let prepared = self.prepare_context(self.window()?).await?;
        let sent = SentContext::of(&prepared.context);
        self.memory().inner.sent.remember(self.id(), sent);
        Ok(prepared)
    }

    async fn prepare_context(&self, window: &Window) -> Result<PreparedContext> {
        let action = self.memory().inner.turns.get().before_call;
        let (mut report, load) = self.take_action(action, window, true).await?;
        let policy = &self.memory().inner.assembly;
        let Some(mut load) = load else {
            let context = self.assemble(window.budget()).await?;
            return Ok(PreparedContext { context, report });
        };
        let is_over = load.excess() > 0;
        let stepped = report.published() > 0 && self.acts_without_model(action);
        let target = match stepped {
            true => load.target().min(load.room / 10 * ROOM_AFTER_STEP),
            false => load.target(),
        };
        let step = load.room > 0 && (is_over || (stepped && load.snapshot.tokens() > target));
        let shrank = step && self.extract_to_fit(target, &mut load, &mut report).await?;
        let mut context = self
            .assemble_snapshot(&load.snapshot, load.budget, policy)
            .await?;
        let exhausted = step && is_over && !shrank;
        // A rendered view costs more than the sum of its spans.
        let target = load.room.min(load.snapshot.tokens().saturating_sub(1));
        if !exhausted
            && load.snapshot.tokens() > load.room / 2
            && leaves_out(&context)
            && self.extract_to_fit(target, &mut load, &mut report).await?
        {
            context = self
                .assemble_snapshot(&load.snapshot, load.budget, policy)
                .await?;
        }
        self.index_summaries(report.extracted).await;
        Ok(PreparedContext { context, report })
    }

    /// Ends a turn. Call it after you appended the turn's messages. Runs the policy's action `after_turn`, which by
    /// default publishes prefetched summaries and prefetches further ones. If a compaction was requested during the
    /// turn ([`Session::request_compaction`]), the method runs and awaits that compaction instead. [`Session::reply`]
    /// calls this method.
    ///
    /// # Errors
    /// The errors of [`Session::before_turn`].
    pub async fn after_turn(&self) -> Result<TurnReport> {
        let window = self.window()?;
        let requested = self.memory().inner.activities.end_turn(self.id());
        let action = self.memory().inner.turns.get().after_turn;
        let Some(instructions) = requested else {
            return Ok(self.take_action(action, window, false).await?.0);
        };
        let mut report = TurnReport::default();
        let load = self.load(window).await?;
        report.usage = load.usage;
        let mut compaction = self.compaction_within(CancellationToken::new(), load.room);
        let outcome = match self.strategy() {
            Some(Strategy::Handoff) => {
                let automatic = self.memory().inner.automatic.clone();
                let request = HandOver {
                    instructions: instructions.or(automatic.instructions),
                    min_messages: 0,
                    ..automatic
                };
                let all: Rounds<'_> = (u32::MAX, &|_| false);
                self.hand_over_in_turn(compaction, &request, all, &mut report)
                    .await
            }
            _ => {
                compaction.instructions = instructions;
                let result = self.run(&compaction, Mode::Full).await;
                report.outcome_of(self, result)
            }
        };
        if let Some(outcome) = outcome {
            report.add(self, outcome);
        }
        Ok(report)
    }

    /// Runs a handoff: see [`Session::run_handoff`]. Adds an error, or the reason for skipping the session, to the
    /// report. Returns `None` if no compaction was run.
    pub(crate) async fn hand_over_in_turn(
        &self,
        compaction: Compaction<'_>,
        request: &HandOver,
        rounds: Rounds<'_>,
        report: &mut TurnReport,
    ) -> Option<Outcome> {
        let error = match self.run_handoff(compaction, request, rounds).await {
            Ok(HandoffRun::Skipped(skip)) => {
                tracing::info!(session = %self.key(), ?skip, "a handoff was skipped");
                report.skipped = Some(skip);
                return None;
            }
            Ok(HandoffRun::Ran { outcome, restarted }) => {
                if outcome.published.total() == 0 {
                    report.skipped = self.not_handed_over(&outcome).ok();
                }
                if let Err(error) = restarted {
                    report.fail(self, error.to_string());
                }
                return Some(*outcome);
            }
            Err(error) => error,
        };
        report.fail(self, error.to_string());
        None
    }

    /// Writes the summaries that the next compaction needs, and stores them as drafts. Contexts do not show a draft
    /// until a compaction publishes it, which then needs no call of the model.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn prefetch_summaries(&self) -> Result<PrefetchReport> {
        let cancel = self.memory().inner.closing.clone();
        Ok(self.compaction(cancel).prefetch_summaries().await?)
    }

    /// Writes summaries like [`Session::prefetch_summaries`], for contexts with `room` tokens for the view.
    async fn prefetch_within(&self, room: u64) -> PrefetchResult {
        let compaction = self.compaction_within(self.memory().inner.closing.clone(), room);
        compaction.prefetch_summaries().await.map_err(|error| {
            tracing::warn!(session = %self.key(), %error, "prefetching summaries failed");
            error.to_string()
        })
    }

    /// Returns the load of the current view in a window.
    async fn load(&self, window: &Window) -> Result<Load> {
        let snapshot = self.snapshot().await?;
        let stored = self.stored_usage().await?.0;
        Ok(self.load_at(*window, snapshot, stored))
    }

    /// Returns the load of one state of the view in a window.
    fn load_at(&self, window: Window, snapshot: Snapshot, stored: StoredUsage) -> Load {
        let documented = self.accounting().estimator().safety_factor();
        let factor = stored.safety_factor.unwrap_or(documented);
        let size = stored.clone().tokens(&snapshot);
        let budget = window.budget().with_safety_factor(factor);
        let fixed = self.fixed_tokens();
        let reported = match size.reported_at {
            // A provider's figure includes the system prompt.
            Some(_) => size
                .reported
                .saturating_sub(window.system_tokens)
                .saturating_add(budget.tokens_needed_for(size.estimated)),
            None => 0,
        };
        let mut load = Load {
            window,
            room: budget.limit().saturating_sub(fixed),
            fixed,
            reported,
            usage: WindowUse {
                tokens: 0,
                window: window.tokens,
                system_tokens: window.system_tokens,
                stored_tokens: 0,
            },
            budget,
            snapshot,
            stored,
        };
        load.usage = load.usage_at(load.snapshot.tokens());
        load
    }

    /// Returns the load after a compaction. The provider's last report was for the view before the compaction. If
    /// there is no newer report, uses the old report minus the saved tokens, which is the best estimate.
    fn load_after(&self, before: &Load, outcome: &Outcome) -> Load {
        let snapshot = outcome.snapshot.clone();
        let mut load = self.load_at(before.window, snapshot, before.stored.clone());
        if load.reported == 0 {
            let saved = outcome.before.tokens.saturating_sub(outcome.after.tokens);
            load.reported = before.reported.saturating_sub(saved);
            load.usage = load.usage_at(load.snapshot.tokens());
        }
        load.usage.stored_tokens = before.usage_at(load.snapshot.tokens()).stored_tokens;
        load
    }

    /// Runs an action. Returns a report, and the load after the action; `None` for `Nothing`. `caller_fits` means that
    /// the caller shrinks a view that still exceeds the budget after the action.
    async fn take_action(
        &self,
        action: Action,
        window: &Window,
        caller_fits: bool,
    ) -> Result<(TurnReport, Option<Load>)> {
        let mut report = TurnReport::default();
        if let Some(result) = self.memory().inner.prefetches.take_result(self.id()) {
            report.add_prefetch(result);
        }
        let policy = &self.memory().inner.turns.get();
        if action == Action::Nothing && policy.warn == Trigger::Never {
            return Ok((report, None));
        }
        let mut load = self.load(window).await?;
        let soft = match action {
            Action::Prefetch => &policy.soft,
            _ => &Trigger::Never,
        };
        let triggers = [soft, &policy.hard, &policy.warn];
        load.usage.stored_tokens = self.stored_tokens_for(triggers).await?;
        report.usage = load.usage;
        report.warned = policy.warn.fires(&load.usage) && !policy.hard.fires(&load.usage);
        if action == Action::Nothing {
            return Ok((report, None));
        }
        if load.excess() > 0 || policy.hard.fires(&load.usage) {
            let mut compaction = self.compaction_within(CancellationToken::new(), load.room);
            compaction.reason = CompactionReason::Threshold;
            compaction.snapshot = Some(load.snapshot.clone());
            let is_enough = |tokens| {
                let usage = load.usage_at(tokens);
                match usage.tokens > load.budget.get() {
                    // The caller shrinks the view with the same kind of summaries, in fewer steps.
                    true => caller_fits && self.acts_without_model(action),
                    false => !policy.hard.fires(&usage),
                }
            };
            let is_handoff = self.strategy() == Some(Strategy::Handoff);
            let outcome = match action {
                Action::Compact if is_handoff => {
                    let rounds: Rounds<'_> = (MAX_ROUNDS, &is_enough);
                    let request = &self.memory().inner.automatic;
                    self.hand_over_in_turn(compaction, request, rounds, &mut report)
                        .await
                }
                _ => {
                    let result = match action == Action::Compact || self.needs_no_model() {
                        true => compaction.run_until(MAX_ROUNDS, &is_enough).await,
                        false => compaction.publish_ready().await,
                    };
                    report.outcome_of(self, result)
                }
            };
            let Some(outcome) = outcome else {
                return Ok((report, Some(load)));
            };
            if outcome.published.total() > 0 {
                load = self.load_after(&load, &outcome);
            }
            report.add(self, outcome);
        }
        if action == Action::Prefetch && load.crosses_soft(policy) {
            self.start_prefetch(load.room, &mut report).await;
        }
        Ok((report, Some(load)))
    }

    /// Returns whether an action writes its summaries without a model.
    fn acts_without_model(&self, action: Action) -> bool {
        let automatic = &self.memory().inner.automatic;
        let hands_over = action == Action::Compact && self.strategy() == Some(Strategy::Handoff);
        match &automatic.summarizer {
            _ if !hands_over => self.needs_no_model(),
            _ if automatic.runner.is_some() => false,
            Some(own) => own.provisional(),
            None => self.needs_no_model(),
        }
    }

    /// Publishes extracts (summaries written without a model) until the view costs at most `target` tokens. Returns
    /// whether any extract was published.
    async fn extract_to_fit(
        &self,
        target: u64,
        load: &mut Load,
        report: &mut TurnReport,
    ) -> Result<bool> {
        let mut compaction = self.compaction(CancellationToken::new());
        compaction.reason = CompactionReason::Threshold;
        compaction.snapshot = Some(load.snapshot.clone());
        let result = compaction.extract_to_fit(self.room(target)).await;
        let Some(outcome) = report.outcome_of(self, result) else {
            return Ok(false);
        };
        let published = outcome.published.total();
        if published > 0 {
            tracing::info!(session = %self.key(), published, "extracts stand in for summaries");
            *load = self.load_after(load, &outcome);
            report.extracted += published;
            report.compactions.push(outcome);
        }
        Ok(published > 0)
    }

    /// Prefetches summaries: in the background if the memory has a spawner, otherwise before returning.
    async fn start_prefetch(&self, room: u64, report: &mut TurnReport) {
        let inner = &self.memory().inner;
        if self.needs_no_model() {
            return;
        }
        let Some(slot) = inner.prefetches.reserve(self.id()) else {
            report.prefetching = true;
            return;
        };
        let Some(spawner) = &inner.spawner else {
            report.add_prefetch(self.prefetch_within(room).await);
            return;
        };
        let session = self.clone();
        (spawner.0)(Box::pin(async move {
            if let Some(running) = slot.start() {
                running.finish(session.prefetch_within(room).await);
            }
        }));
        report.prefetching = true;
    }
}

/// Returns whether a context omits or shortens content to fit its budget.
fn leaves_out(context: &Context) -> bool {
    let receipt = &context.receipt;
    !receipt.dropped.is_empty() || !receipt.degraded.is_empty() || !receipt.shortened.is_empty()
}
