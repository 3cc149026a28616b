//! Compacting a session's view, and rewriting its provisional summaries.

use compaction_plan::{Mode, Plan, Room};
use compaction_runner::{CancellationToken, Compaction, Outcome, RedoPlan, RedoPolicy, RedoReport};
use model_client::guard::{BreakerState, Spent};

use crate::error::{Error, ErrorKind, Result};
use crate::handing_over::failure_label;
use crate::session::Session;
use crate::strategy::Strategy;

/// Options for a compaction: see [`Session::compact`]. A [`Mode`] converts into a request.
#[derive(Debug, Clone, Default)]
pub struct CompactRequest {
    /// Number of repetitions: each pass (planning round) of the planner runs once, or all passes run until they plan no
    /// change.
    pub mode: Mode,
    /// Instructions for the summarizer; `None` for no instructions. They are part of a summary's recipe, the
    /// description of how the summary was made.
    pub instructions: Option<String>,
    /// Token with which the caller can cancel the compaction. Summaries that were already published are kept.
    pub cancel: CancellationToken,
    /// Whether the compaction fails with `InTurn` while a turn is running. Set it for a compaction that the user
    /// commands. [`Session::request_compaction`] instead waits for the end of the turn.
    pub between_turns: bool,
    /// Whether to publish only prefetched summaries, without calling a model. If the summarizer needs no model, the
    /// request then runs an incremental compaction.
    pub ready_only: bool,
    /// Maximum cost of the view (the compacted log), in tokens, up to which summaries of summaries wait for a model that
    /// fails at the moment. Above it they are written without the model. With `None` they always wait. A turn takes its
    /// budget instead.
    pub fits: Option<u64>,
}

impl CompactRequest {
    /// Creates the request for a full compaction of a view that is to cost at most `tokens` tokens: see
    /// [`CompactRequest::fits`].
    pub fn to_fit(tokens: u64) -> Self {
        Self {
            fits: Some(tokens),
            ..Self::from(Mode::Full)
        }
    }
}

impl From<Mode> for CompactRequest {
    fn from(mode: Mode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }
}

/// Options for rewriting summaries: see [`Session::redo`]. A [`RedoPolicy`] converts into a request.
#[derive(Debug, Clone, Default)]
pub struct RedoRequest {
    /// Selects the summaries to rewrite, and limits the number of model calls.
    pub policy: RedoPolicy,
    /// Instructions for the summarizer; `None` for no instructions. Give the same instructions as for the compaction.
    /// They are part of a summary's recipe, the description of how the summary was made.
    pub instructions: Option<String>,
    /// Token with which the caller can cancel the rewriting. Summaries that were already published are kept.
    pub cancel: CancellationToken,
}

impl From<RedoPolicy> for RedoRequest {
    fn from(policy: RedoPolicy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }
}

impl Session {
    /// Compacts the session's view, once or until there is no more work: see [`CompactRequest::mode`]. Returns the
    /// numbers of published summaries and the reason for stopping. The first [full](Mode::Full) compaction of a session
    /// in this process also rewrites extracts (summaries made without a model) that an older version of the summarizer
    /// wrote.
    ///
    /// # Errors
    /// `InTurn` if the request is to run only [between turns](CompactRequest::between_turns) and a turn is running, and
    /// `Store` if the store fails. A failure of the summarizer is not an error but a stop reason.
    pub async fn compact(&self, request: impl Into<CompactRequest>) -> Result<Outcome> {
        let request = request.into();
        if request.between_turns && self.memory().inner.activities.in_turn(self.id()) {
            return Err(Error::new(
                ErrorKind::InTurn,
                format!(
                    "a turn of the session {} is under way: compact after it, or ask for it with \
                     `request_compaction`",
                    self.key()
                ),
            ));
        }
        if request.ready_only {
            return Ok(self.compaction(request.cancel).publish_ready().await?);
        }
        let upgraded = &self.memory().inner.upgraded;
        if request.mode == Mode::Full && upgraded.lock().insert(self.id(), ()).is_none() {
            let redo = RedoRequest {
                policy: RedoPolicy {
                    extracts: true,
                    ..RedoPolicy::default()
                },
                instructions: request.instructions.clone(),
                cancel: request.cancel.clone(),
            };
            self.redo(redo).await?;
        }
        let mut compaction = self.compaction(request.cancel);
        compaction.instructions = request.instructions;
        compaction.fits = request.fits;
        Ok(self.run(&compaction, request.mode).await?)
    }

    /// Runs a compaction, and adds the published summaries to the search index.
    pub(crate) async fn run(
        &self,
        compaction: &Compaction<'_>,
        mode: Mode,
    ) -> compaction_runner::Result<Outcome> {
        let mut outcome = compaction.run(mode).await?;
        if self.strategy() == Some(Strategy::Handoff) && outcome.failure.is_some() {
            outcome.failure = Some(failure_label(&outcome));
        }
        self.index_summaries(outcome.published.total()).await;
        Ok(outcome)
    }

