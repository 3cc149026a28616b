//! Searches that use vectors, and the reference store that keeps vectors.

use std::sync::Arc;

use memory_store::InMemoryStore;
use store_conformance::{
    an_erasure_leaves_no_vector, pages_are_of_one_ranking, searches_count_vectors, vectors_are_kept,
};

#[tokio::test]
async fn the_reference_store_keeps_vectors() {
    vectors_are_kept(Arc::new(InMemoryStore::new())).await;
}

#[tokio::test]
async fn an_erasure_leaves_none() {
    an_erasure_leaves_no_vector(Arc::new(InMemoryStore::new())).await;
}

#[tokio::test]
async fn searches_count_them() {
    for seed in 0..4 {
        searches_count_vectors(Arc::new(InMemoryStore::new()), seed).await;
    }
}

#[tokio::test]
async fn pages_come_from_one_ranking() {
    pages_are_of_one_ranking(Arc::new(InMemoryStore::new())).await;
}
