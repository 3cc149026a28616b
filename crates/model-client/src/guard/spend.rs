//! Spending of one session, or of all sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::SpendPolicy;
use super::observe::Received;

/// Numbers of calls and tokens that were spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Number of calls, including failed calls. Each retry counts as one.
    pub calls: u64,
    /// Number of tokens in prompts and answers.
    pub tokens: u64,
}

/// Counter of spent calls and tokens. Reserves the tokens of running calls.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    spent: Mutex<Spent>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn spent(&self) -> Spent {
        *self.lock()
    }

    /// Reserves a call and the tokens that it may need. The error describes the limit that would be exceeded.
    pub(crate) fn reserve(&self, policy: SpendPolicy, tokens: u64) -> Result<(), String> {
        let mut spent = self.lock();
        if let Some(most) = policy.calls
            && spent.calls >= most
        {
            return Err(format!("{} of {most} calls are spent", spent.calls));
        }
        let would = spent.tokens.saturating_add(tokens);
        if let Some(most) = policy.tokens
            && would > most
        {
            return Err(format!(
                "{} of {most} tokens are spent, and the next call may need {tokens}",
                spent.tokens
            ));
        }
        spent.calls = spent.calls.saturating_add(1);
        spent.tokens = would;
        Ok(())
    }

    /// Replaces the tokens that were reserved for a call by its real cost.
    pub(crate) fn settle(&self, reserved: u64, tokens: u64) {
        let mut spent = self.lock();
        spent.tokens = spent.tokens.saturating_sub(reserved).saturating_add(tokens);
    }

    /// Removes the reservation of a call that was not made.
    pub(crate) fn cancel(&self, reserved: u64) {
        let mut spent = self.lock();
        spent.calls = spent.calls.saturating_sub(1);
        spent.tokens = spent.tokens.saturating_sub(reserved);
    }
}

/// Tokens of a running call that are reserved in two ledgers. A call that is dropped has spent what its answer had so
/// far; if no part of the answer has arrived, the whole reservation is spent, because the real cost is not known.
#[derive(Debug)]
pub(super) struct Reservation<'a> {
    pub(super) ledgers: [&'a Ledger; 2],
    pub(super) tokens: u64,
    /// Estimated number of tokens in the prompt.
    pub(super) input: u64,
    pub(super) received: Arc<Received>,
    pub(super) open: bool,
}

impl Reservation<'_> {
    /// Returns the number of tokens that the answer has cost so far; `None` if no part of it has arrived.
    fn received(&self) -> Option<u64> {
        let progress = self.received.last()?;
        let input = progress.input.unwrap_or(self.input);
        Some(input.saturating_add(progress.output))
    }

    /// Replaces the reservation by the cost of an answer, or of a failure for `None`.
    pub(super) fn settle(mut self, cost: Option<u64>) {
        self.open = false;
        let cost = cost.or_else(|| self.received()).unwrap_or(self.input);
        for ledger in self.ledgers {
            ledger.settle(self.tokens, cost);
        }
    }

    /// Removes the reservation of a call that the model was not asked.
    pub(super) fn cancel(mut self) {
        self.open = false;
        for ledger in self.ledgers {
            ledger.cancel(self.tokens);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let (true, Some(cost)) = (self.open, self.received()) {
            for ledger in self.ledgers {
                ledger.settle(self.tokens, cost);
            }
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
        ledger.reserve(policy, 60).unwrap();
        let refused = ledger.reserve(policy, 60).unwrap_err();
        assert!(refused.contains("60 of 100 tokens"), "{refused}");
        ledger.settle(60, 20);
        ledger.reserve(policy, 80).unwrap();
        ledger.cancel(80);
        ledger.reserve(policy, 10).unwrap();
        ledger.reserve(policy, 10).unwrap();
        let refused = ledger.reserve(policy, 0).unwrap_err();
        assert!(refused.contains("3 of 3 calls"), "{refused}");
        let spent = Spent {
            calls: 3,
            tokens: 40,
        };
        assert_eq!(ledger.spent(), spent);
    }
}
