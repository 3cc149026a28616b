//! The attempts at one call, with retries, time limits and spending limits.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};

use super::observe::Received;
use super::spend::Reservation;
use super::{SessionCalls, observe};
use crate::{Completion, Failure, FailureKind, ModelCall, observed};

/// Longest wait before a server that loads its model is asked again.
const LOADING_WAIT: Duration = Duration::from_secs(5);
/// Maximum duration of the wait for a server that loads its model, if calls have no time limit.
const LOADING_LIMIT: Duration = Duration::from_secs(600);

impl SessionCalls<'_> {
    /// Makes a call, and repeats it after failures for which a retry may help. Stops at an answer, after the last
    /// attempt, if the provider asks for too long a wait, or if a spending limit is reached. While the server loads the
    /// model, the call is repeated for as long as one attempt may take; these repetitions count as no attempts.
    pub(super) async fn attempts(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let retry = self.guards.policy.retry;
        let mut waits = retry.map(|retry| retry.waits()).into_iter().flatten();
        let mut loading = self.loading();
        let mut made = 0_u32;
        let mut last: Option<Failure> = None;
        loop {
            // The time of an attempt begins when it is its turn.
            let slot = match &self.guards.slots {
                Some(slots) => Some(slots.acquire().await),
                None => None,
            };
            let watched = self.watch(made.saturating_add(1));
            let answer = self.attempt(call, &watched).await;
            drop(slot);
            let failure = match answer {
                Ok(mut answer) => {
                    watched.answered();
                    answer.calls = answer.calls.saturating_add(made);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            if !failure.kind().asked() {
                // A limit was reached between two attempts. The failure of the earlier attempt is more informative.
                return Err(last.unwrap_or(failure).with_calls(made));
            }
            if failure.kind() == FailureKind::Loading
                && let Some(wait) = loading.next(self.guards.timer.now())
            {
                // The server's own wait may be none, or much longer than the rest of the loading.
                let asked = failure.retry_after().unwrap_or_default();
                let wait = asked.min(LOADING_WAIT).max(wait);
                // One failure is told; those that follow say the same.
                match last.as_ref().map(Failure::kind) {
                    Some(FailureKind::Loading) => drop(watched),
                    _ => watched.failed(&failure, Some(wait)),
                }
                last = Some(failure);
                self.guards.timer.sleep(wait).await;
                continue;
            }
            made = made.saturating_add(1);
            let wait = match retry {
                Some(retry) if failure.retryable() && failure.kind() != FailureKind::Loading => {
                    let own = waits.next();
                    own.and_then(|own| retry.within_limit(failure.retry_after().unwrap_or(own)))
                }
                _ => None,
            };
            watched.failed(&failure, wait);
            let Some(wait) = wait else {
                return Err(failure.with_calls(made));
            };
            last = Some(failure);
            self.guards.timer.sleep(wait).await;
        }
    }

    fn loading(&self) -> Loading {
        let limit = self.guards.policy.timeout_millis;
        Loading {
            limit: match self.guards.policy.retry {
                Some(_) => limit.map_or(LOADING_LIMIT, Duration::from_millis),
                None => Duration::ZERO,
            },
            since: None,
            wait: Duration::from_secs(1),
        }
    }

    /// Reports the start of an attempt to the observer.
    fn watch(&self, attempt: u32) -> observe::Watched<'_> {
        let policy = &self.guards.policy;
        let attempts = policy.retry.map_or(1, |retry| retry.attempts.max(1));
        let timeout = policy.timeout_millis.map(Duration::from_millis);
        let watch = &self.guards.watch;
        watch.start(self.model, (attempt, attempts), timeout)
    }

    async fn attempt(
        &self,
        call: &ModelCall<'_>,
        watched: &observe::Watched<'_>,
    ) -> Result<Completion, Failure> {
        let received = watched.receiver();
        let reservation = self.reserve(call, Arc::clone(&received))?;
        let answer = self.in_time(observed(received, call.make())).await;
        match &answer {
            Ok(answer) => reservation.answered(call.usage(answer), answer.usage.is_some()),
            Err(failure) if failure.kind() == FailureKind::Loading => reservation.cancel(),
            Err(_) => reservation.failed(),
        }
        answer
    }

    /// Counts a call without making it, and answers it with a text of the desired length.
    pub(super) fn count_alone(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let reservation = self.reserve(call, Arc::default())?;
        let answer = call.stand_in();
        reservation.answered(call.usage(&answer), false);
        Ok(answer)
    }

    /// Reserves the tokens that a call may need.
    fn reserve(
        &self,
        call: &ModelCall<'_>,
        received: Arc<Received>,
    ) -> Result<Reservation<'_>, Failure> {
        let (policy, model) = (&self.guards.policy, self.model);
        let (own, total) = (&*self.session.spending, &self.guards.total);
        let tokens = call.input_tokens.saturating_add(call.output_tokens);
        own.reserve(policy.session_spend, model, tokens)
            .map_err(|what| over("the session", &what))?;
        if let Err(what) = total.reserve(policy.total_spend, model, tokens) {
            own.cancel(model, tokens);
            return Err(over("all sessions together", &what));
        }
        Ok(Reservation {
            ledgers: [own, total],
            model,
            tokens,
            input: call.input_tokens,
            received,
            timer: &*self.guards.timer,
            since: self.guards.timer.now(),
            open: true,
        })
    }

    async fn in_time(
        &self,
        call: impl Future<Output = Result<Completion, Failure>>,
    ) -> Result<Completion, Failure> {
        let Some(millis) = self.guards.policy.timeout_millis else {
            return call.await;
        };
        let limit = self.guards.timer.sleep(Duration::from_millis(millis));
        match select(pin!(call), pin!(limit)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => {
                let what = format!("no answer within {millis} ms");
                Err(Failure::new(FailureKind::TimedOut, what))
            }
        }
    }
}

