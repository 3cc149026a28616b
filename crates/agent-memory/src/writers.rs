//! The summarizers of each session, with guards around their model calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memory_model::ConversationId;
use model_client::guard::{Guards, SessionGuard, Spent};
use summarize_escalation::{FallbackSummarizer, GuardedSummarizer, Summarizer};

/// The summarizers of a memory, in the order in which they are asked.
#[derive(Debug)]
pub(crate) struct Writers {
    first: Arc<dyn Summarizer>,
    fallbacks: Vec<Arc<dyn Summarizer>>,
    guards: Option<Arc<Guards>>,
    /// Guarded summarizers of each session; empty if the memory has no guards.
    sessions: Mutex<Sessions>,
}

/// Maximum number of sessions without an open handle for which the state of breakers and spending is kept.
const MAX_IDLE: usize = 1_024;
/// Half of the number of sessions below which no session is forgotten.
const MIN_SWEEP: usize = 64;

/// The guarded summarizers of the sessions in use. They outlive the handles of a session, so that a circuit breaker
/// stays open when the session is opened again. A session without a handle is forgotten if it has neither failures nor
/// spending, or if [`MAX_IDLE`] other sessions without a handle were used later.
#[derive(Debug, Default)]
struct Sessions {
    writers: BTreeMap<ConversationId, Used>,
    /// Number of uses so far.
    uses: u64,
    /// Number of sessions that remained after the last removal.
    kept: usize,
}

/// The summarizer of a session, and the number of its last use.
#[derive(Debug)]
struct Used {
    writer: Writer,
    at: u64,
}

impl Sessions {
    fn writer(&mut self, session: ConversationId, make: impl FnOnce() -> Writer) -> Writer {
        self.uses += 1;
        let used = self.writers.entry(session).or_insert_with(|| Used {
            writer: make(),
            at: 0,
        });
        used.at = self.uses;
        let writer = used.writer.clone();
        // Removing sessions only when their number has doubled costs each new session constant time.
        if self.writers.len() > self.kept.max(MIN_SWEEP) * 2 {
            self.sweep();
        }
        writer
    }

    fn sweep(&mut self) {
        self.writers
            .retain(|_, used| used.writer.is_in_use() || !used.writer.is_fresh());
        let idle = self
            .writers
            .values()
            .filter(|used| !used.writer.is_in_use());
        let mut idle: Vec<u64> = idle.map(|used| used.at).collect();
        if let Some(surplus) = idle
            .len()
            .checked_sub(MAX_IDLE)
            .filter(|surplus| *surplus > 0)
        {
            idle.sort_unstable();
            let oldest_kept = idle.get(surplus).copied().unwrap_or(u64::MAX);
            self.writers
                .retain(|_, used| used.writer.is_in_use() || used.at >= oldest_kept);
        }
        self.kept = self.writers.len();
    }
}

/// The summarizer of one session.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) summarizer: Arc<dyn Summarizer>,
    /// One guard for each summarizer; empty if the memory has no guards.
    pub(crate) guards: Arc<[Arc<SessionGuard>]>,
}

impl Writer {
    /// Returns whether the session has an open handle.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.guards) > 1
    }

    /// Returns whether no failures and no spending are recorded.
    fn is_fresh(&self) -> bool {
        self.guards
            .iter()
            .all(|guard| guard.failures() == 0 && guard.spent() == Spent::default())
    }
}

impl Writers {
    pub(crate) fn new(
        first: Arc<dyn Summarizer>,
        fallbacks: Vec<Arc<dyn Summarizer>>,
        guards: Option<Arc<Guards>>,
    ) -> Self {
        Self {
            first,
            fallbacks,
            guards,
            sessions: Mutex::default(),
        }
    }

    pub(crate) fn guards(&self) -> Option<&Guards> {
        self.guards.as_deref()
    }

    pub(crate) fn writer(&self, session: ConversationId) -> Writer {
        let Some(guards) = &self.guards else {
            return self.unguarded();
        };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.writer(session, || self.guarded(guards))
    }

