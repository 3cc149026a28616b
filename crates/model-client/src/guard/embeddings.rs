//! A client of an embedding model with guards around its calls.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use token_estimate::{TokenEstimator, default_estimator};

use super::{GuardPolicy, Guards, SessionGuard};
use crate::{
    CallGuard as _, Completion, EmbeddingModel, Embeddings, Failure, FailureKind, ModelCall, Timer,
};

/// An [`EmbeddingModel`] whose calls are guarded, as [`GuardedModel`](super::GuardedModel)'s are: retries,
/// time-outs, a circuit breaker, limits on spending and concurrency. Nothing is cached.
#[derive(Debug, Clone)]
#[must_use]
pub struct GuardedEmbeddings<M> {
    name: String,
    model: M,
    guards: Arc<Guards>,
    session: Arc<SessionGuard>,
    estimator: Arc<dyn TokenEstimator>,
}

impl<M: EmbeddingModel> GuardedEmbeddings<M> {
    /// Puts guards of their own around a client. `name` names the model in errors and to observers.
    pub fn new(
        name: impl Into<String>,
        model: M,
        policy: GuardPolicy,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let guards = Arc::new(Guards::new(policy, timer));
        Self::for_session(name, model, guards, Arc::new(SessionGuard::new()))
    }

    /// Puts shared guards around the client of one session.
    pub fn for_session(
        name: impl Into<String>,
        model: M,
        guards: Arc<Guards>,
        session: Arc<SessionGuard>,
    ) -> Self {
        Self {
            name: name.into(),
            model,
            guards,
            session,
            estimator: default_estimator(),
        }
    }

    /// Returns the guards of the session.
    pub fn session(&self) -> &SessionGuard {
        &self.session
    }
}

#[async_trait]
impl<M: EmbeddingModel> EmbeddingModel for GuardedEmbeddings<M> {
    async fn embed(&self, texts: &[String]) -> Result<Embeddings, Failure> {
        let tokens = texts.iter().map(|text| self.estimator.text(text));
        let tokens = (tokens.fold(0, u64::saturating_add), 0);
        let embedded: Mutex<Option<Embeddings>> = Mutex::new(None);
        let slot = &embedded;
        let call = ModelCall::new(tokens, &*self.estimator, || {
            Box::pin(async move {
                let answer = self.model.embed(texts).await?;
                let usage = answer.usage;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                // A completion without text counts as a failure.
                Ok(Completion::new("embedded").with_usage(usage))
            })
        });
        let guard = self.guards.for_session(&self.session, &self.name);
        guard.call(call).await?;
        let embedded = embedded
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        embedded.ok_or_else(|| {
            let what = format!("model {} gave no vectors", self.name);
            Failure::new(FailureKind::BadAnswer, what)
        })
    }
}
