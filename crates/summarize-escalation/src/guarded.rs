//! A summarizer with guards around its calls.

use std::sync::Arc;

use async_trait::async_trait;
use model_client::Timer;
use model_client::guard::{BreakerState, GuardPolicy, Guards, SessionGuard};

use crate::error::Error;
use crate::request::SummaryRequest;
use crate::summarizer::{Summarizer, SummarizerResponse};

/// A wrapper that puts guards around each model call of a summarizer. The guards enforce time-outs, retries, spending
/// limits and caching. If a source is summarized in parts, they apply to each of the calls.
///
/// The id is that of the wrapped summarizer, so guards do not change the recipe of a summary. Calls of a summarizer
/// without a model are not guarded.
///
/// If a guard refuses a call, this counts as a failure of the provider, and the ladder's rules apply.
#[derive(Debug, Clone)]
pub struct GuardedSummarizer<S> {
    inner: S,
    guards: Arc<Guards>,
    session: Arc<SessionGuard>,
}

impl<S: Summarizer> GuardedSummarizer<S> {
    /// Wraps a summarizer with new guards.
    pub fn new(inner: S, policy: GuardPolicy, timer: Arc<dyn Timer>) -> Self {
        let guards = Arc::new(Guards::new(policy, timer));
        Self::for_session(inner, guards, Arc::new(SessionGuard::new()))
    }

    /// Wraps a summarizer with guards that are shared with other sessions, and with the guard of one session.
    pub fn for_session(inner: S, guards: Arc<Guards>, session: Arc<SessionGuard>) -> Self {
        Self {
            inner,
            guards,
            session,
        }
    }

    /// Returns the guard of the session.
    pub fn session(&self) -> &SessionGuard {
        &self.session
    }

    /// Returns the guards that sessions share.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Returns the state of the circuit breaker.
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
