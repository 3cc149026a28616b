//! A summarizer with guards around its calls.

use std::sync::Arc;

use async_trait::async_trait;
use model_client::Timer;
use model_client::guard::{BreakerState, GuardPolicy, Guards, SessionGuard};

use crate::error::Error;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummarizerResponse};

/// A summarizer with guards around each of its calls of a model. A summary in parts takes several calls: time-outs,
/// retries, spending and caching apply to each of them.
///
/// Its id, and so the recipe of its summaries, is the id of the summarizer inside. A summarizer without a model is not
/// guarded.
///
/// A guard's refusal is a failure like one of the provider: the ladder's rules decide about it.
#[derive(Debug, Clone)]
pub struct GuardedSummarizer<S> {
    inner: S,
    guards: Arc<Guards>,
    session: Arc<SessionGuard>,
}

impl<S: Summarizer> GuardedSummarizer<S> {
    /// Puts new guards around a summarizer.
    pub fn new(inner: S, policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        let guards = Arc::new(Guards::new(policy, timer));
        Self::for_session(inner, guards, Arc::new(SessionGuard::new()))
    }

    /// Puts shared guards around the summarizer of one session.
    pub fn for_session(inner: S, guards: Arc<Guards>, session: Arc<SessionGuard>) -> Self {
        Self {
            inner,
            guards,
            session,
        }
    }

    /// Returns the guards of the session.
    pub fn session(&self) -> &SessionGuard {
        &self.session
    }

    /// Returns the guards of all sessions.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Returns the state of the breaker.
    pub fn breaker(&self) -> BreakerState {
        self.guards.breaker(&self.session)
    }
}

#[async_trait]
impl<S: Summarizer> Summarizer for GuardedSummarizer<S> {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn model(&self) -> Option<&str> {
        self.inner.model()
    }

    fn provisional(&self) -> bool {
        self.inner.provisional()
    }

    fn calls_needed(&self, request: &SummaryRequest<'_>) -> u64 {
        self.inner.calls_needed(request)
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<SummarizerResponse, Error> {
        if self.inner.provisional() {
            return self.inner.summarize(request).await;
        }
        let model = self.inner.model().unwrap_or(self.inner.id());
        let guard = self.guards.for_session(&self.session, model);
        self.inner.summarize_guarded(request, &guard).await
    }
}
