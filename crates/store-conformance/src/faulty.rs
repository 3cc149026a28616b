//! A store with writes that fail on demand.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use memory_store::{Error, ErrorKind, FullStore, Result};

use crate::layer::{Layer, Layered};

/// Moment at which a failing write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The write fails before it has any effect.
    Before,
    /// The write takes effect, and then the caller gets an error, as in a crash between the commit and the answer.
    After,
}

/// A store with writes that fail on demand, for testing the programs that use a store against crashes.
///
/// Writes are the calls of `open`, `update`, `append`, `publish`, `claim`, `settle` and `put_state`, even if they have
/// no effect. A call with several publishes or jobs is one write. After the first failure every further write fails
/// without effect, as after a crash, until [`FaultyStore::heal`] is called. With [`FaultyStore::fail_once`] only one
/// write fails. The failures have the kind `Io`. Reads never fail.
///
/// ```
/// use store_conformance::{Chat, Fault, FaultyStore};
/// use memory_store::{InMemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // How many writes does the work take? Then let each of them fail, in both ways.
/// let dry = FaultyStore::new(InMemoryStore::new());
/// Chat::root(&dry, "chat").await;
/// for write in 1..=dry.writes() {
///     let store = FaultyStore::new(InMemoryStore::new());
///     store.fail_from(write, Fault::Before);
///     // Do the work, expect it to fail, heal, look at what is left, do the work again.
///     store.heal();
///     Chat::root(&store, "chat").await;
/// }
/// # }
/// ```
pub type FaultyStore<S> = Layered<Faults<S>>;

/// Layer of a [`FaultyStore`]: counts writes, and makes some of them fail.
#[derive(Debug)]
pub struct Faults<S> {
    inner: S,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    writes: u64,
    next: Option<Next>,
}

#[derive(Debug, Clone, Copy)]
struct Next {
    write: u64,
    fault: Fault,
    once: bool,
}

impl<S: FullStore> FaultyStore<S> {
    /// Creates a store around `inner`. No write fails until a failure is set.
    pub fn new(inner: S) -> Self {
        let plan = Mutex::default();
        Self(Faults { inner, plan })
    }

    /// Returns the number of writes so far, including failed ones.
    pub fn writes(&self) -> u64 {
        self.0.state().writes
    }

    /// Makes a write and all later writes fail. Writes are counted from now: 1 is the next write.
    pub fn fail_from(&self, write: u64, fault: Fault) {
        self.plan(write, fault, false);
    }

    /// Makes a single write fail. Writes are counted from now: 1 is the next write.
    pub fn fail_once(&self, write: u64, fault: Fault) {
        self.plan(write, fault, true);
    }

    /// Ends the failures: all later writes succeed.
    pub fn heal(&self) {
        self.0.state().next = None;
    }

    /// Returns the wrapped store.
    pub fn inner(&self) -> &S {
        &self.0.inner
    }

    /// Returns the wrapped store, and drops the wrapper.
    pub fn into_inner(self) -> S {
        self.0.inner
    }

    fn plan(&self, write: u64, fault: Fault, once: bool) {
        let mut state = self.0.state();
        let write = state.writes.saturating_add(write.max(1));
        state.next = Some(Next { write, fault, once });
    }
}

impl<S> Faults<S> {
    fn state(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<S: FullStore> Layer for Faults<S> {
    fn inner(&self) -> &dyn FullStore {
        &self.inner
    }

    async fn before_write(&self) -> Result<Option<Error>> {
        let mut state = self.state();
        state.writes += 1;
        let number = state.writes;
        let failed = |when: &str| {
            let text = format!("write {number} was made to fail {when} it was done");
            Error::new(ErrorKind::Io, text)
        };
        match state.next {
            Some(Next { write, fault, .. }) if number == write => match fault {
                Fault::Before => Err(failed("before")),
                Fault::After => Ok(Some(failed("after"))),
            },
            Some(next) if number > next.write && !next.once => Err(failed("before")),
            _ => Ok(None),
        }
    }
}
