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
use std::time::Duration;

use async_lock::Semaphore;
use async_trait::async_trait;

pub use breaker::BreakerState;
pub use model::GuardedModel;
pub use observe::{AttemptEvent, AttemptKind, CallObserver};
pub use policy::{BreakerPolicy, GuardPolicy, RetryPolicy, SpendPolicy};
pub use spend::Spent;

use crate::{CallGuard, Completion, Failure, FailureKind, ModelCall, Timer};
use breaker::{Breaker, Pass};
use cache::Cache;
use spend::Ledger;

/// Time between two looks whether the test call of an open breaker has ended.
const TEST_CALL: Duration = Duration::from_secs(1);

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
            session
                .breaker
                .fail(policy, now, (text.into(), FailureKind::Overloaded))
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
    /// Makes a call through the breaker. If the policy allows it, waits while the breaker is open, and repeats the call
    /// after temporary failures.
    async fn through_breaker(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let (timer, breaker) = (&self.guards.timer, &self.session.breaker);
        let Some(policy) = self.guards.policy.breaker else {
            return self.attempts(call).await;
        };
        let most = self.guards.policy.wait_millis.map(Duration::from_millis);
        let mut made = 0_u32;
        loop {
            let failure = match breaker.enter(policy, timer.now()) {
                Ok(pass) => match self.recorded(call, pass).await {
                    Ok(mut answer) => {
                        answer.calls = answer.calls.saturating_add(made);
                        return Ok(answer);
                    }
                    Err(failure) => failure,
                },
                Err(again) => self.not_asked(again),
            };
            made = made.saturating_add(failure.calls());
            let may_pass = failure.may_pass();
            let left = breaker.patience(most, timer.now()).filter(|_| may_pass);
            let Some(left) = left else {
                return Err(failure.with_calls(made));
            };
            if failure.kind() == FailureKind::BreakerOpen {
                let Some(again) = failure.retry_after() else {
                    return Err(failure.with_calls(made));
                };
                if breaker.tell_wait() {
                    self.guards.watch.waits(self.model, again);
                }
                // The call that the breaker permits as a test may be under way.
                timer.sleep(again.max(TEST_CALL).min(left)).await;
            }
        }
    }

    /// Returns the failure of a call that the breaker does not permit. `again` is the time until the next permitted call.
    fn not_asked(&self, again: Option<Duration>) -> Failure {
        let breaker = &self.session.breaker;
        let (failures, last) = (breaker.failures(), breaker.last_failure());
        let mut what = format!("not asked, after {failures} failures in a row ({last})");
        if let Some(again) = again {
            what.push_str(&format!("; asked again in {} s", again.as_secs()));
        }
        Failure::new(FailureKind::BreakerOpen, what)
            .with_retry_after(again)
            .with_lasting(breaker.is_lasting())
    }

    /// Makes a permitted call, and records the result in the breaker.
    async fn recorded(&self, call: &ModelCall<'_>, pass: Pass<'_>) -> Result<Completion, Failure> {
        let timer = &self.guards.timer;
        let answer = self.attempts(call).await;
        match &answer {
            Ok(answer) if answer.is_empty() => {
                pass.failed(
                    timer.now(),
                    ("it wrote nothing".to_owned(), FailureKind::Empty),
                );
            }
            Ok(_) => pass.succeeded(),
            // A limit that the caller has set is not a failure of the provider. Nor is a prompt that is longer than the
            // window: the caller can send shorter ones, now that the server has named its window.
            Err(failure) if !failure.kind().asked() || failure.window().is_some() => drop(pass),
            Err(failure) => {
                let told = (failure.to_string(), failure.kind());
                pass.failed(timer.now(), told);
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::testing::FakeTimer;
    use crate::{ChatModel, ChatPrompt};

    const SECOND: Duration = Duration::from_secs(1);

    /// A model that fails with this kind until this time.
    #[derive(Debug, Clone)]
    struct Down {
        timer: FakeTimer,
        kind: FailureKind,
        until: Duration,
        asked: Arc<Mutex<Vec<u64>>>,
    }

    #[async_trait]
    impl ChatModel for Down {
        async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
            let now = self.timer.now();
            self.asked.lock().unwrap().push(now.as_secs());
            match now < self.until {
                true => Err(Failure::new(self.kind, "it is down")),
                false => Ok(Completion::new("done")),
            }
        }
    }

    #[derive(Debug, Default)]
    struct Waits(Mutex<Vec<Duration>>);

    impl CallObserver for Waits {
        fn attempt(&self, event: &AttemptEvent<'_>) {
            if let AttemptKind::Waiting { again_in } = event.kind {
                self.0.lock().unwrap().push(again_in);
            }
        }
    }

    /// Makes two calls at the same time of a model that is down for so long. Returns their results, the times of the
    /// attempts in seconds, the time at the end, and the waits that were reported.
    fn two_calls(
        kind: FailureKind,
        down: u64,
        wait: Option<u64>,
    ) -> (Vec<Result<u32, FailureKind>>, Vec<u64>, u64, usize) {
        let (timer, waits) = (FakeTimer::new(), Arc::new(Waits::default()));
        let model = Down {
            timer: timer.clone(),
            kind,
            until: SECOND * u32::try_from(down).unwrap(),
            asked: Arc::default(),
        };
        let policy = GuardPolicy {
            wait_millis: wait.map(|seconds| seconds * 1_000),
            ..GuardPolicy::default()
        };
        let guards = Guards::new(policy, Arc::new(timer.clone()));
        let guards = Arc::new(guards.with_observer(Arc::<Waits>::clone(&waits)));
        let session = Arc::new(SessionGuard::new());
        let guarded = GuardedModel::for_session("m", model.clone(), guards, session);
        let prompts = ["one", "two"].map(|what| ChatPrompt::new("Be brief.", what));
        let calls = prompts.each_ref().map(|prompt| guarded.complete(prompt));
        let answers = timer.drive(futures::future::join_all(calls)).unwrap();
        let answers = answers.into_iter().map(|answer| match answer {
            Ok(answer) => Ok(answer.calls),
            Err(failure) => Err(failure.kind()),
        });
        let asked = model.asked.lock().unwrap().clone();
        let told = waits.0.lock().unwrap().len();
        (answers.collect(), asked, timer.now().as_secs(), told)
    }

    #[test]
    fn a_call_waits_for_the_breaker_if_the_policy_says_so() {
        let (answers, asked, end, told) = two_calls(FailureKind::Unreachable, 200, None);
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert!(end < 10 && told == 0, "{end}");
        assert!(asked.len() <= 6, "{asked:?}");

        let (answers, asked, end, told) = two_calls(FailureKind::Unreachable, 200, Some(600));
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        // It is asked a few times at first, and then once in a minute until it answers; each pause is told once.
        assert!((200..270).contains(&end), "{end}");
        assert!(
            asked.len() < 30 && (3..=4).contains(&told),
            "{asked:?} {told}"
        );
        let first = answers.iter().flatten().max().unwrap();
        assert!(*first > 3, "earlier attempts are counted: {answers:?}");
    }

    #[test]
    fn the_wait_ends_and_a_failure_that_stays_is_not_waited_for() {
        let (answers, _, end, _) = two_calls(FailureKind::TimedOut, 100_000, Some(150));
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert!((150..170).contains(&end), "{end}");
        for kind in [FailureKind::Auth, FailureKind::NotFound] {
            let (answers, asked, end, told) = two_calls(kind, 100_000, Some(600));
            assert_eq!(answers, [Err(kind), Err(kind)]);
            assert_eq!((asked.len(), end, told), (2, 0, 0));
        }
    }

    #[test]
    fn an_open_breaker_names_the_time_until_the_next_call() {
        let timer = FakeTimer::new();
        let model = Down {
            timer: timer.clone(),
            kind: FailureKind::Auth,
            until: SECOND * 9_999,
            asked: Arc::default(),
        };
        let policy = GuardPolicy::default();
        let guarded = GuardedModel::new("m", model, policy, Arc::new(timer.clone()));
        let prompt = ChatPrompt::new("Be brief.", "What was said?");
        for _ in 0..3 {
            timer.drive(guarded.complete(&prompt)).unwrap().unwrap_err();
        }
        timer.drive(timer.sleep(SECOND * 20)).unwrap();
        let failure = timer.drive(guarded.complete(&prompt)).unwrap().unwrap_err();
        assert_eq!(failure.kind(), FailureKind::BreakerOpen);
        assert_eq!(failure.retry_after(), Some(SECOND * 40));
        // A wrong key does not pass by itself.
        assert!(failure.kind().may_pass() && !failure.may_pass());
        assert!(
            failure.to_string().contains("asked again in 40 s"),
            "{failure}"
        );
    }
}
