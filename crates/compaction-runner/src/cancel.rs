//! Stopping a compaction from outside.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{AbortHandle, Abortable, Aborted};

/// A switch that stops a compaction: whoever holds a clone of it can flip it.
///
/// A compaction that is stopped this way gives its leases back. One whose future is dropped leaves
/// the store just as whole, but its leases end by themselves only when their time is over.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    waiting: Vec<AbortHandle>,
}

impl Cancel {
    /// A switch that was not flipped yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops what runs under this switch, and all that will.
    pub fn cancel(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cancelled = true;
        for handle in state.waiting.drain(..) {
            handle.abort();
        }
    }

    /// Whether the switch was flipped.
    pub fn is_cancelled(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cancelled
    }

    /// Runs a future until it is done or the switch is flipped.
    pub(crate) async fn guard<F: Future>(&self, future: F) -> Result<F::Output, Aborted> {
        let (handle, registration) = AbortHandle::new_pair();
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.cancelled {
                return Err(Aborted);
            }
            state.waiting.retain(|waiting| !waiting.is_aborted());
            state.waiting.push(handle);
        }
        Abortable::new(future, registration).await
    }
}
