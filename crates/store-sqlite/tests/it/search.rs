//! The search index in a file.

use std::sync::Arc;

use memory_search::ranking::RankingPolicy;
use memory_store::{Maintain as _, Store as _, check_index, extend_index, rebuild_index};
use store_conformance::{index_answers_as_a_scan, index_segments_are_few};

use crate::common::{batch, root, store, texts};

#[tokio::test]
async fn an_index_answers_as_a_scan() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    index_answers_as_a_scan(Arc::clone(&store), 2).await;
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn segments_are_few() {
    let (_folder, store) = store().await;
    let store = Arc::new(store);
    index_segments_are_few(Arc::clone(&store)).await;
    assert!(store.index().is_some());
    assert_eq!(store.check().await.unwrap(), []);
}

#[tokio::test]
async fn damage_to_the_index_is_found_and_mended() {
    let (folder, store) = store().await;
    let chat = root(&store, "a").await;
    store.append(chat, &batch(texts(1, 40))).await.unwrap();
    let policy = RankingPolicy::default();
    let made = extend_index(&store, chat, &policy, u64::MAX).await.unwrap();
    assert_eq!(made.messages, 32);
    let sound = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!((sound.documents, sound.damage.len()), (32, 0));
    let sql = "update search_chunk set data = zeroblob(length(data)) where rowid = 2";
    crate::damage::damage(&folder, sql).await;
    let found = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    rebuild_index(&store, chat, &policy).await.unwrap();
    let mended = check_index(&store, chat, &policy).await.unwrap();
    assert_eq!((mended.documents, mended.damage.len()), (32, 0));
}
