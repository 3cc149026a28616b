//! Spending of one session, or of all sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::SpendPolicy;
use super::observe::Received;
use crate::{ModelUsage, Timer};

/// Numbers of calls and tokens that were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Number of calls, including failed calls. Each retry counts as one.
    pub calls: u64,
    /// Number of tokens in prompts and answers, as spending limits count them: running calls count with the tokens that
    /// are reserved for them, and failed calls with an estimate of their prompts.
    pub tokens: u64,
    /// Tokens of the answers that arrived, whole or in part, and of their prompts.
    pub usage: ModelUsage,
    /// Number of calls of which some tokens in `usage` are estimates, because the server did not count them.
    pub estimated_calls: u64,
    /// Number of ended calls of which no part of an answer arrived. Their tokens are not in `usage`, because the server
    /// did not say whether it counts them.
    pub unanswered_calls: u64,
    /// Number of tokens in the longest prompt of `usage`.
    pub longest_prompt: u64,
    /// Duration of all ended calls together, in milliseconds. Calls that are made at the same time count in full.
    pub millis: u64,
}

impl Spent {
    /// Returns the sum of two spendings. Sums above `u64::MAX` become `u64::MAX`.
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            usage: self.usage.saturating_add(other.usage),
            estimated_calls: self.estimated_calls.saturating_add(other.estimated_calls),
            unanswered_calls: self.unanswered_calls.saturating_add(other.unanswered_calls),
            longest_prompt: self.longest_prompt.max(other.longest_prompt),
            millis: self.millis.saturating_add(other.millis),
        }
    }
}

/// Counter of spent calls and tokens of each model. Reserves the tokens of running calls.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    spent: Mutex<BTreeMap<String, Spent>>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Spent>> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn spent(&self) -> Spent {
        sum(&self.lock())
    }

    pub(crate) fn by_model(&self) -> BTreeMap<String, Spent> {
        self.lock().clone()
    }

    /// Reserves a call of a model and the tokens that it may need. The error describes the limit that would be exceeded.
    pub(crate) fn reserve(
        &self,
        policy: SpendPolicy,
        model: &str,
        tokens: u64,
    ) -> Result<(), String> {
        let mut models = self.lock();
        let spent = sum(&models);
        if let Some(most) = policy.calls
            && spent.calls >= most
        {
            return Err(format!("{} of {most} calls are spent", spent.calls));
        }
        if let Some(most) = policy.tokens
            && spent.tokens.saturating_add(tokens) > most
        {
            return Err(format!(
                "{} of {most} tokens are spent, and the next call may need {tokens}",
                spent.tokens
            ));
        }
        let spent = models.entry(model.to_owned()).or_default();
        spent.calls = spent.calls.saturating_add(1);
        spent.tokens = spent.tokens.saturating_add(tokens);
        Ok(())
    }

    /// Replaces the tokens that were reserved for a call by the spending of the ended call.
    pub(crate) fn settle(&self, model: &str, reserved: u64, ended: Spent) {
        let mut models = self.lock();
        let spent = models.entry(model.to_owned()).or_default();
        spent.tokens = spent.tokens.saturating_sub(reserved);
        *spent = spent.saturating_add(ended);
    }

    /// Removes the reservation of a call that was not made.
    pub(crate) fn cancel(&self, model: &str, reserved: u64) {
        let mut models = self.lock();
        let spent = models.entry(model.to_owned()).or_default();
        spent.calls = spent.calls.saturating_sub(1);
        spent.tokens = spent.tokens.saturating_sub(reserved);
    }
}

fn sum(models: &BTreeMap<String, Spent>) -> Spent {
    let all = models.values().copied();
    all.fold(Spent::default(), Spent::saturating_add)
}

/// Tokens of a running call that are reserved in two ledgers. A call that is dropped has spent what its answer had so
/// far; if no part of the answer has arrived, the whole reservation is spent, because the real cost is not known.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    pub(super) ledgers: [&'a Ledger; 2],
    pub(super) model: &'a str,
    pub(super) tokens: u64,
    /// Estimated number of tokens in the prompt.
    pub(super) input: u64,
    pub(super) received: Arc<Received>,
    pub(super) timer: &'a dyn Timer,
    /// Time at which the call began.
    pub(super) since: Duration,
    pub(super) open: bool,
}

impl Reservation<'_> {
    /// Replaces the reservation by the tokens of an answer. `counted` is false if they are estimates.
    pub(super) fn answered(mut self, usage: ModelUsage, counted: bool) {
        self.end(self.of(usage, counted));
    }

    /// Replaces the reservation by the cost of a failed call: the part of its answer that arrived, or else its prompt.
    pub(super) fn failed(mut self) {
        let ended = self.received().unwrap_or(Spent {
            tokens: self.input,
            unanswered_calls: 1,
            ..Spent::default()
        });
        self.end(ended);
    }

    /// Removes the reservation of a call that the model was not asked.
    pub(super) fn cancel(mut self) {
        self.open = false;
        for ledger in self.ledgers {
            ledger.cancel(self.model, self.tokens);
        }
    }

    /// Returns the cost of the part of the answer that has arrived; `None` if no part of it has arrived.
    fn received(&self) -> Option<Spent> {
        let progress = self.received.last()?;
        let input = progress.input.unwrap_or(self.input);
        Some(self.of(ModelUsage::new(input, progress.output), false))
    }

    fn of(&self, usage: ModelUsage, counted: bool) -> Spent {
        Spent {
            tokens: usage.total(),
            usage,
            estimated_calls: u64::from(!counted),
            longest_prompt: usage.input,
            ..Spent::default()
        }
    }

    fn end(&mut self, ended: Spent) {
        self.open = false;
        let duration = self.timer.now().saturating_sub(self.since);
        let ended = Spent {
            millis: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            ..ended
        };
        for ledger in self.ledgers {
            ledger.settle(self.model, self.tokens, ended);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.open {
            let ended = self.received().unwrap_or(Spent {
                tokens: self.tokens,
                unanswered_calls: 1,
                ..Spent::default()
            });
            self.end(ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_reserved_beyond_a_limit() {
        let ledger = Ledger::default();
        let policy = SpendPolicy {
            calls: Some(3),
            tokens: Some(100),
        };
        ledger.reserve(policy, "m", 60).unwrap();
        let refused = ledger.reserve(policy, "m", 60).unwrap_err();
        assert!(refused.contains("60 of 100 tokens"), "{refused}");
        let ended = Spent {
            tokens: 20,
            ..Spent::default()
        };
        ledger.settle("m", 60, ended);
        ledger.reserve(policy, "m", 80).unwrap();
        ledger.cancel("m", 80);
        ledger.reserve(policy, "m", 10).unwrap();
        ledger.reserve(policy, "m", 10).unwrap();
        let refused = ledger.reserve(policy, "m", 0).unwrap_err();
        assert!(refused.contains("3 of 3 calls"), "{refused}");
        let spent = Spent {
            calls: 3,
            tokens: 40,
            ..Spent::default()
        };
        assert_eq!(ledger.spent(), spent);
        // A limit is one of all models together.
        let refused = ledger.reserve(policy, "other", 0).unwrap_err();
        assert!(refused.contains("3 of 3 calls"), "{refused}");
    }
}
