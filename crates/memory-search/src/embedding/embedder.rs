//! The trait of an embedder, which turns texts into vectors.

use std::fmt;

use async_trait::async_trait;
use auto_impl::auto_impl;

use crate::error::{Error, ErrorKind, Result};

/// An embedding model: turns texts into vectors. Texts with nearly the same meaning have vectors that are close to each
/// other.
///
/// Vectors are stored and later compared with new vectors. The same text should therefore always have the same vector.
#[async_trait]
#[auto_impl(Arc)]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns the name and version of the model. Only vectors with the same name and version are compared with each
    /// other.
    fn id(&self) -> &str;

    /// Returns the number of components of each vector.
    fn dimension(&self) -> usize;

    /// Returns whether embedding a text costs about as much as reading it. With a cheap embedder, a search itself
    /// embeds the messages that have no stored vector. With any other embedder, a search uses only stored vectors.
    /// Default false.
    fn is_cheap(&self) -> bool {
        false
    }

    /// Returns one vector for each text, in the order of the texts. Each vector has [`dimension`](Self::dimension)
    /// components. All components are 0 for a text that the embedder does not know.
    ///
    /// # Errors
    /// `Unavailable` if the model is not available.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>>;
}

/// Embeds texts, and checks the number, dimension and components of the returned vectors.
///
/// # Errors
/// The errors of [`Embedder::embed`]. `Unavailable` also if the number of vectors or a dimension is wrong, or if a
/// component is not finite.
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
