//! Compactions that depend on turns: at the end of a turn, and after a provider refused a context.

use compaction_plan::Mode;
use compaction_runner::{CancellationToken, CompactionReason, Outcome};

use crate::error::Result;
use crate::handing_over::Rounds;
use crate::session::Session;
use crate::strategy::Strategy;
use crate::turns::TurnReport;

/// Outcome of compacting after a provider refused a context as too long.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// The view (the compacted log) is smaller now: assemble the context again, and repeat the model call.
    Compacted(Box<Outcome>),
    /// The view (the compacted log) could not be made smaller, so repeating the model call would not help.
    NothingToDo,
    /// This turn has already tried a recovery. No second recovery was tried.
    AlreadyTried,
}

impl Session {
    /// Requests a compaction at the end of the turn, even if the turn policy does not compact then.
    /// [`Session::after_turn`] runs it and waits for the model. A requested handoff has no minimum number of messages.
    /// The request is kept only in this process, and a later request replaces it.
    pub fn request_compaction(&self, instructions: Option<&str>) {
        let instructions = instructions.map(str::to_owned);
        self.memory()
            .inner
            .activities
            .request(self.id(), instructions);
    }

    /// Compacts the view (the compacted log) to three quarters of the window's budget, at most once in each turn. Call
    /// it after a provider refused a context as too long. If the model or the runner fails, extracts (summaries written
    /// without a model) are published instead, and the error is in [`Outcome::failure`]. An open circuit breaker does not
    /// prevent the recovery if the breaker's policy exempts commands.
    ///
    /// [`models::is_context_overflow`](crate::models::is_context_overflow) recognizes the provider's error.
    ///
    /// # Errors
    /// `Invalid` if the session has no window, and `Store` if the store fails.
    pub async fn recover_from_overflow(&self) -> Result<Recovery> {
        let window = self.window()?;
        if !self.memory().inner.activities.may_recover(self.id()) {
            return Ok(Recovery::AlreadyTried);
        }
        let budget = window.budget().get().saturating_sub(self.fixed_tokens());
        let before = self.snapshot().await?.tokens();
        let room = (budget / 4 * 3).min(before.saturating_sub(before / 4));
        let mut compaction = self.compaction_within(CancellationToken::new(), room);
        compaction.reason = CompactionReason::Overflow;
        let mut report = TurnReport::default();
        let ran = match self.strategy() {
            Some(Strategy::Handoff) => {
                let request = &self.memory().inner.automatic;
                let all: Rounds<'_> = (u32::MAX, &|_| false);
                self.hand_over_in_turn(compaction.clone(), request, all, &mut report)
                    .await
            }
            _ => Some(self.run(&compaction, Mode::Full).await?),
        };
        let mut outcome = match ran {
            Some(outcome) if outcome.after.tokens <= room => outcome,
            ran => {
                let more = compaction.extract_to_fit(self.room(room)).await?;
                self.index_summaries(more.published.total()).await;
                match ran {
                    Some(outcome) => outcome.followed_by(more),
                    None => more,
                }
            }
        };
        outcome.failure = outcome.failure.or(report.failure);
        Ok(match outcome.published.total() {
            0 => Recovery::NothingToDo,
            _ => Recovery::Compacted(Box::new(outcome)),
        })
    }
}
