//! Stops asking a model whose calls fail one after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::BreakerPolicy;

/// What a circuit breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreakerState {
    /// Every call.
    Closed,
    /// No call.
    Open,
    /// One call, which decides.
    HalfOpen,
}

#[derive(Debug, Default)]
struct State {
    /// Failures since the last success.
    failures: u32,
    /// When it opened.
    opened: Option<Duration>,
    /// Whether the call that decides is under way.
    trying: bool,
    /// What the last failure said.
    said: String,
}

/// The breaker of one session.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

/// A call that was let through. Dropped without a verdict, as a cancelled call is, it changes
/// nothing.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    policy: BreakerPolicy,
    trying: bool,
}

impl Breaker {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, policy: BreakerPolicy, now: Duration) -> BreakerState {
        let state = self.lock();
        match state.opened {
            None => BreakerState::Closed,
            Some(opened) if !state.trying && ripe(policy, opened, now) => BreakerState::HalfOpen,
            Some(_) => BreakerState::Open,
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.lock().failures
    }

    /// What the last failure said.
    pub(crate) fn said(&self) -> String {
        self.lock().said.clone()
    }

    pub(crate) fn reset(&self) {
        *self.lock() = State::default();
    }

    /// Asks to be let through; `Err` is how long to wait, if that is known.
    pub(crate) fn enter(
        &self,
        policy: BreakerPolicy,
        now: Duration,
    ) -> Result<Pass<'_>, Option<Duration>> {
        let mut state = self.lock();
        let trying = match state.opened {
            None => false,
            Some(opened) if !state.trying && ripe(policy, opened, now) => {
                state.trying = true;
                true
            }
            Some(opened) => {
                let millis = policy.half_open_after_millis;
                let at = millis.map(|millis| opened + Duration::from_millis(millis));
                return Err(at.map(|at| at.saturating_sub(now)));
            }
        };
        Ok(Pass {
            breaker: self,
            policy,
            trying,
        })
    }
}

fn ripe(policy: BreakerPolicy, opened: Duration, now: Duration) -> bool {
    policy
        .half_open_after_millis
        .is_some_and(|millis| now.saturating_sub(opened) >= Duration::from_millis(millis))
}

impl Pass<'_> {
    pub(crate) fn succeeded(self) {
        self.breaker.reset();
    }

    pub(crate) fn failed(self, now: Duration, said: String) {
        let mut state = self.breaker.lock();
        state.said = said;
        state.failures = state.failures.saturating_add(1);
        if self.trying || state.failures >= self.policy.failures.max(1) {
            state.opened = Some(now);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.trying {
            self.breaker.lock().trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_opens_on_the_third_failure_in_a_row_and_a_success_starts_anew() {
        let (breaker, policy) = (Breaker::default(), BreakerPolicy::KODA);
        for round in 0..5 {
            for _ in 0..2 {
                breaker
                    .enter(policy, SECOND)
                    .unwrap()
                    .failed(SECOND, String::new());
            }
            assert_eq!(breaker.failures(), 2, "{round}");
            breaker.enter(policy, SECOND).unwrap().succeeded();
            assert_eq!(breaker.failures(), 0);
        }
        for _ in 0..3 {
            assert_eq!(breaker.state(policy, SECOND), BreakerState::Closed);
            breaker
                .enter(policy, SECOND)
                .unwrap()
                .failed(SECOND, String::new());
        }
        assert_eq!(breaker.state(policy, SECOND * 9999), BreakerState::Open);
        assert_eq!(breaker.enter(policy, SECOND * 9999).unwrap_err(), None);
        breaker.reset();
        assert_eq!(breaker.state(policy, SECOND), BreakerState::Closed);
    }

    #[test]
    fn half_open_lets_one_call_through_which_decides() {
        let (breaker, policy) = (Breaker::default(), BreakerPolicy::default());
        for _ in 0..3 {
            breaker
                .enter(policy, SECOND)
                .unwrap()
                .failed(SECOND, String::new());
        }
        let wait = breaker.enter(policy, SECOND * 11).unwrap_err();
        assert_eq!(wait, Some(SECOND * 50));
        let now = SECOND * 61;
        assert_eq!(breaker.state(policy, now), BreakerState::HalfOpen);
        // One call at a time; one that was cancelled makes room for another.
        let first = breaker.enter(policy, now).unwrap();
        assert!(breaker.enter(policy, now).is_err());
        assert_eq!(breaker.state(policy, now), BreakerState::Open);
        drop(first);
        // Its failure opens it for another minute, whatever the count.
        breaker
            .enter(policy, now)
            .unwrap()
            .failed(now, String::new());
        assert_eq!(breaker.state(policy, now + SECOND * 59), BreakerState::Open);
        let now = now + SECOND * 60;
        breaker.enter(policy, now).unwrap().succeeded();
        assert_eq!(breaker.state(policy, now), BreakerState::Closed);
        assert_eq!(breaker.failures(), 0);
    }
}
