//! Work that goes on beside an agent's turns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use compaction_runner::PrefetchReport;
use memory_model::ConversationId;

/// Work that goes on beside the host's turns.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where work goes on beside the host's turns.
pub trait Background: Send + Sync + Debug {
    /// Begins the work and returns at once.
    fn spawn(&self, work: Work);
}

/// Work goes on in a tokio runtime.
#[cfg(feature = "tokio")]
#[derive(Debug, Clone)]
pub struct TokioBackground(tokio::runtime::Handle);

#[cfg(feature = "tokio")]
impl TokioBackground {
    /// The runtime that the caller runs in, if it runs in one.
    pub fn current() -> Option<Self> {
        tokio::runtime::Handle::try_current().ok().map(Self)
    }
}

#[cfg(feature = "tokio")]
impl Background for TokioBackground {
    fn spawn(&self, work: Work) {
        self.0.spawn(work);
    }
}

/// What came of making summaries ahead; an error as its text.
pub(crate) type MadeAhead = std::result::Result<PrefetchReport, String>;

/// Maximum number of conversations whose ended work is kept until their next moment; beyond it
/// that of the oldest conversation is forgotten.
const ENDED: usize = 1_024;

/// The conversations that summaries are being made for, one at a time each, the background work
/// that has begun, and what came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preparing(Arc<Mutex<State>>);

/// The state of the work beside the turns.
#[derive(Debug, Default)]
struct State {
    under_way: BTreeSet<ConversationId>,
    /// What no moment has told of yet.
    ended: BTreeMap<ConversationId, MadeAhead>,
    /// Number of pieces of background work that have begun and not ended.
    running: usize,
    closed: bool,
    /// Those who wait for the background work to end.
    wakers: Vec<Waker>,
}

impl Preparing {
    /// `None` when somebody is at it already.
    pub(crate) fn begin(&self, id: ConversationId) -> Option<Alone> {
        let new = self.lock().under_way.insert(id);
        new.then(|| Alone(self.clone(), id))
    }

    /// Takes what came of the work that ended since it was last asked.
    pub(crate) fn ended(&self, id: ConversationId) -> Option<MadeAhead> {
        self.lock().ended.remove(&id)
    }

    /// Lets no more background work begin, and waits until what has begun has ended.
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

/// A conversation's place in [`Preparing`], given back when dropped.
pub(crate) struct Alone(Preparing, ConversationId);

impl Alone {
    /// Begins background work, unless the memory is closed.
    pub(crate) fn run(self) -> Option<Running> {
        let mut state = self.0.lock();
        if state.closed {
            return None;
        }
        state.running += 1;
        drop(state);
        Some(Running(self))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.lock().under_way.remove(&self.1);
    }
}

/// Background work that has begun; it ends when this is dropped.
pub(crate) struct Running(Alone);

impl Running {
    /// Ends the work, and keeps what came of it for the next moment.
    pub(crate) fn ended(self, made: MadeAhead) {
        let Alone(preparing, id) = &self.0;
        let mut state = preparing.lock();
        state.ended.insert(*id, made);
        while state.ended.len() > ENDED {
            state.ended.pop_first();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let wakers = {
            let mut state = self.0.0.lock();
            state.running -= 1;
            std::mem::take(&mut state.wakers)
        };
        // Waking runs foreign code: not under the lock.
        wakers.into_iter().for_each(Waker::wake);
    }
}
