//! Guards around model calls. They protect a program from a model that fails, hangs or costs too much.
//!
//! All sessions share one [`Guards`], and each session has a [`SessionGuard`]. [`Guards::for_session`] combines the
//! two into a [`CallGuard`], and [`GuardedModel`] wraps a client with them. The time comes from a [`Timer`], so that
//! no async runtime is needed.

mod attempt;
mod breaker;
mod cache;
mod model;
mod observe;
mod policy;
mod spend;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_lock::Semaphore;
use async_trait::async_trait;

pub use breaker::BreakerState;
pub use model::GuardedModel;
pub use observe::{AttemptEvent, AttemptKind, CallObserver};
pub use policy::{BreakerPolicy, GuardPolicy, RetryPolicy, SpendPolicy};
pub use spend::Spent;

use crate::{CallGuard, Completion, Failure, FailureKind, ModelCall, Timer};
use breaker::Breaker;
use cache::Cache;
use spend::Ledger;

/// The guards that all sessions share: the policy, the clock, the limit on concurrent calls, the total spending, and
/// the cache of answers.
#[derive(Debug)]
pub struct Guards {
    policy: GuardPolicy,
    timer: Arc<dyn Timer>,
    slots: Option<Semaphore>,
    total: Ledger,
    cache: Cache,
    watch: observe::Watch,
    makes_calls: bool,
}

/// Creates guards with this policy, with Tokio's timer.
#[cfg(feature = "tokio")]
impl From<GuardPolicy> for Guards {
    fn from(policy: GuardPolicy) -> Self {
        Self::new(policy, Arc::new(crate::TokioTimer::new()))
    }
}

impl Guards {
    /// Creates guards with this policy. `timer` provides the time and the waits.
    pub fn new(policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        let slots = policy.concurrency.map(|calls| Semaphore::new(calls.max(1)));
        Self {
            policy,
            timer,
            slots,
            total: Ledger::default(),
            cache: Cache::default(),
            watch: observe::Watch::default(),
            makes_calls: true,
        }
    }

    /// Makes no call: each is only counted, and answered with a text without meaning of the desired length. The spending
    /// is then an estimate for real calls, without retries and without the provider's cache. A gate must be off, because
    /// it would refuse these texts.
    pub fn without_calls(mut self) -> Self {
        self.makes_calls = false;
        self
    }

    /// Sets the observer that receives an event at the start and at the end of every attempt.
    pub fn with_observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.watch.set_observer(observer);
        self
    }

    /// Returns the policy of the guards.
    pub fn policy(&self) -> &GuardPolicy {
        &self.policy
    }

    /// Returns the number of calls and tokens that all sessions together have spent.
    pub fn spent(&self) -> Spent {
        self.total.spent()
    }

    /// Returns the number of calls and tokens that all sessions together have spent on each model, by its name.
    pub fn spent_by_model(&self) -> BTreeMap<String, Spent> {
        self.total.by_model()
    }

    /// Removes all answers from the cache, so that each request calls a model again.
    pub fn clear_cache(&self) {
        self.cache.clear();
    }

    /// Returns the guard for a session's calls of one model. `model` is the model's name in errors and in events for
    /// the observer.
    pub fn for_session<'a>(
        &'a self,
        session: &'a SessionGuard,
        model: &'a str,
    ) -> SessionCalls<'a> {
        SessionCalls {
            guards: self,
            session,
            model,
        }
    }

    /// Counts a failure that happened outside of the guards, such as in a call that the application made itself. `text`
    /// describes the failure. Returns whether this failure opened the session's breaker, so that of several failures in
    /// a row one returns true. [`breaker`](Self::breaker) returns the state.
    pub fn record_failure(&self, session: &SessionGuard, text: impl Into<String>) -> bool {
        self.policy.breaker.is_some_and(|policy| {
            let now = self.timer.now();
            session.breaker.fail(policy, now, text.into())
        })
    }

    /// Returns the state of a session's breaker; `Closed` if the policy has no breaker.
    pub fn breaker(&self, session: &SessionGuard) -> BreakerState {
        match self.policy.breaker {
            Some(policy) => session.breaker.state(policy, self.timer.now()),
            None => BreakerState::Closed,
        }
    }
}

/// The guards of one session: its circuit breaker and its spending.
#[derive(Debug, Default)]
pub struct SessionGuard {
    breaker: Breaker,
    spending: Arc<Ledger>,
}

impl SessionGuard {
    /// Creates the guards of a new session: the breaker is closed, and no tokens are spent.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the guards for another model of the same session. The models have separate breakers and share the
    /// spending.
    pub fn sibling(&self) -> Self {
        Self {
            breaker: Breaker::default(),
            spending: Arc::clone(&self.spending),
        }
    }

    /// Returns the number of calls and tokens that the session has spent.
    pub fn spent(&self) -> Spent {
        self.spending.spent()
    }

    /// Returns the number of failed calls since the last successful call.
    pub fn failures(&self) -> u32 {
        self.breaker.failures()
    }

    /// Closes the breaker, so that calls are permitted again.
    pub fn reset(&self) {
        self.breaker.reset();
    }
}

/// The guard of a session's calls of one model: see [`Guards::for_session`].
///
/// If the guard does not make a call, its failure has the kind [`FailureKind::BreakerOpen`] or
/// [`FailureKind::SpendLimit`]. If an attempt exceeds the policy's time limit, the kind is [`FailureKind::TimedOut`].
#[derive(Debug, Clone, Copy)]
pub struct SessionCalls<'a> {
    guards: &'a Guards,
    session: &'a SessionGuard,
    model: &'a str,
}

#[async_trait]
impl CallGuard for SessionCalls<'_> {
    async fn call(&self, call: ModelCall<'_>) -> Result<Completion, Failure> {
        if !self.guards.makes_calls {
            return self.count_alone(&call);
        }
        let (cache, entries) = (&self.guards.cache, self.guards.policy.cache_entries);
        let key = call.cache_key.filter(|_| entries > 0);
        if let Some(cached) = key.and_then(|key| cache.get(&key)) {
            return Ok(cached);
        }
        let answer = self.through_breaker(&call).await?;
        if let Some(key) = key {
            cache.put(key, &answer, entries);
        }
        Ok(answer)
    }
}

impl SessionCalls<'_> {
    /// Makes a call unless the breaker is open, and records the result in the breaker.
    async fn through_breaker(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let (timer, breaker) = (&self.guards.timer, &self.session.breaker);
        let Some(policy) = self.guards.policy.breaker else {
            return self.attempts(call).await;
        };
        let pass = match breaker.enter(policy, timer.now()) {
            Ok(pass) => pass,
            Err(wait) => {
                let (failures, last) = (breaker.failures(), breaker.last_failure());
                let mut what = format!("not asked, after {failures} failures in a row ({last})");
                if let Some(wait) = wait {
                    what.push_str(&format!("; asked again in {} s", wait.as_secs()));
                }
                return Err(Failure::new(FailureKind::BreakerOpen, what));
            }
        };
        let answer = self.attempts(call).await;
        match &answer {
            Ok(answer) if answer.is_empty() => {
                pass.failed(timer.now(), "it wrote nothing".to_owned());
            }
            Ok(_) => pass.succeeded(),
            // A limit that the caller has set is not a failure of the provider. Nor is a prompt that is longer than the
            // window: the caller can send shorter ones, now that the server has named its window.
            Err(failure) if !failure.kind().asked() || failure.window().is_some() => drop(pass),
            Err(failure) => pass.failed(timer.now(), failure.to_string()),
        }
        answer
    }
}
