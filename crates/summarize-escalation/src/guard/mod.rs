//! Guards: what stands between a compaction and a model that fails, hangs or costs too much.
//!
//! They need no runtime: time comes from a [`Timer`]. [`Guards`] holds what all sessions share,
//! [`SessionGuard`] what each has for itself, and [`Guarded`] puts both around a summarizer.

mod breaker;
mod cache;
mod observe;
mod policy;
mod spend;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_lock::{Semaphore, SemaphoreGuard};
use async_trait::async_trait;
use futures::future::{Either, select};

pub use breaker::BreakerState;
pub use observe::{AttemptEvent, AttemptKind, CallObserver};
pub use policy::{BreakerPolicy, GuardPolicy, RetryPolicy, SpendPolicy};
pub use spend::Spent;

use crate::{
    CallGuard, Error, Failure, FailureKind, ModelCall, Stop, Summarizer, SummaryRequest,
    SummaryText, Timer,
};
use breaker::Breaker;
use cache::Cache;
use spend::Purse;

/// What all sessions share: the policy, the time, the limit on calls at the same time, what was
/// spent, and the summaries that are kept.
#[derive(Debug)]
pub struct Guards {
    policy: GuardPolicy,
    timer: Arc<dyn Timer>,
    gate: Option<Semaphore>,
    total: Purse,
    cache: Cache,
    watch: observe::Watch,
}

impl Guards {
    /// Guards by this policy, with time from this timer.
    pub fn new(policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        let gate = policy.concurrency.map(|calls| Semaphore::new(calls.max(1)));
        Self {
            policy,
            timer,
            gate,
            total: Purse::default(),
            cache: Cache::default(),
            watch: observe::Watch::default(),
        }
    }

    /// Sets who observes the attempts.
    pub fn with_observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.watch.observe(observer);
        self
    }

    /// The policy.
    pub fn policy(&self) -> &GuardPolicy {
        &self.policy
    }

    /// What all sessions together spent.
    pub fn spent(&self) -> Spent {
        self.total.spent()
    }

    /// Lets go of the answers that are kept: whoever asks again is answered anew. The cache does
    /// not know which of them a ladder refused.
    pub fn forget(&self) {
        self.cache.clear();
    }
}

/// What a session has for itself: its breaker, and what it spent.
#[derive(Debug, Default)]
pub struct SessionGuard {
    breaker: Breaker,
    purse: Arc<Purse>,
}

impl SessionGuard {
    /// A closed breaker, and nothing spent.
    pub fn new() -> Self {
        Self::default()
    }

    /// For another model of the same session: a breaker of its own, out of the same purse.
    pub fn sibling(&self) -> Self {
        Self {
            breaker: Breaker::default(),
            purse: Arc::clone(&self.purse),
        }
    }

    /// What the session spent.
    pub fn spent(&self) -> Spent {
        self.purse.spent()
    }

    /// How many calls failed in a row.
    pub fn failures(&self) -> u32 {
        self.breaker.failures()
    }

    /// Closes the breaker.
    pub fn reset(&self) {
        self.breaker.reset();
    }
}

/// A summarizer with guards around each of its calls of a model: a summary in parts takes several
/// calls, and each has its own time, its own retries and its own place in the spending. The cache
/// keeps whole summaries.
///
/// Its id, and so the recipe of what it writes, is that of the
/// summarizer inside; one that needs no model is not guarded at all.
///
/// What a guard refuses is a failure like one of the provider: [`FailureKind::BreakerOpen`],
/// [`FailureKind::SpendLimit`], [`FailureKind::TimedOut`]. The ladder decides what becomes of it.
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    inner: S,
    guards: Arc<Guards>,
    session: Arc<SessionGuard>,
}

impl<S: Summarizer> Guarded<S> {
    /// Guards of its own around a summarizer.
    pub fn new(inner: S, policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        let guards = Arc::new(Guards::new(policy, timer));
        Self::for_session(inner, guards, Arc::new(SessionGuard::new()))
    }

    /// Shared guards around the summarizer of one session.
    pub fn for_session(inner: S, guards: Arc<Guards>, session: Arc<SessionGuard>) -> Self {
        Self {
            inner,
            guards,
            session,
        }
    }

    /// What the session has for itself.
    pub fn session(&self) -> &SessionGuard {
        &self.session
    }

    /// What all sessions share.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// What the breaker lets through now; closed when there is none.
    pub fn breaker(&self) -> BreakerState {
        match self.guards.policy.breaker {
            Some(policy) => {
                let now = self.guards.timer.now();
                self.session.breaker.state(policy, now)
            }
            None => BreakerState::Closed,
        }
    }

    /// Makes a call until there is an answer, a failure that cannot pass, or no attempt left.
    async fn attempts(&self, call: &ModelCall<'_>) -> Result<SummaryText, Error> {
        let mut made = 0_u32;
        let mut last: Option<Error> = None;
        loop {
            let watched = self.watched(made.saturating_add(1));
            let error = match self.attempt(call).await {
                Ok(mut answer) => {
                    watched.answered();
                    answer.calls = answer.calls.saturating_add(made);
                    return Ok(answer);
                }
                Err(error) => error,
            };
            let failure = error.failure();
            if failure.is_some_and(|failure| !failure.kind().asked()) {
                // The money ran out between two attempts: what the provider said tells more.
                return Err(last.unwrap_or(error).with_calls(made));
            }
            made = made.saturating_add(1);
            let wait = match (self.guards.policy.retry, failure) {
                (Some(retry), Some(failure)) if failure.retryable() => {
                    retry.wait(made, failure.retry_after())
                }
                _ => None,
            };
            watched.failed(&error, wait);
            let Some(wait) = wait else {
                return Err(error.with_calls(made));
            };
            last = Some(error);
            self.guards.timer.sleep(wait).await;
        }
    }

