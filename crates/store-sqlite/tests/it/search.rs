//! The search index in a file.

use std::sync::Arc;

use memory_store::{Maintain as _, Store as _};
use store_conformance::{index_answers_as_a_scan, index_segments_are_few};

use crate::common::store;

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
