//! An embedder that calls a model, and the vectors of a session.

use std::sync::Arc;

use async_trait::async_trait;
use memory_search::{Embedder, extend_vectors};
use model_client::EmbeddingModel;

use crate::session::Session;

/// Maximum number of entries that one ingest embeds. Later calls embed the rest.
const MOST_AT_ONCE: u64 = 1_024;

/// An [`Embedder`] that calls an embedding model.
///
/// Searches use the vectors that [`SessionIndex::embed`](crate::search::SessionIndex::embed) stored. Only the question
/// is embedded during a search.
#[derive(Debug, Clone)]
pub struct ModelEmbedder {
    id: String,
    dimension: usize,
    model: Arc<dyn EmbeddingModel>,
}

impl ModelEmbedder {
    /// Creates an embedder that calls `model`. `id` is the name and version of the model; vectors with different ids
    /// are not compared. `dimension` is the number of components of each vector.
    pub fn new(
        id: impl Into<String>,
        dimension: usize,
        model: impl EmbeddingModel + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            dimension,
            model: Arc::new(model),
        }
    }
}

#[async_trait]
impl Embedder for ModelEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    async fn embed(&self, texts: &[String]) -> memory_search::Result<Vec<Vec<f32>>> {
        let embedded = self.model.embed(texts).await;
        let embedded = embedded.map_err(|failure| {
            let kind = memory_search::ErrorKind::Unavailable;
            let message = format!("the embedder {:?}: {failure}", self.id);
            memory_search::Error::new(kind, message).with_source(failure)
        })?;
        Ok(embedded.vectors)
    }
}

impl Session {
    /// Embeds ingested messages if the embedder calls no model. A failure is only logged, because searches embed
    /// messages that have no vector.
    pub(crate) async fn embed_cheaply(&self) {
        let inner = &self.memory().inner;
        let embedder = inner.embedder.as_ref();
        let Some(embedder) = embedder.filter(|one| one.is_cheap()) else {
            return;
        };
        let extended = extend_vectors(&*inner.store, self.id(), &**embedder, MOST_AT_ONCE).await;
        if let Err(error) = extended {
            tracing::warn!(session = %self.key(), %error, "the messages were not embedded");
        }
    }
}
