//! Tests of vectors of messages in a file.

use std::sync::Arc;

use memory_search::{check_vectors, extend_vectors};
use memory_store::{Maintain as _, Store as _};
use store_conformance::{
    Chat, Subjects, an_erasure_leaves_no_vector, pages_are_of_one_ranking, searches_count_vectors,
    vectors_are_kept,
};

use crate::common::{store, texts};

#[tokio::test]
async fn a_file_keeps_vectors() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    vectors_are_kept(Arc::clone(&store)).await;
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn an_erasure_leaves_none() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    an_erasure_leaves_no_vector(Arc::clone(&store)).await;
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn searches_count_them() {
    let (_folder, store) = store().await;
    searches_count_vectors(Arc::new(store), 5).await;
}

#[tokio::test]
async fn pages_come_from_one_ranking() {
    let (_folder, store) = store().await;
    pages_are_of_one_ranking(Arc::new(store)).await;
}

#[tokio::test]
async fn damage_to_vectors_is_found() {
    let (folder, store) = store().await;
    let chat = Chat::root(&store, "a").await;
    chat.append(texts(1, 3)).await;
    let chat = chat.id;
    let embedder = Subjects::default();
    extend_vectors(&store, chat, &embedder, u64::MAX)
        .await
        .unwrap();
    let sound = check_vectors(&store, chat, &embedder).await.unwrap();
    assert_eq!(sound.damage.len(), 0);
    let sql = "update message_vector set vector = x'0102' where seq = 2";
    crate::damage::damage(&folder, sql).await;
    let found = check_vectors(&store, chat, &embedder).await.unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    let vectors = store.vector_store().unwrap();
    vectors.drop_vectors(chat, "subjects/1").await.unwrap();
    extend_vectors(&store, chat, &embedder, u64::MAX)
        .await
        .unwrap();
    let mended = check_vectors(&store, chat, &embedder).await.unwrap();
    assert_eq!(mended.damage.len(), 0);
}
