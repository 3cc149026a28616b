//! One call of a model, and the trait of guards that make calls.

use std::fmt;

use async_trait::async_trait;
use futures::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use token_estimate::TokenEstimator;

use crate::{ChatPrompt, Completion, Failure, ModelUsage};

/// One call of a model. It can be sent several times, for example by a guard that retries.
pub struct ModelCall<'a> {
    /// Estimated number of tokens in the prompt.
    pub input_tokens: u64,
    /// Maximum number of tokens that the model may write.
    pub output_tokens: u64,
    /// Number of tokens that the answer should have.
    pub desired_tokens: u64,
    /// Key under which a cache stores the answer; `None` if no cache may store it.
    pub cache_key: Option<CacheKey>,
    estimator: &'a dyn TokenEstimator,
    make: Box<dyn Fn() -> BoxFuture<'a, Result<Completion, Failure>> + Send + Sync + 'a>,
}

impl fmt::Debug for ModelCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCall")
            .field("input_tokens", &self.input_tokens)
            .field("output_tokens", &self.output_tokens)
            .finish_non_exhaustive()
    }
}

impl<'a> ModelCall<'a> {
    /// Creates a call. `make` sends the request, and is invoked once for each attempt. The first of `tokens` is the
    /// number of tokens in the prompt, counted with `estimator`. The second is the maximum number that the model may
    /// write.
    pub fn new(
        tokens: (u64, u64),
        estimator: &'a dyn TokenEstimator,
        make: impl Fn() -> BoxFuture<'a, Result<Completion, Failure>> + Send + Sync + 'a,
    ) -> Self {
        Self {
            input_tokens: tokens.0,
            output_tokens: tokens.1,
            desired_tokens: tokens.1,
            cache_key: None,
            estimator,
            make: Box::new(make),
        }
    }

    /// Sets the number of tokens that the answer should have. By default it is the maximum number.
    pub fn with_desired_tokens(mut self, tokens: u64) -> Self {
        self.desired_tokens = tokens;
        self
    }

    /// Sets the key under which a cache stores the answer; `None` if no cache may store it.
    pub fn with_cache_key(mut self, key: Option<CacheKey>) -> Self {
        self.cache_key = key;
        self
    }

    /// Sends the request once, and returns the model's answer.
    ///
    /// # Errors
    /// The [`Failure`] of the model's client.
    pub async fn make(&self) -> Result<Completion, Failure> {
        (self.make)().await
    }

    /// Returns the number of tokens that an answer cost: the numbers that the provider reports, or an estimate of the
    /// prompt and the answer if it reports none.
    pub fn cost(&self, answer: &Completion) -> u64 {
        self.usage(answer).total()
    }

    /// Returns the tokens of an answer: the numbers that the provider reports, or an estimate if it reports none.
    pub(crate) fn usage(&self, answer: &Completion) -> ModelUsage {
        let estimate = || ModelUsage::new(self.input_tokens, self.estimator.text(&answer.text));
        answer.usage.unwrap_or_else(estimate)
    }

    /// Returns an answer of about the desired length, without meaning.
    pub(crate) fn stand_in(&self) -> Completion {
        /// Number of words of which the cost is counted.
        const COUNTED: u64 = 64;
        /// Maximum number of words.
        const MOST: u64 = 1 << 20;
        let words = |count: u64| "word ".repeat(usize::try_from(count).unwrap_or(0));
        let cost = self.estimator.text(&words(COUNTED)).max(1);
        let count = self.desired_tokens.saturating_mul(COUNTED) / cost;
        Completion::new(words(count.clamp(1, MOST)).trim_end())
    }
}

/// Key of an answer in a cache: a hash of all data on which the answer depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey([u8; 32]);

impl CacheKey {
    /// Returns the key for the answer of the model named `model` to a prompt.
    pub fn of_prompt(model: &str, prompt: &ChatPrompt) -> Self {
        let limits = [prompt.max_tokens, prompt.output_room.unwrap_or(u64::MAX)];
        let [limit, room] = limits.map(u64::to_le_bytes);
        let texts = [model, &prompt.system, &prompt.user].map(str::as_bytes);
        Self::new(texts.into_iter().chain([&limit[..], &room[..]]))
    }

    /// Returns the key for these fields. Keys differ if the fields, their order or the boundaries between them differ.
    pub fn new<'f>(fields: impl IntoIterator<Item = &'f [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for field in fields {
            hasher.update((field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        Self(hasher.finalize().into())
    }
}

/// Makes calls of a model for the application. A guard makes a call once, repeats it, or refuses it.
#[async_trait]
pub trait CallGuard: Send + Sync {
    /// Makes a call and returns the answer. [`Completion::calls`] or [`Failure::calls`] is the number of attempts.
    ///
    /// # Errors
    /// The [`Failure`] of the last attempt, or of the guard if it refuses to make the call.
    async fn call(&self, call: ModelCall<'_>) -> Result<Completion, Failure>;
}

/// A guard that makes each call once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unguarded;

#[async_trait]
impl CallGuard for Unguarded {
    async fn call(&self, call: ModelCall<'_>) -> Result<Completion, Failure> {
        call.make().await
    }
}
