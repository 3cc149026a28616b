//! Background tasks: how they are started, and the prefetches that they run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use compaction_runner::PrefetchReport;
use memory_model::ConversationId;

/// A future that the application runs in the background: see [`Background::spawner`].
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Setting for prefetching summaries in the background: see [`Builder::background`](crate::Builder::background).
#[derive(Debug, Clone, Default)]
pub struct Background(Setting);

#[derive(Debug, Clone, Default)]
enum Setting {
    #[default]
    Runtime,
    Spawner(Spawner),
    Off,
}

impl Background {
    /// Runs each background task with the function `spawn`, which must return at once. Use it without Tokio.
    pub fn spawner(spawn: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Self(Setting::Spawner(Spawner(Arc::new(spawn))))
    }

    /// Runs no background tasks: [`after_turn`](crate::Session::after_turn) prefetches summaries before it returns, so
    /// that the order of events is the same in every run.
    pub fn off() -> Self {
        Self(Setting::Off)
    }

    pub(crate) fn into_spawner(self) -> Option<Spawner> {
        match self.0 {
            Setting::Runtime => Spawner::current(),
            Setting::Spawner(spawner) => Some(spawner),
            Setting::Off => None,
        }
    }
}

/// Function that starts tasks in the background.
#[derive(Clone)]
pub(crate) struct Spawner(pub(crate) Arc<dyn Fn(Task) + Send + Sync>);

impl Spawner {
    /// Returns a spawner for the Tokio runtime in which the caller runs; `None` without a runtime.
    pub(crate) fn current() -> Option<Self> {
        #[cfg(feature = "tokio")]
        return tokio::runtime::Handle::try_current().ok().map(|runtime| {
            Self(Arc::new(move |task| {
                runtime.spawn(task);
            }))
        });
        #[cfg(not(feature = "tokio"))]
        None
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawner")
    }
}

/// Result of prefetching summaries. The error is its text.
pub(crate) type PrefetchResult = std::result::Result<PrefetchReport, String>;

/// Maximum number of conversations with a result that no turn has reported yet. If there are more, the result of the
/// conversation with the smallest id is dropped.
const MAX_RESULTS: usize = 1_024;

/// The prefetches of a memory: at most one for each conversation at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefetches(Arc<Mutex<State>>);

/// State of all prefetches.
#[derive(Debug, Default)]
struct State {
    /// Conversations with a prefetch that is spawned or running.
    active: BTreeSet<ConversationId>,
    /// Outcomes of ended prefetches that no turn has reported yet.
    results: BTreeMap<ConversationId, PrefetchResult>,
    /// Number of background tasks that have started and have not ended yet.
    running: usize,
    closed: bool,
    /// Wakers of the callers of [`Prefetches::close`], which wait for the running tasks.
    wakers: Vec<Waker>,
}

impl Prefetches {
    /// Reserves the prefetch of a conversation. Returns `None` while another prefetch of the conversation is active.
    pub(crate) fn reserve(&self, id: ConversationId) -> Option<PrefetchSlot> {
        let free = self.lock().active.insert(id);
        free.then(|| PrefetchSlot(self.clone(), id))
    }

    /// Takes the result of the conversation's last background prefetch; `None` if no prefetch has ended since the last
    /// call.
    pub(crate) fn take_result(&self, id: ConversationId) -> Option<PrefetchResult> {
        self.lock().results.remove(&id)
    }

    /// Refuses new background tasks, and waits until the running ones have ended.
    pub(crate) async fn close(&self) {
        self.lock().closed = true;
        poll_fn(|context| {
            let mut state = self.lock();
            if state.running == 0 {
                return Poll::Ready(());
            }
            state.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reservation of one conversation's prefetch. Dropping it releases the reservation.
pub(crate) struct PrefetchSlot(Prefetches, ConversationId);

impl PrefetchSlot {
    /// Counts the caller as a running background task. Returns `None` if the memory is closed.
    pub(crate) fn start(self) -> Option<RunningPrefetch> {
        let mut state = self.0.lock();
        if state.closed {
            return None;
        }
        state.running += 1;
        drop(state);
        Some(RunningPrefetch(self))
    }
}

impl Drop for PrefetchSlot {
    fn drop(&mut self) {
        self.0.lock().active.remove(&self.1);
    }
}

/// A running background prefetch. Dropping it ends the prefetch.
pub(crate) struct RunningPrefetch(PrefetchSlot);

impl RunningPrefetch {
    /// Ends the prefetch, and keeps its outcome for the report of the conversation's next turn.
    pub(crate) fn finish(self, result: PrefetchResult) {
        let PrefetchSlot(prefetches, id) = &self.0;
        let mut state = prefetches.lock();
        state.results.insert(*id, result);
        while state.results.len() > MAX_RESULTS {
            state.results.pop_first();
        }
    }
}

impl Drop for RunningPrefetch {
    fn drop(&mut self) {
        let wakers = {
            let mut state = self.0.0.lock();
            state.running -= 1;
            std::mem::take(&mut state.wakers)
        };
        // Wakers run code of other crates, so they are called without the lock.
        wakers.into_iter().for_each(Waker::wake);
    }
}
