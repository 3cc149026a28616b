//! A timer and a chat model for tests.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;

use crate::{ChatModel, ChatPrompt, Completion, Failure, FailureKind, Timer};

/// A chat model for tests that gives prepared answers and counts its calls. Clones share the answers and the count.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<Mutex<VecDeque<Result<Completion, Failure>>>>,
    calls: Arc<AtomicU32>,
}

impl ScriptedModel {
    /// Creates a model that returns these texts and failures in order, one for each call. Further calls fail.
    pub fn new<T: Into<String>>(answers: impl IntoIterator<Item = Result<T, Failure>>) -> Self {
        let answers = answers.into_iter();
        let script = answers.map(|answer| answer.map(Completion::new)).collect();
        Self {
            script: Arc::new(Mutex::new(script)),
            calls: Arc::default(),
        }
    }

    /// Returns the number of calls made so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn complete(&self, _: &ChatPrompt) -> Result<Completion, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let over = || {
            Err(Failure::new(
                FailureKind::Other,
                "the script has no more answers",
            ))
        };
        script.pop_front().unwrap_or_else(over)
    }
}

/// A [`Timer`] with a time that a test advances. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct FakeTimer {
    state: Arc<Mutex<Times>>,
}

#[derive(Debug, Default)]
struct Times {
    now: Duration,
    next: u64,
    /// End and waker of each pending wait, by the number of the wait.
    until: BTreeMap<u64, (Duration, Waker)>,
    waited: Vec<Duration>,
}

/// A pending wait.
#[derive(Debug)]
struct Wait {
    timer: FakeTimer,
    number: u64,
    until: Duration,
}

/// Waker that records whether a future must be polled again.
#[derive(Debug)]
struct Woken(AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.timer.lock().until.remove(&self.number);
    }
}

impl FakeTimer {
    /// Creates a timer at time 0.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances the time by `time`, and wakes the waits that have ended.
    pub fn advance(&self, time: Duration) {
        let mut state = self.lock();
        state.now = state.now.saturating_add(time);
        for (until, waker) in state.until.values() {
            if *until <= state.now {
                waker.wake_by_ref();
            }
        }
    }

    /// Returns the requested duration of each wait, in the order in which the waits started.
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().waited.clone()
    }

    /// Polls a future until it is ready, and returns its output. While the future is pending, advances the time to the
    /// earliest end of a wait. Returns `None` if the future waits for anything other than this timer.
    pub fn drive<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        loop {
            while woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    return Some(output);
                }
            }
            let until = self.lock().until.values().map(|wait| wait.0).min()?;
            let now = self.now();
            self.advance(until.saturating_sub(now));
        }
    }
}

#[async_trait]
impl Timer for FakeTimer {
    fn now(&self) -> Duration {
        self.lock().now
    }

    async fn sleep(&self, duration: Duration) {
        let wait = {
            let mut state = self.lock();
            let until = state.now.saturating_add(duration);
            let number = state.next;
            state.next += 1;
            state.waited.push(duration);
            Wait {
                timer: self.clone(),
                number,
                until,
            }
        };
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.now >= wait.until {
                return Poll::Ready(());
            }
            let waiting = (wait.until, context.waker().clone());
            state.until.insert(wait.number, waiting);
            Poll::Pending
        })
        .await;
        drop(wait);
    }
}
