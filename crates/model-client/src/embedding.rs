//! The trait of clients of embedding models.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Failure, ModelUsage};

/// An embedding model, which turns texts into vectors: the trait that a client of a provider implements.
///
/// Dropping the future of [`embed`](Self::embed) cancels the call.
#[async_trait]
pub trait EmbeddingModel: Send + Sync + Debug {
    /// Sends the texts, and returns one vector for each text, in the same order. The answer contains the number of
    /// tokens that the call cost, if the client knows it.
    ///
    /// # Errors
    /// A [`Failure`] if there is no answer. [`Failure::retryable`] returns whether a retry may help.
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

/// An embedding model's answer: the vectors of the texts that were sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Embeddings {
    /// One vector for each text, in the order of the texts. All vectors have the same number of components.
    pub vectors: Vec<Vec<f32>>,
    /// Number of tokens in the texts, as the provider counted them; `None` if the provider reports none.
    pub usage: Option<ModelUsage>,
}

impl Embeddings {
    /// Creates an answer with these vectors and unknown usage.
    pub fn new(vectors: Vec<Vec<f32>>) -> Self {
        Self {
            vectors,
            usage: None,
        }
    }

    /// Sets the number of tokens that the provider counted.
    pub fn with_usage(mut self, usage: Option<ModelUsage>) -> Self {
        self.usage = usage;
        self
    }
}
