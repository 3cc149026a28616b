//! Stopping a compaction from outside.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{AbortHandle, Abortable, Aborted};

/// A switch that stops a compaction: whoever holds a clone of it can flip it.
///
/// A compaction that is stopped this way gives its leases back. One whose future is dropped leaves
/// the store just as whole, but its leases end by themselves only when their time is over.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    next: u64,
    waiting: BTreeMap<u64, AbortHandle>,
}

impl CancellationToken {
    /// A switch that was not flipped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops what runs under this switch, and all that will.
    pub fn cancel(&self) {
        let waiting = {
            let mut state = self.lock();
            state.cancelled = true;
            std::mem::take(&mut state.waiting)
        };
        // Waking what waits runs foreign code: not under the lock.
        waiting.values().for_each(AbortHandle::abort);
    }

    /// Whether the switch was flipped.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Runs a future until it is done or the switch is flipped.
    pub(crate) async fn guard<F: Future>(&self, future: F) -> Result<F::Output, Aborted> {
        let (handle, registration) = AbortHandle::new_pair();
        let number = {
            let mut state = self.lock();
            if state.cancelled {
                return Err(Aborted);
            }
            state.next += 1;
            let number = state.next;
            state.waiting.insert(number, handle);
            number
        };
        let _registered = Registered(self, number);
        Abortable::new(future, registration).await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those that wait, given back when the wait is over or dropped.
struct Registered<'a>(&'a CancellationToken, u64);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting.remove(&self.1);
    }
}
