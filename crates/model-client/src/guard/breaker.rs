//! A circuit breaker, which stops the calls of a model after several failures in a row.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::BreakerPolicy;
use crate::failure::FailureKind;

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreakerState {
    /// The breaker permits every call.
    Closed,
    /// The breaker permits no call.
    Open,
    /// The breaker permits one call as a test. If the call succeeds, the breaker closes; if it fails, the breaker opens
    /// again.
    HalfOpen,
}

#[derive(Debug, Default)]
struct FailureRecord {
    /// Number of failures since the last success.
    failures: u32,
    /// Time at which the breaker opened; `None` while it is closed.
    opened: Option<Duration>,
    /// Whether the test call of the half-open state is running.
    trying: bool,
    /// Text of the last failure.
    last_failure: String,
    /// Kind of the last failure.
    last_kind: Option<FailureKind>,
    /// Time of the first failure since the last success.
    since: Option<Duration>,
    /// Value of `opened` for which a wait was reported.
    told: Option<Duration>,
}

impl FailureRecord {
    /// Returns whether no call is permitted now.
    fn is_open(&self, policy: BreakerPolicy, now: Duration) -> bool {
        self.opened
            .is_some_and(|opened| self.trying || !ripe(policy, opened, now))
    }
}

/// The circuit breaker of one session.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    state: Mutex<FailureRecord>,
}

/// Permission for one call. Dropping it without a result, as a cancelled call does, counts as neither success nor
/// failure.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    policy: BreakerPolicy,
    trying: bool,
}

