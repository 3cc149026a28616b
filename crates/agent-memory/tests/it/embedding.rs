//! Searches in a memory with an embedder.

use std::sync::Arc;

use agent_memory::models::{EmbeddingModel, Embeddings, Failure, FailureKind};
use agent_memory::search::Embedder;
use agent_memory::store::InMemoryStore;
use agent_memory::{
    Memory, Message, Session,
    retrieval::GrepArgs,
    search::{ModelEmbedder, SearchMode},
};
use async_trait::async_trait;
use store_conformance::Subjects;

async fn session(memory: &Memory) -> Session {
    let session = memory.session("chat").await.unwrap();
    for text in ["I bought a puppy.", "The tests are green.", "It will rain."] {
        session.ingest(Message::user(text)).await.unwrap();
    }
    session
}

async fn found(session: &Session, pattern: &str) -> Vec<String> {
    let args = GrepArgs {
        mode: SearchMode::Prose,
        ..GrepArgs::new(pattern)
    };
    let hits = session.retrieval().grep(args).await.unwrap().hits;
    hits.into_iter().map(|hit| hit.snippet).collect()
}

fn cheap() -> Arc<dyn Embedder> {
    Arc::new(Subjects {
        is_cheap: true,
        ..Subjects::default()
    })
}

#[tokio::test]
async fn a_search_finds_what_means_the_same() {
    let plain = Memory::in_memory().await.unwrap();
    assert!(found(&session(&plain).await, "hound").await.is_empty());
    let store = Arc::new(InMemoryStore::new());
    let builder = Memory::builder().store(Arc::clone(&store));
    let memory = builder.embedder(cheap()).open().await.unwrap();
    let session = session(&memory).await;
    assert_eq!(found(&session, "hound").await, ["I bought a puppy."]);
    // Ingesting has embedded all of it.
    assert_eq!(session.index().embed().await.unwrap().messages, 0);
    let off = Memory::builder().store(store).open().await.unwrap();
    let session = off.get_session("chat").await.unwrap();
    assert!(found(&session, "hound").await.is_empty());
    assert_eq!(off.verify().await.unwrap().violations, []);
}

/// A model that embeds as `Subjects` does, or fails.
#[derive(Debug)]
struct Model(bool);

#[async_trait]
impl EmbeddingModel for Model {
    async fn embed(&self, texts: &[String]) -> Result<Embeddings, Failure> {
        match self.0 {
            true => Ok(Embeddings::new(
                Subjects::default().embed(texts).await.unwrap(),
            )),
            false => Err(Failure::new(FailureKind::Overloaded, "the server is busy")),
        }
    }
}

#[tokio::test]
async fn a_model_is_asked_only_for_questions_and_on_demand() {
    let store = Arc::new(InMemoryStore::new());
    let with = |works| {
        let embedder = ModelEmbedder::new("subjects/1", 4, Arc::new(Model(works)));
        let builder = Memory::builder().store(Arc::clone(&store));
        builder.embedder(Arc::new(embedder))
    };
    let memory = with(true).open().await.unwrap();
    let session = session(&memory).await;
    assert!(found(&session, "hound").await.is_empty());
    assert_eq!(session.index().embed().await.unwrap().messages, 2);
    assert_eq!(found(&session, "hound").await, ["I bought a puppy."]);
    let broken = with(false).open().await.unwrap();
    let session = broken.get_session("chat").await.unwrap();
    assert!(found(&session, "hound").await.is_empty());
    assert_eq!(found(&session, "tests").await[0], "The tests are green.");
    session.ingest(Message::user("A van.")).await.unwrap();
    let error = session.index().embed().await.unwrap_err();
    assert!(error.to_string().contains("busy"), "{error}");
}
