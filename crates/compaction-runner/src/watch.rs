//! State that is shared by all summaries that a run writes, such as counts of calls and the last error.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::Aborted;
use memory_model::{SummaryId, Timestamp};
use memory_store::{Owner, Snapshot};
use summarize_escalation::{
    Error as SummaryError, Failure, FailureKind, Stop, Summarizer, SummarizerResponse,
    SummaryRequest,
};

use crate::cancel::CancellationToken;
use crate::owners::LeaseHolder;
use crate::report::ModelReport;

/// Ids of rejected summaries: see [`rejected`](crate::rejected).
pub(crate) type Rejected = Arc<BTreeSet<SummaryId>>;

/// State that is shared by all summaries that a run writes.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of calls of the summarizer so far.
    pub(crate) calls: AtomicU64,
    /// Maximum number of calls of the summarizer. Further calls fail at once.
    pub(crate) max_calls: Option<u64>,
    /// Minimum number of calls for one summary of this run. Counted only if calls are limited.
    needed: AtomicU64,
    /// Token that cancels the work in progress after an error of the store.
    pub(crate) halt: CancellationToken,
    /// Last error of the summarizer.
    pub(crate) said: Mutex<Option<String>>,
    /// Counts of summaries written with and without the model.
    pub(crate) model: Mutex<ModelReport>,
    /// Owner of the lease on the last summary that was skipped because another owner is writing it.
    pub(crate) held: Mutex<Option<LeaseHolder>>,
    /// Number of erasures in the conversation before the messages and summaries to summarize were read.
    erasures: AtomicU64,
    /// Whether messages were erased after the sources were read.
    outdated: AtomicBool,
    /// Whether the run waited for a call of the summarizer since the last check for erasures.
    waited: AtomicBool,
    /// Tokens that the view must still lose so that it fits. `u64::MAX` if this does not matter.
    excess: AtomicU64,
    /// Rejected summaries. `None` if the run has not read them yet.
    rejected: Mutex<Option<Rejected>>,
    /// Lock for the check for erasures. Calls that begin during a check wait for its result.
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
            excess: AtomicU64::new(u64::MAX),
            rejected: Mutex::default(),
            looking: futures::lock::Mutex::default(),
        }
    }
}

impl Watch {
    /// Returns the owner of the lease on the last summary that was skipped because another owner is writing it.
    pub(crate) fn held_by(&self) -> Option<LeaseHolder> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// Records the number of erasures in `snapshot`. The messages and summaries for the next summaries are read in this
    /// state or a later one.
    pub(crate) fn reads(&self, snapshot: &Snapshot) {
        self.erasures.store(snapshot.erasures, Ordering::Relaxed);
    }

    /// Returns the number of erasures in the conversation before the messages and summaries to summarize were read.
    pub(crate) fn erasures(&self) -> u64 {
        self.erasures.load(Ordering::Relaxed)
    }

    /// Returns whether the run waited for a call of the summarizer since the last check, and resets this. During the
    /// call, messages may have been erased. Without a call no check is needed, because the sources existed when the
    /// batch was leased.
    pub(crate) fn take_waited(&self) -> bool {
        self.waited.swap(false, Ordering::Relaxed)
    }

    /// Records that messages were erased after the sources were read.
    pub(crate) fn outdate(&self) {
        self.outdated.store(true, Ordering::Relaxed);
    }

    /// Returns whether messages were erased after the sources were read.
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Relaxed)
    }

    /// Returns whether messages were erased after the sources were read, and resets this. The caller reads everything
    /// again.
    pub(crate) fn take_outdated(&self) -> bool {
        self.outdated.swap(false, Ordering::Relaxed)
    }

    /// Sets the number of tokens that the view must lose so that it fits.
    pub(crate) fn set_excess(&self, tokens: u64) {
        self.excess.store(tokens, Ordering::Relaxed);
    }

    /// Returns whether the view does not fit without a change that saves this many tokens. If so, counts the change as
    /// made. Always true before [`Watch::set_excess`].
    pub(crate) fn needs(&self, saved: u64) -> bool {
        let less = |excess: u64| match excess {
            0 => None,
            u64::MAX => Some(u64::MAX),
            excess => Some(excess.saturating_sub(saved)),
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.excess.fetch_update(set, fetch, less).is_ok()
    }

    /// Returns the rejected summaries, if the run has read them.
    pub(crate) fn rejected(&self) -> Option<Rejected> {
        let rejected = self.rejected.lock();
        rejected.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps the rejected summaries for the rest of the run.
    pub(crate) fn set_rejected(&self, read: Rejected) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        *rejected = Some(read);
    }

    /// Runs a future until it completes, the run is cancelled, or the store fails.
    pub(crate) async fn unless_stopped<F: Future>(
        &self,
        cancel: &CancellationToken,
        future: F,
    ) -> std::result::Result<F::Output, Aborted> {
        cancel.guard(self.halt.guard(future)).await?
    }

    /// Records the owner of the lease because of which a summary is skipped.
    pub(crate) fn record_holder(&self, owner: &Owner, until: Timestamp) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(LeaseHolder::new(owner, until));
    }

    /// Returns the minimum number of calls for one summary. `None` if it is not known.
    pub(crate) fn needed(&self) -> Option<u64> {
        let needed = self.needed.load(Ordering::Relaxed);
        (needed < u64::MAX).then_some(needed)
    }

    /// Records the reason why the summarizer returned no usable text.
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

/// A summarizer that counts its calls.
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
                    // Checked at the end too, because another job may have checked for erasures since the call began.
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
                // A long source takes several calls.
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

/// Returns an error and its causes as one line.
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
