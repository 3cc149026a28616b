//! The reference store must pass the suite itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod faulty;

use memory_store::InMemoryStore;
use store_conformance::Fixture;

struct Memory;

impl Fixture for Memory {
    type Store = InMemoryStore;

    async fn fresh(&self) -> InMemoryStore {
        InMemoryStore::new()
    }
}

store_conformance::conformance_tests!(Memory);

#[cfg(feature = "random")]
#[tokio::test]
async fn random_operations_agree_with_the_simplest_model() {
    store_conformance::random_ops(&Memory, 128).await;
}