    /// Plans the next iteration of a compaction and returns the plan: a list of changes of the view, such as summaries
    /// to write. Calls no model and does not write to the store.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn plan(&self) -> Result<Plan> {
        Ok(self.compaction(CancellationToken::new()).plan().await?)
    }

    /// Rewrites the summaries of the session's view (its compacted log) that were written without a model, with the
    /// memory's summarizer. Also rewrites every summary that was made from a rewritten one. With
    /// [`RedoPolicy::extracts`] it instead rewrites, without a model, the extracts of older versions of the extractive
    /// summarizer. With [`RedoPolicy::again`] it instead rewrites summaries that should not have been accepted, although a
    /// model wrote them. The old summaries stay in earlier versions of the view.
    ///
    /// Two redos of a session's view do not run at the same time: the second ends at once with
    /// [`RedoStop::Held`](compaction_runner::RedoStop::Held).
    ///
    /// # Errors
    /// `Invalid` if summaries need a model and the memory's summarizer calls none, `NotFound` if the view has no such
    /// summary, and `Store` if the store fails. A failure of the summarizer is not an error but a stop reason.
    pub async fn redo(&self, request: impl Into<RedoRequest>) -> Result<RedoReport> {
        let request = request.into();
        if self.needs_no_model() && !request.policy.extracts {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the summaries of the session {} cannot be rewritten without a model: give the builder \
                     a summarizer that calls one",
                    self.key()
                ),
            ));
        }
        // The cache must not return a summary that was rejected before.
        if let Some(guards) = self.memory().inner.writers.guards() {
            guards.clear_cache();
        }
        let mut compaction = self.compaction(request.cancel);
        compaction.instructions = request.instructions;
        Ok(compaction.redo(&request.policy).await?)
    }

    /// Returns the summaries that [`Session::redo`] would rewrite. Calls no model and does not write to the store.
    ///
    /// # Errors
    /// `Store` if the store fails.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        let compaction = self.compaction(CancellationToken::new());
        Ok(compaction.plan_redo(policy).await?)
    }

    pub(crate) fn compaction(&self, cancel: CancellationToken) -> Compaction<'_> {
        let inner = &self.memory().inner;
        let is_handoff = self.strategy() == Some(Strategy::Handoff);
        let mut compaction = Compaction::new(
            &*inner.store,
            self.id(),
            &**self.planner(),
            &*self.writer().summarizer,
            match is_handoff {
                true => &inner.handoff_ladder,
                false => &inner.ladder,
            },
            self.accounting(),
            &*inner.clock,
        );
        compaction.extractive = &inner.extractive;
        compaction.conventions = &*inner.conventions;
        compaction.policy = inner.runner.clone();
        // Either both summaries of a split turn are published or none of them.
        compaction.policy.whole_passes |= is_handoff;
        compaction.hooks = &*inner.hooks;
        compaction.in_flight = inner.in_flight.clone();
        compaction.liveness = &*inner.liveness;
        compaction.cancel = cancel;
        compaction
    }

    /// Returns a compaction for contexts in which the view may cost at most `tokens` tokens.
    pub(crate) fn compaction_within(
        &self,
        cancel: CancellationToken,
        tokens: u64,
    ) -> Compaction<'_> {
        let mut compaction = self.compaction(cancel);
        compaction.room = Some(self.room(tokens));
        compaction
    }

    /// Returns the limit for a planner: contexts in which the view may cost at most `tokens` tokens.
    pub(crate) fn room(&self, tokens: u64) -> Room {
        Room {
            tokens,
            whole_tail: self.memory().inner.assembly.whole_tail.is_some(),
        }
    }

    /// Returns whether the session's summarizer writes summaries without a model, and therefore without cost.
    pub(crate) fn needs_no_model(&self) -> bool {
        self.writer().summarizer.provisional()
    }

    /// Returns access to the guards of the session's model calls: their spending and their circuit breakers.
    pub fn guard(&self) -> CallGuards<'_> {
        CallGuards(self)
    }
}

/// Guards of the model calls of one session in this process. Guards limit the duration, the retries, the concurrency
/// and the spending of the calls, and a circuit breaker stops the calls after repeated failures. The methods return the
/// spending and the state of the breakers, count a failure from outside, and close the breakers. See
/// [`Builder::guards`](crate::Builder::guards).
#[derive(Debug, Clone, Copy)]
pub struct CallGuards<'a>(&'a Session);

impl CallGuards<'_> {
    /// Returns how much the session has spent on summaries; zero if the memory has no guards.
    pub fn spent(&self) -> Spent {
        let guard = self.0.writer().guards.first();
        guard.map(|guard| guard.spent()).unwrap_or_default()
    }

    /// Returns whether the session's circuit breaker is open, so that automatic compactions call no model. If there are
    /// fallback summarizers, returns whether all breakers are open. Returns false if the memory has no guards.
    pub fn is_open(&self) -> bool {
        let Some(guards) = self.0.memory().inner.writers.guards() else {
            return false;
        };
        let mut breakers = self.0.writer().guards.iter();
        breakers.all(|guard| guards.breaker(guard) == BreakerState::Open)
    }

    /// Counts a failure outside of this crate, such as a failed model call of the application, in all circuit breakers
    /// of the session. `text` describes the failure. Returns whether this failure made [`CallGuards::is_open`] true, so
    /// that the application can report it once.
    pub fn record_failure(&self, text: &str) -> bool {
        let Some(guards) = self.0.memory().inner.writers.guards() else {
            return false;
        };
        let mut opened = false;
        for guard in self.0.writer().guards.iter() {
            opened |= guards.record_failure(guard, text);
        }
        opened && self.is_open()
    }

    /// Closes the session's circuit breakers, so that the next summary calls a model again.
    pub fn reset(&self) {
        for guard in self.0.writer().guards.iter() {
            guard.reset();
        }
    }
}