    fn unguarded(&self) -> Writer {
        let mut summarizer = Arc::clone(&self.first);
        if !self.fallbacks.is_empty() {
            let chain = FallbackSummarizer::new(Arc::clone(&self.first));
            let all = self.fallbacks.iter().cloned();
            summarizer = Arc::new(all.fold(chain, FallbackSummarizer::or));
        }
        Writer {
            summarizer,
            guards: Arc::default(),
        }
    }

    /// Returns guarded summarizers. Each summarizer has a separate breaker and separate time-outs, so that a model
    /// that hangs does not use up the time of its fallback.
    fn guarded(&self, guards: &Arc<Guards>) -> Writer {
        let session = Arc::new(SessionGuard::new());
        let siblings = self.fallbacks.iter().map(|_| Arc::new(session.sibling()));
        let siblings: Vec<Arc<SessionGuard>> = siblings.collect();
        let around = |inner: &Arc<dyn Summarizer>, session: &Arc<SessionGuard>| {
            let (inner, session) = (Arc::clone(inner), Arc::clone(session));
            GuardedSummarizer::for_session(inner, Arc::clone(guards), session)
        };
        let first = around(&self.first, &session);
        let mut rest = self.fallbacks.iter().zip(&siblings).peekable();
        let summarizer: Arc<dyn Summarizer> = match rest.peek() {
            None => Arc::new(first),
            Some(_) => {
                let chain = FallbackSummarizer::new(first);
                Arc::new(rest.fold(chain, |chain, (next, guard)| chain.or(around(next, guard))))
            }
        };
        let mut all = vec![Arc::clone(&session)];
        all.extend(siblings.iter().cloned());
        Writer {
            summarizer,
            guards: all.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use model_client::guard::GuardPolicy;
    use summarize_escalation::SummaryRequest;
    use summarize_escalation::testing::{FakeTimer, Scripted};
    use token_estimate::HeuristicEstimator;

    use super::*;

    fn writers() -> Writers {
        let policy = GuardPolicy {
            retry: None,
            ..GuardPolicy::default()
        };
        let guards = Arc::new(Guards::new(policy, Arc::new(FakeTimer::default())));
        Writers::new(Arc::new(Scripted::fails()), Vec::new(), Some(guards))
    }

    fn remembered(writers: &Writers) -> usize {
        writers.sessions.lock().unwrap().writers.len()
    }

    /// Calls the session's model once, which fails.
    async fn fail(writer: &Writer) {
        let request = SummaryRequest::new(&[], &HeuristicEstimator::Bytes4);
        assert!(writer.summarizer.summarize(&request).await.is_err());
    }

    #[test]
    fn sessions_without_handles_are_forgotten() {
        let writers = writers();
        let held = writers.writer(ConversationId(0));
        for id in 1..10_000 {
            drop(writers.writer(ConversationId(id)));
        }
        let after = remembered(&writers);
        assert!(
            after <= 2 * MIN_SWEEP + 1,
            "{after} of 10,000 sessions are remembered"
        );
        let again = writers.writer(ConversationId(0));
        assert!(Arc::ptr_eq(&held.guards, &again.guards));
    }

    #[tokio::test]
    async fn failures_and_spending_outlive_handles_until_many_others_were_used() {
        let writers = writers();
        let failures = |id| {
            let guard = Arc::clone(writers.writer(ConversationId(id)).guards.first().unwrap());
            (guard.failures(), guard.spent().calls)
        };
        fail(&writers.writer(ConversationId(0))).await;
        for id in 1..10_000 {
            drop(writers.writer(ConversationId(id)));
        }
        assert_eq!(failures(0), (1, 1));
        for id in 10_000..13_000 {
            fail(&writers.writer(ConversationId(id))).await;
        }
        let after = remembered(&writers);
        assert!(after <= 2 * MAX_IDLE + 1, "{after} sessions are remembered");
        assert_eq!(failures(12_999), (1, 1), "the newest are remembered");
        assert_eq!(failures(0), (0, 0), "the oldest is forgotten");
    }
}
