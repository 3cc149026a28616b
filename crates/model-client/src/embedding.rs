//! The trait of a client of models that embed texts.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Failure, ModelUsage};

/// An embedding model, which turns texts into vectors: the trait that a client of a provider implements.
///
/// Dropping the future of [`embed`](Self::embed) cancels the call.
#[async_trait]
pub trait EmbeddingModel: Send + Sync + Debug {
    /// Sends the texts, and returns a vector for each of them, in the same order, with the tokens that the call cost,
    /// if the client knows them.
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
    /// Tokens of the texts, as the provider counted them; `None` if it does not report them.
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

    /// Sets the tokens that the provider counted.
    pub fn with_usage(mut self, usage: Option<ModelUsage>) -> Self {
        self.usage = usage;
        self
    }
}