fn over(whose: &str, what: &str) -> Failure {
    let what = format!("the spending limit of {whose} is reached: {what}");
    Failure::new(FailureKind::SpendLimit, what)
}

/// The waits for a server that loads its model.
struct Loading {
    limit: Duration,
    /// Time of the first failure.
    since: Option<Duration>,
    wait: Duration,
}

impl Loading {
    /// Returns the wait before the server is asked again; `None` after the time limit.
    fn next(&mut self, now: Duration) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let left = self.limit.saturating_sub(now.saturating_sub(since));
        let wait = self.wait.min(left);
        self.wait = (self.wait * 2).min(LOADING_WAIT);
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::guard::{GuardPolicy, GuardedModel, Guards, RetryPolicy, SessionGuard, SpendPolicy};
    use crate::testing::FakeTimer;
    use crate::{AnswerProgress, ChatModel, ChatPrompt, ModelUsage, Timer as _, report_progress};

    const SECOND: Duration = Duration::from_secs(1);

    /// A server that loads its model until this time.
    #[derive(Debug, Clone)]
    struct Loads(FakeTimer, Duration, Arc<AtomicU32>);

    #[async_trait::async_trait]
    impl ChatModel for Loads {
        async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
            self.2.fetch_add(1, Ordering::Relaxed);
            match self.0.now() < self.1 {
                true => Err(Failure::new(FailureKind::Loading, "the server loads")),
                false => Ok(Completion::new("done")),
            }
        }
    }

    fn prompt() -> ChatPrompt {
        ChatPrompt::new("Be brief.", "What was said?")
    }

    #[test]
    fn a_server_that_loads_its_model_is_waited_for_within_the_calls_time() {
        let policy = GuardPolicy {
            timeout_millis: Some(60_000),
            session_spend: SpendPolicy::calls(1),
            ..GuardPolicy::default()
        };
        for (loads, answers) in [(0, true), (20, true), (59, true), (90, false)] {
            let timer = FakeTimer::new();
            let model = Loads(timer.clone(), SECOND * loads, Arc::default());
            let guarded =
                GuardedModel::new("m", model.clone(), policy.clone(), Arc::new(timer.clone()));
            let answer = timer.drive(guarded.complete(&prompt())).unwrap();
            assert_eq!(answer.is_ok(), answers, "{loads} s");
            match answer {
                // The model was asked once; the requests before it cost nothing.
                Ok(answer) => assert_eq!((answer.calls, guarded.session().spent().calls), (1, 1)),
                Err(failure) => {
                    assert_eq!(failure.kind(), FailureKind::Loading);
                    assert!(timer.now() <= SECOND * 60);
                }
            }
            // It is not asked without a pause.
            assert!(model.2.load(Ordering::Relaxed) < 20);
        }
        // Without retries it is asked once.
        let timer = FakeTimer::new();
        let model = Loads(timer.clone(), SECOND, Arc::default());
        let policy = GuardPolicy {
            retry: None,
            ..GuardPolicy::default()
        };
        let guarded = GuardedModel::new("m", model.clone(), policy, Arc::new(timer.clone()));
        timer
            .drive(guarded.complete(&prompt()))
            .unwrap()
            .unwrap_err();
        assert_eq!(model.2.load(Ordering::Relaxed), 1);
    }

    /// A model that writes a token each second and ends after `length` tokens, or breaks there.
    #[derive(Debug, Clone)]
    struct Streams {
        timer: FakeTimer,
        length: u64,
        breaks: bool,
        counts_input: bool,
    }

    #[async_trait::async_trait]
    impl ChatModel for Streams {
        async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
            for written in 1..=self.length {
                self.timer.sleep(SECOND).await;
                let progress = AnswerProgress::new(written * 100, written);
                report_progress(&progress.with_input(self.counts_input.then_some(1_000)));
            }
            if self.breaks {
                let what = "the connection broke";
                return Err(Failure::new(FailureKind::Unreachable, what));
            }
            Ok(Completion {
                usage: Some(ModelUsage::new(1_000, self.length)),
                ..Completion::new("done")
            })
        }
    }

    #[test]
    fn a_stream_that_ends_early_has_spent_the_tokens_that_arrived() {
        let once = RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        };
        let policy = GuardPolicy {
            timeout_millis: Some(30_000),
            retry: Some(once),
            ..GuardPolicy::none()
        };
        let guarded = |model: Streams| {
            let timer = Arc::new(model.timer.clone());
            GuardedModel::new("m", model, policy.clone(), timer)
        };
        let streams = |length, breaks, counts_input| Streams {
            timer: FakeTimer::new(),
            length,
            breaks,
            counts_input,
        };
        // It is complete, it breaks, and the time limit ends it.
        for (length, breaks, spent) in [(20, false, 1_020), (20, true, 1_020), (90, false, 1_029)] {
            let model = streams(length, breaks, true);
            let (timer, guarded) = (model.timer.clone(), guarded(model));
            let answer = timer.drive(guarded.complete(&prompt())).unwrap();
            assert_eq!(answer.is_ok(), spent == 1_020 && !breaks);
            let tokens = guarded.session().spent().tokens;
            assert!(tokens.abs_diff(spent) <= 1, "{tokens}");
            assert_eq!(guarded.guards().spent().tokens, tokens);
        }
        // The caller drops it after ten tokens. The prompt counts with its estimate until the provider reports it.
        for (counts_input, input) in [(true, 1_000), (false, 7)] {
            let model = streams(90, false, counts_input);
            let (timer, guarded) = (model.timer.clone(), guarded(model));
            let prompt = prompt();
            let waits = timer.sleep(SECOND * 10);
            let call = guarded.complete(&prompt);
            let raced = timer.drive(select(call, waits)).unwrap();
            assert!(matches!(raced, Either::Right(_)));
            drop(raced);
            let tokens = guarded.session().spent().tokens;
            assert!(tokens.abs_diff(input + 10) <= 3, "{tokens}");
        }
        // No part has arrived: the cost is not known, so all of it stays reserved.
        let model = streams(90, false, true);
        let (timer, guarded) = (model.timer.clone(), guarded(model));
        let prompt = prompt();
        let waits = timer.sleep(SECOND / 2);
        drop(
            timer
                .drive(select(guarded.complete(&prompt), waits))
                .unwrap(),
        );
        assert!(guarded.session().spent().tokens >= prompt.max_tokens);
    }

    /// A model whose calls take ten seconds each: one that the server counts, one that it does not, and one that fails.
    #[derive(Debug)]
    struct Counts(FakeTimer, AtomicU32);

    #[async_trait::async_trait]
    impl ChatModel for Counts {
        async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
            self.0.sleep(SECOND * 10).await;
            let usage = ModelUsage {
                cached_input: 800,
                ..ModelUsage::new(1_000, 50)
            };
            match self.1.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(Completion {
                    usage: Some(usage),
                    ..Completion::new("done")
                }),
                1 => Ok(Completion::new("done again")),
                _ => Err(Failure::new(FailureKind::BadRequest, "no such model")),
            }
        }
    }

    #[test]
    fn what_was_spent_is_told_by_model_with_cached_tokens_and_time() {
        let timer = FakeTimer::new();
        let policy = GuardPolicy::none();
        let guards = Arc::new(Guards::new(policy, Arc::new(timer.clone())));
        let session = Arc::new(SessionGuard::new());
        let model = |name: &str| {
            let model = Counts(timer.clone(), AtomicU32::new(0));
            GuardedModel::for_session(name, model, Arc::clone(&guards), Arc::clone(&session))
        };
        let (first, second) = (model("first"), model("second"));
        for (guarded, answers) in [
            (&first, true),
            (&first, true),
            (&first, false),
            (&second, true),
        ] {
            let answer = timer.drive(guarded.complete(&prompt())).unwrap();
            assert_eq!(answer.is_ok(), answers);
        }
        let models = guards.spent_by_model();
        assert_eq!(models.keys().collect::<Vec<_>>(), ["first", "second"]);
        let (of_first, of_second) = (models["first"], models["second"]);
        // The prompt costs 7 tokens by estimate, and the answer without a count 2.
        let usage = ModelUsage {
            cached_input: 800,
            ..ModelUsage::new(1_007, 52)
        };
        assert_eq!((of_first.calls, of_first.usage), (3, usage));
        assert_eq!(
            (of_first.estimated_calls, of_first.unanswered_calls),
            (1, 1)
        );
        assert_eq!((of_first.longest_prompt, of_first.millis), (1_000, 30_000));
        assert_eq!((of_second.calls, of_second.usage.input), (1, 1_000));
        assert_eq!(guards.spent(), of_first.saturating_add(of_second));
        assert_eq!(session.spent(), guards.spent());
    }

    #[test]
    fn without_calls_the_model_is_not_asked_and_its_calls_are_counted() {
        let timer = FakeTimer::new();
        let policy = GuardPolicy {
            session_spend: SpendPolicy::calls(2),
            ..GuardPolicy::default()
        };
        let guards = Guards::new(policy, Arc::new(timer.clone())).without_calls();
        let asked = Arc::new(AtomicU32::new(0));
        let model = Loads(timer.clone(), SECOND, Arc::clone(&asked));
        let session = Arc::new(SessionGuard::new());
        let guarded = GuardedModel::for_session("m", model, Arc::new(guards), session);
        let prompt = ChatPrompt {
            max_tokens: 300,
            ..prompt()
        };
        for calls in [1, 2] {
            let answer = timer.drive(guarded.complete(&prompt)).unwrap().unwrap();
            assert!(!answer.is_empty());
            let spent = guarded.session().spent();
            assert_eq!((spent.calls, spent.usage.input), (calls, calls * 7));
            assert!(
                spent.usage.output.abs_diff(calls * 300) <= calls * 30,
                "{spent:?}"
            );
            assert_eq!((spent.estimated_calls, spent.millis), (calls, 0));
        }
        // Limits hold as for real calls.
        let refused = timer.drive(guarded.complete(&prompt)).unwrap().unwrap_err();
        assert_eq!(refused.kind(), FailureKind::SpendLimit);
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }
}
