//! The attempts at one call, with retries, time limits and spending limits.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use super::{SessionCalls, observe};
use crate::{Completion, Failure, FailureKind, ModelCall};

impl SessionCalls<'_> {
    /// Makes a call, and repeats it after failures for which a retry may help. Stops at an answer, after the last
    /// attempt, if the provider asks for too long a wait, or if a spending limit is reached.
    pub(super) async fn attempts(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let retry = self.guards.policy.retry;
        let mut waits = retry.map(|retry| retry.waits()).into_iter().flatten();
        let mut made = 0_u32;
        let mut last: Option<Failure> = None;
        loop {
            let watched = self.watch(made.saturating_add(1));
            let failure = match self.attempt(call).await {
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
            made = made.saturating_add(1);
            let wait = match retry {
                Some(retry) if failure.retryable() => {
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

    /// Reports the start of an attempt to the observer.
    fn watch(&self, attempt: u32) -> observe::Watched<'_> {
        let policy = &self.guards.policy;
        let attempts = policy.retry.map_or(1, |retry| retry.attempts.max(1));
        let timeout = policy.timeout_millis.map(Duration::from_millis);
        let watch = &self.guards.watch;
        watch.start(self.model, (attempt, attempts), timeout)
    }

    async fn attempt(&self, call: &ModelCall<'_>) -> Result<Completion, Failure> {
        let _slot = match &self.guards.slots {
            Some(slots) => Some(slots.acquire().await),
            None => None,
        };
        let policy = &self.guards.policy;
        let (own, total) = (&self.session.spending, &self.guards.total);
        let reserved = call.input_tokens.saturating_add(call.output_tokens);
        own.reserve(policy.session_spend, reserved)
            .map_err(|what| over("the session", &what))?;
        if let Err(what) = total.reserve(policy.total_spend, reserved) {
            own.cancel(reserved);
            return Err(over("all sessions together", &what));
        }
        // If this future is dropped during the call, the tokens stay reserved, because the real cost is not known.
        let answer = self.in_time(call.make()).await;
        let cost = match &answer {
            Ok(answer) => call.cost(answer),
            Err(_) => call.input_tokens,
        };
        own.settle(reserved, cost);
        total.settle(reserved, cost);
        answer
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
