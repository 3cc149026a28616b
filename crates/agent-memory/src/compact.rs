//! Compacting a session's view, and rewriting its provisional summaries.

use compaction_plan::{Mode, Plan, Room};
use compaction_runner::{CancellationToken, Compaction, Outcome, RedoPlan, RedoPolicy, RedoReport};
use handoff_compactor::{LeftOut, left_out};
use memory_model::SummaryId;
use model_client::guard::{BreakerState, Spent};

use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

impl Session {
    /// Compacts the session's view, and returns what was published and why it stopped.
    ///
    /// # Errors
    /// When the store fails. A failing summarizer is a stop reason, not an error.
    pub async fn compact(&self, mode: Mode) -> Result<Outcome> {
        self.compact_with(mode, None, CancellationToken::new())
            .await
    }

    /// Compacts until done or cancelled. `instructions` go to the summarizer and are part of the
    /// summaries' recipe. In full mode extracts of older recipes are made anew first.
    ///
    /// # Errors
    /// As [`Session::compact`].
    pub async fn compact_with(
        &self,
        mode: Mode,
        instructions: Option<&str>,
        cancel: CancellationToken,
    ) -> Result<Outcome> {
        let upgraded = &self.memory().inner.upgraded;
        if mode == Mode::Full && upgraded.lock().insert(self.id(), ()).is_none() {
            let policy = RedoPolicy {
                extracts: true,
                ..RedoPolicy::default()
            };
            self.redo_with(&policy, instructions, cancel.clone())
                .await?;
        }
        let mut compaction = self.compaction(cancel);
        compaction.instructions = instructions.map(str::to_owned);
        Ok(self.run(&compaction, mode).await?)
    }

    /// Runs a compaction, and indexes the summaries that it published.
    pub(crate) async fn run(
        &self,
        compaction: &Compaction<'_>,
        mode: Mode,
    ) -> compaction_runner::Result<Outcome> {
        let outcome = compaction.run(mode).await?;
        self.index_summaries(outcome.published.total()).await;
        Ok(outcome)
    }

    /// Returns the messages of which these summaries tell nothing, as far as the session's view shows the summaries.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn left_out(&self, ids: &[SummaryId]) -> Result<Vec<LeftOut>> {
        let spans = self.spans().await?;
        let shown: Vec<&SummaryId> = spans
            .iter()
            .filter_map(|span| span.body.summary())
            .collect();
        let mut all = Vec::new();
        for summary in self.summaries(ids).await?.into_iter().flatten() {
            let mut rest = Some(summary.range).filter(|_| shown.contains(&&summary.id));
            while let Some(range) = rest {
                let page = self.entries_in(range).await?;
                all.extend(left_out(summary.text(), &page.items));
                rest = page.next;
            }
        }
        Ok(all)
    }

    /// Plans the next step of a compaction. Calls no model and writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan(&self) -> Result<Plan> {
        Ok(self.compaction(CancellationToken::new()).plan().await?)
    }

    /// Rewrites the provisional summaries of the session's view, and the summaries above them, with
    /// the memory's summarizer; or [extracts](RedoPolicy::extracts) of older recipes without a model. The old summaries stay
    /// in earlier versions of the view.
    ///
    /// # Errors
    /// `Invalid` when the memory's summarizer needs no model; or when the store fails. A failing
    /// summarizer is a stop reason, not an error.
    pub async fn redo(&self, policy: &RedoPolicy) -> Result<RedoReport> {
        self.redo_with(policy, None, CancellationToken::new()).await
    }

    /// Rewrites provisional summaries until done or cancelled. Instructions are part of the recipe:
    /// give those of the compaction.
    ///
    /// # Errors
    /// As [`Session::redo`].
    pub async fn redo_with(
        &self,
        policy: &RedoPolicy,
        instructions: Option<&str>,
        cancel: CancellationToken,
    ) -> Result<RedoReport> {
        if self.needs_no_model() && !policy.extracts {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the summaries of the session {} cannot be rewritten without a model: give the builder \
                     a summarizer that calls one",
                    self.key()
                ),
            ));
        }
        // The cache must not answer with a summary that was refused before.
        if let Some(guards) = self.memory().inner.writers.guards() {
            guards.clear_cache();
        }
        let mut compaction = self.compaction(cancel);
        compaction.instructions = instructions.map(str::to_owned);
        Ok(compaction.redo(policy).await?)
    }

    /// Plans what [`Session::redo`] would rewrite. Calls no model and writes nothing.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn plan_redo(&self, policy: &RedoPolicy) -> Result<RedoPlan> {
        let compaction = self.compaction(CancellationToken::new());
        Ok(compaction.plan_redo(policy).await?)
    }

    pub(crate) fn compaction(&self, cancel: CancellationToken) -> Compaction<'_> {
        let inner = &self.memory().inner;
        let mut compaction = Compaction::new(
            &*inner.store,
            self.id(),
            &**self.planner(),
            &*self.writer().summarizer,
            &inner.ladder,
            self.accounting(),
            &*inner.clock,
        );
        compaction.extractive = &inner.extractive;
        compaction.policy = inner.runner.clone();
        compaction.hooks = &*inner.hooks;
        compaction.owner = inner.owner.clone();
        compaction.in_flight = inner.in_flight.clone();
        compaction.liveness = &*inner.liveness;
        compaction.cancel = cancel;
        compaction
    }

    /// Returns a compaction for contexts that have room for `tokens` tokens of the view.
    pub(crate) fn compaction_within(
        &self,
        cancel: CancellationToken,
        tokens: u64,
    ) -> Compaction<'_> {
        let mut compaction = self.compaction(cancel);
        compaction.room = Some(self.room(tokens));
        compaction
    }

    /// Returns the room of contexts that hold at most `tokens` tokens of the view.
    pub(crate) fn room(&self, tokens: u64) -> Room {
        Room {
            tokens,
            whole_tail: self.memory().inner.assembly.whole_tail.is_some(),
        }
    }

    /// Whether summaries are written without a model, and so for free.
    pub(crate) fn needs_no_model(&self) -> bool {
        self.writer().summarizer.provisional()
    }

    /// Returns what the session spent on summaries in this process; zero without guards.
    pub fn spent(&self) -> Spent {
        let guard = self.writer().guards.first();
        guard.map(|guard| guard.spent()).unwrap_or_default()
    }

    /// Whether the session's circuit breakers are open, so that automatic compactions call no model: with fallbacks, whether all
    /// of them are. False without guards.
    pub fn is_broken(&self) -> bool {
        let Some(guards) = self.memory().inner.writers.guards() else {
            return false;
        };
        let mut breakers = self.writer().guards.iter();
        breakers.all(|guard| guards.breaker(guard) == BreakerState::Open)
    }

    /// Counts a failure that the session's breakers did not see, such as one of a call that the application made itself.
    /// Returns [`Session::is_broken`].
    pub fn record_failure(&self, text: &str) -> bool {
        if let Some(guards) = self.memory().inner.writers.guards() {
            for guard in self.writer().guards.iter() {
                guards.record_failure(guard, text);
            }
        }
        self.is_broken()
    }

    /// Closes the session's circuit breakers, so that the next summary calls a model again.
    pub fn reset_breaker(&self) {
        for guard in self.writer().guards.iter() {
            guard.reset();
        }
    }
}
