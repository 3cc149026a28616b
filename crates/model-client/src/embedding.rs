//! The trait of a client of models that embed texts.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Failure, ModelUsage};

/// A model that turns texts into vectors.
///
/// Dropping the future cancels the call.
#[async_trait]
pub trait EmbeddingModel: Send + Sync + Debug {
    /// Returns a vector for each text, in their order, with the cost if the client knows it.
    ///
    /// # Errors
    /// A [`Failure`] if there is no answer; [`Failure::retryable`] is whether a retry may help.
    async fn embed(&self, texts: &[String]) -> Result<Embeddings, Failure>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        #[async_trait]
        impl<M: EmbeddingModel + ?Sized> EmbeddingModel for $pointer {
            async fn embed(&self, texts: &[String]) -> Result<Embeddings, Failure> {
                (**self).embed(texts).await
            }
        }
    )*};
}

forward!(&M, Box<M>, Arc<M>);

/// Vectors of texts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Embeddings {
    /// A vector for each text, in their order, all of one dimension.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens that the provider counted.
    pub usage: Option<ModelUsage>,
}

impl Embeddings {
    /// Returns vectors with an unknown cost.
    pub fn new(vectors: Vec<Vec<f32>>) -> Self {
        Self {
            vectors,
            usage: None,
        }
    }

    /// Sets the tokens that the provider counted.
    pub fn with_usage(mut self, usage: Option<ModelUsage>) -> Self {
        self.usage = usage;
        self
    }
}
