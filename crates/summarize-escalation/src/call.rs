//! Calls of a model, and what stands around each of them.

use std::fmt;

use async_trait::async_trait;
use futures::future::BoxFuture;
use token_estimate::TokenEstimator;

use crate::{Error, SummaryText};

/// One call of a model, which can be made several times.
pub struct ModelCall<'a> {
    /// Tokens that the model reads, as estimated.
    pub input_tokens: u64,
    /// Tokens that the model is asked to write.
    pub output_tokens: u64,
    /// Counts the tokens.
    pub estimator: &'a dyn TokenEstimator,
    make: Box<dyn Fn() -> BoxFuture<'a, Result<SummaryText, Error>> + Send + Sync + 'a>,
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
    /// A call that `make` makes, each time it is called.
    pub fn new(
        (input_tokens, output_tokens): (u64, u64),
        estimator: &'a dyn TokenEstimator,
        make: impl Fn() -> BoxFuture<'a, Result<SummaryText, Error>> + Send + Sync + 'a,
    ) -> Self {
        Self {
            input_tokens,
            output_tokens,
            estimator,
            make: Box::new(make),
        }
    }

    /// Makes the call once.
    ///
    /// # Errors
    /// What the model's client returns.
    pub async fn make(&self) -> Result<SummaryText, Error> {
        (self.make)().await
    }

    /// Tokens that are counted for an answer: the provider's figures where it gave any, else the
    /// estimate.
    pub fn cost(&self, answer: &SummaryText) -> u64 {
        match answer.usage {
            Some(usage) => usage.total(),
            None => self
                .input_tokens
                .saturating_add(self.estimator.text(&answer.text)),
        }
    }
}

/// Stands around each call of a model: [`Guarded`](crate::Guarded) is one.
#[async_trait]
pub trait CallGuard: Send + Sync {
    /// Makes a call as often as it likes, or not at all. [`SummaryText::calls`] of the answer and
    /// [`Error::calls`] say how often.
    ///
    /// # Errors
    /// Those of the call, and those of the guard.
    async fn call(&self, call: ModelCall<'_>) -> Result<SummaryText, Error>;
}

/// Makes each call once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unguarded;

#[async_trait]
impl CallGuard for Unguarded {
    async fn call(&self, call: ModelCall<'_>) -> Result<SummaryText, Error> {
        call.make().await
    }
}
