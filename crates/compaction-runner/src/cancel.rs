//! Cancelling a compaction.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{AbortHandle, Abortable, Aborted};

/// Cancels a compaction from outside. Clones of the token cancel the same compaction.
///
/// A cancelled compaction gives back its leases (exclusive claims on jobs). If its future is dropped instead, the store
/// is also consistent, but the leases last until they expire.
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
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels all current and later runs that use this token or a clone of it.
    pub fn cancel(&self) {
        let waiting = {
            let mut state = self.lock();
            state.cancelled = true;
            std::mem::take(&mut state.waiting)
        };
        // Waking a future runs foreign code, so the lock is released before.
        waiting.values().for_each(AbortHandle::abort);
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Runs a future until it completes or the token is cancelled.
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

/// A waiting future in the token's list. Removed from the list when the wait ends or is dropped.
struct Registered<'a>(&'a CancellationToken, u64);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting.remove(&self.1);
    }
}
