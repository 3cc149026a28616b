//! State that the jobs of a run share during preparation: counted calls and errors.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::Aborted;
use memory_model::Timestamp;
use memory_store::{Owner, Snapshot};
use summarize_escalation::{
    Error as SummaryError, Failure, FailureKind, Stop, Summarizer, SummarizerResponse,
    SummaryRequest,
};

use crate::cancel::CancellationToken;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// State that the jobs of a run share during preparation.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of calls of the summarizer.
    pub(crate) calls: AtomicU64,
    /// Maximum number of calls of the summarizer. Further calls fail without being made.
    pub(crate) max_calls: Option<u64>,
    /// Minimum number of calls that a summary of this run takes. Counted if calls are limited.
    needed: AtomicU64,
    /// Cancels the work in progress after an error of the store.
    pub(crate) halt: CancellationToken,
    /// Last error of the summarizer.
    pub(crate) said: Mutex<Option<String>>,
    /// Counts of summaries with and without the model.
    pub(crate) model: Mutex<ModelReport>,
    /// Owner of the last job that was skipped because it was held.
    pub(crate) held: Mutex<Option<LeaseHolder>>,
    /// Number of the conversation's erasures before the sources of the jobs were read.
    erasures: AtomicU64,
    /// Whether there was another erasure since.
    outdated: AtomicBool,
    /// Whether a call of the summarizer ended since the last check for erasures.
    waited: AtomicBool,
    /// Lock during the check for erasures. Calls that begin meanwhile wait for its result.
    pub(crate) looking: futures::lock::Mutex<()>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            calls: AtomicU64::default(),
            max_calls: None,
            needed: AtomicU64::new(u64::MAX),
            halt: CancellationToken::default(),
            said: Mutex::default(),
            model: Mutex::default(),
            held: Mutex::default(),
            erasures: AtomicU64::default(),
            outdated: AtomicBool::default(),
            waited: AtomicBool::default(),
            looking: futures::lock::Mutex::default(),
        }
    }
}

impl Watch {
    /// Returns the owner of the last job that was skipped because it was held.
    pub(crate) fn held_by(&self) -> Option<LeaseHolder> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// Records that the sources of the next jobs are read in this state, or after it.
    pub(crate) fn reads(&self, snapshot: &Snapshot) {
        self.erasures.store(snapshot.erasures, Ordering::Relaxed);
    }

    /// Returns the number of the conversation's erasures before the sources of the jobs were read.
    pub(crate) fn erasures(&self) -> u64 {
        self.erasures.load(Ordering::Relaxed)
    }

    /// Whether a call of the summarizer was waited for since the last check. Messages may have been erased during such
    /// a call. The sources of a batch existed when it was leased.
    pub(crate) fn take_waited(&self) -> bool {
        self.waited.swap(false, Ordering::Relaxed)
    }

    /// Records that messages were erased since.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    /// Whether messages were erased since.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    /// Whether messages were erased since. Resets this, because the caller reads everything again.
    pub(crate) fn take_outdated(&self) -> bool {
        self.outdated.swap(false, Ordering::Relaxed)
    }

    /// Runs a future unless the run is cancelled or the store has failed.
    pub(crate) async fn unless_stopped<F: Future>(
        &self,
        cancel: &CancellationToken,
        future: F,
    ) -> std::result::Result<F::Output, Aborted> {
        cancel.guard(self.halt.guard(future)).await?
    }

    /// Records the owner of a skipped job.
    pub(crate) fn record_holder(&self, owner: &Owner, until: Timestamp) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(LeaseHolder::new(owner, until));
    }

    /// Returns the minimum number of calls that a summary takes, if it is known.
    pub(crate) fn needed(&self) -> Option<u64> {
        let needed = self.needed.load(Ordering::Relaxed);
        (needed < u64::MAX).then_some(needed)
    }

    /// Records the reason why the summarizer gave no usable text.
    fn say(&self, what: String) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Returns the last error of the summarizer.
    pub(crate) fn last_error(&self) -> Option<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.clone()
    }

    /// Returns the counts of summaries with and without the model.
    pub(crate) fn report(&self) -> ModelReport {
        self.model().clone()
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, ModelReport> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A summarizer with counted calls.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) summarizer: &'a dyn Summarizer,
    pub(crate) watch: &'a Watch,
}

#[async_trait]
impl Summarizer for Counted<'_> {
    fn id(&self) -> &str {
        self.summarizer.id()
    }

    fn model(&self) -> Option<&str> {
        self.summarizer.model()
    }

    fn provisional(&self) -> bool {
        self.summarizer.provisional()
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> std::result::Result<SummarizerResponse, SummaryError> {
        let taken = match self.watch.max_calls {
            None => 1,
            Some(most) => {
                let needed = self.summarizer.calls_needed(request).max(1);
                self.watch.needed.fetch_min(needed, Ordering::Relaxed);
                needed.min(most.saturating_add(1))
            }
        };
        let made = self.watch.calls.fetch_add(taken, Ordering::Relaxed);
        if let Some(most) = self.watch.max_calls
            && made.saturating_add(taken) > most
        {
            self.watch.calls.fetch_sub(taken, Ordering::Relaxed);
            let what =
                format!("{made} of {most} calls are made, and the next summary takes {taken}");
            let failure = Failure::new(FailureKind::SpendLimit, what);
            return Err(SummaryError::provider(self.id(), failure));
        }
        let allowed = request.before_call().await;
        let answer = match allowed {
            Ok(()) => {
                let mut call = self.summarizer.summarize(request);
                let mut is_waited_for = false;
                poll_fn(|cx| {
                    let polled = call.as_mut().poll(cx);
                    // Also at its end: others may have looked for erasures since it began.
                    is_waited_for |= polled.is_pending();
                    if is_waited_for {
                        self.watch.waited.store(true, Ordering::Relaxed);
                    }
                    polled
                })
                .await
            }
            Err(failure) => Err(SummaryError::provider(self.id(), failure)),
        };
        match &answer {
            Ok(written) => {
                // A long source takes several.
                let more = u64::from(written.calls).saturating_sub(taken);
                self.watch.calls.fetch_add(more, Ordering::Relaxed);
                if written.stop != Stop::Complete {
                    let what = format!("summarizer {}: {}", self.id(), written.stop);
                    self.watch.say(what);
                }
            }
            Err(error) => self.watch.say(with_causes(error)),
        }
        answer
    }
}

/// Returns an error and its causes on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
