//! The reference store passes the suite that it is the reference for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod faulty;
mod verify;

use memory_store::InMemoryStore;
use memory_store::conformance::Fixture;

struct Memory;

impl Fixture for Memory {
    type Store = InMemoryStore;

    async fn fresh(&self) -> InMemoryStore {
        InMemoryStore::new()
    }
}

memory_store::conformance_tests!(Memory);

#[tokio::test]
async fn random_operations_agree_with_the_simplest_model() {
    memory_store::conformance::random_ops(&Memory, 128).await;
}