    /// Tells the observer of an attempt.
    fn watched(&self, attempt: u32) -> observe::Watched<'_> {
        let policy = &self.guards.policy;
        let attempts = policy.retry.map_or(1, |retry| retry.attempts.max(1));
        let model = self.inner.model().unwrap_or(self.inner.id());
        let timeout = policy.timeout_millis.map(Duration::from_millis);
        let watch = &self.guards.watch;
        watch.start(model, (attempt, attempts), timeout)
    }

    /// One attempt: paid for, one of a limited number, and over in time.
    async fn attempt(&self, call: &ModelCall<'_>) -> Result<SummaryText, Error> {
        let _turn: Option<SemaphoreGuard<'_>> = match &self.guards.gate {
            Some(gate) => Some(gate.acquire().await),
            None => None,
        };
        let policy = &self.guards.policy;
        let taken = call.input_tokens.saturating_add(call.output_tokens);
        self.session
            .purse
            .take(policy.session_spend, taken)
            .map_err(|what| self.over("the session", &what))?;
        if let Err(what) = self.guards.total.take(policy.total_spend, taken) {
            self.session.purse.give_back(taken);
            return Err(self.over("all sessions together", &what));
        }
        // Should the call be cancelled, what was taken for it stays spent: nobody knows better.
        let answer = self.in_time(call.make()).await;
        let cost = match &answer {
            Ok(answer) => call.cost(answer),
            Err(_) => call.input_tokens,
        };
        self.session.purse.settle(taken, cost);
        self.guards.total.settle(taken, cost);
        answer
    }

    async fn in_time(
        &self,
        call: impl Future<Output = Result<SummaryText, Error>>,
    ) -> Result<SummaryText, Error> {
        let Some(millis) = self.guards.policy.timeout_millis else {
            return call.await;
        };
        let limit = self.guards.timer.sleep(Duration::from_millis(millis));
        match select(pin!(call), pin!(limit)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => {
                let what = format!("no answer within {millis} ms");
                Err(self.failed(FailureKind::TimedOut, &what))
            }
        }
    }

    fn over(&self, whose: &str, what: &str) -> Error {
        let what = format!("the spending limit of {whose} is reached: {what}");
        self.failed(FailureKind::SpendLimit, &what)
    }

    fn failed(&self, kind: FailureKind, what: &str) -> Error {
        let error = Error::provider(self.inner.id(), Failure::new(kind, what));
        error.with_calls(u32::from(kind.asked()))
    }
}

/// Whether the model wrote nothing although nothing stopped it.
fn is_empty(answer: &SummaryText) -> bool {
    answer.stop == Stop::Complete && answer.text.trim().is_empty()
}

#[async_trait]
impl<S: Summarizer> CallGuard for Guarded<S> {
    async fn call(&self, call: ModelCall<'_>) -> Result<SummaryText, Error> {
        let timer = &self.guards.timer;
        let Some(breaker) = self.guards.policy.breaker else {
            return self.attempts(&call).await;
        };
        let pass = match self.session.breaker.enter(breaker, timer.now()) {
            Ok(pass) => pass,
            Err(wait) => {
                let failures = self.session.breaker.failures();
                let said = self.session.breaker.said();
                let mut what = format!("not asked, after {failures} failures in a row ({said})");
                if let Some(wait) = wait {
                    what.push_str(&format!("; asked again in {} s", wait.as_secs()));
                }
                return Err(self.failed(FailureKind::BreakerOpen, &what));
            }
        };
        let answer = self.attempts(&call).await;
        match &answer {
            Ok(answer) if is_empty(answer) => {
                pass.failed(timer.now(), "it wrote nothing".to_owned());
            }
            Ok(_) => pass.succeeded(),
            // A limit of ours says nothing about the provider.
            Err(error) if error.failure().is_some_and(|f| !f.kind().asked()) => drop(pass),
            Err(error) => {
                let failure = error.failure().map(ToString::to_string);
                let said = failure.unwrap_or_else(|| error.chain());
                pass.failed(timer.now(), said);
            }
        }
        answer
    }
}

#[async_trait]
impl<S: Summarizer> Summarizer for Guarded<S> {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn model(&self) -> Option<&str> {
        self.inner.model()
    }

    fn provisional(&self) -> bool {
        self.inner.provisional()
    }

    fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
        self.inner.calls_needed(request)
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummaryText, Error> {
        if self.inner.provisional() {
            return self.inner.summarize(request).await;
        }
        let entries = self.guards.policy.cache_entries;
        let key = match entries {
            0 => None,
            _ => cache::key(self.inner.id(), request),
        };
        if let Some(found) = key.as_ref().and_then(|key| self.guards.cache.get(key)) {
            // No model was called for it this time.
            return Ok(SummaryText {
                calls: 0,
                usage: None,
                ..found
            });
        }
        let answer = self.inner.summarize_guarded(request, self).await?;
        if let Some(key) = key
            && answer.stop == Stop::Complete
            && !is_empty(&answer)
        {
            self.guards.cache.put(key, &answer, entries);
        }
        Ok(answer)
    }
}
