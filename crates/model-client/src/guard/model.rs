//! A client with guards around its calls.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use token_estimate::{TokenEstimator, default_estimator};

use super::{BreakerState, GuardPolicy, Guards, SessionGuard};
use crate::{
    CacheKey, CallGuard as _, ChatModel, ChatPrompt, Completion, EmbeddingModel, Embeddings,
    Failure, FailureKind, ModelCall, Timer,
};

/// A [`ChatModel`] or an [`EmbeddingModel`] with guards around its calls: retries, time-outs, a circuit breaker, limits
/// on spending and concurrency. Answers of chat models may be cached; vectors are never cached.
///
/// ```
/// use std::sync::Arc;
/// use model_client::guard::{GuardPolicy, GuardedModel};
/// use model_client::testing::{FakeTimer, ScriptedModel};
/// use model_client::{ChatModel, ChatPrompt, Failure, FailureKind};
///
/// let overloaded = Failure::new(FailureKind::Overloaded, "the server is busy");
/// let model = ScriptedModel::new([Err(overloaded), Ok("42")]);
/// let timer = FakeTimer::new();
/// let guarded = GuardedModel::new("m", model, GuardPolicy::default(), Arc::new(timer.clone()));
/// let prompt = ChatPrompt::new("Answer with a number.", "6 × 7?");
/// // The first attempt fails and the second succeeds; no time passes in the test.
/// let answer = timer.drive(guarded.complete(&prompt)).expect("the timer wakes the retry")?;
/// assert_eq!((answer.text.as_str(), answer.calls), ("42", 2));
/// # Ok::<(), Failure>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct GuardedModel<M> {
    name: String,
    model: M,
    guards: Arc<Guards>,
    session: Arc<SessionGuard>,
    estimator: Arc<dyn TokenEstimator>,
}

impl<M> GuardedModel<M> {
    /// Wraps the client `model` with new guards for a single session, with this policy. `name` is the model's name in
    /// errors, in events for observers and in the keys of the cache.
    pub fn new(
        name: impl Into<String>,
        model: M,
        policy: GuardPolicy,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let guards = Arc::new(Guards::new(policy, timer));
        Self::for_session(name, model, guards, Arc::new(SessionGuard::new()))
    }

    /// Wraps a client with the guards that all sessions share (`guards`) and the guards of one session (`session`).
    /// `name` is the model's name in errors, in events for observers and in the keys of the cache.
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

    /// Returns the guards of the client's session.
    pub fn session(&self) -> &SessionGuard {
        &self.session
    }

    /// Returns the guards that all sessions share.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// Returns the state of the session's circuit breaker.
    pub fn breaker(&self) -> BreakerState {
        self.guards.breaker(&self.session)
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for GuardedModel<M> {
    async fn complete(&self, prompt: &ChatPrompt) -> Result<Completion, Failure> {
        let count = |text: &str| self.estimator.text(text);
        let input = count(&prompt.system).saturating_add(count(&prompt.user));
        let tokens = (input, prompt.max_tokens);
        let call = ModelCall::new(tokens, &*self.estimator, || self.model.complete(prompt))
            .with_cache_key(Some(CacheKey::of_prompt(&self.name, prompt)));
        let guard = self.guards.for_session(&self.session, &self.name);
        guard.call(call).await
    }
}

#[async_trait]
impl<M: EmbeddingModel> EmbeddingModel for GuardedModel<M> {
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
                Ok(Completion {
                    usage,
                    ..Completion::new("embedded")
                })
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
