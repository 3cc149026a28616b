//! Events about attempts, for progress displays and telemetry.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{AnswerObserver, AnswerProgress, Failure};

/// Receives an event at the start and at the end of each attempt that guards make, and while its answer arrives, for
/// progress displays and telemetry. The method must return at once.
pub trait CallObserver: Send + Sync + Debug {
    /// Called at the start and at the end of each attempt, and each time a piece of its answer has arrived.
    fn attempt(&self, event: &AttemptEvent<'_>);
}

/// The start, the progress or the end of one attempt at a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptEvent<'a> {
    /// Id of the attempt, unique among all attempts of the same guards. The events of its start and of its end have the
    /// same id.
    pub id: u64,
    /// Name of the model; for a summarizer without a model, the summarizer's id.
    pub model: &'a str,
    /// Number of this attempt among the attempts at the same call. The first is 1.
    pub attempt: u32,
    /// Maximum number of attempts at the call.
    pub attempts: u32,
    /// Kind of the event: the start or the progress of the attempt, or the way in which the attempt ended.
    pub kind: AttemptKind<'a>,
}

impl<'a> AttemptEvent<'a> {
    /// Creates an event for attempt number `attempt` of at most `attempts`.
    pub fn new(
        id: u64,
        model: &'a str,
        attempt: u32,
        attempts: u32,
        kind: AttemptKind<'a>,
    ) -> Self {
        Self {
            id,
            model,
            attempt,
            attempts,
            kind,
        }
    }
}

/// Kind of an event: the start or the progress of an attempt, or the way in which the attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptKind<'a> {
    /// The attempt started.
    Started {
        /// Maximum duration of the attempt; `None` for no limit.
        timeout: Option<Duration>,
    },
    /// A piece of the answer has arrived. Only clients that read the answer in pieces report this.
    Receiving {
        /// The part of the answer that has arrived.
        progress: AnswerProgress,
    },
    /// No attempt is made for a while after several failures in a row, and the session's calls wait. Reported once for
    /// each pause. The event has no other kinds with its id, and its numbers of attempts are 0.
    Waiting {
        /// Time until the model is asked again.
        again_in: Duration,
    },
    /// The attempt ended with an answer of the model.
    Answered,
    /// The attempt ended with a failure.
    Failed {
        /// Text of the failure, for people.
        error: &'a str,
        /// Wait before the next attempt; `None` if there is no further attempt.
        retry_in: Option<Duration>,
    },
    /// The attempt ended because the caller dropped the future of the call.
    Cancelled,
}

/// The observer of the guards, and the id of the next attempt.
#[derive(Debug, Default)]
pub(super) struct Watch {
    observer: Option<Arc<dyn CallObserver>>,
    next: AtomicU64,
}

impl Watch {
    pub(super) fn set_observer(&mut self, observer: Arc<dyn CallObserver>) {
        self.observer = Some(observer);
    }

    /// Reports that calls wait until the model is asked again.
    pub(super) fn waits(&self, model: &str, again_in: Duration) {
        if let Some(observer) = &self.observer {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let kind = AttemptKind::Waiting { again_in };
            observer.attempt(&AttemptEvent::new(id, model, 0, 0, kind));
        }
    }

    /// Reports the start of an attempt; the returned value reports its end.
    pub(super) fn start<'a>(
        &'a self,
        model: &'a str,
        (attempt, attempts): (u32, u32),
        timeout: Option<Duration>,
    ) -> Watched<'a> {
        let watched = Watched {
            observer: self.observer.as_ref(),
            id: self.next.fetch_add(1, Ordering::Relaxed),
            model,
            attempt,
            attempts,
        };
        watched.tell(AttemptKind::Started { timeout });
        watched
    }
}

/// A running attempt to call the model. Dropping it before the attempt has ended reports a cancellation.
pub(super) struct Watched<'a> {
    observer: Option<&'a Arc<dyn CallObserver>>,
    id: u64,
    model: &'a str,
    attempt: u32,
    attempts: u32,
}

/// The part of an answer that one attempt has received. Passes the progress on to the observer of the guards.
#[derive(Debug, Default)]
pub(super) struct Received {
    observer: Option<Arc<dyn CallObserver>>,
    id: u64,
    model: String,
    attempt: u32,
    attempts: u32,
    last: Mutex<Option<AnswerProgress>>,
}

impl Received {
    /// Returns the latest progress; `None` if no part has arrived.
    pub(super) fn last(&self) -> Option<AnswerProgress> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AnswerObserver for Received {
    fn received(&self, progress: &AnswerProgress) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
        if let Some(observer) = &self.observer {
            let kind = AttemptKind::Receiving {
                progress: *progress,
            };
            let (attempt, attempts) = (self.attempt, self.attempts);
            observer.attempt(&AttemptEvent::new(
                self.id,
                &self.model,
                attempt,
                attempts,
                kind,
            ));
        }
    }
}

impl Watched<'_> {
    /// Returns the observer of the attempt's answer.
    pub(super) fn receiver(&self) -> Arc<Received> {
        Arc::new(Received {
            observer: self.observer.cloned(),
            id: self.id,
            model: self.model.to_owned(),
            attempt: self.attempt,
            attempts: self.attempts,
            last: Mutex::default(),
        })
    }

    pub(super) fn answered(mut self) {
        self.tell(AttemptKind::Answered);
        self.observer = None;
    }

    pub(super) fn failed(mut self, failure: &Failure, retry_in: Option<Duration>) {
        if self.observer.is_some() {
            let error = failure.to_string();
            self.tell(AttemptKind::Failed {
                error: &error,
                retry_in,
            });
        }
        self.observer = None;
    }

    fn tell(&self, kind: AttemptKind<'_>) {
        if let Some(observer) = self.observer {
            let event = AttemptEvent::new(self.id, self.model, self.attempt, self.attempts, kind);
            observer.attempt(&event);
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.tell(AttemptKind::Cancelled);
    }
}
