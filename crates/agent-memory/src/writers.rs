//! Who writes a session's summaries, and what guards them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memory_model::ConversationId;
use summarize_escalation::guard::{Guarded, Guards, SessionGuard};
use summarize_escalation::{Chain, Summarizer};

/// The summarizers of a memory: the first is asked first.
#[derive(Debug)]
pub(crate) struct Writers {
    first: Arc<dyn Summarizer>,
    fallbacks: Vec<Arc<dyn Summarizer>>,
    guards: Option<Arc<Guards>>,
    /// With guards: what each session has for itself. It outlives the handles of a session, so
    /// that a breaker stays open when a session is opened again.
    sessions: Mutex<BTreeMap<ConversationId, Writer>>,
}

/// Who writes the summaries of one session.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) summarizer: Arc<dyn Summarizer>,
    /// One for each summarizer; empty without guards.
    pub(crate) guards: Arc<[Arc<SessionGuard>]>,
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
        let writer = sessions.entry(session);
        writer.or_insert_with(|| self.guarded(guards)).clone()
    }

    fn unguarded(&self) -> Writer {
        let mut summarizer = Arc::clone(&self.first);
        if !self.fallbacks.is_empty() {
            let chain = Chain::new(Arc::clone(&self.first));
            let all = self.fallbacks.iter().cloned();
            summarizer = Arc::new(all.fold(chain, Chain::or));
        }
        Writer {
            summarizer,
            guards: Arc::default(),
        }
    }

    /// Each summarizer has a breaker and time-outs of its own: a cheap model that hangs must not
    /// use up the main one's time.
    fn guarded(&self, guards: &Arc<Guards>) -> Writer {
        let session = Arc::new(SessionGuard::new());
        let mut all = vec![Arc::clone(&session)];
        let around = |inner: &Arc<dyn Summarizer>, session: Arc<SessionGuard>| {
            Guarded::for_session(Arc::clone(inner), Arc::clone(guards), session)
        };
        let first = around(&self.first, Arc::clone(&session));
        let mut summarizer: Arc<dyn Summarizer> = Arc::new(first.clone());
        if !self.fallbacks.is_empty() {
            let mut chain = Chain::new(first);
            for next in &self.fallbacks {
                let sibling = Arc::new(session.sibling());
                all.push(Arc::clone(&sibling));
                chain = chain.or(around(next, sibling));
            }
            summarizer = Arc::new(chain);
        }
        Writer {
            summarizer,
            guards: all.into(),
        }
    }
}
