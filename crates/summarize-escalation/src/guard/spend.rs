//! What was spent, and what may still be.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::SpendPolicy;

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// Calls, attempts counted singly, failed ones too.
    pub calls: u64,
    /// Tokens, read and written.
    pub tokens: u64,
}

/// The spending of a session, or of all.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    spent: Mutex<Spent>,
}

impl Purse {
    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn spent(&self) -> Spent {
        *self.lock()
    }

    /// Counts a call and the tokens that it may need; `Err` says what is used up.
    pub(crate) fn take(&self, policy: SpendPolicy, tokens: u64) -> Result<(), String> {
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

    /// Puts what a call really cost in the place of what was taken for it.
    pub(crate) fn settle(&self, taken: u64, tokens: u64) {
        let mut spent = self.lock();
        spent.tokens = spent.tokens.saturating_sub(taken).saturating_add(tokens);
    }

    /// Gives back what was taken for a call that was not made.
    pub(crate) fn give_back(&self, taken: u64) {
        let mut spent = self.lock();
        spent.calls = spent.calls.saturating_sub(1);
        spent.tokens = spent.tokens.saturating_sub(taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_beyond_a_limit() {
        let purse = Purse::default();
        let policy = SpendPolicy {
            calls: Some(3),
            tokens: Some(100),
        };
        purse.take(policy, 60).unwrap();
        let refused = purse.take(policy, 60).unwrap_err();
        assert!(refused.contains("60 of 100 tokens"), "{refused}");
        purse.settle(60, 20);
        purse.take(policy, 80).unwrap();
        purse.give_back(80);
        purse.take(policy, 10).unwrap();
        purse.take(policy, 10).unwrap();
        let refused = purse.take(policy, 0).unwrap_err();
        assert!(refused.contains("3 of 3 calls"), "{refused}");
        let spent = Spent {
            calls: 3,
            tokens: 40,
        };
        assert_eq!(purse.spent(), spent);
    }
}