impl Breaker {
    fn lock(&self) -> MutexGuard<'_, FailureRecord> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, policy: BreakerPolicy, now: Duration) -> BreakerState {
        let state = self.lock();
        match state.opened {
            None => BreakerState::Closed,
            Some(_) if state.is_open(policy, now) => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    pub(crate) fn failures(&self) -> u32 {
        self.lock().failures
    }

    /// Returns the text of the last failure.
    pub(crate) fn last_failure(&self) -> String {
        self.lock().last_failure.clone()
    }

    pub(crate) fn reset(&self) {
        *self.lock() = FailureRecord::default();
    }

    /// Records a failure, and opens the breaker after the policy's number of failures in a row. Returns whether this
    /// failure opened it.
    pub(crate) fn fail(
        &self,
        policy: BreakerPolicy,
        now: Duration,
        (text, kind): (String, FailureKind),
    ) -> bool {
        let mut state = self.lock();
        let was_open = state.is_open(policy, now);
        state.last_failure = text;
        state.last_kind = Some(kind);
        state.since.get_or_insert(now);
        state.failures = state.failures.saturating_add(1);
        if state.failures < policy.failures.max(1) {
            return false;
        }
        state.opened = Some(now);
        !was_open
    }

    /// Returns how long calls may still wait for the model, if they wait for at most `most` since the first failure. `None`
    /// if they must not wait: the time is over, or the last failure does not pass by itself.
    pub(crate) fn patience(&self, most: Option<Duration>, now: Duration) -> Option<Duration> {
        let state = self.lock();
        let waited = state
            .since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let left = most?.checked_sub(waited)?;
        let may_pass = state.last_kind.is_some_and(FailureKind::may_pass);
        (may_pass && !left.is_zero()).then_some(left)
    }

    /// Returns whether the last failure is one that no other prompt and no time changes, such as a wrong key.
    pub(crate) fn is_lasting(&self) -> bool {
        self.lock().last_kind.is_some_and(FailureKind::is_lasting)
    }

    /// Returns true once for each time that the breaker opens.
    pub(crate) fn tell_wait(&self) -> bool {
        let mut state = self.lock();
        let opened = state.opened;
        std::mem::replace(&mut state.told, opened) != opened
    }

    /// Permits a call, or returns an error with the time until the next permitted call. The error is `None` if no call
    /// is permitted until a reset.
    pub(crate) fn enter(
        &self,
        policy: BreakerPolicy,
        now: Duration,
    ) -> Result<Pass<'_>, Option<Duration>> {
        let mut state = self.lock();
        let trying = match state.opened {
            None => false,
            Some(_) if !state.is_open(policy, now) => {
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

    pub(crate) fn failed(self, now: Duration, failure: (String, FailureKind)) {
        self.breaker.fail(self.policy, now, failure);
        if self.trying {
            self.breaker.lock().opened = Some(now);
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

    fn failure() -> (String, FailureKind) {
        (String::new(), FailureKind::Overloaded)
    }

    const SECOND: Duration = Duration::from_secs(1);
    const UNTIL_RESET: BreakerPolicy = BreakerPolicy {
        failures: 3,
        half_open_after_millis: None,
    };

    #[test]
    fn it_opens_on_the_third_failure_in_a_row_and_a_success_resets_it() {
        let (breaker, policy) = (Breaker::default(), UNTIL_RESET);
        for round in 0..5 {
            for _ in 0..2 {
                breaker
                    .enter(policy, SECOND)
                    .unwrap()
                    .failed(SECOND, failure());
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
                .failed(SECOND, failure());
        }
        assert_eq!(breaker.state(policy, SECOND * 9999), BreakerState::Open);
        assert_eq!(breaker.enter(policy, SECOND * 9999).unwrap_err(), None);
        breaker.reset();
        assert_eq!(breaker.state(policy, SECOND), BreakerState::Closed);
    }

    #[test]
    fn recorded_failures_count_like_failed_calls() {
        let (breaker, policy) = (Breaker::default(), UNTIL_RESET);
        for _ in 0..2 {
            assert!(!breaker.fail(
                policy,
                SECOND,
                ("elsewhere".to_owned(), FailureKind::Overloaded)
            ));
        }
        assert_eq!(breaker.state(policy, SECOND), BreakerState::Closed);
        breaker
            .enter(policy, SECOND)
            .unwrap()
            .failed(SECOND, ("here".to_owned(), FailureKind::Overloaded));
        assert_eq!(breaker.state(policy, SECOND), BreakerState::Open);
        assert_eq!(breaker.last_failure(), "here");
    }

    #[test]
    fn a_failure_opens_the_breaker_once_and_again_after_a_pause_or_a_reset() {
        let (breaker, policy) = (Breaker::default(), BreakerPolicy::default());
        let fail = |now| breaker.fail(policy, now, failure());
        let opened: Vec<bool> = (0..5).map(|_| fail(SECOND)).collect();
        assert_eq!(opened, [false, false, true, false, false]);
        let later = SECOND * 61;
        assert_eq!(breaker.state(policy, later), BreakerState::HalfOpen);
        assert_eq!([fail(later), fail(later)], [true, false]);
        breaker.reset();
        let opened: Vec<bool> = (0..4).map(|_| fail(later)).collect();
        assert_eq!(opened, [false, false, true, false]);
    }

    #[test]
    fn half_open_lets_one_call_through_which_decides() {
        let (breaker, policy) = (Breaker::default(), BreakerPolicy::default());
        for _ in 0..3 {
            breaker
                .enter(policy, SECOND)
                .unwrap()
                .failed(SECOND, failure());
        }
        let wait = breaker.enter(policy, SECOND * 11).unwrap_err();
        assert_eq!(wait, Some(SECOND * 50));
        let now = SECOND * 61;
        assert_eq!(breaker.state(policy, now), BreakerState::HalfOpen);
        // One call at a time is permitted. If it is cancelled, another call is permitted.
        let first = breaker.enter(policy, now).unwrap();
        assert!(breaker.enter(policy, now).is_err());
        assert_eq!(breaker.state(policy, now), BreakerState::Open);
        drop(first);
        // A failure of this call opens the breaker for another minute, regardless of the number of failures.
        breaker.enter(policy, now).unwrap().failed(now, failure());
        assert_eq!(breaker.state(policy, now + SECOND * 59), BreakerState::Open);
        let now = now + SECOND * 60;
        breaker.enter(policy, now).unwrap().succeeded();
        assert_eq!(breaker.state(policy, now), BreakerState::Closed);
        assert_eq!(breaker.failures(), 0);
    }
}
