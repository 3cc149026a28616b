//! The trait of an embedder.

use std::fmt;

use async_trait::async_trait;
use auto_impl::auto_impl;

use crate::error::{Error, ErrorKind, Result};

/// Turns texts into vectors. Texts with nearly the same meaning have vectors that are near each other.
///
/// Vectors are stored and compared with vectors that are made later, so the same text should always give the same
/// vector.
#[async_trait]
#[auto_impl(Arc)]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns the name of the model with its version. Only vectors with the same id are compared.
    fn id(&self) -> &str;

    /// Returns the number of components of each vector.
    fn dimension(&self) -> usize;

    /// Returns whether embedding a text costs about as much as reading it, so that a search may embed a whole
    /// conversation by itself. For other embedders a search uses the stored vectors. Default false.
    fn is_cheap(&self) -> bool {
        false
    }

    /// Returns a vector of [`dimension`](Self::dimension) components for each text, in the same order. The vector of a
    /// text that the embedder does not know is all zeros.
    ///
    /// # Errors
    /// `Unavailable` when the model is not available.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}

/// Embeds texts and checks that the answer has the shape that the trait promises.
///
/// # Errors
/// The errors of [`Embedder::embed`]; `Unavailable` when the number of vectors, a dimension, or a component is wrong.
pub(crate) async fn embed(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let vectors = embedder.embed(texts).await?;
    let dimension = embedder.dimension();
    let is_sound = |vector: &Vec<f32>| {
        vector.len() == dimension && vector.iter().all(|component| component.is_finite())
    };
    if vectors.len() == texts.len() && vectors.iter().all(is_sound) {
        return Ok(vectors);
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!(
            "the embedder {:?} did not answer {} texts with as many finite vectors of {dimension} components: check \
             its model and its dimension",
            embedder.id(),
            texts.len()
        ),
    ))
}
